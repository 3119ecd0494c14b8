"""Dependencies of routes: stores of tenants that exist, the file storage, and the caller."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, cast

from fastapi import Depends, Request

from solotable import AsyncDatabase, AsyncStore
from solotable.cache import TTLCache
from solotable.systems.storage import Storage
from solotable.systems.surveys.entities.access import Tenant
from solotable.web import Principal, get_database
from solotable.web.auth.dependencies import TENANT, CredentialDependency
from solotable.web.tenancy.dependencies import tenant_store_of


class KnownTenants:
    """The tenants that exist, cached: a typing error of an administrator must not create a tenant."""

    def __init__(
        self, *, ttl_seconds: float = 30.0, max_size: int = 1024, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cache: TTLCache[str, bool] = TTLCache(ttl_seconds=ttl_seconds, max_size=max_size, clock=clock)

    async def check(self, db: AsyncDatabase, tenant: str) -> None:
        """Raise NotFound for a tenant that does not exist."""

        async def load() -> bool:
            await db.require(Tenant, id=tenant)
            return True

        await self._cache.load_async(tenant, load)

    def forget(self, tenant: str) -> None:
        """Forget a tenant after it changed."""
        self._cache.forget(tenant)


def known_tenants(request: Request) -> KnownTenants:
    """Return the app's cache of tenants."""
    return cast(KnownTenants, request.app.state.known_tenants)


async def active_store_of(request: Request, principal: Principal) -> AsyncStore:
    """Return the store of the request's tenant, if that exists."""
    store = await tenant_store_of(request, principal)
    await known_tenants(request).check(get_database(request), store.tenant_id or "")
    return store


async def get_storage(request: Request) -> Storage:
    """Return the app's file storage."""
    return cast(Storage, request.app.state.storage)


ActiveStore = Annotated[AsyncStore, Depends(CredentialDependency(TENANT, active_store_of))]
StorageDep = Annotated[Storage, Depends(get_storage)]
