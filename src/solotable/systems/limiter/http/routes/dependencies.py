"""Dependencies of routes: the limiter of the credential's namespace, and the leases in it.

The tenant of a credential is the name of a namespace. It must be registered, or a typing error would start
another one; items are stored under its id. Each process has one limiter per namespace, so that requests share
what it remembers of buckets and limits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, cast

from fastapi import Depends, Header, HTTPException, Path, Query, Request

from solotable import AsyncDatabase
from solotable.cache import TTLCache
from solotable.flow import arun, scope_of
from solotable.observe import combine
from solotable.systems.limiter.admin import names
from solotable.systems.limiter.admin.namespaces import show
from solotable.systems.limiter.http.http_leases import HttpLeases
from solotable.systems.limiter.observe import LimiterPrometheusObserver
from solotable.systems.limiter.operations import LimiterOptions
from solotable.systems.limiter.rate_limiter import AsyncLimiter
from solotable.web import CurrentPrincipal, TenantId, get_database, request_id

ENTITY, RESOURCE, LIMIT = f"^{names.ENTITY}$", f"^{names.RESOURCE}$", f"^{names.LIMIT}$"
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
Idempotency = Annotated[
    str | None,
    Header(
        alias="idempotency-key",
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="The same key and body again, by the same caller, have no further effect; an acquire "
        "returns the stored lease.",
    ),
]


class NamespaceLimiters:
    """The limiters of open namespaces; whether a namespace is open is cached."""

    def __init__(
        self,
        options: LimiterOptions,
        *,
        ttl_seconds: float = 30.0,
        max_size: int = 1024,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._ids: TTLCache[str, str] = TTLCache(ttl_seconds=ttl_seconds, max_size=max_size, clock=clock)
        #: By id and without expiry: a new look at the registry must not forget buckets.
        self._limiters: TTLCache[str, tuple[AsyncLimiter, LimiterPrometheusObserver]] = TTLCache(
            ttl_seconds=float("inf"), max_size=max_size
        )

    async def limiter(self, db: AsyncDatabase, name: str) -> AsyncLimiter:
        """Return the limiter of a namespace; raise NotFound, or HTTPException 403 for a deleted one."""
        return (await self._open(db, name))[0]

    async def metrics(self, db: AsyncDatabase, name: str) -> str:
        """Return what this process counted in a namespace, as Prometheus text."""
        return (await self._open(db, name))[1].render()

    async def _open(self, db: AsyncDatabase, name: str) -> tuple[AsyncLimiter, LimiterPrometheusObserver]:

        async def read_id() -> str:
            found = await arun(show(scope_of(db), name), db)
            if found.status != "active":
                raise HTTPException(403, f"The namespace is {found.status}.")
            return found.id

        namespace_id = await self._ids.load_async(name, read_id)

        def new() -> tuple[AsyncLimiter, LimiterPrometheusObserver]:
            metrics, options = LimiterPrometheusObserver(), self._options.copy()
            given = options.get("observer")
            options["observer"] = metrics if given is None else combine(metrics, given)
            return AsyncLimiter(db, namespace_id, **options), metrics

        return self._limiters.load(namespace_id, new)

    def forget(self, name: str) -> None:
        """Read a namespace again: it has changed."""
        self._ids.forget(name)


def namespace_limiters(request: Request) -> NamespaceLimiters:
    """Return the limiters of the app."""
    return cast(NamespaceLimiters, request.app.state.namespace_limiters)


async def namespace_limiter(
    request: Request, namespace: TenantId, principal: CurrentPrincipal
) -> AsyncLimiter:
    """Return the limiter of the request's namespace; the audit trail names the caller for its changes."""
    limiter = await namespace_limiters(request).limiter(get_database(request), namespace)
    return limiter.acting(principal.actor(), request_id=request_id(request))


LimiterDep = Annotated[AsyncLimiter, Depends(namespace_limiter)]


async def http_leases(request: Request, limiter: LimiterDep) -> HttpLeases:
    """Return the leases of the request's namespace."""
    seconds: float = request.app.state.lease_seconds
    return HttpLeases(get_database(request), limiter, seconds=seconds)


async def acting_database(request: Request, principal: CurrentPrincipal) -> AsyncDatabase:
    """Return the database, for changes of namespaces; the audit trail names the caller.

    A credential for some namespaces only is rejected, whatever its role: this reaches all.
    """
    if principal.tenants is not None:
        raise HTTPException(403, "This needs a credential that reaches all namespaces.")
    return get_database(request).acting(principal.actor(), request_id=request_id(request))


Leases = Annotated[HttpLeases, Depends(http_leases)]
ActingDatabase = Annotated[AsyncDatabase, Depends(acting_database)]
