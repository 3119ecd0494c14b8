"""The limiter's table over an engine that is watched: blocking and awaited stores, the journal, raw items."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from solotable import Actor, AsyncDatabase, AsyncStore, Database, Store
from solotable._connect import over, to_async
from solotable._flows.retry import Flow, Retries
from solotable._flows.scope import Scope
from solotable._protocol.engine import AsyncEngine, Engine
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Control, PutItem, Query, Scan
from solotable._store.runner import arun, run
from solotable._values import Item
from solotable.systems.limiter.table import limiter
from solotable.testing import Journal
from solotable.urls import Url
from tests.store.opening import SECRET, Clock
from tests.systems.watched import Watched

ANN = Actor(id="u-17", name="Ann", email="ann@example.org")
#: The namespace that tests work in, and another that must never be reached from it.
ACME, ZETA = "acme", "zeta"
T = TypeVar("T")


@dataclass
class Place:
    """The limiter's table in one place, for one test."""

    #: Where: engine, server or local.
    name: str
    #: The engine itself, for what is done behind the store's back.
    engine: Engine
    #: The same engine with every request noted; all stores stand on it.
    watched: Watched
    clock: Clock
    prefix: str
    runner: asyncio.Runner
    db: Database
    adb: AsyncDatabase
    may_scan: bool = field(default=False)

    @property
    def journal(self) -> Journal:
        """What was sent: records with operation, rcu and wcu."""
        return self.watched.journal

    @property
    def table(self) -> str:
        """The name of the table in the engine."""
        return self.prefix + limiter.name

    @property
    def store(self) -> Store:
        """The blocking store of the namespace acme."""
        return self.db.tenant(ACME)

    @property
    def astore(self) -> AsyncStore:
        """The awaited store of the namespace acme."""
        return self.adb.tenant(ACME)

    @property
    def scope(self) -> Scope:
        """The scope of acme, in which Ann acts; `base` is that of no namespace."""
        return self.base.of_tenant(ACME)

    @property
    def other(self) -> Scope:
        """The scope of zeta."""
        return self.base.of_tenant(ZETA)

    @property
    def base(self) -> Scope:
        """The scope of the entities of no namespace, in which Ann acts."""
        return self.db.scope.acting(ANN, "r-1")

    @property
    def async_engine(self) -> AsyncEngine:
        """The engine as coroutines ask it."""
        return self.adb.engine

    def run(self, flow: Flow[T]) -> T:
        """Run a flow, blocking."""
        return run(flow, self.watched)

    def arun(self, flow: Flow[T]) -> T:
        """Run a flow on the test's event loop."""
        return self.wait(arun(flow, self.async_engine))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the test's event loop."""
        return self.runner.run(work)

    def beside(self) -> Database:
        """Return another process's database: not watched."""
        return Database(self.engine, self.db.scope)

    def raw(self, tag: str | None = None) -> list[Item]:
        """Return the stored items, behind the store's back: all, or those of a type tag."""
        found: list[Item] = []
        start = None
        while True:
            page = self.engine.handle(Scan(table=self.table, start=start, consistent=True))
            found += decode_items(page.items or ())
            start = page.last_key
            if not start:
                return [item for item in found if tag is None or item[limiter.internal_tag]["S"] == tag]

    def plant(self, item: Item) -> None:
        """Store an item behind the store's back."""
        self.engine.handle(PutItem(table=self.table, item=item))

    def sent(self) -> list[str]:
        """Return the operations since the last call, and forget them."""
        names = [record.operation for record in self.journal.records]
        self.judge()
        self.journal.clear()
        return names

    def spent(self) -> tuple[float, float]:
        """Return the read and write units since the last call, and forget them."""
        units = (self.journal.rcu, self.journal.wcu)
        self.judge()
        self.journal.clear()
        return units

    def judge(self) -> None:
        """Fail if anything scanned, unless `may_scan` was set to True."""
        assert self.may_scan or not self.journal.scans
        for request in self.journal.requests("Query"):
            assert isinstance(request, Query)
            assert request.key

    def close(self) -> None:
        """Close the stores, and drop the table where others share the engine."""
        self.runner.run(self.adb.close())
        if self.name != "engine":
            self.engine.handle(Control(operation="DeleteTable", members={"TableName": self.table}))


def open_place(name: str, engine: Engine, *, clock: Clock, runner: asyncio.Runner, prefix: str) -> Place:
    """Make the table."""
    watched = Watched(engine, sleep=lambda seconds: None)
    # An embedded address makes the table, on any engine.
    address = Url("sqlite", "test", settings={"prefix": prefix})
    found = over(watched, [limiter], address, cursor_secrets=(SECRET,), clock=clock)
    scope = replace(found.scope, retries=Retries(random=lambda: 0.0))
    place = Place(
        name=name,
        engine=engine,
        watched=watched,
        clock=clock,
        prefix=prefix,
        runner=runner,
        db=Database(watched, scope),
        adb=AsyncDatabase(to_async(watched), scope),
    )
    place.journal.clear()
    return place
