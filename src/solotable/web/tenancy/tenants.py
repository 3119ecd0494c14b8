"""What a route depends on: who asks, the database, and the store of one tenant.

The tenant comes from the verified credential. `x-tenant-id` chooses among the tenants that the
credential reaches and can never add one. Nothing here reads a tenant from a body or a query.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from fastapi import Depends, HTTPException, Request

from solotable._store import AsyncDatabase, AsyncStore
from solotable.web.auth.auth import Auth, unauthorized
from solotable.web.auth.current_roles import Standings
from solotable.web.auth.dependencies import CREDENTIAL, TENANT, Guard
from solotable.web.auth.principal import ANONYMOUS, Principal
from solotable.web.http.middleware import request_id

from .host_tenants import HostTenants

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}")


# Dependencies are coroutines even where they wait for nothing: FastAPI runs plain functions in threads.
async def database(request: Request) -> AsyncDatabase:
    """Return the database that the app's lifespan opened."""
    return opened(request)


def opened(request: Request) -> AsyncDatabase:
    """Return the same outside of a dependency."""
    found: AsyncDatabase | None = getattr(request.app.state, "database", None)
    if found is None:
        raise RuntimeError(
            "The app has no open database: FastAPI(lifespan=lifespan(url, table)), and a TestClient runs "
            "the lifespan in a `with` block only."
        )
    return found


async def anyone(request: Request) -> Principal:
    """Return who asks, ANONYMOUS without a credential; a wrong credential is refused all the same."""
    state = request.scope["state"]
    known: Principal | None = state.get("principal")
    if known is not None:
        return known
    auth: Auth | None = request.app.state.auth
    principal = ANONYMOUS if auth is None else await auth.principal(request)
    standings: Standings | None = request.app.state.standings
    if standings is not None and principal.kind == "jwt":
        wanted = _wanted(request)
        principal = await standings.judged(
            opened(request), principal, wanted[0] if len(wanted) == 1 else None
        )
    state["principal"] = principal
    return principal


async def _current(request: Request) -> Principal:
    """Return who asks; without a credential it is a 401."""
    principal = await anyone(request)
    if principal.kind == "anonymous":
        raise unauthorized("Send a credential: x-api-key, or Authorization: Bearer.")
    return principal


def requires(*roles: str) -> Guard[Principal]:
    """Return a dependency that lets in those who have one of these roles: `Depends(requires("EDITOR"))`."""
    if not roles:
        raise TypeError("requires() needs a role; Depends(current) lets in everybody with a credential.")

    async def judged(request: Request) -> Principal:
        """Return who asks, when they have the role; otherwise it is a 403."""
        principal = await _current(request)
        if not principal.has(*roles):
            raise HTTPException(403, f"This needs the role {' or '.join(roles)}.")
        return principal

    return Guard(CREDENTIAL, judged)


def choose_tenant(principal: Principal, wanted: str | None) -> str:
    """Return the tenant of a request, or refuse: `wanted` narrows what the credential reaches."""
    if wanted is None:
        if principal.tenants is None or len(principal.tenants) > 1:
            raise HTTPException(400, "Say which tenant: send x-tenant-id.")
        if not principal.tenants:
            raise HTTPException(403, "The credential reaches no tenant.")
        return next(iter(principal.tenants))
    if principal.tenants is not None:
        # Exactly as the credential has it: no folding of case, space or Unicode makes one of another.
        if wanted not in principal.tenants:
            raise HTTPException(403, "The credential does not reach that tenant.")
        return wanted
    if not _TENANT.fullmatch(wanted):
        raise HTTPException(400, "x-tenant-id is no name of a tenant.")
    return wanted


async def _tenant(request: Request) -> str:
    """Return the tenant that the request may ask for."""
    return _narrowed(request, await _current(request))


def _narrowed(request: Request, principal: Principal) -> str:
    given = _wanted(request)
    if len(given) > 1:
        raise HTTPException(400, "x-tenant-id may be sent once.")
    return choose_tenant(principal, given[0] if given else None)


def _wanted(request: Request) -> list[str]:
    return [value.decode("latin-1") for name, value in request.scope["headers"] if name == b"x-tenant-id"]


async def _tenant_store(request: Request) -> AsyncStore:
    """Return the store of the request's tenant; what it writes is recorded as the caller's."""
    principal = await _current(request)
    store = opened(request).tenant(_narrowed(request, principal))
    return store.acting(principal.actor(), request_id=request_id(request))


current: Final = Guard(CREDENTIAL, _current)
tenant: Final = Guard(TENANT, _tenant)
tenant_store: Final = Guard(TENANT, _tenant_store)


async def host_tenant(request: Request) -> str:
    """Return the tenant that owns the host name of the request; 404 for a host that nobody owns."""
    hosts: HostTenants | None = request.app.state.hosts
    if hosts is None:
        raise RuntimeError("install(app, resolve_host=...) is missing; host_tenant asks it.")
    return await hosts.tenant(request, opened(request))


async def host_store(request: Request) -> AsyncStore:
    """Return the store of the tenant that owns the host name, for routes without a credential."""
    owner = await host_tenant(request)
    return opened(request).tenant(owner).acting(ANONYMOUS.actor(), request_id=request_id(request))


Caller = Annotated[Principal, Depends(current)]
Visitor = Annotated[Principal, Depends(anyone)]
DatabaseDep = Annotated[AsyncDatabase, Depends(database)]
TenantId = Annotated[str, Depends(tenant)]
TenantStore = Annotated[AsyncStore, Depends(tenant_store)]
HostTenant = Annotated[str, Depends(host_tenant)]
HostStore = Annotated[AsyncStore, Depends(host_store)]
