"""The base class of blocking stores: it runs flows on an engine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._flows.consumption import Consumed
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.transactions import commit
from solotable._protocol.engine import Engine
from solotable._store.consumption import metered
from solotable._store.runner import run

A = TypeVar("A", bound=Entity)
ResultT = TypeVar("ResultT")


class StoreBase:
    """A store: an engine and a scope."""

    def __init__(self, engine: Engine, scope: Scope) -> None:
        self._engine = engine
        self._scope = scope

    def consumed(self) -> AbstractContextManager[Consumed]:
        """Sum the capacity that the calls of a block consume: `with db.consumed() as used:`.

        It counts the calls of this thread or task, and of tasks that the block starts, on every store over
        the same engine. Blocks may be nested.
        """
        return metered(self._engine)

    def _do(self, planner: commit.Planner, subject: object = None) -> Any:
        return run(commit.perform(self._scope, planner), self._engine, subject)

    def _run(self, flow: Flow[ResultT], subject: object = None) -> ResultT:
        return run(flow, self._engine, subject)
