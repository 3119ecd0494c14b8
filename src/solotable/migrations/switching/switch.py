"""Switch the writes to the other side: announce, close, drain, flip; undo it after a deadline.

1. Announce: the state is SwitchingWrites, and each write of a router carries a guard (`fences.guard`). Wait
   until every router knows.
2. Close: the fences of the serving side reject guarded writes. Routers hold them back from now on.
3. Drain: apply the rest of the stream, then reconcile the keys of the journal. The journal has every guarded
   write, so a stream that shows a record late does not matter.
4. Flip: one conditional write of the control record. The other direction of the replication starts at a
   position that was saved before.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from solotable._flows.retry import Flow, Sleep
from solotable._protocol.engine import capabilities_of
from solotable.errors import (
    LeaseLost,
    MigrationConflict,
    MigrationError,
    MigrationNotReady,
    ServiceError,
    SwitchTimedOut,
    TransportError,
)
from solotable.migrations.apply.applier import BATCH, Applier, start_positions
from solotable.migrations.apply.direction import Direction, forward, reverse
from solotable.migrations.status import is_applied
from solotable.migrations.workflow import cursors, dead_letters, fences
from solotable.migrations.workflow.control import ControlRecord, conflict
from solotable.migrations.workflow.cursors import Cursor
from solotable.migrations.workflow.pace import Pacer
from solotable.migrations.workflow.sides import Side, ensure_stream
from solotable.migrations.workflow.states import SideName, State, check_state

from .undo import undo_switch

if TYPE_CHECKING:
    from solotable.migrations.migration import Migration

#: A router reads the control record at least this often.
ROUTER_LEASE_SECONDS = 1.0
#: The time for a router's request in flight, and for a difference of clocks.
_MARGIN_SECONDS = 0.5
#: On Amazon, an unguarded write is in the stream after this time.
_AMAZON_SETTLE_SECONDS = 5.0
#: Batches of changes that are applied before the writes are held back, at most.
_MOST_BATCHES_BEFORE = 100
#: Commands that change the record beside a switch, at most.
_MOST_CHANGES = 20
_TO_TARGET: frozenset[State] = frozenset({"Verified", "ReadsSwitched"})
_TO_SOURCE: frozenset[State] = frozenset({"WritesSwitched"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """The outcome of a switch, or of its dry run."""

    to: SideName
    #: What refuses the switch; empty if it was done, or would be.
    reasons: list[str] = field(default_factory=list)
    #: How long writes were held back.
    pause_seconds: float = 0.0
    #: Changes that were applied after the fences were closed, and keys of the journal.
    drained: int = 0
    journal: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchOptions:
    """How a switch of the writes runs."""

    timeout_seconds: float = 30.0
    #: The lag of the replication at which a switch is refused.
    max_lag_seconds: float = 5.0
    #: How long to wait until every router knows; None for the engine's default.
    announce_seconds: float | None = None
    dry_run: bool = False
    #: Whether a switch is allowed although no inverse leads back.
    one_way: bool = False


def switch_writes(migration: Migration, to: SideName, options: SwitchOptions) -> Switched:
    """Switch the writes to a side. Raises MigrationNotReady or SwitchTimedOut, and then nothing changed."""
    record = migration.record()
    check_state(
        migration.name,
        record.state,
        _TO_TARGET if to == "target" else _TO_SOURCE,
        "switch-writes" if to == "target" else "reverse",
    )
    reasons = _reasons(migration, record, to, options)
    if options.dry_run:
        return Switched(to=to, reasons=reasons)
    if reasons:
        raise MigrationNotReady(
            f"Migration {migration.name!r} cannot switch its writes to the {to}: {'; '.join(reasons)}.",
            reasons=reasons,
        )
    return _Switch(migration, record, to, options).run()


def _reasons(migration: Migration, record: ControlRecord, to: SideName, options: SwitchOptions) -> list[str]:
    reasons = []
    direction = "forward" if to == "target" else "reverse"
    side = migration.target
    dead = side.run(dead_letters.dead_letters(side, migration.name, direction))
    if dead:
        reasons.append(f"{len(dead)} dead letters, such as {dead[0]}")
    if not migration.mapping.is_reversible and not (options.one_way and to == "target"):
        reasons.append("a source has no inverse, so writes could not return; pass one_way=True to accept it")
    lag = migration.lag(record)
    if lag is None or lag > options.max_lag_seconds:
        shown = "unknown" if lag is None else f"{lag:.1f} s"
        reason = f"the lag is {shown}, but at most {options.max_lag_seconds} s are allowed"
        if not is_applied(migration, record):
            reason += f", and no worker applies changes: run `solotable migrate start {migration.name}`"
        reasons.append(reason)
    if to == "target" and (record.diff is None or not record.diff.is_green):
        reasons.append("no comparison of both sides without differences; run `solotable migrate diff`")
    if to == "source" and _lacks_repair(record):
        reasons.append("changes of the target were lost; run `solotable migrate repair`, which writes them")
    return reasons


def _lacks_repair(record: ControlRecord) -> bool:
    """Whether changes of the target were lost, and no later comparison found both sides equal."""
    diff = record.diff
    is_equal = diff is not None and diff.is_green and diff.flips >= record.flips
    return record.needs_repair and not is_equal


class _Switch:
    """One run of a switch."""

    def __init__(
        self, migration: Migration, record: ControlRecord, to: SideName, options: SwitchOptions
    ) -> None:
        self._migration = migration
        self._record = record
        self._to: SideName = to
        self._options = options
        self._owner = f"switch-{secrets.token_hex(6)}"
        self._serving = migration.side(record.writes)
        self._clock = migration.target.clock
        self._closed_at = 0.0
        #: The cursors that this switch holds.
        self._held: list[tuple[Side, Callable[[], Cursor]]] = []

    def run(self) -> Switched:
        migration, record = self._migration, self._record
        reversible = migration.mapping.is_reversible
        direction = forward(migration) if self._to == "target" else reverse(migration)
        back = None if not reversible else reverse(migration) if self._to == "target" else forward(migration)
        streams = list(record.streams)
        if back is not None:
            side = back.origin
            streams += [
                f"{side.name}:{table}"
                for table in side.names.values()
                if side.run(ensure_stream(side, table))
            ]
        deadline = self._clock() + self._options.timeout_seconds
        self._record = migration.transition(
            record,
            "SwitchingWrites",
            resume=record.state,
            deadline=deadline,
            switch_seconds=self._options.timeout_seconds,
            streams=streams,
        )
        try:
            return self._switch(direction, back, deadline)
        except MigrationConflict as error:
            self._leave_nothing()
            raise SwitchTimedOut(
                f"Migration {migration.name!r}: another process ended this switch of the writes; see its "
                f"status."
            ) from error
        except BaseException:
            self._undo()
            raise

    def _switch(self, direction: Direction, back: Direction | None, deadline: float) -> Switched:
        migration = self._migration
        self._announce()
        applier = self._seize(direction)
        # Most of the stream is applied before writes are held back. Clients may write faster than it drains.
        for _ in range(_MOST_BATCHES_BEFORE):
            self._check_deadline(deadline)
            if applier.batch().records < BATCH:
                break
        self._closed_at = self._clock()
        self._set_fences(self._serving.name, is_open=False)
        drained = self._drain(applier, deadline)
        journal = self._reconcile_journal(direction, applier)
        if self._to == "target":
            migration.mapping.recount(migration.store)
        if back is not None:
            self._start_back(back)
        self._check_deadline(deadline)
        self._flip()
        pause = self._clock() - self._closed_at
        self._set_fences(self._to, is_open=True)
        self._serving.run(fences.clear_journal(self._serving, migration.name))
        self._release()
        return Switched(to=self._to, pause_seconds=pause, drained=drained, journal=journal)

    def _announce(self) -> None:
        other: SideName = "source" if self._serving.name == "target" else "target"
        self._set_fences(self._serving.name, is_open=True)
        self._set_fences(other, is_open=False)
        seconds = self._options.announce_seconds
        if seconds is None:
            seconds = ROUTER_LEASE_SECONDS + _MARGIN_SECONDS
            if capabilities_of(self._serving.engine).amazon:
                seconds += _AMAZON_SETTLE_SECONDS
        self._migration.target.run(_pause(seconds))

    def _seize(self, direction: Direction) -> Applier:
        """Take the place of the apply worker, whose writes fail from now on."""
        side = direction.destination
        cursor = side.run(cursors.seize(side, self._migration.name, direction.cursor, owner=self._owner))
        self._applier = Applier(
            direction,
            cursor,
            Pacer(self._clock),
            control=self._migration.target,
            generation=self._record.generation,
            has_served=self._record.has_served,
        )
        self._held.append((side, lambda: self._applier.cursor))
        return self._applier

    def _release(self) -> None:
        """Give the cursors to the workers, which need not wait for their leases then."""
        for side, cursor in self._held:
            side.run(cursors.release(side, cursor()))

    def _drain(self, applier: Applier, deadline: float) -> int:
        """Apply changes until the streams have no more."""
        records = 0
        while True:
            self._check_deadline(deadline)
            applied = applier.batch()
            records += applied.records
            if applied.drained:
                return records

    def _reconcile_journal(self, direction: Direction, applier: Applier) -> int:
        """Reconcile the keys of guarded writes, which the stream may show later."""
        side = self._serving
        by_name = {name: each for each, name in side.names.items()}
        keys = []
        for table, written in side.run(fences.journal_keys(side, self._migration.name)):
            name = by_name.get(table)
            if name is not None:
                keys.append((name, direction.mapping.sources[name].key_of(written)))
        unique = {(name, repr(sorted(key.items()))): (name, key) for name, key in keys}
        applier.reconcile(list(unique.values()))
        return len(unique)

    def _start_back(self, back: Direction) -> None:
        """Save the position of the other direction before its side takes writes."""
        side = back.destination
        cursor = side.run(
            cursors.seize(
                side,
                self._migration.name,
                back.cursor,
                owner=self._owner,
                creates=True,
                positions=start_positions(back),
                generation=self._record.generation,
                drained_at=None,
            )
        )
        self._held.append((side, lambda: cursor))

    def _flip(self) -> None:
        """Flip the record, also if another command changed it beside the switch."""
        for _ in range(_MOST_CHANGES):
            try:
                self._flip_record()
            except MigrationConflict:
                self._refresh()
            else:
                return
        raise conflict(self._record)

    def _refresh(self) -> None:
        """Read the record again; raise MigrationConflict if it does not belong to this switch any more."""
        record = self._migration.record()
        if (record.state, record.deadline) != ("SwitchingWrites", self._record.deadline):
            raise conflict(self._record)
        self._record = record

    def _flip_record(self) -> None:
        record = self._record
        now = self._clock()
        state: State = "WritesSwitched"
        if self._to == "source":
            moved = record.reads_percent or any(record.reads_by_entity.values())
            state = "ReadsSwitched" if moved else "Verified"
        self._record = self._migration.transition(
            record,
            state,
            writes=self._to,
            flips=record.flips + 1,
            has_served=True,
            needs_repair=False,
            switched_at=now,
            resume=None,
            deadline=None,
        )

    def _set_fences(self, name: SideName, *, is_open: bool) -> None:
        side = self._migration.side(name)
        side.run(fences.set_fences(side, self._migration.name, is_open=is_open, epoch=self._record.epoch))

    def _check_deadline(self, deadline: float) -> None:
        if self._clock() > deadline:
            raise SwitchTimedOut(
                f"Migration {self._migration.name!r} did not drain within "
                f"{self._options.timeout_seconds} s; the {self._record.writes} takes writes again."
            )

    def _leave_nothing(self) -> None:
        """Delete what this switch created, if the migration was undone and cancelled beside it."""
        migration = self._migration
        if migration.find_record() is not None:
            return
        for side in (migration.source, migration.target):
            side.run(fences.delete_fences(side, migration.name))
            for each in (forward(migration), reverse(migration)):
                side.run(cursors.delete_cursor(side, migration.name, each.cursor))

    def _undo(self) -> None:
        if self._record.state != "SwitchingWrites":
            return
        try:
            self._refresh()
            undo_switch(self._migration, self._record)
            self._release()
        except (MigrationError, ServiceError, TransportError, LeaseLost):
            # A worker undoes the switch after its deadline.
            return


def _pause(seconds: float) -> Flow[None]:
    yield Sleep(seconds)
