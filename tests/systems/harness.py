"""One system on a recording engine: its stores, its journal, and its stored items."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self, TypeVar

import pytest

from solotable import AsyncDatabase, Database, Store, Table
from solotable._connect import over, to_async
from solotable._flows.consumption import Consumed
from solotable._flows.retry import Retries
from solotable._protocol.engine import Engine
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Control, Query, Scan
from solotable._values import Item
from solotable.testing import Journal
from solotable.urls import Url
from tests.store.opening import SECRET, Clock
from tests.systems.watched import Watched

T = TypeVar("T")


@dataclass
class Harness:
    """A system for one test, on tables of its own; `table` is the first of them."""

    table: Table
    engine: Engine
    runner: asyncio.Runner
    clock: Clock
    prefix: str
    db: AsyncDatabase
    blocking: Database
    journal: Journal
    watched: Watched
    tables: tuple[Table, ...] = ()

    @classmethod
    def opened(
        cls, table: Table, place: str, request: pytest.FixtureRequest, *others: Table
    ) -> Iterator[Self]:
        """Yield the system on an engine; fail a test in which anything scanned."""
        from solotable.engines import sqlite

        clock = Clock()
        engine: Any
        if place == "engine":
            engine = sqlite.open(sqlite.MEMORY, clock=clock)
        else:
            engine = request.getfixturevalue("wire_engine" if place == "server" else "local_engine")
        with asyncio.Runner() as runner:
            made = cls._over((table, *others), engine, clock, runner)
            try:
                made.prepare()
                made.journal.clear()
                yield made
                made.no_scans()
            finally:
                made.close(drop=place != "engine")
                if place == "engine":
                    engine.close()

    @classmethod
    def _over(cls, tables: tuple[Table, ...], engine: Engine, clock: Clock, runner: asyncio.Runner) -> Self:
        prefix = f"t{uuid.uuid4().hex[:12]}."
        recording = Watched(engine, sleep=lambda seconds: None)
        address = Url("sqlite", "test", settings={"prefix": prefix})
        found = over(recording, tables, address, cursor_secrets=(SECRET,), clock=clock)
        scope = replace(found.scope, retries=Retries(random=lambda: 0.0))
        return cls(
            table=tables[0],
            tables=tables,
            engine=engine,
            runner=runner,
            clock=clock,
            prefix=prefix,
            db=AsyncDatabase(to_async(recording), scope),
            blocking=Database(recording, scope),
            journal=recording.journal,
            watched=recording,
        )

    def prepare(self) -> None:
        """Create what every test needs."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def measured(self, work: Coroutine[Any, Any, T]) -> tuple[T, Consumed]:
        """Run something, and return its result and the capacity that it consumed."""

        async def measure() -> tuple[T, Consumed]:
            # Inside, because a runner has a context of its own.
            with self.db.consumed() as used:
                return await work, used

        return self.run(measure())

    def now(self) -> datetime:
        return self.clock.at(0) + timedelta(seconds=self.clock.seconds - self.clock.at(0).timestamp())

    def raw(self, table: Table | None = None) -> list[Item]:
        """Return every stored item of a table, by default of the first, read without the store."""
        found: list[Item] = []
        start = None
        name = self.prefix + (table or self.table).name
        while True:
            page = self.engine.handle(Scan(table=name, start=start, consistent=True))
            found += decode_items(page.items or ())
            start = page.last_key
            if not start:
                return found

    def keys(self, prefix: str = "", *, tenant: str = "acme") -> list[str]:
        """Return the sort keys of a tenant's partition that begin so, in order."""
        return sorted(
            item["SK"]["S"]
            for item in self.raw()
            if item["PK"]["S"] == f"TENANT#{tenant}" and item["SK"]["S"].startswith(prefix)
        )

    def sent(self) -> list[str]:
        """Return the operations since the last call, and forget them."""
        names = [record.operation for record in self.journal.records]
        self.no_scans()
        self.journal.clear()
        return names

    def no_scans(self) -> None:
        assert not self.journal.scans
        for request in self.journal.requests("Query"):
            assert isinstance(request, Query)
            assert request.key

    def beside(self, tenant: str = "acme") -> Store:
        """Return the store of another process."""
        return Database(self.engine, self.blocking.scope).tenant(tenant)

    def close(self, *, drop: bool) -> None:
        self.runner.run(self.db.close())
        if drop:
            for table in self.tables:
                name = self.prefix + table.name
                self.engine.handle(Control(operation="DeleteTable", members={"TableName": name}))
