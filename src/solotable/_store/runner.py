"""Run flows on engines: the only module that sends requests and waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Executor
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar

from solotable._flows.hooks import HookCall
from solotable._flows.retry import ConcurrentReads, Flow, LoadKeys, SaveBlobs, Sleep, WaitForTurns
from solotable._protocol.engine import AsyncEngine, Capabilities, Engine, ReplyT
from solotable._protocol.requests import (
    DeleteItem,
    GetItem,
    PreparedUpdateItem,
    PutItem,
    Query,
    Request,
    TransactWriteItems,
    UpdateItem,
)
from solotable._write_groups import WriteGroups
from solotable.errors import DeclarationError, EngineError, ServiceError, TransportError

from .consumption import METERS
from .observation import ObservedAsyncEngine, ObservedEngine, WatchedAsyncEngine, WatchedEngine
from .space_queues import await_turns, wait_for_turns

ResultT = TypeVar("ResultT")

#: Short writes; committing them as a group is faster than one by one.
_GROUPED_WRITES = frozenset({PutItem, UpdateItem, PreparedUpdateItem, DeleteItem, TransactWriteItems})
#: Requests that the runner answers itself.
_LOCAL = frozenset({Sleep, ConcurrentReads, HookCall, SaveBlobs, LoadKeys, WaitForTurns})
#: The largest page that is read within a few milliseconds.
_SHORT_PAGE = 1000
#: The number of consecutive short reads before other tasks get to run.
_UNINTERRUPTED = 32


def run(flow: Flow[ResultT], engine: Engine, subject: object = None) -> ResultT:
    """Run a flow to its end, blocking; `subject` names its entity or query for an observer."""
    if METERS.get() or type(engine) is ObservedEngine:
        engine = WatchedEngine(engine, subject)
    reply: Any = None
    pending_error: Exception | None = None
    while True:
        try:
            request = flow.send(reply) if pending_error is None else flow.throw(pending_error)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return] # a generator's result has no type here
        except AttributeError as error:
            _check_blocking(error)
            raise
        pending_error = None
        try:
            reply = engine.handle(request) if type(request) not in _LOCAL else _answer(request, engine)
        except (ServiceError, TransportError) as error:
            pending_error = error
        except BaseException as error:
            # Leave the flow open: a caller may resume it after a cancellation, as the limiter does.
            pending_error = _error_for_flow(request, error)
            if pending_error is None:
                raise


# Called after an error, because a check of each reply would slow down every request.
def _check_blocking(error: AttributeError) -> None:
    """Raise DeclarationError if the flow got a coroutine as its reply: the engine is an async one."""
    if isinstance(error.obj, CoroutineType):
        error.obj.close()
        raise DeclarationError(
            "This call takes a blocking store or engine, got an async one; open one with Table.open() or "
            "connect(), and call it in a thread if an event loop runs. For a flow, await arun()."
        ) from None


async def arun(flow: Flow[ResultT], engine: AsyncEngine, subject: object = None) -> ResultT:
    """Run a flow to its end, awaiting each reply; `subject` is as for `run`."""
    if METERS.get() or type(engine) is ObservedAsyncEngine:
        engine = WatchedAsyncEngine(engine, subject)
    reply: Any = None
    pending_error: Exception | None = None
    while True:
        try:
            request = flow.send(reply) if pending_error is None else flow.throw(pending_error)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return] # a generator's result has no type here
        pending_error = None
        try:
            if type(request) not in _LOCAL:
                reply = await engine.handle(request)
            else:
                reply = await _answer_async(request, engine)
        except (ServiceError, TransportError) as error:
            pending_error = error
        except BaseException as error:
            # Leave the flow open: a caller may resume it after a cancellation, as the limiter does.
            pending_error = _error_for_flow(request, error)
            if pending_error is None:
                raise


def _answer(request: Any, engine: Engine) -> Any:
    """Answer a request that the runner does not send."""
    if type(request) is Sleep:
        (engine.capabilities.sleep or time.sleep)(request.seconds)
        return None
    if type(request) is ConcurrentReads:
        return [_outcome(engine, read) for read in request.reads]
    if type(request) is SaveBlobs:
        for blob, storage, name in request.blobs:
            blob.save(storage, name)
        return None
    if type(request) is LoadKeys:
        for load in request.loads:
            load()
        return None
    if type(request) is WaitForTurns:
        return wait_for_turns(request.queues)
    request.check_blocking()
    reply = None if request.function is None else request.function(*request.arguments)
    request.check_blocking(reply)
    return reply


async def _answer_async(request: Any, engine: AsyncEngine) -> Any:
    """Answer a request that the runner does not send."""
    if type(request) is Sleep:
        return await engine.sleep(request.seconds)
    if type(request) is ConcurrentReads:
        return await asyncio.gather(*(_awaited(engine, read) for read in request.reads))
    if type(request) is SaveBlobs:
        for blob, storage, name in request.blobs:
            await blob.asave(storage, name)
        return None
    if type(request) is LoadKeys:
        for load in request.loads:
            await asyncio.to_thread(load)
        return None
    if type(request) is WaitForTurns:
        return await await_turns(request.queues)
    reply = None if request.function is None else request.function(*request.arguments)
    # A decorator may hide that the hook is async, so the reply decides.
    return await reply if isinstance(reply, Awaitable) else reply


def _error_for_flow(request: object, error: BaseException) -> Exception | None:
    """Return the error that a flow gets: of a hook, or for a value that it may not yield."""
    if isinstance(request, HookCall):
        return error if isinstance(error, Exception) else None
    if isinstance(request, Request | Sleep | ConcurrentReads):
        return None
    hint = "; write `yield from`" if isinstance(request, Generator) else ""
    return TypeError(f"A flow yields requests, got {type(request).__name__}{hint}.")


# Each concurrent read has its own outcome, so that an error of one does not fail the others.
def _outcome(engine: Engine, request: Request[Any]) -> Any:
    try:
        return engine.handle(request)
    except (ServiceError, TransportError) as error:
        return error


async def _awaited(engine: AsyncEngine, request: Request[Any]) -> Any:
    try:
        return await engine.handle(request)
    except (ServiceError, TransportError) as error:
        return error


def _is_short(request: Request[Any]) -> bool:
    return type(request) is Query and request.limit is not None and request.limit <= _SHORT_PAGE


def _settle(answered: asyncio.Future[Any], answer: Callable[[], Any]) -> None:
    """Set the result or the error of a caller's future, unless it was cancelled."""
    if answered.done():
        return
    try:
        answered.set_result(answer())
    except asyncio.CancelledError:
        answered.cancel()
    except BaseException as error:  # noqa: BLE001 - every error is the caller's
        answered.set_exception(error)


