"""The limiter, blocking and asyncio: each method runs a flow."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from solotable import AsyncDatabase, Database
from solotable.errors import DataError, SolotableError
from solotable.flow import Flow, Scope, arun, engine_of, run, scope_of

from .admin import audit as audit_trail
from .admin import registry, resolve
from .admin.entities import OnUnavailable
from .admin.limits import Amount, Limit
from .buckets.targets import UnknownLimits
from .lease import AcquireRequest, AsyncLease, Lease
from .operations import LimiterCore, LimiterOptions
from .table import limiter
from .usage import report

P = ParamSpec("P")
ResultT = TypeVar("ResultT")
MethodT = TypeVar("MethodT", bound=Callable[..., Any])
DatabaseT = TypeVar("DatabaseT", Database, AsyncDatabase)


def _of_scope(
    flow: Callable[Concatenate[Scope, P], Flow[ResultT]],
) -> Callable[Concatenate[LimiterCore, P], Flow[ResultT]]:
    """Return a flow of a limiter that runs in its scope."""

    def of_limiter(self: LimiterCore, /, *args: P.args, **kwargs: P.kwargs) -> Flow[ResultT]:
        return flow(self._scope, *args, **kwargs)

    return wraps(flow)(of_limiter)


def _blocking(
    flow: Callable[Concatenate[LimiterCore, P], Flow[ResultT]],
) -> Callable[Concatenate[Limiter, P], ResultT]:
    """Return the method of `Limiter` that runs a flow."""

    def method(self: Limiter, /, *args: P.args, **kwargs: P.kwargs) -> ResultT:
        return run(flow(self, *args, **kwargs), self._engine)

    return _documented(method, flow)


def _awaited(
    flow: Callable[Concatenate[LimiterCore, P], Flow[ResultT]],
) -> Callable[Concatenate[AsyncLimiter, P], Coroutine[Any, Any, ResultT]]:
    """Return the method of `AsyncLimiter` that awaits a flow."""

    async def method(self: AsyncLimiter, /, *args: P.args, **kwargs: P.kwargs) -> ResultT:
        return await arun(flow(self, *args, **kwargs), self._engine)

    return _documented(method, flow)


def _documented(method: MethodT, flow: Callable[..., Any]) -> MethodT:
    """Give a method the signature and docstring of its flow, with the result of the flow."""
    signature = inspect.signature(flow)
    result = str(signature.return_annotation).removeprefix("Flow[").removesuffix("]")
    method.__doc__, method.__name__ = flow.__doc__, flow.__name__.removeprefix("_")
    method.__signature__ = signature.replace(return_annotation=result)  # type: ignore[attr-defined]  # for help()
    return method


def _opened(db: DatabaseT) -> DatabaseT:
    if isinstance(db, str):
        raise DataError(f"A limiter takes an open database; open a URL with Limiter.open({db!r}).")
    return db


class Limiter(LimiterCore):
    """Token buckets on a table: `with limiter.acquire("user-1", "gpt-4", {"rpm": 1}) as lease`.

    `limits` apply where none are stored. `cache_seconds` is how long stored limits are cached, and
    `remember_rejections` how long a refusal is. A bucket with more than `shard_above` writes per second is
    spread over up to `most_shards` items; "auto" is 700 on Amazon DynamoDB and None elsewhere, which disables
    that.
    """

    def __init__(self, db: Database, namespace: str = "default", **options: Unpack[LimiterOptions]) -> None:
        for name in ("on_soft_limit", "on_shadow_refusal"):
            if inspect.iscoroutinefunction(options.get(name)):
                raise DataError(
                    f"{name} of a Limiter is a function; an AsyncLimiter takes a coroutine function."
                )
        self._engine = engine_of(_opened(db))
        super().__init__(scope_of(db).of_tenant(namespace), self._engine, **options)

    @classmethod
    def open(cls, url: str, namespace: str = "default", **options: Unpack[LimiterOptions]) -> Self:
        """Open a URL for the limiter's table alone."""
        return cls(limiter.open(url), namespace, **options)

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    def acquire(
        self,
        entity: str,
        resource: str,
        consume: Mapping[str, Amount],
        *,
        also: Mapping[str, Mapping[str, Amount]] | None = None,
        limits: Iterable[Limit] | None = None,
        on_unavailable: OnUnavailable | None = None,
        unknown_limits: UnknownLimits = "raise",
    ) -> Lease:
        """Return a lease: its `with` block takes tokens from every limit that is named, or from none.

        `also` takes from other resources too, all or none. `limits` replace the stored ones of `resource`.
        `unknown_limits="ignore"` takes nothing from a limit that does not exist, and logs its name.
        Raises RateLimitExceeded, or NeverSatisfiable or EntityDenied if waiting does not help.
        """
        request = AcquireRequest(entity, resource, consume, limits, on_unavailable, also, unknown_limits)
        return Lease(self._engine, self._context, request)

    def ping(self, timeout: float = 1.0) -> bool:
        """Return whether the table responds in time; never raises."""
        responded = threading.Event()

        def read() -> None:
            with contextlib.suppress(SolotableError, OSError):
                run(registry.get_limits(self._scope), self._engine)
                responded.set()

        threading.Thread(target=read, daemon=True).start()
        return responded.wait(timeout)

    available = _blocking(LimiterCore._available)
    time_until = _blocking(LimiterCore._time_until)
    statuses = _blocking(LimiterCore._statuses)
    check = _blocking(LimiterCore._check)
    create_entity = _blocking(LimiterCore._create_entity)
    delete_entity = _blocking(LimiterCore._delete_entity)
    set_parent = _blocking(LimiterCore._set_parent)
    get_entity = _blocking(_of_scope(registry.get_entity))
    children = _blocking(_of_scope(registry.children))
    entities = _blocking(_of_scope(registry.entities))
    set_limits = _blocking(LimiterCore._set_limits)
    delete_limits = _blocking(LimiterCore._delete_limits)
    set_mode = _blocking(LimiterCore._set_mode)
    reset = _blocking(LimiterCore._reset)
    top_up = _blocking(LimiterCore._top_up)
    get_limits = _blocking(_of_scope(registry.get_limits))
    stored_limits = _blocking(_of_scope(registry.stored_limits))
    limited_resources = _blocking(_of_scope(registry.limited_resources))
    effective_limits = _blocking(_of_scope(resolve.effective_limits))
    usage = _blocking(_of_scope(report.usage))
    usage_summary = _blocking(_of_scope(report.usage_summary))
    audit = _blocking(_of_scope(audit_trail.audit))


