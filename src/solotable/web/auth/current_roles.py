"""Re-check a token holder's current roles: a token states the roles of the time when it was issued.

Only tokens are checked; API keys are the app's configuration. A principal that reaches all tenants belongs
to none of them, so its roles stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import HTTPException

from solotable import AsyncDatabase
from solotable.cache import TTLCache

from .principal import Principal

#: From a verified principal and a tenant to the principal's current roles there, a subset of the claimed
#: ones: None when the app does not know the user and the claims count, an empty set to reject the user.
ResolveRoles = Callable[[AsyncDatabase, Principal, str], Coroutine[Any, Any, frozenset[str] | None]]

#: Without x-tenant-id the roles are looked up in every tenant of the principal.
_MAX_TENANTS = 16


class CurrentRoles:
    """The current roles of principals in tenants, from the app's resolver and cached."""

    def __init__(
        self,
        resolve: ResolveRoles,
        *,
        ttl_seconds: float = 30.0,
        max_size: int = 4096,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._resolve = resolve
        self._cache: TTLCache[tuple[Principal, str], frozenset[str] | None] = TTLCache(
            ttl_seconds=ttl_seconds, max_size=max_size, group_of=lambda key: key[1], clock=clock
        )

    async def apply(self, database: AsyncDatabase, principal: Principal, requested: str | None) -> Principal:
        """Return the principal with its current roles in the requested tenant; 403 when it is rejected.

        Without a requested tenant it has the roles that it has in all of its tenants that accept it.
        """
        if principal.kind != "jwt" or not principal.tenants:
            return principal
        # A tenant that the credential does not reach is rejected later, where a tenant is needed.
        tenants = [requested] if requested in principal.tenants and requested else sorted(principal.tenants)
        if len(tenants) > _MAX_TENANTS:
            raise HTTPException(400, "The credential reaches many tenants; select one with x-tenant-id.")
        found: dict[str, frozenset[str]] = {}
        for tenant in tenants:
            load = partial(self._resolve, database, principal, tenant)
            roles = await self._cache.load_async((principal, tenant), load)
            if roles is None:
                found[tenant] = principal.roles
            elif roles:
                found[tenant] = roles
        if not found:
            raise HTTPException(403, "The user of this credential no longer has access.")
        return replace(principal, roles=frozenset.intersection(*found.values()), tenants=frozenset(found))

    def forget(self, tenant: str) -> None:
        """Forget the roles in a tenant, after a user's role or access changed."""
        self._cache.forget_group(tenant)
