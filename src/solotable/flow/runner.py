"""Run a flow on a store or an engine, blocking or awaited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._protocol.engine import AsyncEngine, Engine, capabilities_of
from solotable._store import runner
from solotable._store.asynchronous.stores import AsyncVerbs
from solotable._store.sync.stores import Verbs
from solotable.errors import DeclarationError

ResultT = TypeVar("ResultT")
AnyStore = Verbs | AsyncVerbs


def run(flow: Flow[ResultT], on: Verbs | Engine, *, subject: object = None) -> ResultT:
    """Run a flow to its end on a store or an engine, and return its result.

    `subject` is an entity or a query, which an observer of the requests sees.
    """
    try:
        if isinstance(on, Verbs):
            _check_new(flow)
            return runner.run(flow, on._engine, subject)
        return runner.run(flow, on, subject)
    except AttributeError as error:
        _check_stores(error, on, AsyncVerbs, "run() takes a blocking store; await arun()")
        raise


async def arun(flow: Flow[ResultT], on: AsyncVerbs | AsyncEngine, *, subject: object = None) -> ResultT:
    """Run a flow to its end on an async store or engine, and return its result; `subject` as for `run`."""
    try:
        if isinstance(on, AsyncVerbs):
            _check_new(flow)
            return await runner.arun(flow, on._engine, subject)
        return await runner.arun(flow, on, subject)
    except AttributeError as error:
        _check_stores(error, on, Verbs, "arun() takes an async store; call run()")
        raise


def _check_new(flow: Flow[Any]) -> None:
    if getattr(flow, "gi_frame", flow) is None:
        raise DeclarationError("This flow has ended; call its function again for a new one.")


# Called after an error, because a check before each run would slow down every request.
def _check_stores(error: AttributeError, on: object, wrong: type[Any], advice: str) -> None:
    """Raise DeclarationError for a store of the wrong kind, or for a store passed as a scope."""
    if isinstance(on, wrong):
        raise DeclarationError(f"{advice} for a flow on {type(on).__name__}.") from None
    if isinstance(error.obj, Verbs | AsyncVerbs):
        name = type(error.obj).__name__
        raise DeclarationError(
            f"The verbs of a flow take a Scope, got {name}; pass scope_of(store)."
        ) from None


def scope_of(on: AnyStore) -> Scope:
    """Return the scope of a store (its tenant, tables and clock), the first argument of every verb here."""
    return on._scope


@overload
def engine_of(on: Verbs) -> Engine: ...
@overload
def engine_of(on: AsyncVerbs) -> AsyncEngine: ...
def engine_of(on: AnyStore) -> Engine | AsyncEngine:
    """Return the engine that a store sends its requests to."""
    return on._engine


def is_instant(engine: AsyncEngine) -> bool:
    """Return whether an async engine replies without awaiting: it runs in memory, on the event loop."""
    return type(cast(object, engine)) is runner.Inline


def clock_offset(engine: Engine | AsyncEngine) -> Callable[[], float] | None:
    """Return a function for the seconds by which the server's clock is ahead; None without a server.

    It returns 0 until a response shows a difference of two seconds or more.
    """
    return capabilities_of(engine).clock_offset


def is_amazon(engine: Engine | AsyncEngine) -> bool:
    """Return whether Amazon's own service answers: it throttles a partition, as no other engine does."""
    return capabilities_of(engine).amazon
