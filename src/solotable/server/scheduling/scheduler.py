"""Pick the thread that answers a request, so that no client waits for another's fsync or long read.

The event loop answers short reads. A read that turns out to be long starts again in a thread, where it
runs in time slices (`time_slices`). One thread commits the writes in groups: all writes that arrive during
a commit form the next group. A database in memory has no fsync, so the event loop writes to it directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Protocol, TypeVar

from solotable._protocol import requests
from solotable._protocol.engine import Capabilities, Outcome, Pause, TooLong
from solotable._protocol.requests import BatchGetItem, Query, Request, Scan
from solotable._write_groups import WriteGroups

from .time_slices import LOOP_BYTES, LoopBudget, SliceQueue, TimeSlice


class GroupingEngine(Protocol):
    """What the server needs of an engine besides `Engine`."""

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares about itself."""

    def handle(self, request: Request[Any], /) -> Any: ...

    def handle_small(self, request: Request[Any], largest: int, /) -> Any:
        """Answer a write, or raise TooLong if it has to read an item larger than `largest` bytes."""

    def handle_in_slices(self, request: Request[Any], pause: Pause, /) -> Any:
        """Answer a request; call `pause` before each step of a long one. `pause` may end a read."""

    def handle_together(
        self, requests: Sequence[Request[Any]], /, *, largest: int | None
    ) -> Sequence[Outcome]:
        """Answer several requests as `handle_small` does, and commit their writes together."""


EncodedT = TypeVar("EncodedT")
#: Encodes the reply that a function returns or the error that it raises; runs in the answering thread.
Encode = Callable[[Callable[[], Any]], EncodedT]
#: Called on the event loop with the reply.
Done = Callable[[EncodedT], None]

_SINGLE_WRITES = (requests.PutItem, requests.UpdateItem, requests.DeleteItem)
_WRITES = (
    *_SINGLE_WRITES,
    requests.BatchWriteItem,
    requests.TransactWriteItems,
)
#: Reads that are usually short on a file; in memory, all reads are.
_SHORT_READS = (requests.GetItem, Query, BatchGetItem)
#: Reads, which can start again. A statement that writes never pauses, so it does not run twice.
_READS = (
    *_SHORT_READS,
    Scan,
    requests.TransactGetItems,
    requests.ExecuteStatement,
)
#: The writer thread takes less than a millisecond for so many writes of single items.
_SMALL_GROUP = 16
_LONG_THREADS = 4
_CONTROL_THREADS = 2
#: How many short pages in a row it takes to try a table or index on the event loop again.
_SHORT_PAGES = 64
_MAX_LONG_PAGES = 1024


