"""Writes that coroutines ask for at once, done in one go: one thread is woken, and one commit is paid for.

While some are being done others gather, and are next. Each has an outcome of its own. Whoever is cancelled
meanwhile does not hear of it; the write is done all the same, as it is in a thread of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

from solotable._protocol.engine import Outcome
from solotable._protocol.requests import DeleteItem, PutItem, Request, TransactWriteItems, UpdateItem

#: What is worth gathering: short writes.
GATHERED = frozenset({PutItem, UpdateItem, DeleteItem, TransactWriteItems})
#: More than so many do not go together: each adds to the wait of all.
_MOST = 64


_Waiting = tuple[Request[Any], "asyncio.Future[Any]"]


class Gathering:
    """Gathers the writes of one event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        executor: Executor,
        together: Callable[[Sequence[Request[Any]]], Sequence[Outcome]],
    ) -> None:
        self.loop = loop
        self._executor = executor
        self._together = together
        self._waiting: list[_Waiting] = []
        self._at_work = False

    async def write(self, request: Request[Any]) -> Any:
        """Do a write, with others that are asked for at the same time."""
        answered = self.loop.create_future()
        self._waiting.append((request, answered))
        if not self._at_work:
            self._at_work = True
            # Whoever else is ready to run has the time to come along.
            self.loop.call_soon(self._go)
        return await answered

    def _go(self) -> None:
        batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
        if not batch:
            self._at_work = False
            return
        try:
            doing = self.loop.run_in_executor(self._executor, self._together, [each for each, _ in batch])
        except RuntimeError as closed:
            # The threads are gone: the store was closed.
            self._fail(batch, closed)
            self._go()
            return
        doing.add_done_callback(lambda done: self._done(batch, done))

    def _done(self, batch: list[_Waiting], done: asyncio.Future[Sequence[Outcome]]) -> None:
        if done.cancelled():
            for _, answered in batch:
                answered.cancel()
        elif (error := done.exception()) is not None:
            self._fail(batch, error)
        else:
            for (_, answered), settled in zip(batch, done.result(), strict=True):
                if answered.done():
                    continue
                try:
                    answered.set_result(settled.get())
                except Exception as refused:  # noqa: BLE001 - whatever it is, it is the caller's
                    answered.set_exception(refused)
        self._go()

    def _fail(self, batch: list[_Waiting], error: BaseException) -> None:
        for _, answered in batch:
            if not answered.done():
                answered.set_exception(error)
