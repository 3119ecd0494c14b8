"""The base class of async stores: it runs flows on an engine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._flows.consumption import Consumed
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.transactions import commit
from solotable._protocol.engine import AsyncEngine
from solotable._store.consumption import metered
from solotable._store.runner import arun

A = TypeVar("A", bound=Entity)
ResultT = TypeVar("ResultT")


class AsyncStoreBase:
    """A store: an engine and a scope."""

    def __init__(self, engine: AsyncEngine, scope: Scope) -> None:
        self._engine = engine
        self._scope = scope

    def consumed(self) -> AbstractContextManager[Consumed]:
        """Sum the capacity that the calls of a block consume: `with db.consumed() as used:`.

        It counts the calls of this thread or task, and of tasks that the block starts, on every store over
        the same engine. Blocks may be nested.
        """
        return metered(self._engine)

    async def _do(self, planner: commit.Planner, subject: object = None) -> Any:
        return await arun(commit.perform(self._scope, planner), self._engine, subject)

    async def _run(self, flow: Flow[ResultT], subject: object = None) -> ResultT:
        return await arun(flow, self._engine, subject)
