"""Route dependencies of the CMS: stores of active tenants, the file storage, ids, versions.

`solotable.web` decides which tenant a credential reaches. The CMS decides whether that tenant exists and is
active: a typing error of an administrator must not create a tenant.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, cast
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request

from solotable import AsyncDatabase, AsyncStore
from solotable.cache import TTLCache
from solotable.systems.cms.formats.timestamps import Now
from solotable.systems.cms.services import Tenants
from solotable.systems.storage import Storage
from solotable.web import (
    CurrentPrincipal,
    HostTenantId,
    HostTenants,
    OptionalPrincipal,
    Principal,
    canonical_host,
    get_database,
    request_id,
)
from solotable.web.auth.dependencies import TENANT, CredentialDependency
from solotable.web.tenancy.dependencies import get_host_store, tenant_id_of, tenant_store_of


class ActiveTenants:
    """The tenants that are active, cached: C0.11, not every request reads SYSTEM."""

    def __init__(
        self, *, ttl_seconds: float = 30.0, max_size: int = 1024, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cache: TTLCache[str, bool] = TTLCache(ttl_seconds=ttl_seconds, max_size=max_size, clock=clock)

    async def check(self, db: AsyncDatabase, tenant: str) -> None:
        """Raise 404 for a tenant that does not exist, and 403 for one that is not active."""

        async def load() -> bool:
            found = await Tenants(db).get(tenant)
            if found.status != "active":
                raise HTTPException(403, f"The tenant is {found.status}.")
            return True

        await self._cache.load_async(tenant, load)

    def forget(self, tenant: str) -> None:
        """Forget a tenant after it changed."""
        self._cache.forget(tenant)


def active_tenants(request: Request) -> ActiveTenants:
    """Return the app's cache of active tenants."""
    return cast(ActiveTenants, request.app.state.active_tenants)


async def active_tenant_id_of(request: Request, principal: Principal) -> str:
    """Return the tenant of the request, if it is active."""
    tenant = await tenant_id_of(request, principal)
    await active_tenants(request).check(get_database(request), tenant)
    return tenant


async def active_store_of(request: Request, principal: Principal) -> AsyncStore:
    """Return the store of the request's tenant, if that is active."""
    store = await tenant_store_of(request, principal)
    await active_tenants(request).check(get_database(request), store.tenant_id or "")
    return store


async def get_acting_database(request: Request, principal: CurrentPrincipal) -> AsyncDatabase:
    """Return the database for changes of tenants; its writes name the principal as their actor."""
    return get_database(request).acting(principal.actor(), request_id=request_id(request))


async def get_reader_store(request: Request, principal: OptionalPrincipal) -> AsyncStore:
    """Return the store of the credential's tenant, or without a credential that of the host name."""
    if principal.kind == "anonymous":
        return await get_host_store(request)
    return await active_store_of(request, principal)


async def get_visitor_store(request: Request, owner: HostTenantId) -> AsyncStore:
    """Return the store of the host's tenant for a visitor's form, if a page of that site sent it.

    Browsers send the Origin of the page. A page of another site must not fill in a form of this one, and a
    request without an Origin is not from a browser.
    """
    origins = request.headers.getlist("origin")
    host = canonical_host(netloc(origins[0])) if len(origins) == 1 else None
    hosts = cast(HostTenants, request.app.state.hosts)
    if host is None or await hosts.owner(get_database(request), host) != owner:
        raise HTTPException(403, "Send the Origin of a page of this site.")
    return await get_host_store(request)


def netloc(origin: str) -> str:
    """Return the host and port of an Origin; an empty string for `null` and other texts.

    >>> netloc("https://acme.example:8443"), netloc("null")
    ('acme.example:8443', '')
    """
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


async def get_storage(request: Request) -> Storage:
    """Return the app's file storage."""
    return cast(Storage, request.app.state.storage)


def clock_of(request: Request) -> Now:
    """Return the app's clock, which decides when a scheduled page is public."""
    return cast(Now, request.app.state.now)


async def get_clock(request: Request) -> Now:
    """Return the app's clock."""
    return clock_of(request)


async def get_pepper(request: Request) -> bytes:
    """Return the secret that the app mixes into digests of addresses."""
    return cast(bytes, request.app.state.pepper)


ActiveStore = Annotated[AsyncStore, Depends(CredentialDependency(TENANT, active_store_of))]
ActiveTenantId = Annotated[str, Depends(CredentialDependency(TENANT, active_tenant_id_of))]
ReaderStore = Annotated[AsyncStore, Depends(get_reader_store)]
VisitorStore = Annotated[AsyncStore, Depends(get_visitor_store)]
ActingDatabase = Annotated[AsyncDatabase, Depends(get_acting_database)]
StorageDep = Annotated[Storage, Depends(get_storage)]
Pepper = Annotated[bytes, Depends(get_pepper)]
Clock = Annotated[Now, Depends(get_clock)]
