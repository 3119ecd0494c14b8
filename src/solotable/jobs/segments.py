"""Work on the segments of a table at the same time, in threads that share a budget of items."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from solotable._flows.jobs.backfill import Pace
from solotable._flows.scope import Scope
from solotable.errors import DataError


def check_scan_options(*, rate: float | None, segments: int, budget: int) -> None:
    """Reject options of a job that cannot work."""
    if rate is not None and rate <= 0:
        raise DataError(f"rate must be above 0 units per second, got {rate}.")
    if segments < 1 or budget < 1:
        raise DataError(f"segments and budget must be at least 1, got {segments} and {budget}.")


def pace_of_segment(rate: float | None, segments: int, scope: Scope) -> Pace | None:
    """Return the share of one segment in the capacity units a second; None without a limit."""
    return None if rate is None else Pace(rate / segments, scope.clock)


class SharedBudget:
    """The number of items that all segments together may still read."""

    def __init__(self, items: int) -> None:
        self._items = items
        #: Pages in progress.
        self._taken = 0
        self._room = threading.Condition()
        self.is_stopped = False

    def take(self, wanted: int) -> int:
        """Take up to this many items; 0 if the budget is used up or the job has stopped."""
        with self._room:
            # Other segments may give back what they took.
            self._room.wait_for(lambda: self._items > 0 or not self._taken or self.is_stopped)
            taken = 0 if self.is_stopped else min(wanted, self._items)
            self._items -= taken
            self._taken += taken > 0
            return taken

    def release(self, spare: int) -> None:
        """End a page, and give back the items that were not read."""
        with self._room:
            self._items += spare
            self._taken -= 1
            self._room.notify_all()

    def stop(self) -> None:
        """End all segments after their pages."""
        with self._room:
            self.is_stopped = True
            self._room.notify_all()


def run_segments(budget: SharedBudget, segments: Sequence[Callable[[], None]]) -> None:
    """Run the work of each segment in a thread; a failure ends the others after their pages."""
    if len(segments) == 1:
        segments[0]()
        return
    with ThreadPoolExecutor(max(1, len(segments))) as threads:
        running = [threads.submit(each) for each in segments]
        try:
            for each in wait(running, return_when=FIRST_EXCEPTION).done:
                each.result()
        except BaseException:
            budget.stop()
            raise
