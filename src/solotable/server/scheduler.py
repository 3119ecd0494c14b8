"""Which thread answers which request, so that nobody waits for an fsync or a long read of another.

Reads are begun on the event loop and answered there if they are short. A read that turns out to be long
is begun again in a thread, where it runs in slices (`slices`). Writes go to one thread in groups:
everything that arrived while the last group was committed is committed together. A database in memory has
no fsyncs: it writes on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

from solotable._protocol import requests
from solotable._protocol.engine import Pause, TooLong
from solotable._protocol.requests import Query, Request, Scan

from .time_slices import LOOP_BYTES, LoopBudget, Slice, Slices


class Outcome(Protocol):
    """What came of one request of a group."""

    def get(self) -> Any:
        """Return the reply, or raise."""


class GroupingEngine(Protocol):
    """What a server needs of an engine beside the port that all engines have."""

    @property
    def instant(self) -> bool:
        """Whether writes are as quick as reads, so that nothing is gained by threads."""

    def handle(self, request: Request[Any], /) -> Any: ...

    def handle_small(self, request: Request[Any], largest: int, /) -> Any:
        """Answer a write, or raise TooLong if it has to look into an item of more bytes."""

    def handle_in_slices(self, request: Request[Any], pause: Pause, /) -> Any:
        """Answer a request; `pause` is called before each step of a long one. It may end a read."""

    def handle_together(
        self, requests: Sequence[Request[Any]], /, *, largest: int | None
    ) -> Sequence[Outcome]:
        """Answer several requests, as `handle_small` does; what they write is committed together."""


EncodedT = TypeVar("EncodedT")
#: Makes a reply of a function that gives the answer or raises; called in the thread that has the answer.
Encode = Callable[[Callable[[], Any]], EncodedT]
#: Called on the event loop with the reply.
Done = Callable[[EncodedT], None]

_WRITES = (
    requests.PutItem,
    requests.UpdateItem,
    requests.DeleteItem,
    requests.BatchWriteItem,
    requests.TransactWriteItems,
)
#: Reads that are short as a rule, on a file; in memory also the others.
_SHORT = (requests.GetItem, Query)
#: Reads, which can be begun again. A statement that writes takes no pause, so it is not begun twice.
_READS = (
    *_SHORT,
    Scan,
    requests.BatchGetItem,
    requests.TransactGetItems,
    requests.ExecuteStatement,
)
_LONG_THREADS = 4
_CONTROL_THREADS = 2
#: How many short pages in a row it takes until a table or index is believed to have no long ones.
_SHORT_PAGES = 64
_MOST_REMEMBERED = 1024


#: A write, and where its reply goes.
_Write = tuple[Request[Any], Encode[Any], Done[Any]]


class Lanes:
    """The lanes of one server."""

    def __init__(self, engine: GroupingEngine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._loop = loop
        self._slices = Slices(loop)
        self._begun_on_loop = _READS if engine.instant else _SHORT
        self._instant = engine.instant
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="solotable-writer")
        # One, so that only one body at a time weighs what Python's objects do.
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="solotable-reader")
        self._long = ThreadPoolExecutor(_LONG_THREADS, thread_name_prefix="solotable-long")
        self._control = ThreadPoolExecutor(_CONTROL_THREADS, thread_name_prefix="solotable-control")
        #: Tables and indexes that lately gave a long page, and the short pages still needed to forget it.
        self._long_pages: dict[tuple[str, str | None], int] = {}
        self._waiting: list[_Write] = []
        self._writing = False
        self._closed = False

    def take(self, request: Request[Any], encode: Encode[EncodedT], done: Done[EncodedT]) -> None:
        """Have the request answered; `done` may be called before this returns."""
        if isinstance(request, requests.GetItem) and request.projection is None:
            # What is asked for most, and always short: no budget has to be kept.
            done(encode(partial(self._engine.handle, request)))
        elif isinstance(request, _WRITES):
            self._write(request, encode, done)
        elif isinstance(request, self._begun_on_loop) and not self._was_long(request):
            self._begin(request, encode, done)
        elif isinstance(request, _READS):
            self._handle_long(request, encode, done)
        elif self._instant:
            done(encode(partial(self._engine.handle, request)))
        else:
            self._aside(self._control, partial(encode, partial(self._engine.handle, request)), done)

    def read(self, work: Callable[[], Any], done: Callable[[Callable[[], Any]], None]) -> None:
        """Have a large body read by a thread."""
        future = self._reader.submit(work)
        future.add_done_callback(partial(self._call_soon, lambda finished: done(finished.result)))

    def close(self) -> None:
        """Wait for what is under way, then end the threads; what still waits is not done."""
        self._closed = True
        self._reader.shutdown(cancel_futures=True)
        self._writer.shutdown()
        self._long.shutdown(cancel_futures=True)
        self._control.shutdown(cancel_futures=True)

    def _begin(self, request: Request[Any], encode: Encode[EncodedT], done: Done[EncodedT]) -> None:
        """Answer a read on the loop if it is short, and by a thread otherwise."""
        try:
            answer = self._engine.handle_in_slices(request, LoopBudget().spend)
        except TooLong:
            if isinstance(request, Query | Scan):
                if len(self._long_pages) >= _MOST_REMEMBERED:
                    self._long_pages.clear()
                self._long_pages[request.table, request.index] = _SHORT_PAGES
            self._handle_long(request, encode, done)
        except Exception as error:  # noqa: BLE001  # `encode` tells a refusal from a fault of ours
            done(encode(partial(_raise, error)))
        else:
            done(encode(lambda: answer))

    def _handle_long(self, request: Request[Any], encode: Encode[EncodedT], done: Done[EncodedT]) -> None:
        def work() -> EncodedT:
            turn = Slice(self._slices)

            def answer() -> Any:
                found = self._engine.handle_in_slices(request, turn.pause)
                if turn.short:
                    self._forget_long_page(request)
                turn.pause(0)
                return found

            try:
                return encode(answer)
            finally:
                turn.end()

        self._aside(self._long, work, done)

    def _was_long(self, request: Request[Any]) -> bool:
        return isinstance(request, Query | Scan) and (request.table, request.index) in self._long_pages

    def _forget_long_page(self, request: Request[Any]) -> None:
        # Threads may lose each other's count of short pages, which then takes one more.
        if isinstance(request, Query | Scan):
            source = request.table, request.index
            left = self._long_pages.get(source, 0)
            if left > 1:
                self._long_pages[source] = left - 1
            else:
                self._long_pages.pop(source, None)

    def _aside(self, threads: ThreadPoolExecutor, work: Callable[[], EncodedT], done: Done[EncodedT]) -> None:
        if self._closed:
            return

        def finished(future: Future[EncodedT]) -> None:
            if not future.cancelled():
                done(future.result())

        threads.submit(work).add_done_callback(partial(self._call_soon, finished))

    def _write(self, request: Request[Any], encode: Encode[Any], done: Done[Any]) -> None:
        if self._instant:
            self._settle(request, encode, done, partial(self._engine.handle_small, request, LOOP_BYTES))
            return
        self._waiting.append((request, encode, done))
        if not self._writing:
            self._write_group()

    def _write_group(self) -> None:
        group, self._waiting = self._waiting, []
        self._writing = True
        writes = [request for request, _, _ in group]
        future = self._writer.submit(self._engine.handle_together, writes, largest=LOOP_BYTES)
        future.add_done_callback(partial(self._call_soon, self._written, group))

    def _written(self, group: list[_Write], future: Future[Sequence[Outcome]]) -> None:
        self._writing = False
        if self._waiting and not self._closed:
            self._write_group()
        error = future.exception()
        if error is not None:
            for _, encode, done in group:
                done(encode(partial(_raise, error)))
            return
        for write, outcome in zip(group, future.result(), strict=True):
            self._settle(*write, outcome.get)

    def _settle(
        self, request: Request[Any], encode: Encode[Any], done: Done[Any], answer: Callable[[], Any]
    ) -> None:
        """Send the outcome of a write; run one that would block the others in another thread."""
        try:
            found = answer()
        except TooLong:
            self._handle_long(request, encode, done)
        except Exception as error:  # noqa: BLE001  # `encode` tells a refusal from a fault of ours
            done(encode(partial(_raise, error)))
        else:
            done(encode(lambda: found))

    def _call_soon(self, function: Callable[..., None], *arguments: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)


def _raise(error: BaseException) -> Any:
    raise error