class Inline:
    """A blocking engine that replies within microseconds, called on the event loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def capabilities(self) -> Capabilities:
        """What the blocking engine declares about itself."""
        return self._engine.capabilities

    async def handle(self, request: Request[ReplyT], /) -> ReplyT:
        """Handle one request on the event loop."""
        return self._engine.handle(request)

    async def sleep(self, seconds: float) -> None:
        """Wait with the engine's own sleep, or on the event loop."""
        own = self._engine.capabilities.sleep
        if own is not None:
            own(seconds)
        await asyncio.sleep(seconds if own is None else 0)

    async def close(self) -> None:
        """Close the engine."""
        self._engine.close()


class Threaded:
    """A blocking engine behind threads, so that a disk or a network does not block the event loop.

    With the capability `short_reads`, reads of one item or of a small page run on the event loop: they take
    less time than the switch to a thread. Concurrent writes are grouped if the engine supports it.
    """

    def __init__(self, engine: Engine, executor: Executor) -> None:
        self._engine = engine
        self._executor = executor
        self._short_reads = engine.capabilities.short_reads
        self._in_a_row = 0
        self._closed = False
        self._together = engine.capabilities.handle_together
        self._groups: WriteGroups | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the blocking engine declares about itself."""
        return self._engine.capabilities

    async def handle(self, request: Request[ReplyT], /) -> ReplyT:
        """Handle one request in a thread, or a short read on the event loop."""
        if self._closed:
            raise EngineError("The store was closed; open it again.")
        if self._short_reads and (type(request) is GetItem or _is_short(request)):
            self._in_a_row += 1
            if self._in_a_row % _UNINTERRUPTED == 0:
                await asyncio.sleep(0)
            return self._engine.handle(request)
        loop = asyncio.get_running_loop()
        if self._together is not None and type(request) in _GROUPED_WRITES:
            if self._groups is None or self._groups.loop is not loop:
                self._groups = WriteGroups(loop, self._executor, self._together, defer=True)
            answered: asyncio.Future[ReplyT] = loop.create_future()
            self._groups.write(request, partial(_settle, answered))
            return await answered
        return await loop.run_in_executor(self._executor, self._engine.handle, request)

    async def sleep(self, seconds: float) -> None:
        """Wait with the engine's own sleep, or on the event loop."""
        own = self._engine.capabilities.sleep
        if own is None:
            await asyncio.sleep(seconds)
        else:
            await asyncio.get_running_loop().run_in_executor(self._executor, own, seconds)

    async def close(self) -> None:
        """Close the engine after its threads have finished."""
        self._closed = True
        self._executor.shutdown(wait=True)
        self._engine.close()
