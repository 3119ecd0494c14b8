"""A CMS on a recording engine: its services, its journal, and the stored items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from solotable import Actor, AsyncStore
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
)
from tests.systems.harness import Harness

ANN = Actor(id="u-17", name="Ann", email="ann@example.org")


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
class Site(Harness):
    """A CMS for one test, with the tenants acme and zeta."""

    def prepare(self) -> None:
        for name in ("acme", "zeta"):
            draft = TenantDraft(id=name, name=name.title(), domain=f"www.{name}.example")
            self.run(self.tenants.create(draft))

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
