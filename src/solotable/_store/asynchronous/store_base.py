"""The base class of async stores: it runs flows on an engine."""

from __future__ import annotations

from typing import Any, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.transactions import commit
from solotable._protocol.engine import AsyncEngine
from solotable._store.runner import arun

A = TypeVar("A", bound=Entity)
ResultT = TypeVar("ResultT")


class AsyncStoreBase:
    """A store: an engine and a scope."""

    def __init__(self, engine: AsyncEngine, scope: Scope) -> None:
        self._engine = engine
        self._scope = scope

    async def _do(self, planner: commit.Planner) -> Any:
        return await self._run(commit.perform(self._scope, planner))

    async def _run(self, flow: Flow[ResultT]) -> ResultT:
        return await arun(flow, self._engine)
