"""Mirrored reads: compare a served read with the other side, and count. Never affects the read."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from solotable._store.page import Page
from solotable.fork_safe import new_lock

#: Mirrored reads that wait or run at once; more are dropped and counted.
MOST_PENDING = 64
#: The wait before a difference is read again: replication may lag.
SETTLE_SECONDS = 1.0
_MOST_SAMPLES = 20
_MOST_DELTAS = 10_000
_THREADS = 2


@dataclass(slots=True)
class MirrorReport:
    """What mirrored reads found."""

    compared: int = 0
    #: Differences that stayed after a second read of both sides.
    different: int = 0
    #: Differences that were gone at the second read: replication lag.
    lagging: int = 0
    #: Mirrored reads that raised an error, by its class.
    failed: dict[str, int] = field(default_factory=dict)
    #: Reads that were not mirrored because too many were pending.
    dropped: int = 0
    #: What was read, for the first differences.
    samples: list[str] = field(default_factory=list)
    #: Seconds of the mirrored read minus seconds of the served one.
    deltas: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_DELTAS))

    def delta(self, share: float = 0.5) -> float:
        """Return the latency difference that this share of the mirrored reads did not exceed."""
        ordered = sorted(self.deltas)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Mirror:
    """Counts comparisons; safe to use from several threads and tasks."""

    def __init__(self) -> None:
        self.report = MirrorReport()
        self._lock = new_lock()
        self._pending = 0

    def admit(self) -> bool:
        """Return whether one more read may be mirrored now; count it as dropped if not."""
        with self._lock:
            if self._pending >= MOST_PENDING:
                self.report.dropped += 1
                return False
            self._pending += 1
            return True

    def done(self) -> None:
        """End an admitted mirrored read."""
        with self._lock:
            self._pending -= 1

    @property
    def pending(self) -> int:
        """The number of mirrored reads that wait or run."""
        return self._pending

    def timed(self, delta: float) -> None:
        """Add the latency difference of one mirrored read."""
        with self._lock:
            self.report.compared += 1
            self.report.deltas.append(delta)

    def differs(self, what: str) -> None:
        """Count a difference that stayed."""
        with self._lock:
            self.report.different += 1
            if len(self.report.samples) < _MOST_SAMPLES:
                self.report.samples.append(what)

    def lags(self) -> None:
        """Count a difference that went away."""
        with self._lock:
            self.report.lagging += 1

    def fails(self, error: BaseException) -> None:
        """Count an error of a mirrored read."""
        name = type(error).__name__
        with self._lock:
            self.report.failed[name] = self.report.failed.get(name, 0) + 1


def is_same(one: Any, other: Any) -> bool:
    """Return whether two results of a read are equal: entities field by field, pages row by row."""
    return bool(_plain(one) == _plain(other))


def _plain(value: Any) -> Any:
    match value:
        case Page():
            # Cursors contain the keys of their side.
            return [_plain(each) for each in value.items], value.cursor is None
        case BaseModel():
            return type(value).__name__, value.model_dump()
        case list() | tuple():
            return [_plain(each) for each in value]
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case _:
            return value


class Workers:
    """A few threads for mirrored reads; a forked child starts its own."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._process = 0
        self._lock = new_lock()

    def submit(self, task: Callable[[], None]) -> None:
        """Run a task in a thread, later."""
        with self._lock:
            if self._threads is None or self._process != os.getpid():
                self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="solotable-mirror")
                self._process = os.getpid()
            threads = self._threads
        threads.submit(task)

    def close(self) -> None:
        """Wait for the running tasks and drop the waiting ones."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None and self._process == os.getpid():
            threads.shutdown(wait=True, cancel_futures=True)


class Tasks:
    """Mirrored reads as tasks of an event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the caller."""
        task = asyncio.get_running_loop().create_task(work)
        # The event loop keeps weak references only.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel what is running, and wait for its end."""
        running = list(self._tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
