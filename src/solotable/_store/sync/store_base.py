"""The base class of blocking stores: it runs flows on an engine."""

from __future__ import annotations

from typing import Any, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.transactions import commit
from solotable._protocol.engine import Engine
from solotable._store.runner import run

A = TypeVar("A", bound=Entity)
ResultT = TypeVar("ResultT")


class StoreBase:
    """A store: an engine and a scope."""

    def __init__(self, engine: Engine, scope: Scope) -> None:
        self._engine = engine
        self._scope = scope

    def _do(self, planner: commit.Planner) -> Any:
        return self._run(commit.perform(self._scope, planner))

    def _run(self, flow: Flow[ResultT]) -> ResultT:
        return run(flow, self._engine)
