"""Where somebody stands by now: a token says what its owner was when it was made, the app knows more.

Only tokens are looked up; API keys are the app's own configuration. Who reaches all tenants belongs to none,
so none of them judges them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import HTTPException

from solotable._store import AsyncDatabase
from solotable.web.ttl_cache import Kept

from .principal import Principal

#: From a verified principal and a tenant to the roles that they have there, out of those that they claim:
#: None when the app does not know them and the claims stand, nothing when they are no longer let in.
Standing = Callable[[AsyncDatabase, Principal, str], Coroutine[Any, Any, frozenset[str] | None]]

#: Without x-tenant-id somebody of several tenants is looked up in each of them.
_MOST_TENANTS = 16


class Standings:
    """Asks the app where somebody stands, and remembers it for a while."""

    def __init__(
        self,
        standing: Standing,
        *,
        ttl_seconds: float = 30.0,
        most: int = 4096,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._standing = standing
        self._kept: Kept[tuple[Principal, str], frozenset[str] | None] = Kept(
            ttl_seconds=ttl_seconds, most=most, clock=clock
        )

    async def judged(self, database: AsyncDatabase, principal: Principal, wanted: str | None) -> Principal:
        """Return a principal as they stand in the tenant that they want, or refuse them.

        Without a tenant of theirs they are what they are in all of their tenants that let them in.
        """
        if principal.kind != "jwt" or not principal.tenants:
            return principal
        # A tenant that the credential does not reach is refused later, where a tenant is needed.
        tenants = [wanted] if wanted in principal.tenants and wanted else sorted(principal.tenants)
        if len(tenants) > _MOST_TENANTS:
            raise HTTPException(400, "Say which tenant: send x-tenant-id.")
        found: dict[str, frozenset[str]] = {}
        for tenant in tenants:
            ask = partial(self._standing, database, principal, tenant)
            roles = await self._kept.get((principal, tenant), ask)
            if roles is None:
                found[tenant] = principal.roles
            elif roles:
                found[tenant] = roles
        if not found:
            raise HTTPException(403, "The credential is no longer let in.")
        return replace(principal, roles=frozenset.intersection(*found.values()), tenants=frozenset(found))

    def forget(self, tenant: str) -> None:
        """Ask again for everybody of a tenant, as somebody's role or access has changed."""
        self._kept.forget(lambda key: key[1] == tenant)
