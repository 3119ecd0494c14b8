"""Watch the requests of a store: tell an observer of each, and sum what they consume."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import iscoroutinefunction
from typing import Any

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.patterns.query import Query
from solotable._flows.consumption import Consumed, units_of
from solotable._protocol import replies, requests
from solotable._protocol.engine import AsyncEngine, Capabilities, Engine, capabilities_of
from solotable._protocol.requests import Control, Request
from solotable.errors import DeclarationError

from .consumption import METER_LOCK, METERS

_log = logging.getLogger("solotable.observe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One request that a store has sent: names, numbers and the outcome. It has no keys and no values."""

    #: DynamoDB's name of the operation.
    operation: str
    tables: tuple[str, ...]
    index: str | None = None
    #: The entity class and the access pattern of the call that sent the request; None for jobs and flows.
    entity: str | None = None
    pattern: str | None = None
    #: The time from sending the request to its reply, in seconds.
    seconds: float
    #: 1 for the first attempt; a retry of the same request has the next number.
    attempt: int = 1
    consumed: Consumed
    #: How many items the request returned or wrote, and how many a query or scan read.
    items: int = 0
    scanned: int = 0
    #: The name of the error's class; None for a success.
    error: str | None = None


#: Called after each request in the thread or task of the caller. What it raises is logged and ignored.
Observer = Callable[[Observation], object]


def check_observer(observer: object) -> None:
    """Raise DeclarationError for an observer that cannot be called, or that would have to be awaited."""
    if not callable(observer):
        raise DeclarationError(
            f"observer= takes a function of one argument, got {type(observer).__name__}; "
            f"pass a function, or several with combine()."
        )
    if iscoroutinefunction(observer) or iscoroutinefunction(type(observer).__call__):
        raise DeclarationError(
            "observer= takes a plain function, got an async one; start a task in it, or put the observation "
            "in a queue."
        )


class ObservedEngine:
    """An engine whose requests an observer sees; everything else is the inner engine's."""

    def __init__(self, engine: Engine, observer: Observer) -> None:
        self.inner = engine
        self.observer = observer

    @property
    def capabilities(self) -> Capabilities:
        """What the inner engine declares about itself."""
        return replace(self.inner.capabilities, handle_together=None, make_async=None)

    def handle(self, request: Request[Any], /) -> Any:
        """Answer one request that no flow has sent."""
        return WatchedEngine(self, None).handle(request)

    def close(self) -> None:
        """Close the inner engine."""
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)


class ObservedAsyncEngine:
    """An async engine whose requests an observer sees."""

    def __init__(self, engine: AsyncEngine, observer: Observer) -> None:
        self.inner = engine
        self.observer = observer

    @property
    def capabilities(self) -> Capabilities:
        """What the inner engine declares about itself."""
        return capabilities_of(self.inner)

    async def handle(self, request: Request[Any], /) -> Any:
        """Answer one request that no flow has sent."""
        return await WatchedAsyncEngine(self, None).handle(request)

    async def sleep(self, seconds: float) -> None:
        """Wait as the inner engine does."""
        await self.inner.sleep(seconds)

    async def close(self) -> None:
        """Close the inner engine."""
        await self.inner.close()


class _Watch:
    """The requests of one flow: their attempts, observer and meters."""

    def __init__(self, engine: object, subject: object) -> None:
        self._subject = subject
        self._observer: Observer | None = getattr(engine, "observer", None)
        self._meters = [consumed for metered, consumed in METERS.get() if metered is engine]
        #: The requests that failed, with the number of their attempts, by identity.
        self._failed: dict[int, tuple[Request[Any], int]] = {}

    def prepare(self, request: Request[Any]) -> Request[Any]:
        """Return the request with a report of its capacity."""
        if getattr(request, "capacity", None) != "NONE":
            return request
        return replace(request, capacity="INDEXES")  # type: ignore[type-var]  # a record

    def note(self, request: Request[Any], began: float, reply: Any, error: BaseException | None) -> None:
        """Tell the observer and the meters of a request."""
        seconds = time.perf_counter() - began
        attempt = self._failed.pop(id(request), (request, 0))[1] + 1
        if error is not None:
            self._failed[id(request)] = (request, attempt)
        consumed = units_of(request, reply)
        if self._meters:
            with METER_LOCK:
                for meter in self._meters:
                    meter.include(consumed)
        if self._observer is None:
            return
        entity, pattern = _names(self._subject)
        items, scanned = (0, 0) if error is not None else _counts(request, reply)
        observation = Observation(
            operation=operation_of(request),
            tables=_tables(request),
            index=getattr(request, "index", None),
            entity=entity,
            pattern=pattern,
            seconds=seconds,
            attempt=attempt,
            consumed=consumed,
            items=items,
            scanned=scanned,
            error=None if error is None else type(error).__name__,
        )
        try:
            self._observer(observation)
        except Exception:  # noqa: BLE001 - the request is done, whatever an observer raises
            _log.exception("The observer of a store raised an error.")


