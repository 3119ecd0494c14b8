"""`/tenants` for global administrators, `/settings` for a tenant's administrators and editors.

Settings are hidden unless `/settings/public` declares them; only `/settings/secrets` shows the others, to
administrators. Routes without a credential show no settings. A change forgets the cached owners of hosts.
"""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from solotable.systems.cms.entities import TenantConfig, TenantStatus, TenantSummary
from solotable.systems.cms.entities.tenancy import PublicPaths
from solotable.systems.cms.routes.access import ADMINS, EDITORS, GLOBAL_ADMINS, READERS
from solotable.systems.cms.routes.body_limits import Tree
from solotable.systems.cms.routes.dependencies import (
    ActingDatabase,
    ActiveTenantId,
    StorageDep,
    active_tenants,
)
from solotable.systems.cms.routes.editing.graph import graphs
from solotable.systems.cms.routes.site.post_lists import post_lists
from solotable.systems.cms.routes.site.site_info import site_infos
from solotable.systems.cms.routes.site.sitemaps import sitemaps
from solotable.systems.cms.services import Settings, TenantDraft, TenantErasure, Tenants, erase_tenant
from solotable.systems.cms.services.tenancy.settings import visible_settings
from solotable.systems.routes import ExpectedVersion, Id, JsonRoute, allow
from solotable.web import CurrentPrincipal, HostTenants, Page, Paging, Principal, etag

router = APIRouter(tags=["tenants"], route_class=JsonRoute)

#: The items that an erasure removes in one request.
MAX_ERASED = 10_000


class TenantChange(BaseModel):
    """A change of a tenant; `domain: null` releases the domain, status `closed` is final."""

    model_config = ConfigDict(extra="forbid")

    domain: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    status: TenantStatus = "active"


class Confirmation(BaseModel):
    """The confirmation of an erasure: the tenant's id again."""

    model_config = ConfigDict(extra="forbid")

    confirm: Annotated[str, Field(min_length=1, max_length=128)]


class PublicSettings(BaseModel):
    """The settings that editors see, as JSON Pointers such as `/mail/from`, each to a value, not a map."""

    model_config = ConfigDict(extra="forbid")

    paths: PublicPaths


def summary(config: TenantConfig) -> TenantSummary:
    """Return a tenant without its settings."""
    return TenantSummary(id=config.id, name=config.name, domain=config.domain, status=config.status)


def check_reach(principal: Principal, tenant: str) -> None:
    """Raise 403 for a tenant that the credential does not reach; a role alone reaches none."""
    if not principal.reaches(tenant):
        raise HTTPException(403, "The credential does not reach that tenant.")


def forget_tenant(request: Request, tenant: str) -> None:
    """Forget what the app caches of a tenant, and the owners of all host names."""
    cast(HostTenants, request.app.state.hosts).forget()
    active_tenants(request).forget(tenant)
    site_infos(request).forget(tenant)
    sitemaps(request).forget(tenant)
    graphs(request).forget(tenant)
    post_lists(request).forget(tenant)


@router.get("/tenants", **allow(*READERS))
async def list_tenants(
    db: ActingDatabase, principal: CurrentPrincipal, paging: Paging
) -> Page[TenantSummary]:
    """List the tenants that the credential reaches."""
    tenants = Tenants(db)
    if principal.tenants is None:
        return Page[TenantSummary].of(await tenants.list(limit=paging.limit, cursor=paging.cursor))
    if paging.cursor is not None:
        raise HTTPException(400, "The tenants of this credential are on one page; leave out the cursor.")
    return Page[TenantSummary](items=await tenants.summaries(sorted(principal.tenants)[:100]))


@router.post("/tenants", status_code=201, **allow(*GLOBAL_ADMINS))
async def create_tenant(
    draft: TenantDraft, db: ActingDatabase, principal: CurrentPrincipal, request: Request, response: Response
) -> TenantSummary:
    """Create a tenant with its pages `/` and `/contact`; 409 if another tenant has the domain."""
    check_reach(principal, draft.id)
    created = await Tenants(db).create(draft)
    forget_tenant(request, created.id)
    response.headers["etag"] = etag(created.version)
    return summary(created)


