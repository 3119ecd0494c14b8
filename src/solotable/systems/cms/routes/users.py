"""`/users`, `/audit`: the people of a tenant, and what they did."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, ConfigDict, Field

from solotable.systems.cms.entities import AuditEvent, Role, User
from solotable.systems.cms.services import Trail, Users
from solotable.web import Caller, Page, Paging

from .access import ADMINS, EDITORS, allow
from .bounds import Email, JsonRoute
from .scope import Id, SiteStore

router = APIRouter(route_class=JsonRoute)


class NewUser(BaseModel):
    """Somebody who is to work for the tenant."""

    model_config = ConfigDict(extra="forbid")

    email: Email
    name: Annotated[str, Field(max_length=200)] = ""
    role: Role = "EDITOR"


class UserChange(BaseModel):
    """Another name, or another role."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=200)] | None = None
    role: Role | None = None


class Access(BaseModel):
    """Whether somebody is let in."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool


def managed(store: SiteStore, principal: Caller) -> Users:
    """Return the people of a tenant, as the caller may manage them."""
    return Users(store, manager_id=principal.id, manager_email=principal.email, roles=principal.roles)


@router.get("/users", tags=["users"], **allow(*EDITORS))
async def list_users(store: SiteStore, principal: Caller, paging: Paging) -> Page[User]:
    """List the people of the tenant."""
    found = await managed(store, principal).list(limit=paging.limit, cursor=paging.cursor)
    return Page[User].of(found)


@router.post("/users", status_code=201, tags=["users"], **allow(*ADMINS))
async def create_user(body: NewUser, store: SiteStore, principal: Caller) -> User:
    """Add somebody; an address that is here already is a 409."""
    return await managed(store, principal).create(email=body.email, name=body.name, role=body.role)


@router.get("/users/{user_id}", tags=["users"], **allow(*EDITORS))
async def get_user(user_id: Id, store: SiteStore, principal: Caller) -> User:
    """Return somebody."""
    return await managed(store, principal).get(user_id)


@router.put("/users/{user_id}", tags=["users"], **allow(*ADMINS))
async def change_user(user_id: Id, body: UserChange, store: SiteStore, principal: Caller) -> User:
    """Give somebody another name or another role; nobody changes their own role."""
    users = managed(store, principal)
    if (body.name is None) == (body.role is None):
        raise HTTPException(422, "Send a name or a role, one of the two.")
    if body.role is not None:
        return await users.set_role(user_id, body.role)
    return await users.rename(user_id, body.name or "")


@router.put("/users/{user_id}/status", tags=["users"], **allow(*ADMINS))
async def set_access(user_id: Id, body: Access, store: SiteStore, principal: Caller) -> User:
    """Let somebody in, or keep them out."""
    return await managed(store, principal).set_enabled(user_id, enabled=body.enabled)


@router.delete("/users/{user_id}", status_code=204, tags=["users"], **allow(*ADMINS))
async def delete_user(user_id: Id, store: SiteStore, principal: Caller) -> None:
    """Remove somebody."""
    await managed(store, principal).delete(user_id)


@router.get("/audit", tags=["audit"], **allow(*ADMINS))
async def list_audit(store: SiteStore, paging: Paging) -> Page[AuditEvent]:
    """List what was done, newest first."""
    return Page[AuditEvent].of(await Trail(store).list(limit=paging.limit, cursor=paging.cursor))
