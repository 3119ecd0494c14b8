"""Queues of the writers of a space in this process.

They commit one after another, not against each other. A queue only saves conflicts; the conditions of a
transaction decide. So a turn is bounded in time, and a writer that cannot wait for it commits without one.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from solotable.fork_safe import new_lock

#: After this time the next writer does not wait for a turn to end.
LONGEST_TURN_SECONDS = 2.0

_lock = new_lock()
_queues: dict[str, deque[_Turn]] = {}


class Turns:
    """The turns of one writer in the queues of its spaces."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[_Turn] = []

    def add(self, turn: _Turn) -> None:
        """Keep a turn until `end`."""
        self._held.append(turn)

    def end(self) -> None:
        """Let the next writers commit; a second call has no effect."""
        while self._held:
            _leave(self._held.pop())


class _Turn:
    """A place in a queue; the first place has the turn."""

    __slots__ = ("queue", "since", "task", "thread", "wake")

    def __init__(self, queue: str, wake: Callable[[], object], task: object = None) -> None:
        self.queue = queue
        self.wake = wake
        self.thread = threading.get_ident()
        #: The task of the writer, if it awaits its turn.
        self.task = task
        #: When the turn began.
        self.since = 0.0

    def would_wait_for_itself(self, others: Iterable[_Turn]) -> bool:
        """Return whether one of the others cannot end before this writer continues."""
        if self.task is not None:
            return any(each.task is self.task for each in others)
        return any(each.thread == self.thread for each in others)


def wait_for_turns(queues: Iterable[str]) -> Turns:
    """Wait, blocking, until this writer is the first in each queue."""
    turns = Turns()
    try:
        for name in sorted(queues):
            event = threading.Event()
            turn = _Turn(name, event.set)
            turns.add(turn)
            mine = _join(turn)
            while not mine:
                mine = event.wait(LONGEST_TURN_SECONDS) or _is_first_after_late(turn)
    except BaseException:
        turns.end()
        raise
    return turns


async def await_turns(queues: Iterable[str]) -> Turns:
    """Wait on the event loop until this writer is the first in each queue."""
    turns = Turns()
    loop = asyncio.get_running_loop()
    try:
        for name in sorted(queues):
            event = asyncio.Event()
            turn = _Turn(name, _waker(loop, event), asyncio.current_task())
            turns.add(turn)
            mine = _join(turn)
            while not mine:
                try:
                    mine = await asyncio.wait_for(event.wait(), LONGEST_TURN_SECONDS)
                except TimeoutError:
                    mine = _is_first_after_late(turn)
    except BaseException:
        turns.end()
        raise
    return turns


def _waker(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> Callable[[], Any]:
    def wake() -> None:
        # The loop may be closed. Then the writer is gone, and its turn ends by time.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(event.set)

    return wake


def _join(turn: _Turn) -> bool:
    """Add a writer to its queue; return whether it need not wait."""
    with _lock:
        waiting = _queues.setdefault(turn.queue, deque())
        if turn.would_wait_for_itself(waiting):
            return True
        waiting.append(turn)
        if len(waiting) > 1:
            return False
        turn.since = time.monotonic()
        return True


def _is_first_after_late(turn: _Turn) -> bool:
    """End the first turn of the queue if it is late; return whether the writer need not wait any longer."""
    with _lock:
        first = _first_before(turn)
        if first is None:
            return True
        late = time.monotonic() - first.since >= LONGEST_TURN_SECONDS
    if late:
        _leave(first)
    with _lock:
        return _first_before(turn) is None


def _first_before(turn: _Turn) -> _Turn | None:
    """Return the turn that a writer waits for; None for its own, and if another writer found it late."""
    waiting = _queues.get(turn.queue)
    if waiting is None or turn not in waiting or waiting[0] is turn:
        return None
    return waiting[0]


def _leave(turn: _Turn) -> None:
    """Remove a writer from its queue, if it is there, and wake the next one."""
    with _lock:
        waiting = _queues.get(turn.queue, deque())
        if turn not in waiting:
            return
        was_first = waiting[0] is turn
        waiting.remove(turn)
        if not waiting:
            del _queues[turn.queue]
        if not waiting or not was_first:
            return
        following = waiting[0]
        following.since = time.monotonic()
    following.wake()


if hasattr(os, "register_at_fork"):
    # The writers of the other threads are not in the child.
    os.register_at_fork(after_in_child=_queues.clear)
