"""Time slices: long requests run in threads, one at a time, and only while the event loop is idle.

Python runs one thread at a time, so a thread must yield to help other clients. A long request yields before
each step: when the loop has work, and when its slice is over and another long request waits. While the loop
is never idle, each wait of a long request earns it one slice.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context
from selectors import SelectorKey
from threading import Event, Lock
from typing import TypeVarTuple

from solotable._protocol.engine import TooLong

ArgumentTs = TypeVarTuple("ArgumentTs")

#: How long a request runs before the next one runs.
SLICE_SECONDS = 0.002
#: How long a request waits for an idle loop before it runs a slice beside a busy one.
WAIT_SECONDS = 0.01
#: What the event loop spends on one request before it hands the request to a thread.
_LOOP_SECONDS = 0.001
LOOP_BYTES = 128 * 1024
_LOOP_STEPS = 64
#: The interpreter's switch interval while a thread computes beside the event loop.
_SWITCH_SECONDS = 0.0002
#: Steps between two readings of the clock, which costs as much as a small step.
_STEPS_PER_CLOCK_CHECK = 8


class SwitchInterval:
    """Shortens the interpreter's switch interval, for the whole process, while a thread computes.

    The event loop waits this long for a computing thread; Python's default of 5 ms is ten GetItems. While
    no thread computes, the default is better: the short interval costs a write by one client 12 µs.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._computing = 0
        self._default = sys.getswitchinterval()

    def __enter__(self) -> None:
        with self._lock:
            self._computing += 1
            if self._computing == 1:
                sys.setswitchinterval(_SWITCH_SECONDS)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._computing -= 1
            if not self._computing:
                sys.setswitchinterval(self._default)


class IdleGate:
    """Whether the event loop is idle; one thread at a time can wait for it."""

    def __init__(self) -> None:
        self.busy = False
        self._awaited = False
        self._opened = Event()

    def open(self) -> None:
        """Signal that the loop is idle."""
        self.busy = False
        if self._awaited:
            self._opened.set()

    def wait(self, seconds: float) -> bool:
        """Wait until the loop is idle; return False if it stayed busy."""
        self._opened.clear()
        self._awaited = True
        # The loop may have become idle before it could see that a thread waits.
        idle = not self.busy or self._opened.wait(seconds)
        self._awaited = False
        return idle


class _GatedSelector(selectors.DefaultSelector):
    """The system's selector, with a gate that is open while the loop waits in it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = IdleGate()
        self.before_wait: list[Callable[[], None]] = []
        #: Whether a callback was scheduled after the loop chose its timeout.
        self.is_late = False
        #: How many sockets were ready.
        self.ready = 0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        if self.before_wait:
            callbacks, self.before_wait = self.before_wait, []
            self.is_late = False
            for callback in callbacks:
                callback()
            if self.is_late or self.before_wait:
                timeout = 0
        if timeout is None or timeout > 0:
            self.gate.open()
        found = selectors.DefaultSelector.select(self, timeout)
        self.gate.busy = True
        self.ready = len(found)
        return found


class GatedLoop(asyncio.SelectorEventLoop):
    """An event loop with a gate that shows when the loop is idle, and a hook before it waits."""

    def __init__(self) -> None:
        selector = self._gated_selector = _GatedSelector()
        super().__init__(selector)
        self.gate = selector.gate

    @property
    def ready_sockets(self) -> int:
        """How many sockets this tick reads or writes."""
        return self._gated_selector.ready

    def call_before_wait(self, callback: Callable[[], None]) -> None:
        """Call a function that raises no error once, after the callbacks of this tick."""
        self._gated_selector.before_wait.append(callback)

    def call_soon(
        self, callback: Callable[[*ArgumentTs], object], *args: *ArgumentTs, context: Context | None = None
    ) -> asyncio.Handle:
        """Schedule a callback, as every event loop does; a wait that is about to begin ends at once."""
        self._gated_selector.is_late = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*ArgumentTs], object],
        *args: *ArgumentTs,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a callback for a time, as every event loop does; a wait may have to end earlier."""
        self._gated_selector.is_late = True
        return super().call_at(when, callback, *args, context=context)


class SliceQueue:
    """The queue of one server's long requests; each runs in its own thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Other loops have no gate: there, only the interpreter's switch interval yields.
        self.gate = loop.gate if isinstance(loop, GatedLoop) else IdleGate()
        self._mutex = Lock()
        self._running = False
        self._queue: deque[Lock] = deque()

    @property
    def contended(self) -> bool:
        """Whether another long request waits in the queue."""
        return bool(self._queue)

    def acquire(self) -> None:
        """Wait for a slice: first come, first served."""
        with self._mutex:
            if not self._running:
                self._running = True
                return
            slice_lock = Lock()
            slice_lock.acquire()
            self._queue.append(slice_lock)
        slice_lock.acquire()

    def release(self) -> None:
        """End a slice and start the next one."""
        with self._mutex:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._running = False


class TimeSlice:
    """One long request: it calls `pause` before each step and `end` when it is over."""

    def __init__(self, slices: SliceQueue) -> None:
        self._slices = slices
        self._gate = slices.gate
        self._has_slice = False
        self._beside_busy_loop = False
        self._ends_at = 0.0
        self._steps = 0
        self._bytes = 0

    @property
    def short(self) -> bool:
        """Whether the event loop could have answered the request."""
        return self._steps <= _LOOP_STEPS and self._bytes <= LOOP_BYTES

    def pause(self, size: int) -> None:
        """Return at once, or wait for the next slice and an idle loop."""
        self._steps += 1
        self._bytes += size
        over = time.perf_counter() >= self._ends_at
        if self._has_slice:
            if not over and (self._beside_busy_loop or not self._gate.busy):
                return
            if over and self._slices.contended:
                self.end()
        if not self._has_slice:
            self._slices.acquire()
            self._has_slice = True
        self._beside_busy_loop = not self._gate.wait(WAIT_SECONDS)
        self._ends_at = time.perf_counter() + SLICE_SECONDS

    def end(self) -> None:
        """Release the slice, if this request has it."""
        if self._has_slice:
            self._has_slice = False
            self._slices.release()


class LoopBudget:
    """What a request may cost on the event loop; `spend` raises TooLong beyond it."""

    __slots__ = ("_bytes", "_ends_at", "_steps")

    def __init__(self) -> None:
        self._bytes = LOOP_BYTES
        self._steps = 0
        self._ends_at = 0.0

    def spend(self, size: int) -> None:
        """Count one step that reads `size` bytes."""
        self._bytes -= size
        self._steps += 1
        if self._bytes < 0:
            raise TooLong
        if self._steps % _STEPS_PER_CLOCK_CHECK == 0:
            # CPU time of this thread: a busy machine does not make a request long.
            now = time.thread_time()
            if not self._ends_at:
                self._ends_at = now + _LOOP_SECONDS
            elif now > self._ends_at:
                raise TooLong
