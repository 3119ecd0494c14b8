"""Which thread answers which request, so that nobody waits for an fsync or a long read of another.

Short reads are answered at once on the event loop. Writes go to one thread in groups: everything that
arrived while the last group was committed is committed together. What may take long has threads of
its own, and so have queries of a table or index that lately gave long pages. A database in memory has
neither fsyncs nor parallel reads: it answers everything at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from solotable.protocol import requests
from solotable.protocol.replies import Page
from solotable.protocol.requests import Query, Request


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

    def handle_together(self, requests: Sequence[Request[Any]], /) -> Sequence[Outcome]:
        """Answer several requests; what they write is committed together."""


#: Called on the event loop with a function that gives the reply or raises.
Done = Callable[[Callable[[], Any]], None]

# Not Scan, nor several gets: a page, or four megabytes, of tiny values take a fifth of a second.
_SHORT = (requests.GetItem, Query)
_WRITES = (
    requests.PutItem,
    requests.UpdateItem,
    requests.DeleteItem,
    requests.BatchWriteItem,
    requests.TransactWriteItems,
)
_LONG_THREADS = 4
#: Items that a page passes over in some milliseconds; a query of so few is always short.
_LONG_PAGE = 1000
#: How many short pages in a row it takes until a table or index is believed to have no long ones.
_SHORT_PAGES = 64
_MOST_REMEMBERED = 1024


class Lanes:
    """The lanes of one server."""

    def __init__(self, engine: GroupingEngine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._loop = loop
        self._instant = engine.instant
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="solotable-writer")
        # One, so that only one body at a time weighs what Python's objects do.
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="solotable-reader")
        self._long = ThreadPoolExecutor(_LONG_THREADS, thread_name_prefix="solotable-long")
        #: Tables and indexes that lately gave a long page, and the short pages still needed to forget it.
        self._long_pages: dict[tuple[str, str | None], int] = {}
        self._waiting: list[tuple[Request[Any], Done]] = []
        self._writing = False
        self._closed = False

    def take(self, request: Request[Any], done: Done) -> None:
        """Have the request answered; `done` may be called before this returns."""
        if self._instant:
            done(partial(self._engine.handle, request))
        elif isinstance(request, Query) and (request.limit is None or request.limit > _LONG_PAGE):
            self._query(request, done)
        elif isinstance(request, _SHORT):
            done(partial(self._engine.handle, request))
        elif isinstance(request, _WRITES):
            self._waiting.append((request, done))
            if not self._writing:
                self._write()
        else:
            self._aside(self._long, partial(self._engine.handle, request), done)

    def read(self, work: Callable[[], Any], done: Done) -> None:
        """Have a large body read by a thread."""
        self._aside(self._reader, work, done)

    def _aside(self, threads: ThreadPoolExecutor, work: Callable[[], Any], done: Done) -> None:
        threads.submit(work).add_done_callback(partial(self._hand_back, done))

    def close(self) -> None:
        """Wait for what is under way, then end the threads; what still waits is not done."""
        self._closed = True
        self._reader.shutdown(cancel_futures=True)
        self._writer.shutdown()
        self._long.shutdown()

    def _query(self, query: Query, done: Done) -> None:
        # How long a page will be shows once it is read: the first long one is answered on the loop.
        def handle() -> Page:
            page: Page = self._engine.handle(query)
            self._remember((query.table, query.index), page)
            return page

        if (query.table, query.index) in self._long_pages:
            self._aside(self._long, handle, done)
        else:
            done(handle)

    def _remember(self, source: tuple[str, str | None], page: Page) -> None:
        # Threads may lose each other's count of short pages, which then takes one more.
        if page.scanned > _LONG_PAGE:
            if len(self._long_pages) >= _MOST_REMEMBERED:
                self._long_pages.clear()
            self._long_pages[source] = _SHORT_PAGES
        elif (left := self._long_pages.get(source)) is not None:
            if left > 1:
                self._long_pages[source] = left - 1
            else:
                self._long_pages.pop(source, None)

    def _write(self) -> None:
        group, self._waiting = self._waiting, []
        self._writing = True
        future = self._writer.submit(self._engine.handle_together, [request for request, _ in group])
        future.add_done_callback(partial(self._call_soon, self._written, [done for _, done in group]))

    def _written(self, dones: list[Done], future: Future[Sequence[Outcome]]) -> None:
        self._writing = False
        if self._waiting and not self._closed:
            self._write()
        error = future.exception()
        if error is not None:
            for done in dones:
                done(partial(_raise, error))
            return
        for done, outcome in zip(dones, future.result(), strict=True):
            done(outcome.get)

    def _hand_back(self, done: Done, future: Future[Any]) -> None:
        self._call_soon(lambda finished: done(finished.result), future)

    def _call_soon(self, function: Callable[..., None], *arguments: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)


def _raise(error: BaseException) -> Any:
    raise error