@router.get("/tenants/{tenant}", **allow(*READERS))
async def get_tenant(
    tenant: Id, db: ActingDatabase, principal: CurrentPrincipal, response: Response
) -> TenantSummary:
    """Return a tenant that the credential reaches."""
    check_reach(principal, tenant)
    found = await Tenants(db).get(tenant)
    response.headers["etag"] = etag(found.version)
    return summary(found)


@router.put("/tenants/{tenant}", **allow(*GLOBAL_ADMINS))
async def change_tenant(
    tenant: Id,
    body: TenantChange,
    db: ActingDatabase,
    principal: CurrentPrincipal,
    version: ExpectedVersion,
    request: Request,
    response: Response,
) -> TenantSummary:
    """Change the domain or the status of a tenant, one of the two."""
    check_reach(principal, tenant)
    if len(body.model_fields_set) != 1:
        raise HTTPException(422, "Send either a domain or a status.")
    tenants = Tenants(db)
    if "status" in body.model_fields_set:
        stored = await tenants.set_status(tenant, body.status, version=version)
    else:
        stored = await tenants.move(tenant, body.domain, version=version)
    forget_tenant(request, tenant)
    response.headers["etag"] = etag(stored.version)
    return summary(stored)


@router.post(
    "/tenants/{tenant}/erasure",
    responses={202: {"model": TenantErasure, "description": "A part is erased; repeat the request."}},
    **allow(*GLOBAL_ADMINS),
)
async def erase_tenant_data(
    tenant: Id,
    body: Confirmation,
    db: ActingDatabase,
    principal: CurrentPrincipal,
    files: StorageDep,
    request: Request,
    response: Response,
) -> TenantErasure:
    """Erase the data and files of a closed tenant; 202 if some are left: repeat the request."""
    check_reach(principal, tenant)
    if body.confirm != tenant:
        raise HTTPException(422, "To confirm the erasure, send the tenant's id in `confirm`.")
    done = await erase_tenant(db, tenant, storage=files, max_items=MAX_ERASED)
    forget_tenant(request, tenant)
    response.status_code = 200 if done.done else 202
    return done


@router.get("/settings", tags=["settings"], **allow(*EDITORS))
async def get_settings(tenant: ActiveTenantId, db: ActingDatabase, response: Response) -> dict[str, Any]:
    """Return the settings; values that are not public are hidden."""
    found = await Tenants(db).get(tenant)
    response.headers["etag"] = etag(found.version)
    return visible_settings(found)


@router.put("/settings", tags=["settings"], **allow(*ADMINS))
async def merge_settings(
    patch: Tree, tenant: ActiveTenantId, db: ActingDatabase, version: ExpectedVersion, request: Request
) -> dict[str, Any]:
    """Merge a change into the settings: absent and hidden values stay, null removes a value."""
    merged = await Settings(db, tenant).merge(patch, version=version)
    graphs(request).forget(tenant)
    site_infos(request).forget(tenant)
    return merged


@router.get("/settings/secrets", tags=["settings"], **allow(*ADMINS))
async def get_secrets(tenant: ActiveTenantId, db: ActingDatabase) -> dict[str, Any]:
    """Return the hidden settings in clear."""
    return await Settings(db, tenant).secrets()


@router.get("/settings/public", tags=["settings"], **allow(*EDITORS))
async def get_public_settings(
    tenant: ActiveTenantId, db: ActingDatabase, response: Response
) -> PublicSettings:
    """Return the paths of the public settings."""
    found = await Tenants(db).get(tenant)
    response.headers["etag"] = etag(found.version)
    return PublicSettings(paths=found.public)


@router.put("/settings/public", tags=["settings"], **allow(*ADMINS))
async def declare_public_settings(
    body: PublicSettings,
    tenant: ActiveTenantId,
    db: ActingDatabase,
    version: ExpectedVersion,
    response: Response,
) -> PublicSettings:
    """Set the paths of the public settings; all others are hidden."""
    stored = await Settings(db, tenant).declare(body.paths, version=version)
    response.headers["etag"] = etag(stored.version)
    return PublicSettings(paths=stored.public)
