"""Tenants: made with the two pages that every site has, found by their host, closed.

A tenant is made in one transaction: its config, the lock of its domain, `/` and `/contact` with their
routes. A tenant that is closed (C0.14) is served no longer and gives its domain back; its data stays until
an operator erases it (`closing.erase`).
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
from solotable.systems.cms.errors import Refused, first_reason, made
from solotable.web.tenancy.hostnames import canonical_host

_HOST = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
_TITLES = {"/": "Home", "/contact": "Contact"}


class TenantDraft(BaseModel):
    """A new tenant."""

    model_config = ConfigDict(extra="forbid")

    id: TenantId
    name: TenantName
    domain: str | None = None


def host_of(text: str) -> str:
    """Return a host name as tenants are found by it: lower case, ASCII, no port and no dot behind.

    >>> host_of("WWW.Example.org.:8080"), host_of("straße.example")
    ('www.example.org', 'xn--strae-oqa.example')
    """
    host = canonical_host(text.strip())
    if host is None or not _HOST.fullmatch(host):
        raise Refused("This is no host name.")
    return host


class Tenants:
    """All tenants; for global administrators, and for finding the tenant of a host."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db

    async def create(self, draft: TenantDraft) -> TenantConfig:
        """Make a tenant with `/` and `/contact`; NotUnique if its domain is another's."""
        domain = None if draft.domain is None else host_of(draft.domain)
        config = made(TenantConfig, id=draft.id, name=draft.name, domain=domain)
        with first_reason():
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
        """Return the tenants with these ids that are there, without their settings."""
        asked = [self._db.first(TenantConfig.shown_as(each)) for each in tenants]
        return [found for found in await asyncio.gather(*asked) if found is not None]

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[TenantSummary]:
        """Return tenants, without their settings."""
        return await self._db.page(TenantConfig.listed(), limit=limit, cursor=cursor)

    async def of_host(self, host: str) -> TenantSummary | None:
        """Return the tenant that is served under a host name, or None. Keep the answer for a while."""
        try:
            domain = host_of(host)
        except DataError:
            return None
        found = await self._db.first(TenantConfig.of_domain(domain))
        return found if found is not None and found.status == "active" else None

    async def move(self, tenant: str, domain: str | None, *, version: int | None = None) -> TenantConfig:
        """Give a tenant another domain, or none; NotUnique if it is another's."""
        current = await self._db.require(TenantConfig, id=tenant, consistent=True)
        if current.status == "closed":
            raise Refused(f"Tenant {tenant!r} is closed.")
        expected = current.version if version is None else version
        if domain is None:
            return await self._db.update(TenantConfig, id=tenant, version=expected, remove=["domain"])
        return await self._db.update(
            TenantConfig, id=tenant, version=expected, set={"domain": host_of(domain)}
        )

    async def set_status(
        self, tenant: str, status: TenantStatus, *, version: int | None = None
    ) -> TenantConfig:
        """Suspend a tenant, or serve it again; one that is closed stays closed."""
        current = await self._db.require(TenantConfig, id=tenant, consistent=True)
        expected = current.version if version is None else version
        if current.status == "closed" and expected == current.version and status != "closed":
            raise Refused(f"Tenant {tenant!r} is closed.")
        gone = ["domain"] if status == "closed" else []
        return await self._db.update(
            TenantConfig, id=tenant, version=expected, set={"status": status}, remove=gone
        )

    async def close(self, tenant: str, *, version: int | None = None) -> TenantConfig:
        """Stop serving a tenant for good, and give its domain back."""
        return await self.set_status(tenant, "closed", version=version)
