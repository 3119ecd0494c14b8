"""Commit the writes of an event loop in groups: one thread and one commit per group.

The server and the async store share it. Writes that arrive during the commit of a group form the next one.
Each write has its own outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

from solotable._protocol.engine import Outcome
from solotable._protocol.requests import Request

#: The most writes of a group: each write delays the others.
LARGEST_GROUP = 64

#: Called on the event loop with a function that returns the reply of a write or raises its error.
Done = Callable[[Callable[[], Any]], None]
_Write = tuple[Request[Any], Done]


class WriteGroups:
    """The waiting writes of one event loop, and the group that a thread commits."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        executor: Executor,
        write_together: Callable[[Sequence[Request[Any]]], Sequence[Outcome]],
        *,
        defer: bool,
    ) -> None:
        self.loop = loop
        self._executor = executor
        self._write_together = write_together
        #: Whether a first write waits one tick, so that the writes of other tasks join its group.
        self._defer = defer
        self._waiting: list[_Write] = []
        self._busy = False

    def write(self, request: Request[Any], done: Done) -> None:
        """Add a request to the next group; it is written even if its caller stops waiting."""
        self._waiting.append((request, done))
        if self._busy:
            return
        self._busy = True
        if self._defer:
            self.loop.call_soon(self._start)
        else:
            self._start()

    def drop_waiting(self) -> None:
        """Drop the writes that are not in a group yet; their callers get no reply."""
        self._waiting.clear()

    def _start(self) -> None:
        group, self._waiting = self._waiting[:LARGEST_GROUP], self._waiting[LARGEST_GROUP:]
        if not group:
            self._busy = False
            return
        try:
            future = self._executor.submit(self._write_together, [request for request, _ in group])
        except RuntimeError as closed:
            # The threads were shut down: the store or the server was closed.
            _finish_all(group, closed)
            self._start()
        else:
            future.add_done_callback(partial(self._call_soon, group))

    def _call_soon(self, group: list[_Write], future: Future[Sequence[Outcome]]) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._finish, group, future)

    def _finish(self, group: list[_Write], future: Future[Sequence[Outcome]]) -> None:
        # Start the next group first, so that the thread commits while the loop sends replies.
        self._start()
        if future.cancelled():
            _finish_all(group, asyncio.CancelledError())
        elif (error := future.exception()) is not None:
            _finish_all(group, error)
        else:
            for (_, done), outcome in zip(group, future.result(), strict=True):
                done(outcome.get)


def _finish_all(group: list[_Write], error: BaseException) -> None:
    for _, done in group:
        done(partial(_raise, error))


def _raise(error: BaseException) -> Any:
    raise error
