"""`/tenants`, `/members` and `/admin/surveys`: for administrators."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from solotable.systems.routes import ExpectedVersion, Id, JsonRoute, allow, set_etag
from solotable.systems.surveys.entities.access import Member, MemberRole, Tenant, TenantSummary
from solotable.systems.surveys.services.drafts import Input, MemberDraft, TenantDraft, TenantPatch
from solotable.systems.surveys.services.tenants import Members, Tenants, TenantSurvey
from solotable.web import DatabaseDep, Page, Paging

from .access import ADMINS, GLOBAL_ADMINS
from .dependencies import ActiveStore, known_tenants

router = APIRouter(tags=["administration"], route_class=JsonRoute)


class RoleChange(Input):
    """A new role of a member."""

    role: MemberRole


class ErasedTenant(BaseModel):
    """How far the erasure of a tenant is; repeat the request until it is done."""

    done: bool
    removed: int


@router.get("/tenants", **allow(*GLOBAL_ADMINS))
async def list_tenants(db: DatabaseDep, paging: Paging) -> Page[TenantSummary]:
    """List all tenants."""
    return Page[TenantSummary].of(await Tenants(db).list(limit=paging.limit, cursor=paging.cursor))


@router.post("/tenants", status_code=201, **allow(*GLOBAL_ADMINS))
async def create_tenant(draft: TenantDraft, db: DatabaseDep, response: Response) -> Tenant:
    """Create a tenant."""
    response.headers["location"] = f"/tenants/{draft.id}"
    return set_etag(response, await Tenants(db).create(draft))


@router.get("/tenants/{tenant}", **allow(*GLOBAL_ADMINS))
async def get_tenant(tenant: Id, db: DatabaseDep, response: Response) -> Tenant:
    """Return a tenant."""
    return set_etag(response, await Tenants(db).get(tenant))


@router.patch("/tenants/{tenant}", **allow(*GLOBAL_ADMINS))
async def rename_tenant(
    tenant: Id, patch: TenantPatch, db: DatabaseDep, version: ExpectedVersion, response: Response
) -> Tenant:
    """Change the name of a tenant."""
    return set_etag(response, await Tenants(db).rename(tenant, patch, version=version))


@router.delete("/tenants/{tenant}", **allow(*GLOBAL_ADMINS))
async def delete_tenant(tenant: Id, db: DatabaseDep, request: Request) -> ErasedTenant:
    """Erase a tenant with everything that it has, some thousand items in each request."""
    erased = await Tenants(db).delete(tenant)
    known_tenants(request).forget(tenant)
    return ErasedTenant(done=erased.done, removed=erased.removed)


@router.get("/admin/surveys", **allow(*GLOBAL_ADMINS))
async def list_all_surveys(db: DatabaseDep, paging: Paging) -> Page[TenantSurvey]:
    """List the surveys of all tenants; `limit` is the number of tenants on a page."""
    return Page[TenantSurvey].of(await Tenants(db).surveys(limit=paging.limit, cursor=paging.cursor))


@router.get("/members", **allow(*ADMINS))
async def list_members(store: ActiveStore, paging: Paging) -> Page[Member]:
    """List the members of the tenant."""
    return Page[Member].of(await Members(store).list(limit=paging.limit, cursor=paging.cursor))


@router.post("/members", status_code=201, **allow(*ADMINS))
async def add_member(draft: MemberDraft, store: ActiveStore, response: Response) -> Member:
    """Add a member."""
    return set_etag(response, await Members(store).add(draft))


@router.patch("/members/{user_id}", **allow(*ADMINS))
async def change_member(
    user_id: Id, body: RoleChange, store: ActiveStore, version: ExpectedVersion, response: Response
) -> Member:
    """Change the role of a member."""
    return set_etag(response, await Members(store).change_role(user_id, body.role, version=version))


@router.delete("/members/{user_id}", status_code=204, **allow(*ADMINS))
async def remove_member(user_id: Id, store: ActiveStore) -> None:
    """Remove a member."""
    await Members(store).remove(user_id)
