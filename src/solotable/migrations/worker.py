"""Worker: does what the state of a migration asks for, one step at a time, until the migration ends.

Any number of workers may run, in threads and processes. Segments of the copy are shared among them. One of
them at a time applies changes. A worker that is killed leaves cursors that others take over.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from solotable._flows.retry import Flow, Sleep
from solotable.errors import (
    FeedTrimmed,
    LeaseLost,
    MigrationConflict,
    MigrationError,
    ServiceError,
    TableNotFound,
    Throttled,
    TransactionCancelled,
    TransportError,
)

from .apply.applier import Applier
from .apply.direction import Direction, forward, reverse
from .copy.forecast import opening
from .copy.preparation import prepare_copy
from .copy.segment import SegmentCopier
from .copy.sweep import sweep
from .switching.undo import open_serving_side, undo_late_switch
from .workflow import cursors
from .workflow.causes import passes, trimmed_text
from .workflow.control import ControlRecord, conflict
from .workflow.cursors import Cursor
from .workflow.pace import Pacer
from .workflow.states import ENDED

if TYPE_CHECKING:
    from .migration import Migration

Step = Literal["worked", "waiting", "ended"]
#: Pages of a segment, or batches of changes, between two looks at the control record.
_SLICE_SECONDS = 0.5
#: A lag at which the target has caught up.
_CLOSE_SECONDS = 2.0
_APPLY = frozenset({"CatchingUp", "Running", "Verified", "ReadsSwitched"})
#: States in which one side serves, and its fences are open.
_SERVED = frozenset({"Verified", "ReadsSwitched", "WritesSwitched"})
_log = logging.getLogger("solotable.migrations")


class Worker:
    """One worker of a migration: `Worker(migration).run()`."""

    def __init__(
        self,
        migration: Migration,
        *,
        owner: str | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.migration = migration
        self.owner = owner or f"worker-{secrets.token_hex(6)}"
        self._pacer = Pacer(migration.target.clock)
        self._copier: SegmentCopier | None = None
        self._applier: Applier | None = None
        #: The direction that the applier is for, and the flips of the record.
        self._applying: tuple[str, int] | None = None
        self._apply_side = migration.target
        self._failures = 0
        #: The record after the last change by this worker: an error of the step is stored there.
        self._record: ControlRecord | None = None
        #: The flips of the record for which this worker opened the fences.
        self._opened: int | None = None
        #: The deadline of the switch that this worker observes, and since when.
        self._switch: tuple[float | None, float] | None = None
        self._monotonic = monotonic

    def run(
        self,
        *,
        until: Callable[[ControlRecord], bool] | None = None,
        poll_seconds: float = 0.2,
        stop: threading.Event | None = None,
    ) -> ControlRecord | None:
        """Work until the migration ends, `until` is true of its record, or `stop` is set.

        Return the record; None if the migration was cancelled.
        """
        while True:
            record = self.migration.find_record()
            if record is None or record.state in ENDED or (until is not None and until(record)):
                self.release()
                return record
            if stop is not None and stop.is_set():
                self.release()
                return record
            if self.step(record) == "waiting":
                self.migration.target.run(_pause(poll_seconds))

    def step(self, record: ControlRecord | None = None) -> Step:
        """Do the next piece of work; an error that does not pass by itself stops the migration."""
        record = self.migration.record() if record is None else record
        self._record = record
        try:
            step = self._step(record)
        except (LeaseLost, MigrationConflict) as lost:
            # Another worker was first: look at the record again.
            _log.debug("%s: %s", self.owner, lost)
            self._forget()
            return "waiting"
        except FeedTrimmed as trimmed:
            text = trimmed_text(self.migration.side(record.writes), trimmed)
            self._fail(self._record, text, needs_copy=True)
            return "waiting"
        except (TableNotFound, MigrationError) as error:
            self._fail(self._record, str(error), needs_copy=False)
            return "waiting"
        except (ServiceError, TransportError) as error:
            if not passes(error):
                self._fail(self._record, str(error), needs_copy=False)
                return "waiting"
            self._wait_after(record, error)
            return "waiting"
        self._failures = 0
        self._clear_note(record)
        return step

    def release(self) -> None:
        """Give the cursors back, so that another worker need not wait for them."""
        held = [(self.migration.target, self._copier), (self._apply_side, self._applier)]
        for side, worker in held:
            if worker is not None:
                side.run(cursors.release(side, worker.cursor))
        self._forget()

    def _step(self, record: ControlRecord) -> Step:
        self._pacer.limit(self._share(record))
        if record.state in ENDED:
            return "ended"
        if record.state == "Copying":
            return self._copy_step(record)
        self._copier = None
        if record.state in _SERVED and self._opened != record.flips:
            open_serving_side(self.migration, record)
            self._opened = record.flips
        if record.state in _APPLY:
            return self._apply_step(record, forward(self.migration))
        if record.state == "WritesSwitched" and self.migration.mapping.is_reversible:
            return self._apply_step(record, reverse(self.migration))
        self._forget()
        if record.state == "SwitchingWrites":
            self._opened = None
            undo_late_switch(self.migration, record, self._seconds_of(record))
        return "waiting"

    def _seconds_of(self, record: ControlRecord) -> float:
        """Return how long this worker has observed a switch of the writes."""
        now = self._monotonic()
        if self._switch is None or self._switch[0] != record.deadline:
            self._switch = record.deadline, now
        return now - self._switch[1]

    def _share(self, record: ControlRecord) -> float | None:
        """Return this worker's part of the write units; the workers of open segments share them."""
        if record.rate is None:
            return None
        if record.state != "Copying" or not record.copying:
            return record.rate
        side = self.migration.target
        now = side.clock()
        segments = side.run(cursors.load_cursors(side, self.migration.name, "SEGMENT#"))
        busy = sum(1 for each in segments if each.owner is not None and each.until > now)
        return record.rate / max(1, busy if self._copier is not None else busy + 1)

    # Copying: windows, of which the leader's closed ones are for changes.

    def _copy_step(self, record: ControlRecord) -> Step:
        if not record.copying:
            self._copier = None
            return self._lead(record)
        self._drop_applier()
        clock = self.migration.target.clock
        if clock() - record.window_at > record.open_seconds and self._close_window(record):
            return "worked"
        if self._copier is None:
            self._copier = self._take_segment(record)
        if self._copier is None:
            return "worked" if self._all_copied(record) and self._close_window(record) else "waiting"
        ends = clock() + _SLICE_SECONDS
        while not self._copier.done and clock() < ends:
            self._copier.page()
        if self._copier.done:
            side = self.migration.target
            side.run(cursors.release(side, self._copier.cursor))
            self._copier = None
        return "worked"

    def _take_segment(self, record: ControlRecord) -> SegmentCopier | None:
        side, name = self.migration.target, self.migration.name
        now = side.clock()
        for cursor in side.run(cursors.load_cursors(side, name, "SEGMENT#")):
            taken = cursor.owner is not None and cursor.until > now and cursor.owner != self.owner
            if taken or cursor.data.get("done") or cursor.data.get("generation") != record.generation:
                continue
            held = side.run(cursors.take(side, name, cursor.kind, owner=self.owner, window=record.window))
            if held is not None:
                return SegmentCopier(
                    forward(self.migration),
                    held,
                    self._pacer,
                    control=side,
                    has_served=record.has_served,
                )
        return None

    def _segments(self, record: ControlRecord) -> list[Cursor]:
        side = self.migration.target
        found = side.run(cursors.load_cursors(side, self.migration.name, "SEGMENT#"))
        return [each for each in found if each.data.get("generation") == record.generation]

    def _all_copied(self, record: ControlRecord) -> bool:
        segments = self._segments(record)
        return bool(segments) and all(each.data.get("done") for each in segments)

    def _close_window(self, record: ControlRecord) -> bool:
        """Become the leader and close the copy window; False if another worker is the leader."""
        if self._take_apply(forward(self.migration)) is None:
            return False
        self._copier = None
        now = self.migration.target.clock()
        self.migration.transition(
            record, copying=False, window=record.window + 1, window_at=now, closed_at=now
        )
        return True

    def _lead(self, record: ControlRecord) -> Step:
        """As the leader, prepare the copy and apply changes; then open the next copy window."""
        direction = forward(self.migration)
        cursor = self._take_apply(direction)
        if cursor is None:
            return "waiting"
        cursor, record = prepare_copy(self.migration, record, cursor)
        self._record = record
        # From here on, no segment of an earlier window can write.
        clock = self.migration.target.clock
        record = self.migration.transition(record, window=record.window + 1, window_at=clock())
        self._record = record
        self._seize_segments(record)
        self._applier = self._open_applier(record, direction, cursor)
        record = self._apply_in_window(record, self._applier)
        if self._all_copied(record):
            sweep(self.migration, record, self._applier)
            self.migration.transition(record, "CatchingUp", copied_at=clock())
            return "worked"
        now = clock()
        scanned = sum(int(each.data.get("scanned", 0)) for each in self._segments(record))
        self.migration.transition(
            record,
            copying=True,
            window=record.window + 1,
            window_at=now,
            **opening(record, scanned, now),
        )
        self.release()
        return "worked"

    def _apply_in_window(self, record: ControlRecord, applier: Applier) -> ControlRecord:
        """Apply changes until there are no more, or for the time of a window."""
        clock = self.migration.target.clock
        ends = clock() + record.window_seconds
        looked = clock()
        while not applier.batch().drained and clock() < ends:
            if clock() - looked > _SLICE_SECONDS:
                record, looked = self._same_window(record), clock()
        return record

    def _same_window(self, record: ControlRecord) -> ControlRecord:
        """Read the record again; raise MigrationConflict if its window is another one."""
        now = self.migration.record()
        if now.state != "Copying" or now.window != record.window:
            raise conflict(record)
        self._pacer.limit(now.rate)
        self._record = now
        return now

    def _seize_segments(self, record: ControlRecord) -> None:
        side, name = self.migration.target, self.migration.name
        for cursor in side.run(cursors.load_cursors(side, name, "SEGMENT#")):
            if not cursor.data.get("done"):
                held = side.run(
                    cursors.seize(side, name, cursor.kind, owner=self.owner, window=record.window)
                )
                side.run(cursors.release(side, held))

    # Applying changes.

    def _apply_step(self, record: ControlRecord, direction: Direction) -> Step:
        key = (direction.name, record.flips)
        if self._applying != key or self._applier is None:
            self._drop_applier()
            cursor = self._take_apply(direction)
            if cursor is None:
                return "waiting"
            self._applier = self._open_applier(record, direction, cursor)
            self._applying = key
        clock = self.migration.target.clock
        ends = clock() + _SLICE_SECONDS
        applied = self._applier.batch()
        worked = applied.records > 0
        while not applied.drained and clock() < ends:
            applied = self._applier.batch()
        # Under constant load, a stream may never be at its end.
        is_close = applied.drained or applied.lag_seconds <= _CLOSE_SECONDS
        if is_close and record.state == "CatchingUp":
            self.migration.transition(record, "Running")
            worked = True
        return "worked" if worked else "waiting"

    def _take_apply(self, direction: Direction) -> Cursor | None:
        side = direction.destination
        held = side.run(cursors.take(side, self.migration.name, direction.cursor, owner=self.owner))
        self._apply_side = side
        return held

    def _open_applier(self, record: ControlRecord, direction: Direction, cursor: Cursor) -> Applier:
        return Applier(
            direction,
            cursor,
            self._pacer,
            control=self.migration.target,
            generation=record.generation,
            has_served=record.has_served,
        )

    # What goes wrong.

    def _fail(self, record: ControlRecord, error: str, *, needs_copy: bool) -> None:
        _log.error("Migration %s: %s", self.migration.name, error)
        self._release_if_possible()
        try:
            if record.state not in ("Stopped", "Error", "SwitchingWrites", *ENDED):
                self.migration.transition(
                    record, "Error", resume=record.state, error=error[:1000], needs_copy=needs_copy
                )
        except MigrationConflict:
            return

    def _wait_after(self, record: ControlRecord, error: Exception) -> None:
        self._failures += 1
        self._release_if_possible()
        if isinstance(error, Throttled | TransactionCancelled):
            self._pacer.throttle()
            self._note(record, f"{type(error).__name__}: {error}")
        _log.warning("Migration %s: attempt %d: %s", self.migration.name, self._failures, error)
        self.migration.target.run(_pause(min(10.0, 0.1 * 2.0 ** min(self._failures, 7))))

    def _clear_note(self, record: ControlRecord) -> None:
        if record.throttled is not None and self._pacer.throttled_at is None:
            self._note(record, None)
        elif record.throttled is None and self._pacer.throttled_at is not None:
            self._note(record, "requests are throttled; the workers slow down")

    def _note(self, record: ControlRecord, text: str | None) -> None:
        try:
            self.migration.transition(record, throttled=text)
        except MigrationConflict:
            return

    def _release_if_possible(self) -> None:
        try:
            self.release()
        except (ServiceError, TransportError):
            self._forget()

    def _forget(self) -> None:
        self._copier = None
        self._drop_applier()

    def _drop_applier(self) -> None:
        self._applier = None
        self._applying = None


def _pause(seconds: float) -> Flow[None]:
    yield Sleep(seconds)
