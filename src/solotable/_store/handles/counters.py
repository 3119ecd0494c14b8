"""Sharded counters: numbers that many callers add to at once, spread over several items."""

from __future__ import annotations

from solotable._entities.declare.table import Table
from solotable._flows.scope import Scope
from solotable._flows.traits import counters
from solotable._protocol.engine import AsyncEngine, Engine
from solotable._store.runner import arun, run


class ShardedCounter:
    """A counter in shards; `db.counter(table, "views", shards=16)`."""

    def __init__(self, engine: Engine, scope: Scope, table: Table, name: str, shards: int) -> None:
        self._engine = engine
        self._scope = scope
        self._counter_key = (table, name)
        self._shards = shards

    def add(self, amount: int = 1, *, token: str | None = None) -> None:
        """Add to the counter; with a token, once within ten minutes however often it is sent."""
        flow = counters.add_to_shards(self._scope, *self._counter_key, amount, self._shards, token)
        run(flow, self._engine)

    def value(self) -> int:
        """Return the sum over all shards."""
        return run(counters.total(self._scope, *self._counter_key, self._shards), self._engine)


class AsyncShardedCounter:
    """A counter in shards, awaited."""

    def __init__(self, engine: AsyncEngine, scope: Scope, table: Table, name: str, shards: int) -> None:
        self._engine = engine
        self._scope = scope
        self._counter_key = (table, name)
        self._shards = shards

    async def add(self, amount: int = 1, *, token: str | None = None) -> None:
        """Add to the counter; with a token, once within ten minutes however often it is sent."""
        flow = counters.add_to_shards(self._scope, *self._counter_key, amount, self._shards, token)
        await arun(flow, self._engine)

    async def value(self) -> int:
        """Return the sum over all shards."""
        return await arun(counters.total(self._scope, *self._counter_key, self._shards), self._engine)
