"""`/tenants`, `/settings`: tenants for global administrators, a tenant's settings for its own.

Settings are hidden but for those that `/settings/public` declares; `/settings/secrets` alone shows the rest,
to administrators. No route without a credential shows any. After a change the app asks again who owns a host.
"""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from solotable.systems.cms.entities import TenantConfig, TenantStatus, TenantSummary
from solotable.systems.cms.entities.tenancy import PublicPaths
from solotable.systems.cms.routes.access import ADMINS, EDITORS, GLOBAL, READERS, allow
from solotable.systems.cms.routes.body_limits import JsonRoute, Tree
from solotable.systems.cms.routes.dependencies import (
    ActingDatabase,
    Expected,
    Files,
    Id,
    OpenTenant,
    open_tenants,
)
from solotable.systems.cms.routes.editing.graph import graphs
from solotable.systems.cms.routes.site.sitemaps import sitemaps
from solotable.systems.cms.services import Settings, TenantDraft, TenantErasure, Tenants, erase
from solotable.systems.cms.services.tenancy.settings import shown
from solotable.web import Caller, HostTenants, Page, Paging, Principal, etag

router = APIRouter(tags=["tenants"], route_class=JsonRoute)

#: How many items an erasure removes in one request.
MOST_AT_ONCE = 10_000


class TenantChange(BaseModel):
    """A change of a tenant; `domain: null` gives the domain back, `closed` is for good."""

    model_config = ConfigDict(extra="forbid")

    domain: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    status: TenantStatus = "active"


class Confirmation(BaseModel):
    """That a tenant is meant to go: its id once more."""

    model_config = ConfigDict(extra="forbid")

    confirm: Annotated[str, Field(min_length=1, max_length=128)]


class PublicSettings(BaseModel):
    """The settings that editors may see, as JSON Pointers: `/mail/from`. Each names a value, never a map."""

    model_config = ConfigDict(extra="forbid")

    paths: PublicPaths


def summary(config: TenantConfig) -> TenantSummary:
    """Return a tenant without its settings."""
    return TenantSummary(id=config.id, name=config.name, domain=config.domain, status=config.status)


def reached(principal: Principal, tenant: str) -> None:
    """Refuse a tenant that the credential does not reach: a role alone opens none."""
    if not principal.reaches(tenant):
        raise HTTPException(403, "The credential does not reach that tenant.")


def forget(request: Request, tenant: str) -> None:
    """Have the app ask again for a tenant, and for all host names."""
    cast(HostTenants, request.app.state.hosts).forget()
    open_tenants(request).forget(tenant)
    sitemaps(request).forget(tenant)
    graphs(request).forget(tenant)


@router.get("/tenants", **allow(*READERS))
async def list_tenants(db: ActingDatabase, principal: Caller, paging: Paging) -> Page[TenantSummary]:
    """List all tenants for who reaches all, and for others their own."""
    tenants = Tenants(db)
    if principal.tenants is None:
        return Page[TenantSummary].of(await tenants.list(limit=paging.limit, cursor=paging.cursor))
    if paging.cursor is not None:
        raise HTTPException(400, "One's own tenants are on one page.")
    return Page[TenantSummary](items=await tenants.summaries(sorted(principal.tenants)[:100]))


@router.post("/tenants", status_code=201, **allow(*GLOBAL))
async def create_tenant(
    draft: TenantDraft, db: ActingDatabase, principal: Caller, request: Request, response: Response
) -> TenantSummary:
    """Make a tenant with its `/` and `/contact`; a domain that is taken is a 409."""
    reached(principal, draft.id)
    made = await Tenants(db).create(draft)
    forget(request, made.id)
    response.headers["etag"] = etag(made.version)
    return summary(made)


@router.get("/tenants/{tenant}", **allow(*READERS))
async def get_tenant(tenant: Id, db: ActingDatabase, principal: Caller, response: Response) -> TenantSummary:
    """Return a tenant that the credential reaches."""
    reached(principal, tenant)
    found = await Tenants(db).get(tenant)
    response.headers["etag"] = etag(found.version)
    return summary(found)


@router.put("/tenants/{tenant}", **allow(*GLOBAL))
async def change_tenant(
    tenant: Id,
    body: TenantChange,
    db: ActingDatabase,
    principal: Caller,
    version: Expected,
    request: Request,
    response: Response,
) -> TenantSummary:
    """Give a tenant another domain, suspend it, or close it: one of these at a time."""
    reached(principal, tenant)
    if len(body.model_fields_set) != 1:
        raise HTTPException(422, "Send a domain or a status, one of the two.")
    tenants = Tenants(db)
    if "status" in body.model_fields_set:
        stored = await tenants.set_status(tenant, body.status, version=version)
    else:
        stored = await tenants.move(tenant, body.domain, version=version)
    forget(request, tenant)
    response.headers["etag"] = etag(stored.version)
    return summary(stored)


@router.post(
    "/tenants/{tenant}/erasure",
    responses={202: {"model": TenantErasure, "description": "A part is erased; repeat it."}},
    **allow(*GLOBAL),
)
async def erase_tenant(
    tenant: Id,
    body: Confirmation,
    db: ActingDatabase,
    principal: Caller,
    files: Files,
    request: Request,
    response: Response,
) -> TenantErasure:
    """Erase a closed tenant for good, files too; 202 when there is more: repeat it until it is done."""
    reached(principal, tenant)
    if body.confirm != tenant:
        raise HTTPException(422, "To confirm it, send the tenant's id in `confirm`.")
    done = await erase(db, tenant, storage=files, most=MOST_AT_ONCE)
    forget(request, tenant)
    response.status_code = 200 if done.done else 202
    return done


@router.get("/settings", tags=["settings"], **allow(*EDITORS))
async def get_settings(tenant: OpenTenant, db: ActingDatabase, response: Response) -> dict[str, Any]:
    """Return the settings; what is not declared public is hidden."""
    found = await Tenants(db).get(tenant)
    response.headers["etag"] = etag(found.version)
    return shown(found)


@router.put("/settings", tags=["settings"], **allow(*ADMINS))
async def merge_settings(
    patch: Tree, tenant: OpenTenant, db: ActingDatabase, version: Expected, request: Request
) -> dict[str, Any]:
    """Merge a change into the settings: what is not named stays, null removes, what is hidden stays."""
    merged = await Settings(db, tenant).merge(patch, version=version)
    graphs(request).forget(tenant)
    return merged


@router.get("/settings/secrets", tags=["settings"], **allow(*ADMINS))
async def get_secrets(tenant: OpenTenant, db: ActingDatabase) -> dict[str, Any]:
    """Return what is hidden, as it is."""
    return await Settings(db, tenant).secrets()


@router.get("/settings/public", tags=["settings"], **allow(*EDITORS))
async def get_public_settings(tenant: OpenTenant, db: ActingDatabase, response: Response) -> PublicSettings:
    """Return which settings are declared public."""
    found = await Tenants(db).get(tenant)
    response.headers["etag"] = etag(found.version)
    return PublicSettings(paths=found.public)


@router.put("/settings/public", tags=["settings"], **allow(*ADMINS))
async def declare_public_settings(
    body: PublicSettings, tenant: OpenTenant, db: ActingDatabase, version: Expected, response: Response
) -> PublicSettings:
    """Declare which settings editors may see; all others are hidden from now on."""
    stored = await Settings(db, tenant).declare(body.paths, version=version)
    response.headers["etag"] = etag(stored.version)
    return PublicSettings(paths=stored.public)
