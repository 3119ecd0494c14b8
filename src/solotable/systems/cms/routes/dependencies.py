"""What the routes of the CMS depend on: the store of a tenant that is there and open, files, ids, versions.

`solotable.web` says which tenant a credential reaches. Whether there is such a tenant, and whether it is
closed, is the CMS's to say: an administrator's typing error must not begin a tenant of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Protocol, TypeVar, cast
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Path, Request, Response

from solotable import ANY, AsyncDatabase, AsyncStore
from solotable.systems.cms.services import Tenants
from solotable.systems.cms.storage import Storage
from solotable.web import (
    Caller,
    HostTenants,
    IfMatch,
    TenantId,
    TenantStore,
    Visitor,
    canonical_host,
    database,
    etag,
    host_store,
    host_tenant,
    request_id,
    tenant,
    tenant_store,
)
from solotable.web.ttl_cache import Kept


class Versioned(Protocol):
    """What has a version."""

    @property
    def version(self) -> int: ...


VersionedT = TypeVar("VersionedT", bound=Versioned)
Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$", examples=["01JD0QK7V3M8Z6X2T9R4C5B1AE"])]


class OpenTenants:
    """Which tenants may be worked in, remembered for a while: C0.11, not every request reads SYSTEM."""

    def __init__(
        self, *, ttl_seconds: float = 30.0, most: int = 1024, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._kept: Kept[str, None] = Kept(ttl_seconds=ttl_seconds, most=most, clock=clock)

    async def admit(self, db: AsyncDatabase, tenant: str) -> None:
        """Refuse a tenant that is not there (404), or not open (403)."""

        async def ask() -> None:
            found = await Tenants(db).get(tenant)
            if found.status != "active":
                raise HTTPException(403, f"The tenant is {found.status}.")

        await self._kept.get(tenant, ask)

    def forget(self, tenant: str) -> None:
        """Ask again for a tenant, as something about it has changed."""
        self._kept.forget(lambda each: each == tenant)


async def open_tenant(request: Request, chosen: TenantId) -> str:
    """Return the request's tenant, if it is there and open."""
    await open_tenants(request).admit(await database(request), chosen)
    return chosen


def open_tenants(request: Request) -> OpenTenants:
    """Return what the app remembers of tenants."""
    return cast(OpenTenants, request.app.state.open_tenants)


async def site_store(store: TenantStore, _: Annotated[str, Depends(open_tenant)]) -> AsyncStore:
    """Return the store of the request's tenant, if it is there and open."""
    return store


async def acting_database(request: Request, principal: Caller) -> AsyncDatabase:
    """Return the database itself, for what is done to tenants; it is recorded as the caller's."""
    return (await database(request)).acting(principal.actor(), request_id=request_id(request))


async def reader_store(request: Request, principal: Visitor) -> AsyncStore:
    """Return the store of the credential's tenant, or without a credential that of the host name."""
    if principal.kind == "anonymous":
        return await host_store(request)
    await open_tenant(request, await tenant(request))
    return await tenant_store(request)


async def visitor_store(request: Request, owner: Annotated[str, Depends(host_tenant)]) -> AsyncStore:
    """Return the store of the host's tenant for what a visitor sends, if it was sent from that site.

    Browsers say where a form stands; another site's page must not fill in ours, and what says nothing is
    no browser.
    """
    origins = request.headers.getlist("origin")
    host = canonical_host(netloc(origins[0])) if len(origins) == 1 else None
    hosts = cast(HostTenants, request.app.state.hosts)
    if host is None or await hosts.owner(await database(request), host) != owner:
        raise HTTPException(403, "Send the Origin of a page of this site.")
    return await host_store(request)


def netloc(origin: str) -> str:
    """Return the host and port of an Origin; nothing for `null` and what is no URL.

    >>> netloc("https://acme.example:8443"), netloc("null")
    ('acme.example:8443', '')
    """
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


async def storage(request: Request) -> Storage:
    """Return where the app keeps bytes."""
    return cast(Storage, request.app.state.storage)


async def pepper(request: Request) -> bytes:
    """Return what the app mixes into the digests of addresses."""
    return cast(bytes, request.app.state.pepper)


async def expected_version(expected: IfMatch) -> int | None:
    """Return the version of If-Match; None when any will do."""
    return None if expected is None or expected is ANY else cast(int, expected)


def tagged(response: Response, stored: VersionedT) -> VersionedT:
    """Return what a route answers with, its version in the entity tag."""
    response.headers["etag"] = etag(stored.version)
    return stored


SiteStore = Annotated[AsyncStore, Depends(site_store)]
ReaderStore = Annotated[AsyncStore, Depends(reader_store)]
VisitorStore = Annotated[AsyncStore, Depends(visitor_store)]
OpenTenant = Annotated[str, Depends(open_tenant)]
ActingDatabase = Annotated[AsyncDatabase, Depends(acting_database)]
Files = Annotated[Storage, Depends(storage)]
Pepper = Annotated[bytes, Depends(pepper)]
Expected = Annotated[int | None, Depends(expected_version)]
