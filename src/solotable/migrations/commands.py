"""Commands of a migration that change its control record: create, start, stop, reads, rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from solotable._flows.retry import send
from solotable._protocol.engine import capabilities_of
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable._values import Item
from solotable.errors import DataError, MappingRejected, MigrationConflict, MigrationError

from .apply.applier import start_positions
from .apply.direction import forward, reverse
from .workflow import cursors
from .workflow.claims import check_claims, claim_tables
from .workflow.control import ControlRecord, DiffResult, check_percent, create_record
from .workflow.sides import Side, describe_table, ensure_control_table, ensure_stream
from .workflow.states import FORWARD, State, check_state, not_ready

if TYPE_CHECKING:
    from .migration import Migration

_SAMPLES = 100
_ATTEMPTS = 20
_MOST_SEGMENTS = 1000
_ROUTED: frozenset[State] = frozenset({"Verified", "ReadsSwitched", "WritesSwitched"})
_STOPPABLE: frozenset[State] = FORWARD | {"WritesSwitched"}


def create(
    migration: Migration,
    *,
    segments: int = 4,
    rate: float | None = None,
    window_seconds: float = 60.0,
    allow_non_empty: bool = False,
    samples: int = _SAMPLES,
    dry_run: bool = False,
) -> ControlRecord:
    """Check the mapping and the tables, claim them, and store the control record; `dry_run` only checks."""
    if not 1 <= segments <= _MOST_SEGMENTS:
        raise DataError(f"segments is a number from 1 to {_MOST_SEGMENTS}, got {segments}.")
    _check_rate(rate)
    existing = migration.find_record()
    if existing is not None:
        raise MigrationConflict(f"Migration {migration.name!r} exists and is {existing.state}.")
    for side in (migration.source, migration.target):
        side.run(check_claims(side, migration.name))
    _check_tables(migration, allow_non_empty=allow_non_empty)
    _check_mapping(migration, samples)
    if dry_run:
        return ControlRecord(name=migration.name, segments=segments, rate=rate)
    for side in (migration.source, migration.target):
        side.run(ensure_control_table(side))
        side.run(claim_tables(side, migration.name))
    record = ControlRecord(
        name=migration.name,
        epoch=1,
        created_at=migration.target.clock(),
        segments=segments,
        rate=rate,
        window_seconds=window_seconds,
        fingerprint=migration.mapping.fingerprint,
        has_served=False,
    )
    return migration.target.run(create_record(migration.target, record))


def start(migration: Migration, *, copy_again: bool = False) -> ControlRecord:
    """Start or resume a migration; after a trimmed stream, or with `copy_again`, copy everything again.

    If the target takes writes, and its stream was trimmed, the writes return only after a repair.
    """
    record = migration.record()
    allowed: frozenset[State] = frozenset({"Created", "Stopped", "Error"})
    if copy_again:
        allowed |= {"CatchingUp", "Running", "Verified", "Copying"}
    check_state(migration.name, record.state, allowed, "start")
    changed = record.fingerprint != migration.mapping.fingerprint
    if record.needs_copy and record.writes == "target":
        return _resume_reverse(migration, record)
    if record.state == "Created" or record.needs_copy or copy_again:
        if record.writes == "target":
            raise not_ready(
                migration.name,
                "cannot be copied again, because the target takes writes; run `solotable migrate repair`",
            )
        return _start_copy(migration, record)
    if changed:
        raise not_ready(
            migration.name, "was started with another mapping; copy everything again with copy_again=True"
        )
    assert record.resume is not None
    return migration.transition(
        record, record.resume, resume=None, error=None, throttled=None, opened_at=None, closed_at=None
    )


def _start_copy(migration: Migration, record: ControlRecord) -> ControlRecord:
    if record.generation == 0:
        kind = forward(migration).cursor
        target = migration.target
        target.run(cursors.create(target, migration.name, kind, state=record.state))
    side = migration.source
    totals = {}
    for name, table in side.names.items():
        totals[name] = int(side.run(describe_table(side, table)).get("ItemCount", 0))
    return migration.transition(
        record,
        "Copying",
        generation=record.generation + 1,
        copying=False,
        window=record.window + 1,
        totals=totals,
        totals_exact=not capabilities_of(side.engine).amazon,
        started_at=migration.target.clock(),
        copy_began_at=None,
        copied_at=None,
        opened_at=None,
        opened_items=0,
        closed_at=None,
        paced_items=0.0,
        paced_copying=0.0,
        paced_seconds=0.0,
        resume=None,
        error=None,
        needs_copy=False,
        throttled=None,
        diff=None,
        reads_percent=0.0,
        reads_by_entity={},
        fingerprint=migration.mapping.fingerprint,
    )


def _resume_reverse(migration: Migration, record: ControlRecord) -> ControlRecord:
    """Apply changes of the target from now on; a repair writes those that its stream dropped."""
    back = reverse(migration)
    side = back.destination
    origin = back.origin
    enabled = [
        f"{origin.name}:{table}"
        for table in origin.names.values()
        if origin.run(ensure_stream(origin, table))
    ]
    seized = cursors.seize(
        side,
        migration.name,
        back.cursor,
        owner="start",
        creates=True,
        positions=start_positions(back),
        drained_at=None,
    )
    side.run(cursors.release(side, side.run(seized)))
    return migration.transition(
        record,
        "WritesSwitched",
        flips=record.flips + 1,
        needs_copy=False,
        needs_repair=True,
        streams=list(dict.fromkeys([*record.streams, *enabled])),
        resume=None,
        error=None,
        throttled=None,
        diff=None,
    )


def stop(migration: Migration) -> ControlRecord:
    """Stop the workers; `start` resumes where they were."""

    def change(record: ControlRecord) -> ControlRecord:
        check_state(migration.name, record.state, _STOPPABLE, "stop")
        return migration.transition(record, "Stopped", resume=record.state)

    return _repeat(migration, change)


def set_rate(migration: Migration, rate: float | None) -> ControlRecord:
    """Change the write units that the workers may use in a second, while they run."""
    _check_rate(rate)
    return _repeat(migration, lambda record: migration.transition(record, rate=rate))


def mirror(migration: Migration, percent: float) -> ControlRecord:
    """Repeat a share of the reads on the other side, and compare."""
    share = check_percent("percent", percent)
    return _repeat(migration, lambda record: migration.transition(record, mirror_percent=share))


def switch_reads(migration: Migration, percent: float, *, entity: str | None = None) -> ControlRecord:
    """Let the target serve a share of the eventually consistent reads, of all entities or of one."""
    share = check_percent("percent", percent)

    def change(record: ControlRecord) -> ControlRecord:
        check_state(migration.name, record.state, _ROUTED, "switch-reads")
        changes: dict[str, Any] = {"reads_percent": share, "reads_by_entity": {}}
        if entity is not None:
            changes = {"reads_by_entity": {**record.reads_by_entity, entity: share}}
        moved = changes.get("reads_percent", record.reads_percent) or any(changes["reads_by_entity"].values())
        if record.state == "WritesSwitched":
            return migration.transition(record, **changes)
        return migration.transition(record, "ReadsSwitched" if moved else "Verified", **changes)

    return _repeat(migration, change)


def record_diff(migration: Migration, *, compared: int, differences: int, flips: int) -> ControlRecord:
    """Store the outcome of a complete comparison; without differences, a Running migration is Verified."""

    def change(record: ControlRecord) -> ControlRecord:
        result = DiffResult(
            at=migration.target.clock(), compared=compared, differences=differences, flips=flips
        )
        state: State | None = None
        if record.state == "Running" and result.is_green:
            state = "Verified"
        elif record.state == "Verified" and not result.is_green:
            state = "Running"
        return migration.transition(record, state, diff=result)

    return _repeat(migration, change)


def _repeat(migration: Migration, change: Any) -> ControlRecord:
    """Change the record as it is now, again if another process changes it first."""
    for _ in range(_ATTEMPTS - 1):
        try:
            changed: ControlRecord = change(migration.record())
        except MigrationConflict:
            continue
        return changed
    last: ControlRecord = change(migration.record())
    return last


def _check_rate(rate: float | None) -> None:
    if rate is not None and rate <= 0:
        raise DataError(f"rate is a number of write units in a second above 0, got {rate}.")


def _check_tables(migration: Migration, *, allow_non_empty: bool) -> None:
    for side in (migration.source, migration.target):
        for name, table in side.names.items():
            described = side.run(describe_table(side, table))
            keys = tuple(each["AttributeName"] for each in described["KeySchema"])
            if keys != side.tables[name].key_names:
                raise MigrationError(
                    f"Table {table!r} of {side.label} has the key {keys}, but the mapping declares "
                    f"{side.tables[name].key_names}."
                )
    (target,) = migration.target.names.values()
    is_same = migration.source.engine is migration.target.engine and target in migration.source.names.values()
    if allow_non_empty or is_same:
        return
    if _first_items(migration.target, target, 1):
        raise MigrationError(
            f"The target table {target!r} is not empty; empty it, or pass allow_non_empty=True to migrate "
            f"beside its items, which the migration never overwrites."
        )


def _check_mapping(migration: Migration, samples: int) -> None:
    side = migration.source
    found: Mapping[str, list[Item]] = {
        name: _first_items(side, table, samples) for name, table in side.names.items()
    }
    report = migration.mapping.check(found)
    if not report.ok:
        problems = [str(problem) for problem in report.problems]
        raise MappingRejected(
            f"The mapping of migration {migration.name!r} has {len(problems)} problems: {problems[0]}",
            problems=problems,
        )


def _first_items(side: Side, table: str, count: int) -> list[Item]:
    if count == 0:
        return []
    page = side.run(send(Scan(table=table, limit=count, consistent=True), side.scope.retries))
    return decode_items(page.items or ())
