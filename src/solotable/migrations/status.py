"""Status: what a migration has done, how fast it is, and when it will be ready. Changes nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .apply.direction import forward, reverse
from .copy.forecast import forecast
from .workflow import cursors, dead_letters
from .workflow.control import ControlRecord
from .workflow.cursors import Cursor

if TYPE_CHECKING:
    from .migration import Migration


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyProgress:
    """The progress of the copy; counts are exact, except `total` on Amazon (see `total_is_exact`)."""

    scanned: int
    #: Items that the sources had at the start. Amazon updates its counts about every six hours.
    total: int
    total_is_exact: bool
    outputs: int
    segments: int
    segments_done: int
    is_done: bool
    #: Items in a second, lately (of an ended copy, in all), and the seconds that are left; None if unknown.
    rate: float | None
    eta_seconds: float | None
    by_source: dict[str, int] = field(default_factory=dict)

    @property
    def percent(self) -> float:
        """The share of the items that were copied, from 0 to 100."""
        if self.is_done:
            return 100.0
        return min(99.9, 100.0 * self.scanned / self.total) if self.total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status of a migration."""

    record: ControlRecord
    copy: CopyProgress
    #: Changes that were applied, in the direction of the replication.
    applied: int
    #: How far the replication is behind, in seconds; None if no worker applies changes.
    lag_seconds: float | None
    workers: list[str]
    dead_letters: int

    def to_dict(self) -> dict[str, Any]:
        """Return the status as values of JSON."""
        copy = asdict(self.copy) | {"percent": round(self.copy.percent, 1)}
        return asdict(self) | {"record": asdict(self.record), "copy": copy}


def status(migration: Migration, record: ControlRecord | None = None) -> Status:
    """Read the status of a migration."""
    side = migration.target
    record = migration.record() if record is None else record
    now = side.clock()
    segments = [
        each
        for each in side.run(cursors.load_cursors(side, migration.name, "SEGMENT#"))
        if each.data.get("generation") == record.generation
    ]
    apply = apply_cursor(migration, record)
    busy = [*segments, *([apply] if apply is not None else [])]
    return Status(
        record=record,
        copy=_copy_progress(record, segments, now),
        applied=0 if apply is None else int(apply.data.get("applied", 0)),
        lag_seconds=lag_of(apply, now),
        workers=sorted({each.owner for each in busy if each.owner is not None and _is_alive(each, now)}),
        dead_letters=len(side.run(dead_letters.dead_letters(side, migration.name))),
    )


def apply_cursor(migration: Migration, record: ControlRecord) -> Cursor | None:
    """Return the cursor of the direction in which changes are applied now; None before the first."""
    if record.writes == "source":
        direction = forward(migration)
    elif migration.mapping.is_reversible:
        direction = reverse(migration)
    else:
        return None
    side = direction.destination
    found = side.run(cursors.load_cursors(side, migration.name, direction.cursor))
    return found[0] if found else None


def is_applied(migration: Migration, record: ControlRecord) -> bool:
    """Return whether a worker applies changes now."""
    cursor = apply_cursor(migration, record)
    return cursor is not None and _is_alive(cursor, migration.target.clock())


def _is_alive(cursor: Cursor, now: float) -> bool:
    return cursor.owner is not None and cursor.until > now


def lag_of(cursor: Cursor | None, now: float) -> float | None:
    """Return how far a replication is behind; None if no worker applies changes."""
    if cursor is None or "applied" not in cursor.data:
        return None
    if cursor.data.get("drained_at") is not None and _is_alive(cursor, now):
        return 0.0
    last = max(float(cursor.data.get(name) or 0) for name in ("drained_at", "last_at"))
    return max(0.0, now - last) if last else None


def _copy_progress(record: ControlRecord, segments: list[Cursor], now: float) -> CopyProgress:
    scanned = sum(int(each.data.get("scanned", 0)) for each in segments)
    has_ended = record.copied_at is not None and not segments
    if has_ended:
        # The end of a migration deletes its cursors.
        scanned = sum(record.totals.values())
    by_source: dict[str, int] = {}
    for each in segments:
        name = str(each.data["source"])
        by_source[name] = by_source.get(name, 0) + int(each.data.get("scanned", 0))
    total = max(sum(record.totals.values()), scanned)
    elapsed = (record.copied_at or now) - (record.copy_began_at or now)
    rate = scanned / elapsed if scanned and elapsed > 0 else None
    eta_seconds: float | None = 0.0
    done = sum(1 for each in segments if each.data.get("done"))
    if record.state == "Copying" and done < len(segments):
        found = forecast(record, scanned, total, now)
        rate, eta_seconds = found.pace, found.eta_seconds
    return CopyProgress(
        scanned=scanned,
        total=total,
        total_is_exact=record.totals_exact,
        outputs=sum(int(each.data.get("outputs", 0)) for each in segments),
        segments=len(segments),
        segments_done=done,
        is_done=has_ended or 0 < len(segments) == done,
        rate=rate,
        eta_seconds=eta_seconds,
        by_source=by_source,
    )
