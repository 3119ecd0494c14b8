"""`/users`, `/audit`: the people of a tenant, and what they did."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Depends, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field

from solotable.systems.cms.entities import AuditSummary, Role, User, UserSummary
from solotable.systems.cms.routes.access import ADMINS, EDITORS, allow
from solotable.systems.cms.routes.body_limits import Email, IdText, JsonRoute
from solotable.systems.cms.routes.dependencies import Id, Pepper, SiteStore
from solotable.systems.cms.services import Trail, Users
from solotable.systems.cms.services.visitors import tenant_of
from solotable.web import Caller, Page, Paging, Standings

router = APIRouter(route_class=JsonRoute)


class NewUser(BaseModel):
    """Somebody who is to work for the tenant."""

    model_config = ConfigDict(extra="forbid")

    email: Email
    name: Annotated[str, Field(max_length=200)] = ""
    role: Role = "EDITOR"
    #: The subject of their tokens, for tokens without an address. A GLOBAL_ADMIN's to give.
    user_id: IdText | None = None


class UserChange(BaseModel):
    """Another name, or another role."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=200)] | None = None
    role: Role | None = None


class Access(BaseModel):
    """Whether somebody is let in."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool


async def managed(store: SiteStore, principal: Caller, pepper: Pepper) -> Users:
    """Return the people of a tenant, as the caller may manage them."""
    return Users(
        store,
        manager_id=principal.id,
        manager_email=principal.email,
        manager_issuer=principal.issuer or "",
        roles=principal.roles,
        pepper=pepper,
    )


def forget(request: Request, store: SiteStore) -> None:
    """Have the app look again where the people of a tenant stand."""
    cast(Standings, request.app.state.standings).forget(tenant_of(store))


Managed = Annotated[Users, Depends(managed)]


@router.get("/users", tags=["users"], **allow(*EDITORS))
async def list_users(users: Managed, paging: Paging) -> Page[UserSummary]:
    """List the people of the tenant."""
    return Page[UserSummary].of(await users.list(limit=paging.limit, cursor=paging.cursor))


@router.post("/users", status_code=201, tags=["users"], **allow(*ADMINS))
async def create_user(body: NewUser, users: Managed, store: SiteStore, request: Request) -> User:
    """Add somebody; an address that is here already is a 409."""
    made = await users.create(email=body.email, name=body.name, role=body.role, user_id=body.user_id)
    forget(request, store)
    return made


@router.get("/users/{user_id}", tags=["users"], **allow(*EDITORS))
async def get_user(user_id: Id, users: Managed) -> User:
    """Return somebody."""
    return await users.get(user_id)


@router.put("/users/{user_id}", tags=["users"], **allow(*ADMINS))
async def change_user(
    user_id: Id, body: UserChange, users: Managed, store: SiteStore, request: Request
) -> User:
    """Give somebody another name or another role; nobody changes their own role."""
    if (body.name is None) == (body.role is None):
        raise HTTPException(422, "Send a name or a role, one of the two.")
    if body.role is None:
        return await users.rename(user_id, body.name or "")
    stored = await users.set_role(user_id, body.role)
    forget(request, store)
    return stored


@router.put("/users/{user_id}/status", tags=["users"], **allow(*ADMINS))
async def set_access(user_id: Id, body: Access, users: Managed, store: SiteStore, request: Request) -> User:
    """Let somebody in, or keep them out; tokens that they have are refused from now on."""
    stored = await users.set_enabled(user_id, enabled=body.enabled)
    forget(request, store)
    return stored


@router.delete("/users/{user_id}", status_code=204, tags=["users"], **allow(*ADMINS))
async def delete_user(user_id: Id, users: Managed, store: SiteStore, request: Request) -> None:
    """Remove somebody; to keep out who still has tokens, disable them instead."""
    await users.delete(user_id)
    forget(request, store)


@router.get("/audit", tags=["audit"], **allow(*ADMINS))
async def list_audit(store: SiteStore, paging: Paging) -> Page[AuditSummary]:
    """List what was done, newest first."""
    return Page[AuditSummary].of(await Trail(store).list(limit=paging.limit, cursor=paging.cursor))