class WatchedEngine(_Watch):
    """A blocking engine during one flow."""

    def __init__(self, engine: Engine, subject: object) -> None:
        super().__init__(engine, subject)
        self._engine: Engine = engine.inner if isinstance(engine, ObservedEngine) else engine

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares about itself."""
        return self._engine.capabilities

    def handle(self, request: Request[Any], /) -> Any:
        """Answer one request and note it."""
        sent = self.prepare(request)
        began = time.perf_counter()
        try:
            reply = self._engine.handle(sent)
        except BaseException as error:
            self.note(request, began, None, error)
            raise
        self.note(request, began, reply, None)
        return reply

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


class WatchedAsyncEngine(_Watch):
    """An async engine during one flow."""

    def __init__(self, engine: AsyncEngine, subject: object) -> None:
        super().__init__(engine, subject)
        self._engine: AsyncEngine = engine.inner if isinstance(engine, ObservedAsyncEngine) else engine

    async def handle(self, request: Request[Any], /) -> Any:
        """Answer one request and note it."""
        sent = self.prepare(request)
        began = time.perf_counter()
        try:
            reply = await self._engine.handle(sent)
        except BaseException as error:
            self.note(request, began, None, error)
            raise
        self.note(request, began, reply, None)
        return reply

    async def sleep(self, seconds: float) -> None:
        """Wait as the engine does."""
        await self._engine.sleep(seconds)

    async def close(self) -> None:
        """Close the engine."""
        await self._engine.close()


def operation_of(request: Request[Any]) -> str:
    """Return the name of a request's operation."""
    return request.operation if isinstance(request, Control) else type(request).__name__


def _names(subject: object) -> tuple[str | None, str | None]:
    """Return the names of the entity and the pattern of a call."""
    if isinstance(subject, Query):
        return subject.plan.name, subject.pattern
    if isinstance(subject, Plan):
        return subject.name, None
    if isinstance(subject, type) and issubclass(subject, Entity):
        return subject.plan().name, None
    return None, None


def _tables(request: Request[Any]) -> tuple[str, ...]:
    match request:
        case requests.BatchGetItem():
            names = [part.table for part in request.tables]
        case requests.BatchWriteItem():
            names = [name for name, _ in request.tables]
        case requests.TransactGetItems():
            names = [get.table for get in request.gets]
        case requests.TransactWriteItems():
            names = [action.table for action in request.actions]
        case Control():
            names = [str(request.members["TableName"])] if "TableName" in request.members else []
        case _:
            table = getattr(request, "table", None)
            return () if table is None else (table,)
    return tuple(dict.fromkeys(names))


def _counts(request: Request[Any], reply: Any) -> tuple[int, int]:
    """Return how many items a request returned or wrote, and how many a query or scan read."""
    match request, reply:
        case _, replies.GotItem():
            return int(reply.item is not None), 0
        case _, replies.WroteItem():
            return 1, 0
        case _, replies.Page():
            return reply.count, reply.scanned
        case _, replies.BatchGot():
            return sum(map(len, reply.responses.values())), 0
        case requests.BatchWriteItem(), replies.BatchWrote():
            left = sum(map(len, reply.unprocessed.values()))
            return sum(len(writes) for _, writes in request.tables) - left, 0
        case _, replies.TransactGot():
            return sum(item is not None for item in reply.items), 0
        case requests.TransactWriteItems(), replies.TransactWrote():
            return len(request.actions), 0
    return 0, 0
