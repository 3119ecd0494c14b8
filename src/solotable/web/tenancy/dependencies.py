"""Route dependencies for tenants: the tenant's id and its store, by credential or by host name.

The verified credential decides the tenant. `x-tenant-id` selects one of the credential's tenants and never
adds one. Request bodies and query parameters never name a tenant.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from fastapi import Depends, HTTPException, Request

from solotable import AsyncStore
from solotable.web.auth.dependencies import TENANT, CredentialDependency, tenant_headers
from solotable.web.auth.principal import ANONYMOUS, Principal
from solotable.web.http.middleware import request_id
from solotable.web.lifespan import get_database

from .host_tenants import HostTenants

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}")


def choose_tenant(principal: Principal, requested: str | None) -> str:
    """Return the tenant of a request; 400 or 403 when the credential does not reach the requested one."""
    if requested is None:
        if principal.tenants is None or len(principal.tenants) > 1:
            raise HTTPException(400, "The credential reaches several tenants; select one with x-tenant-id.")
        if not principal.tenants:
            raise HTTPException(403, "The credential reaches no tenant.")
        return next(iter(principal.tenants))
    if principal.tenants is not None:
        # Compared exactly: folding case, spaces or Unicode could turn one tenant into another.
        if requested not in principal.tenants:
            raise HTTPException(403, "The credential does not reach that tenant.")
        return requested
    if not _TENANT.fullmatch(requested):
        raise HTTPException(400, "x-tenant-id is not a tenant's name.")
    return requested


async def tenant_id_of(request: Request, principal: Principal) -> str:
    """Return the tenant that the principal asks for."""
    given = tenant_headers(request)
    if len(given) > 1:
        raise HTTPException(400, "Send x-tenant-id once.")
    return choose_tenant(principal, given[0] if given else None)


async def tenant_store_of(request: Request, principal: Principal) -> AsyncStore:
    """Return the store of the request's tenant; its writes name the principal as their actor."""
    store = get_database(request).tenant(await tenant_id_of(request, principal))
    return store.acting(principal.actor(), request_id=request_id(request))


async def get_host_tenant_id(request: Request) -> str:
    """Return the tenant that owns the request's host name; 404 for an unknown host."""
    hosts: HostTenants | None = request.app.state.hosts
    if hosts is None:
        raise RuntimeError("HostTenantId and HostStore need install(app, resolve_host=...).")
    return await hosts.tenant(request, get_database(request))


async def get_host_store(request: Request) -> AsyncStore:
    """Return the store of the tenant that owns the request's host name, for routes without a credential."""
    tenant = await get_host_tenant_id(request)
    return get_database(request).tenant(tenant).acting(ANONYMOUS.actor(), request_id=request_id(request))


get_tenant_id: Final = CredentialDependency(TENANT, tenant_id_of)
get_tenant_store: Final = CredentialDependency(TENANT, tenant_store_of)

TenantId = Annotated[str, Depends(get_tenant_id)]
TenantStore = Annotated[AsyncStore, Depends(get_tenant_store)]
HostTenantId = Annotated[str, Depends(get_host_tenant_id)]
HostStore = Annotated[AsyncStore, Depends(get_host_store)]