class Scheduler:
    """The threads of one server, and the rules that distribute requests to them."""

    def __init__(
        self,
        engine: GroupingEngine,
        loop: asyncio.AbstractEventLoop,
        interval: AbstractContextManager[None] | None = None,
        *,
        defers_writes: bool = False,
    ) -> None:
        """Start the threads; with `defers_writes`, writes that arrive in one tick share a commit."""
        self._engine = engine
        #: Entered while a thread computes beside the event loop; reusable.
        self._interval = nullcontext() if interval is None else interval
        self._loop = loop
        self._slices = SliceQueue(loop)
        self._tried_on_loop = _READS if engine.capabilities.instant else _SHORT_READS
        self._instant = engine.capabilities.instant
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="solotable-writer")
        # One thread, so that only one large body at a time exists as Python objects.
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="solotable-reader")
        self._long_threads = ThreadPoolExecutor(_LONG_THREADS, thread_name_prefix="solotable-long")
        self._control_threads = ThreadPoolExecutor(_CONTROL_THREADS, thread_name_prefix="solotable-control")
        #: The sources of recent long pages, and how many short pages in a row reset that.
        self._long_pages: dict[Hashable, int] = {}
        self._groups = WriteGroups(loop, self._writer, self._write_together, defer=defers_writes)
        self._closed = False

    def schedule(self, request: Request[Any], encode: Encode[EncodedT], done: Done[EncodedT]) -> None:
        """Answer the request, now or later; `done` may be called before this returns."""
        if isinstance(request, requests.GetItem) and request.projection is None:
            # The most frequent request is always short, so it needs no budget.
            done(encode(partial(self._engine.handle, request)))
        elif isinstance(request, _WRITES):
            self._write(request, encode, done)
        elif isinstance(request, self._tried_on_loop) and not (
            self._long_pages and _source_of(request) in self._long_pages
        ):
            self._try_on_loop(request, encode, done)
        elif isinstance(request, _READS):
            self._run_in_slices(request, encode, done)
        elif self._instant:
            done(encode(partial(self._engine.handle, request)))
        else:
            self._run_in_thread(
                self._control_threads, partial(encode, partial(self._engine.handle, request)), done
            )

    def run_in_reader(self, work: Callable[[], Any], done: Callable[[Callable[[], Any]], None]) -> None:
        """Run `work` in the reader thread; call `done` on the event loop with its result function."""
        future = self._reader.submit(self._compute, work)
        future.add_done_callback(partial(self._call_soon, lambda finished: done(finished.result)))

    def close(self) -> None:
        """Wait for running requests, then end the threads; queued requests are dropped."""
        self._closed = True
        self._groups.drop_waiting()
        self._reader.shutdown(cancel_futures=True)
        self._writer.shutdown()
        self._long_threads.shutdown(cancel_futures=True)
        self._control_threads.shutdown(cancel_futures=True)

    def _try_on_loop(self, request: Request[Any], encode: Encode[EncodedT], done: Done[EncodedT]) -> None:
        """Answer a read on the event loop if it is short, otherwise in a thread."""
        try:
            answer = self._engine.handle_in_slices(request, LoopBudget().spend)
        except TooLong:
            if (source := _source_of(request)) is not None:
                if len(self._long_pages) >= _MAX_LONG_PAGES:
                    self._long_pages.clear()
                self._long_pages[source] = _SHORT_PAGES
            self._run_in_slices(request, encode, done)
        except Exception as error:  # noqa: BLE001  # `encode` makes a service error or a 500 of it
            done(encode(partial(_raise, error)))
        else:
            done(encode(lambda: answer))

    def _run_in_slices(self, request: Request[Any], encode: Encode[EncodedT], done: Done[EncodedT]) -> None:
        def work() -> EncodedT:
            turn = TimeSlice(self._slices)

            def answer() -> Any:
                found = self._engine.handle_in_slices(request, turn.pause)
                if turn.short:
                    self._count_short_page(request)
                turn.pause(0)
                return found

            try:
                return encode(answer)
            finally:
                turn.end()

        self._run_in_thread(self._long_threads, work, done)

    def _count_short_page(self, request: Request[Any]) -> None:
        # Two threads may lose a count, which then takes one short page more.
        if (source := _source_of(request)) is not None:
            left = self._long_pages.get(source, 0)
            if left > 1:
                self._long_pages[source] = left - 1
            else:
                self._long_pages.pop(source, None)

    def _run_in_thread(
        self, threads: ThreadPoolExecutor, work: Callable[[], EncodedT], done: Done[EncodedT]
    ) -> None:
        if self._closed:
            return

        def finished(future: Future[EncodedT]) -> None:
            if not future.cancelled():
                done(future.result())

        threads.submit(self._compute, work).add_done_callback(partial(self._call_soon, finished))

    def _write(self, request: Request[Any], encode: Encode[Any], done: Done[Any]) -> None:
        if self._instant:
            self._finish_write(request, encode, done, partial(self._engine.handle_small, request, LOOP_BYTES))
            return
        self._groups.write(request, partial(self._finish_write, request, encode, done))

    def _compute(self, work: Callable[[], EncodedT]) -> EncodedT:
        with self._interval:
            return work()

    def _write_together(self, group: Sequence[Request[Any]]) -> Sequence[Outcome]:
        if len(group) <= _SMALL_GROUP and all(isinstance(each, _SINGLE_WRITES) for each in group):
            return self._engine.handle_together(group, largest=LOOP_BYTES)
        with self._interval:
            return self._engine.handle_together(group, largest=LOOP_BYTES)

    def _finish_write(
        self, request: Request[Any], encode: Encode[Any], done: Done[Any], answer: Callable[[], Any]
    ) -> None:
        """Send the outcome of a write; run a write that would block others in another thread."""
        try:
            found = answer()
        except TooLong:
            self._run_in_slices(request, encode, done)
        except Exception as error:  # noqa: BLE001  # `encode` makes a service error or a 500 of it
            done(encode(partial(_raise, error)))
        else:
            done(encode(lambda: found))

    def _call_soon(self, function: Callable[..., None], *arguments: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)


def _source_of(request: Request[Any]) -> Hashable | None:
    """Return what a read of many items reads: a table or an index, or the tables of a batch."""
    if isinstance(request, Query | Scan):
        return request.table, request.index
    if isinstance(request, BatchGetItem):
        return tuple(part.table for part in request.tables)
    return None


def _raise(error: BaseException) -> Any:
    raise error
