"""`/tenants`, `/members`, `/tenant/export`, `/admin/surveys` and `/metrics`: for administrators."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from solotable.observe.series import CONTENT_TYPE
from solotable.systems.formats.inputs import Input
from solotable.systems.routes import ExpectedVersion, Id, JsonRoute, allow, set_etag
from solotable.systems.surveys.entities.access import Member, MemberRole, Tenant, TenantSummary
from solotable.systems.surveys.services.drafts import MemberDraft, TenantDraft, TenantPatch
from solotable.systems.surveys.services.export import export_tenant
from solotable.systems.surveys.services.tenants import Members, Tenants, TenantSurvey
from solotable.web import DatabaseDep, Page, Paging

from .access import ADMINS, GLOBAL_ADMINS
from .dependencies import ActiveStore, known_tenants

router = APIRouter(tags=["administration"], route_class=JsonRoute)
#: Ids of users come from elsewhere, such as `auth0|5f7c`.
UserPath = Annotated[str, Path(min_length=1, max_length=128, examples=["ben"])]


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


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"description": "The metrics.", "content": {CONTENT_TYPE: {}}}},
    **allow(*GLOBAL_ADMINS),
)
async def get_metrics(request: Request) -> Response:
    """Return the requests that this process sent to the table since its start, as Prometheus text."""
    text = request.app.state.metrics.render()
    return Response(text, headers={"content-type": CONTENT_TYPE})


@router.get(
    "/tenant/export",
    response_class=StreamingResponse,
    responses={200: {"description": "Lines of JSON.", "content": {"application/x-ndjson": {}}}},
    **allow(*ADMINS),
)
async def export_everything(store: ActiveStore) -> StreamingResponse:
    """Return every item of the tenant as lines of JSON; the last line has the number of items."""
    chunks = await export_tenant(store)
    name = {"content-disposition": 'attachment; filename="tenant.ndjson"', "cache-control": "no-store"}
    return StreamingResponse(chunks, media_type="application/x-ndjson", headers=name)


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
    user_id: UserPath, body: RoleChange, store: ActiveStore, version: ExpectedVersion, response: Response
) -> Member:
    """Change the role of a member."""
    return set_etag(response, await Members(store).change_role(user_id, body.role, version=version))


@router.delete("/members/{user_id}", status_code=204, **allow(*ADMINS))
async def remove_member(user_id: UserPath, store: ActiveStore) -> None:
    """Remove a member."""
    await Members(store).remove(user_id)
