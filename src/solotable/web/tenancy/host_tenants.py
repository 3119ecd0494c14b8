"""The tenant that owns a host name, looked up by the app and cached.

The client sends the `Host` header, so it opens only the public data of a tenant.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

from fastapi import HTTPException, Request

from solotable import AsyncDatabase
from solotable.cache import TTLCache

from .proxies import TrustedProxies

#: From a canonical host name to its tenant, None when no tenant owns it.
ResolveHost = Callable[[AsyncDatabase, str], Awaitable[str | None]]


class HostTenants:
    """The owners of host names, from the app's resolver and cached.

    Owned and unknown names have separate caches, so that made-up names evict no owned one.
    """

    def __init__(
        self,
        resolve: ResolveHost,
        *,
        proxies: TrustedProxies,
        ttl_seconds: float = 300.0,
        unknown_ttl_seconds: float = 30.0,
        max_size: int = 1024,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._resolve = resolve
        self._proxies = proxies
        self._owners: TTLCache[str, str | None] = TTLCache(
            ttl_seconds=lambda owner: 0.0 if owner is None else ttl_seconds, max_size=max_size, clock=clock
        )
        self._unknown: TTLCache[str, bool] = TTLCache(
            ttl_seconds=unknown_ttl_seconds, max_size=max_size, clock=clock
        )

    async def tenant(self, request: Request, database: AsyncDatabase) -> str:
        """Return the tenant that owns a request's host name; 400 for a bad name, 404 for an unknown one."""
        host = self._proxies.host_of(request)
        if host is None:
            raise HTTPException(400, "The Host header does not hold a host name.")
        owner = await self.owner(database, host)
        if owner is None:
            raise HTTPException(404, "No site has this host name.")
        return owner

    def port_of(self, request: Request) -> int | None:
        """Return the port in a request's Host header, None when it has none."""
        return self._proxies.port_of(request)

    async def owner(self, database: AsyncDatabase, host: str) -> str | None:
        """Return the tenant that owns a canonical host name, None for an unknown name."""
        owner = self._owners.get(host)
        if owner is not None or self._unknown.get(host, False):
            return owner
        return await self._owners.load_async(host, partial(self._load, database, host))

    def forget(self, host: str | None = None) -> None:
        """Forget one host name, or all, after a domain moved to another tenant."""
        for cache in (self._owners, self._unknown):
            if host is None:
                cache.clear()
            else:
                cache.forget(host)

    async def _load(self, database: AsyncDatabase, host: str) -> str | None:
        generation = self._unknown.generation
        owner = await self._resolve(database, host)
        if owner is None:
            self._unknown.put(host, True, generation=generation)
        return owner
