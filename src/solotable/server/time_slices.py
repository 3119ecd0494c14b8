"""Time slices: long requests run in threads, one at a time, and only while the event loop is idle.

Python runs one thread at a time, so a thread is no help to other clients unless it yields. A long request
yields before each of its steps: when the loop has work, and when its slice is over and another long request
waits. A loop that is never idle leaves the long requests one slice for each wait.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections import deque
from selectors import SelectorKey
from threading import Event, Lock

from solotable._protocol.engine import TooLong

#: How long a request runs before the next one has its turn.
SLICE_SECONDS = 0.002
#: How long a request waits for an idle loop before it runs a slice beside a busy one.
WAIT_SECONDS = 0.01
#: What the loop spends on one request itself before it leaves it to a thread.
_LOOP_SECONDS = 0.001
LOOP_BYTES = 128 * 1024
_LOOP_STEPS = 64
#: Steps between two looks at the clock, which costs as much as a small step.
_STEPS_PER_LOOK = 8


class Gate:
    """Whether the event loop is idle; one thread at a time waits for that."""

    def __init__(self) -> None:
        self.busy = False
        self._awaited = False
        self._opened = Event()

    def open(self) -> None:
        """Note that the loop has nothing to do."""
        self.busy = False
        if self._awaited:
            self._opened.set()

    def wait(self, seconds: float) -> bool:
        """Return once the loop is idle, or False when it was busy all the time."""
        self._opened.clear()
        self._awaited = True
        # The loop may have become idle before it could see that it is awaited.
        idle = not self.busy or self._opened.wait(seconds)
        self._awaited = False
        return idle


class _GatedSelector(selectors.DefaultSelector):
    """The system's selector; its gate is open while the loop waits in it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        if timeout is None or timeout > 0:
            self.gate.open()
        found = selectors.DefaultSelector.select(self, timeout)
        self.gate.busy = True
        return found


class Loop(asyncio.SelectorEventLoop):
    """An event loop that tells by its gate when it is idle."""

    def __init__(self) -> None:
        selector = _GatedSelector()
        super().__init__(selector)
        self.gate = selector.gate


class Slices:
    """The long requests of one server; each runs in its own thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Another loop cannot tell: there, the switch interval of the interpreter is all that helps.
        self.gate = loop.gate if isinstance(loop, Loop) else Gate()
        self._mutex = Lock()
        self._running = False
        self._queue: deque[Lock] = deque()

    @property
    def contended(self) -> bool:
        """Whether another long request waits for its turn."""
        return bool(self._queue)

    def acquire(self) -> None:
        """Wait for a turn: first come, first served."""
        with self._mutex:
            if not self._running:
                self._running = True
                return
            turn = Lock()
            turn.acquire()
            self._queue.append(turn)
        turn.acquire()

    def release(self) -> None:
        """End a turn; the next begins."""
        with self._mutex:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._running = False


class Slice:
    """One long request: `pause` is called before its steps, `end` once it is over."""

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self._gate = slices.gate
        self._has_turn = False
        self._beside_busy_loop = False
        self._ends_at = 0.0
        self._steps = 0
        self._bytes = 0

    @property
    def short(self) -> bool:
        """Whether the loop could have answered the request itself."""
        return self._steps <= _LOOP_STEPS and self._bytes <= LOOP_BYTES

    def pause(self, size: int) -> None:
        """Go on at once, or when it is this request's turn and the loop is idle."""
        self._steps += 1
        self._bytes += size
        over = time.perf_counter() >= self._ends_at
        if self._has_turn:
            if not over and (self._beside_busy_loop or not self._gate.busy):
                return
            if over and self._slices.contended:
                self.end()
        if not self._has_turn:
            self._slices.acquire()
            self._has_turn = True
        self._beside_busy_loop = not self._gate.wait(WAIT_SECONDS)
        self._ends_at = time.perf_counter() + SLICE_SECONDS

    def end(self) -> None:
        """Give up the turn, if it has it."""
        if self._has_turn:
            self._has_turn = False
            self._slices.release()


class LoopBudget:
    """What a request may cost on the loop itself; `spend` raises TooLong beyond it."""

    __slots__ = ("_bytes", "_ends_at", "_steps")

    def __init__(self) -> None:
        self._bytes = LOOP_BYTES
        self._steps = 0
        self._ends_at = 0.0

    def spend(self, size: int) -> None:
        """Note a step that goes through so many bytes."""
        self._bytes -= size
        self._steps += 1
        if self._bytes < 0:
            raise TooLong
        if self._steps % _STEPS_PER_LOOK == 0:
            # In this thread's own time: a busy machine makes no request long.
            now = time.thread_time()
            if not self._ends_at:
                self._ends_at = now + _LOOP_SECONDS
            elif now > self._ends_at:
                raise TooLong
