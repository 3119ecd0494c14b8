"""Applier: reads the streams of one side and reconciles the changed items on the other, in batches."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from solotable._flows.feed.checkpoints import Checkpoint
from solotable._flows.feed.feed import Feed
from solotable._flows.feed.streams import Record
from solotable._protocol.engine import capabilities_of
from solotable._values import Item
from solotable.errors import MigrationError, ServiceError, TableNotFound
from solotable.migrations.mapping import DeadLetter
from solotable.migrations.workflow import dead_letters
from solotable.migrations.workflow.cursors import LEASE_SECONDS, Cursor, WritesRejected
from solotable.migrations.workflow.pace import Pacer
from solotable.migrations.workflow.sides import Side

from .direction import Direction
from .markers import key_text, owner_text
from .reconcile import Change, Decision, Decisions, Reconciler
from .transactions import CursorWriter

#: Changed items of a batch.
BATCH = 100
#: How far the clock of an endpoint may differ: Amazon rejects the signature of a request that is older.
_ENDPOINT_SKEW_SECONDS = 900.0
#: An engine in this process has this machine's clock.
_SKEW_SECONDS = 2.0
_ATTEMPTS = 5
_log = logging.getLogger("solotable.migrations")


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The outcome of a batch."""

    records: int
    #: Whether the streams had no further record.
    drained: bool
    #: The age of the newest applied change; 0 without one.
    lag_seconds: float = 0.0


class Applier:
    """Applies the changes of one direction, from the position of its cursor."""

    def __init__(
        self,
        direction: Direction,
        cursor: Cursor,
        pacer: Pacer,
        *,
        control: Side,
        generation: int,
        has_served: bool,
    ) -> None:
        self._direction = direction
        self._control = control
        self._writer = CursorWriter(direction.destination, cursor, pacer)
        self._reconciler = Reconciler(direction, generation=generation, has_served=has_served)
        self._feeds = _open_feeds(direction, cursor)
        self._saved: dict[str, str] = dict(cursor.data["positions"])
        #: Feeds that were read: only they know their position.
        self._opened: set[str] = set()
        self._turn = 0
        letters = control.run(dead_letters.dead_letters(control, direction.migration, direction.name))
        self._dead = {(letter.source, key_text(letter.key)) for letter in letters}
        self._applied = int(cursor.data.get("applied", 0))

    @property
    def cursor(self) -> Cursor:
        """The cursor after the last write."""
        return self._writer.cursor

    def batch(self) -> Applied:
        """Apply the next changes, and save the position with them."""
        records, drained = self._read()
        now = self._direction.destination.clock()
        lag = 0.0
        if records:
            self._applied += len(records)
            last = max(record.at.timestamp() for record in records)
            lag = max(0.0, now - last)
            self._apply(
                changes_of(self._direction, records),
                positions=self._positions(),
                applied=self._applied,
                last_at=last,
                drained_at=now if drained else None,
            )
        elif drained and now - float(self.cursor.data.get("drained_at") or 0) >= LEASE_SECONDS / 2:
            # It keeps the cursor, and says that the lag is 0.
            self._writer.write([], positions=self._positions(), applied=self._applied, drained_at=now)
        return Applied(records=len(records), drained=drained, lag_seconds=lag)

    def reconcile(self, keys: Sequence[tuple[str, Item]]) -> int:
        """Reconcile source items by name and key, without a change; return the number of writes."""
        writes = 0
        for start in range(0, len(keys), BATCH):
            some = keys[start : start + BATCH]
            writes += self._apply([Change(source=source, key=key) for source, key in some])
        return writes

    def reconcile_changes(self, changes: Sequence[Change]) -> int:
        """Reconcile changes that did not come from the stream; return the number of writes."""
        return self._apply(changes)

    def _read(self) -> tuple[list[Record], bool]:
        records: list[Record] = []
        drained = True
        # Each batch begins with another table, so that a busy one does not hold up the others.
        names = list(self._feeds)
        self._turn = (self._turn + 1) % len(names)
        for name in names[self._turn :] + names[: self._turn]:
            feed = self._feeds[name]
            while len(records) < BATCH:
                record = feed.take()
                if record is not None:
                    records.append(record)
                    continue
                self._opened.add(name)
                if not self._fill(name):
                    break
            else:
                drained = False
        return records, drained

    def _fill(self, name: str) -> bool:
        """Read more records of a table; return whether there are any."""
        origin = self._direction.origin
        try:
            return origin.run(self._feeds[name].fill())
        except TableNotFound as error:
            raise MigrationError(
                f"Table {origin.names[name]!r} of {origin.label} does not exist any more; restore it and "
                f"start the migration again, or cancel it."
            ) from error

    def _positions(self) -> dict[str, str]:
        for name in self._opened:
            self._saved[name] = self._feeds[name].checkpoint.render()
        return dict(self._saved)

    def _apply(self, changes: Sequence[Change], **data: object) -> int:
        for _ in range(_ATTEMPTS):
            decisions = self._reconciler.decide(changes, self._writer.keep)
            # Before the position is saved: a dead letter must not be lost.
            self._bury(decisions.dead)
            try:
                self._writer.write_all(decisions.writes, **data)
            except WritesRejected as rejected:
                if not rejected.invalid:
                    # Another writer changed an output: read it and decide again.
                    continue
                self._write_singly(decisions, **data)
            except ServiceError as error:
                if error.code != "ValidationException":
                    raise
                self._write_singly(decisions, **data)
            self._revive(decisions.healthy)
            return len(decisions.writes)
        raise MigrationError(
            f"Outputs of migration {self._direction.migration!r} changed in each of {_ATTEMPTS} attempts: "
            f"another program writes to {self._direction.destination.label}."
        )

    def _write_singly(self, decisions: Decisions, **data: object) -> None:
        """Write the decisions of each source item in its own transaction; an invalid one is a dead letter."""
        invalid: dict[str, DeadLetter] = {}
        for owner, writes in _by_owner(decisions.writes):
            try:
                self._writer.write_all(writes)
            except (WritesRejected, ServiceError) as error:
                if isinstance(error, ServiceError) and error.code != "ValidationException":
                    raise
                invalid[owner] = DeadLetter(writes[0].source, writes[0].key, str(error)[:500])
        self._bury(list(invalid.values()))
        decisions.healthy = [each for each in decisions.healthy if owner_text(*each) not in invalid]
        self._writer.write([], **data)

    def _bury(self, letters: Sequence[DeadLetter]) -> None:
        if letters:
            direction = self._direction
            self._control.run(dead_letters.bury(self._control, direction.migration, direction.name, letters))
            self._dead |= {(letter.source, key_text(letter.key)) for letter in letters}

    def _revive(self, healthy: Sequence[tuple[str, Item]]) -> None:
        """Delete the dead letters of items that have their outputs now."""
        if not self._dead:
            return
        healed = [(name, key) for name, key in healthy if (name, key_text(key)) in self._dead]
        if healed:
            direction = self._direction
            self._control.run(dead_letters.revive(self._control, direction.migration, direction.name, healed))
            self._dead -= {(name, key_text(key)) for name, key in healed}


