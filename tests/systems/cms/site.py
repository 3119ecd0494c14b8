"""A CMS on a recording engine: its services, its journal, and the stored items."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from solotable import Actor, AsyncDatabase, AsyncStore, Database, Store
from solotable._connect import over, to_async
from solotable._flows.retry import Retries
from solotable._protocol.engine import Engine
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Control, Query, Scan
from solotable._values import Item
from solotable.jobs.deliver import deliver
from solotable.systems.cms import (
    Assets,
    AuditTrail,
    Comments,
    Consents,
    Content,
    ContentDraft,
    Contents,
    Contexts,
    Erasures,
    FolderStorage,
    Leads,
    Products,
    Resources,
    Routes,
    Settings,
    Signals,
    TenantDraft,
    Tenants,
    Users,
    Versions,
    audit_sink,
    cms,
)
from solotable.testing import Journal
from solotable.urls import Url
from tests.store.opening import SECRET, Clock
from tests.systems.watched import Watched

ANN = Actor(id="u-17", name="Ann", email="ann@example.org")
T = TypeVar("T")


@dataclass
class Services:
    """The services of one tenant."""

    store: AsyncStore
    now: Any
    contents: Contents = field(init=False)
    versions: Versions = field(init=False)
    routes: Routes = field(init=False)
    comments: Comments = field(init=False)
    leads: Leads = field(init=False)
    consents: Consents = field(init=False)
    products: Products = field(init=False)
    contexts: Contexts = field(init=False)
    signals: Signals = field(init=False)
    trail: AuditTrail = field(init=False)
    erasures: Erasures = field(init=False)

    def __post_init__(self) -> None:
        store = self.store
        self.contents, self.versions, self.routes = Contents(store), Versions(store), Routes(store)
        self.comments = Comments(store, now=self.now)
        self.leads, self.consents = Leads(store, now=self.now), Consents(store, now=self.now)
        self.products, self.contexts, self.signals = Products(store), Contexts(store), Signals(store)
        self.trail, self.erasures = AuditTrail(store), Erasures(store, now=self.now)

    def users(self, *roles: str, as_: str = "u-17") -> Users:
        return Users(self.store, manager_id=as_, roles=roles)

    def assets(self, folder: Any) -> Assets:
        return Assets(self.store, FolderStorage(folder))

    def resources(self, folder: Any) -> Resources:
        return Resources(self.store, FolderStorage(folder))


@dataclass
class Site:
    """A CMS for one test."""

    engine: Engine
    runner: asyncio.Runner
    clock: Clock
    prefix: str
    db: AsyncDatabase
    blocking: Database
    journal: Journal
    watched: Watched

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def now(self) -> datetime:
        return self.clock.at(0) + timedelta(seconds=self.clock.seconds - self.clock.at(0).timestamp())

    @property
    def tenants(self) -> Tenants:
        return Tenants(self.db.acting(ANN))

    def settings(self, tenant: str = "acme") -> Settings:
        return Settings(self.db, tenant)

    def of(self, tenant: str) -> Services:
        return Services(self.db.tenant(tenant).acting(ANN, request_id="r-1"), self.now)

    @property
    def acme(self) -> Services:
        return self.of("acme")

    @property
    def zeta(self) -> Services:
        return self.of("zeta")

    def page(self, slug: str, title: str = "About", **more: Any) -> Content:
        """Create a published page of acme."""
        draft = ContentDraft(title=title, slug=slug, status=more.pop("status", "published"), **more)
        return self.run(self.acme.contents.create(draft))

    def deliver(self) -> int:
        """Deliver the events of the outbox, as the job in another process does."""
        return deliver(self.blocking, [audit_sink()]).events

    def raw(self) -> list[Item]:
        """Return every stored item, read without the store."""
        found: list[Item] = []
        start = None
        while True:
            page = self.engine.handle(Scan(table=self.prefix + cms.name, start=start, consistent=True))
            found += decode_items(page.items or ())
            start = page.last_key
            if not start:
                return found

    def keys(self, prefix: str = "") -> list[str]:
        """Return the sort keys of acme's partition that begin so, in order."""
        return sorted(
            item["SK"]["S"]
            for item in self.raw()
            if item["PK"]["S"] == "TENANT#acme" and item["SK"]["S"].startswith(prefix)
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
            self.engine.handle(
                Control(operation="DeleteTable", members={"TableName": self.prefix + cms.name})
            )


def open_site(engine: Engine, *, clock: Clock, runner: asyncio.Runner, prefix: str) -> Site:
    """Create the table and the tenants acme and zeta."""
    recording = Watched(engine, sleep=lambda seconds: None)
    address = Url("sqlite", "test", settings={"prefix": prefix})
    found = over(recording, [cms], address, cursor_secrets=(SECRET,), clock=clock)
    scope = replace(found.scope, retries=Retries(random=lambda: 0.0))
    site = Site(
        engine=engine,
        runner=runner,
        clock=clock,
        prefix=prefix,
        db=AsyncDatabase(to_async(recording), scope),
        blocking=Database(recording, scope),
        journal=recording.journal,
        watched=recording,
    )
    for name in ("acme", "zeta"):
        draft = TenantDraft(id=name, name=name.title(), domain=f"www.{name}.example")
        site.run(site.tenants.create(draft))
    site.journal.clear()
    return site
