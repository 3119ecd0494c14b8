"""What routes depend on: the limiter of the credential's namespace, and leases in it.

The tenant of a credential is the name of a namespace. It must be registered, or a typing error would begin
another; every item is kept under its id. Each process has one limiter for a namespace, so that what it has
learnt of buckets and limits serves the next request.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Annotated, cast

from fastapi import Depends, HTTPException, Path, Query, Request

from solotable import AsyncDatabase
from solotable._store.runner import arun
from solotable.cache import TTLCache
from solotable.systems.limiter.admin.namespaces import show
from solotable.systems.limiter.async_rate_limiter import AsyncLimiter
from solotable.systems.limiter.core import LimiterOptions
from solotable.systems.limiter.http.http_leases import HttpLeases
from solotable.web import CurrentPrincipal, TenantId, get_database, request_id

ENTITY = r"^[A-Za-z0-9][A-Za-z0-9_.\-:@]{0,255}$"
RESOURCE = r"^[A-Za-z][A-Za-z0-9_.\-/:]{0,63}$"
LIMIT = r"^[A-Za-z][A-Za-z0-9_.\-]{0,63}$"
NAMESPACE = r"^[A-Za-z0-9][A-Za-z0-9_.:@\-]{0,127}$"

EntityPath = Annotated[str, Path(pattern=ENTITY, examples=["user-1"])]
ResourcePath = Annotated[str, Path(pattern=RESOURCE, examples=["gpt-4"])]
NamespacePath = Annotated[str, Path(pattern=NAMESPACE, examples=["acme"])]
LeasePath = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$", examples=["01JD0QK7V3M8Z6X2T9R4C5B1AE"])
]
ResourceQuery = Annotated[str, Query(pattern=RESOURCE, examples=["gpt-4"])]
OneResource = Annotated[str | None, Query(pattern=RESOURCE, description="Without it, all resources.")]
OneEntity = Annotated[str | None, Query(pattern=ENTITY)]


class NamespaceLimiters:
    """The limiters of namespaces that are there and open; whether they are is cached_refusal for a while."""

    def __init__(
        self,
        options: LimiterOptions,
        *,
        ttl_seconds: float = 30.0,
        most: int = 1024,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._most = most
        self._ids: TTLCache[str, str] = TTLCache(ttl_seconds=ttl_seconds, max_size=most, clock=clock)
        #: By id, so that a new look at the registry forgets nothing of buckets.
        self._limiters: OrderedDict[str, AsyncLimiter] = OrderedDict()

    async def limiter(self, db: AsyncDatabase, name: str) -> AsyncLimiter:
        """Return the limiter of a namespace; refuse one that is not there (404), or deleted (403)."""

        async def ask() -> str:
            found = await arun(show(db.scope, name), db.engine)
            if found.status != "active":
                raise HTTPException(403, f"The namespace is {found.status}.")
            return found.id

        namespace_id = await self._ids.load_async(name, ask)
        known = self._limiters.get(namespace_id)
        if known is None:
            known = self._limiters[namespace_id] = AsyncLimiter(db, namespace_id, **self._options)
        self._limiters.move_to_end(namespace_id)
        while len(self._limiters) > self._most:
            self._limiters.popitem(last=False)
        return known

    def forget(self, name: str) -> None:
        """Ask again for a namespace, as something about it has changed."""
        self._ids.forget(name)


def namespace_limiters(request: Request) -> NamespaceLimiters:
    """Return what the app knows of namespaces."""
    return cast(NamespaceLimiters, request.app.state.namespace_limiters)


async def namespace_limiter(
    request: Request, namespace: TenantId, principal: CurrentPrincipal
) -> AsyncLimiter:
    """Return the limiter of the request's namespace; what it changes is recorded as the caller's."""
    limiter = await namespace_limiters(request).limiter(get_database(request), namespace)
    return limiter.acting(principal.actor(), request_id=request_id(request))


LimiterDep = Annotated[AsyncLimiter, Depends(namespace_limiter)]


async def http_leases(request: Request, limiter: LimiterDep) -> HttpLeases:
    """Return the leases of the request's namespace."""
    seconds: float = request.app.state.lease_seconds
    return HttpLeases(get_database(request), limiter, seconds=seconds)


async def acting_database(request: Request, principal: CurrentPrincipal) -> AsyncDatabase:
    """Return the database itself, for what is done to namespaces; it is recorded as the caller's.

    A credential that reaches some namespaces only is refused, whatever its role: this reaches all.
    """
    if principal.tenants is not None:
        raise HTTPException(403, "This needs a credential that reaches all namespaces.")
    return get_database(request).acting(principal.actor(), request_id=request_id(request))


Leases = Annotated[HttpLeases, Depends(http_leases)]
ActingDatabase = Annotated[AsyncDatabase, Depends(acting_database)]
