"""Run a flow on a store or an engine, blocking or awaited."""

from __future__ import annotations

from typing import TypeVar, cast, overload

from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._protocol.engine import AsyncEngine, Engine
from solotable._store import async_store, runner, store

ResultT = TypeVar("ResultT")
AnyStore = store.Verbs | async_store.AsyncVerbs


def run(flow: Flow[ResultT], on: store.Verbs | Engine) -> ResultT:
    """Run a flow to its end on a store or an engine, and return its result."""
    return runner.run(flow, on._engine if isinstance(on, store.Verbs) else on)


async def arun(flow: Flow[ResultT], on: async_store.AsyncVerbs | AsyncEngine) -> ResultT:
    """Run a flow to its end on an async store or engine, and return its result."""
    return await runner.arun(flow, on._engine if isinstance(on, async_store.AsyncVerbs) else on)


def scope_of(on: AnyStore) -> Scope:
    """Return the scope of a store: its tenant, tables and clock, which every verb of this package takes."""
    return on._scope


@overload
def engine_of(on: store.Verbs) -> Engine: ...
@overload
def engine_of(on: async_store.AsyncVerbs) -> AsyncEngine: ...
def engine_of(on: AnyStore) -> Engine | AsyncEngine:
    """Return the engine that a store sends its requests to."""
    return on._engine


def is_instant(engine: AsyncEngine) -> bool:
    """Return whether an async engine replies without awaiting: it runs in memory, on the event loop."""
    return type(cast(object, engine)) is runner.Inline
