"""Tenants: create them with their two first pages, find them by host, close them.

One transaction creates a tenant: its config, the lock of its domain, `/` and `/contact` with their routes.
A closed tenant (C0.14) is not served and releases its domain; its data stays until an operator erases it
(`erasure.erase_tenant`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from solotable import AsyncDatabase, Page
from solotable.errors import DataError
from solotable.systems.cms.entities.pages import PROTECTED, Content, Route
from solotable.systems.cms.entities.tenancy import (
    TenantConfig,
    TenantId,
    TenantName,
    TenantStatus,
    TenantSummary,
)
from solotable.systems.errors import InvalidInput, unwrap_failure, validate
from solotable.web import canonical_host

_HOST = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
_TITLES = {"/": "Home", "/contact": "Contact"}


class TenantDraft(BaseModel):
    """A new tenant."""

    model_config = ConfigDict(extra="forbid")

    id: TenantId
    name: TenantName
    domain: str | None = None


def host_of(text: str) -> str:
    """Return the canonical form of a host name: lower case, ASCII, no port and no trailing dot.

    >>> host_of("WWW.Example.org.:8080"), host_of("straße.example")
    ('www.example.org', 'xn--strae-oqa.example')
    """
    host = canonical_host(text.strip())
    if host is None or not _HOST.fullmatch(host):
        raise InvalidInput("This is not a host name.")
    return host


class Tenants:
    """All tenants, for global administrators and for the lookup of hosts."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db

    async def create(self, draft: TenantDraft) -> TenantConfig:
        """Create a tenant with `/` and `/contact`; NotUnique if another tenant has the domain."""
        domain = None if draft.domain is None else host_of(draft.domain)
        config = validate(TenantConfig, id=draft.id, name=draft.name, domain=domain)
        with unwrap_failure():
            async with self._db.admin().transaction() as tx:
                created = tx.create(config)
                for slug in PROTECTED:
                    page = Content(tenant_id=draft.id, slug=slug, title=_TITLES[slug], status="published")
                    tx.create(page)
                    tx.create(Route(tenant_id=draft.id, slug=slug, node_id=page.node_id))
        return created

    async def get(self, tenant: str) -> TenantConfig:
        """Return a tenant by one GetItem, or raise NotFound."""
        return await self._db.require(TenantConfig, id=tenant)

    async def summaries(self, tenants: Iterable[str]) -> list[TenantSummary]:
        """Return the tenants with these ids that exist, without their settings."""
        reads = [self._db.first(TenantConfig.summary_of(each)) for each in tenants]
        return [found for found in await asyncio.gather(*reads) if found is not None]

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[TenantSummary]:
        """Return tenants, without their settings."""
        return await self._db.page(TenantConfig.listed(), limit=limit, cursor=cursor)

    async def of_host(self, host: str) -> TenantSummary | None:
        """Return the active tenant of a host name, or None. Cache the result."""
        try:
            domain = host_of(host)
        except DataError:
            return None
        found = await self._db.first(TenantConfig.of_domain(domain))
        return found if found is not None and found.status == "active" else None

    async def move(self, tenant: str, domain: str | None, *, version: int | None = None) -> TenantConfig:
        """Change or remove the domain of a tenant; NotUnique if another tenant has it."""
        current = await self._db.require(TenantConfig, id=tenant, consistent=True)
        if current.status == "closed":
            raise InvalidInput(f"Tenant {tenant!r} is closed.")
        expected = current.version if version is None else version
        if domain is None:
            return await self._db.update(TenantConfig, id=tenant, version=expected, remove=["domain"])
        return await self._db.update(
            TenantConfig, id=tenant, version=expected, set={"domain": host_of(domain)}
        )

    async def set_status(
        self, tenant: str, status: TenantStatus, *, version: int | None = None
    ) -> TenantConfig:
        """Change the status of a tenant; a closed tenant stays closed."""
        current = await self._db.require(TenantConfig, id=tenant, consistent=True)
        expected = current.version if version is None else version
        if current.status == "closed" and expected == current.version and status != "closed":
            raise InvalidInput(f"Tenant {tenant!r} is closed.")
        released = ["domain"] if status == "closed" else []
        return await self._db.update(
            TenantConfig, id=tenant, version=expected, set={"status": status}, remove=released
        )

    async def close(self, tenant: str, *, version: int | None = None) -> TenantConfig:
        """Close a tenant and release its domain."""
        return await self.set_status(tenant, "closed", version=version)
