"""`/users`, `/audit`: the users of a tenant, and its audit trail."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Depends, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field

from solotable.systems.cms.entities import AuditSummary, Role, User, UserSummary
from solotable.systems.cms.routes.access import ADMINS, EDITORS
from solotable.systems.cms.routes.body_limits import Email, IdText
from solotable.systems.cms.routes.dependencies import ActiveStore, Pepper
from solotable.systems.cms.services import AuditTrail, Users
from solotable.systems.cms.services.visitors import tenant_of
from solotable.systems.routes import Id, JsonRoute, allow
from solotable.web import CurrentPrincipal, CurrentRoles, Page, Paging

router = APIRouter(route_class=JsonRoute)


class NewUser(BaseModel):
    """A new user of the tenant."""

    model_config = ConfigDict(extra="forbid")

    email: Email
    name: Annotated[str, Field(max_length=200)] = ""
    role: Role = "EDITOR"
    #: The subject of the user's tokens, for tokens without an address. Only a GLOBAL_ADMIN may set it.
    user_id: IdText | None = None


class UserChange(BaseModel):
    """A change of a user's name or role."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=200)] | None = None
    role: Role | None = None


class AccessChange(BaseModel):
    """A change of a user's access."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool


async def get_users(store: ActiveStore, principal: CurrentPrincipal, pepper: Pepper) -> Users:
    """Return the users of the tenant, with the caller as their manager."""
    return Users(
        store,
        manager_id=principal.id,
        manager_email=principal.email,
        manager_issuer=principal.issuer or "",
        roles=principal.roles,
        pepper=pepper,
    )


def forget_roles(request: Request, store: ActiveStore) -> None:
    """Forget the cached roles in a tenant."""
    cast(CurrentRoles, request.app.state.current_roles).forget(tenant_of(store))


UsersDep = Annotated[Users, Depends(get_users)]


@router.get("/users", tags=["users"], **allow(*EDITORS))
async def list_users(users: UsersDep, paging: Paging) -> Page[UserSummary]:
    """List the users of the tenant."""
    return Page[UserSummary].of(await users.list(limit=paging.limit, cursor=paging.cursor))


@router.post("/users", status_code=201, tags=["users"], **allow(*ADMINS))
async def create_user(body: NewUser, users: UsersDep, store: ActiveStore, request: Request) -> User:
    """Add a user; 409 if another user has the address."""
    created = await users.create(email=body.email, name=body.name, role=body.role, user_id=body.user_id)
    forget_roles(request, store)
    return created


@router.get("/users/{user_id}", tags=["users"], **allow(*EDITORS))
async def get_user(user_id: Id, users: UsersDep) -> User:
    """Return a user."""
    return await users.get(user_id)


@router.put("/users/{user_id}", tags=["users"], **allow(*ADMINS))
async def change_user(
    user_id: Id, body: UserChange, users: UsersDep, store: ActiveStore, request: Request
) -> User:
    """Change the name or the role of a user; a user cannot change their own role."""
    if (body.name is None) == (body.role is None):
        raise HTTPException(422, "Send either a name or a role.")
    if body.role is None:
        return await users.rename(user_id, body.name or "")
    stored = await users.set_role(user_id, body.role)
    forget_roles(request, store)
    return stored


@router.put("/users/{user_id}/status", tags=["users"], **allow(*ADMINS))
async def set_access(
    user_id: Id, body: AccessChange, users: UsersDep, store: ActiveStore, request: Request
) -> User:
    """Enable or disable a user; the tokens of a disabled user are rejected."""
    stored = await users.set_enabled(user_id, enabled=body.enabled)
    forget_roles(request, store)
    return stored


@router.delete("/users/{user_id}", status_code=204, tags=["users"], **allow(*ADMINS))
async def delete_user(user_id: Id, users: UsersDep, store: ActiveStore, request: Request) -> None:
    """Delete a user; disable a user instead to reject their tokens."""
    await users.delete(user_id)
    forget_roles(request, store)


@router.get("/audit", tags=["audit"], **allow(*ADMINS))
async def list_audit(store: ActiveStore, paging: Paging) -> Page[AuditSummary]:
    """List audit events, newest first."""
    return Page[AuditSummary].of(await AuditTrail(store).list(limit=paging.limit, cursor=paging.cursor))