class AsyncLimiter(LimiterCore):
    """Token buckets on a table: `async with limiter.acquire("user-1", "gpt-4", {"rpm": 1}) as lease`.

    The options are those of `Limiter`.
    """

    def __init__(
        self, db: AsyncDatabase, namespace: str = "default", **options: Unpack[LimiterOptions]
    ) -> None:
        self._engine = engine_of(_opened(db))
        super().__init__(scope_of(db).of_tenant(namespace), self._engine, **options)

    @classmethod
    def open(cls, url: str, namespace: str = "default", **options: Unpack[LimiterOptions]) -> Self:
        """Open a URL for the limiter's table alone."""
        return cls(limiter.open_async(url), namespace, **options)

    async def close(self) -> None:
        """Close the engine."""
        await self._engine.close()

    def acquire(
        self,
        entity: str,
        resource: str,
        consume: Mapping[str, Amount],
        *,
        also: Mapping[str, Mapping[str, Amount]] | None = None,
        limits: Iterable[Limit] | None = None,
        on_unavailable: OnUnavailable | None = None,
        unknown_limits: UnknownLimits = "raise",
    ) -> AsyncLease:
        """Return a lease: its `async with` block takes tokens from every limit that is named, or from none.

        `also` takes from other resources too, all or none. `limits` replace the stored ones of `resource`.
        `unknown_limits="ignore"` takes nothing from a limit that does not exist, and logs its name.
        Raises RateLimitExceeded, or NeverSatisfiable or EntityDenied if waiting does not help.
        """
        request = AcquireRequest(entity, resource, consume, limits, on_unavailable, also, unknown_limits)
        return AsyncLease(self._engine, self._context, request)

    async def ping(self, timeout: float = 1.0) -> bool:  # noqa: ASYNC109 - the question is about time
        """Return whether the table responds in time; never raises."""
        try:
            await asyncio.wait_for(arun(registry.get_limits(self._scope), self._engine), timeout)
        except (SolotableError, TimeoutError, OSError):
            return False
        return True

    available = _awaited(LimiterCore._available)
    time_until = _awaited(LimiterCore._time_until)
    statuses = _awaited(LimiterCore._statuses)
    check = _awaited(LimiterCore._check)
    create_entity = _awaited(LimiterCore._create_entity)
    delete_entity = _awaited(LimiterCore._delete_entity)
    set_parent = _awaited(LimiterCore._set_parent)
    get_entity = _awaited(_of_scope(registry.get_entity))
    children = _awaited(_of_scope(registry.children))
    entities = _awaited(_of_scope(registry.entities))
    set_limits = _awaited(LimiterCore._set_limits)
    delete_limits = _awaited(LimiterCore._delete_limits)
    set_mode = _awaited(LimiterCore._set_mode)
    reset = _awaited(LimiterCore._reset)
    top_up = _awaited(LimiterCore._top_up)
    get_limits = _awaited(_of_scope(registry.get_limits))
    stored_limits = _awaited(_of_scope(registry.stored_limits))
    limited_resources = _awaited(_of_scope(registry.limited_resources))
    effective_limits = _awaited(_of_scope(resolve.effective_limits))
    usage = _awaited(_of_scope(report.usage))
    usage_summary = _awaited(_of_scope(report.usage_summary))
    audit = _awaited(_of_scope(audit_trail.audit))