def changes_of(direction: Direction, records: Sequence[Record]) -> list[Change]:
    """Return the changed items of some records, each once, with all their images."""
    found: dict[tuple[str, str], Change] = {}
    for record in records:
        images = [image for image in (record.before, record.after) if image is not None]
        source = record.table.name
        key = direction.mapping.sources[source].key_of(images[0])
        change = found.setdefault((source, key_text(key)), Change(source=source, key=key))
        change.images += images
    return list(found.values())


def start_positions(direction: Direction) -> dict[str, str]:
    """Return positions before every change from now on.

    A position is a time, because a stream has no position for "now". So some earlier changes are read too:
    reconciling them has no effect.
    """
    origin = direction.origin
    clock_offset = capabilities_of(origin.engine).clock_offset
    offset = 0.0 if clock_offset is None else clock_offset()
    skew = _SKEW_SECONDS if clock_offset is None else _ENDPOINT_SKEW_SECONDS
    now = origin.clock()
    position = Checkpoint(shards=(), begun=now, since=now + offset - skew).render()
    return dict.fromkeys(origin.tables, position)


def _open_feeds(direction: Direction, cursor: Cursor) -> dict[str, Feed[Record]]:
    origin = direction.origin
    positions: dict[str, str] = cursor.data["positions"]
    return {
        name: Feed(origin.scope, [table], _records, since=Checkpoint.parse(positions[name]))
        for name, table in origin.tables.items()
    }


def _records(record: Record) -> list[Record]:
    return [record]


def _by_owner(decisions: Sequence[Decision]) -> Iterator[tuple[str, list[Decision]]]:
    found: dict[str, list[Decision]] = {}
    for decision in decisions:
        found.setdefault(owner_text(decision.source, decision.key), []).append(decision)
    yield from found.items()
