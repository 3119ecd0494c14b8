"""`/v1/admin/users` and `/v1/jobs`, for administrators: users of the identity port, the expiry job."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict

from solotable import NotFound
from solotable.systems.portal.identity.directory import InvitationDraft, Profile
from solotable.systems.portal.roles import Role
from solotable.systems.portal.services.expiry import ExpiryReport
from solotable.systems.routes import JsonRoute
from solotable.web import Page

from .requests.access import CurrentCaller, allow_from, directory_of
from .requests.dependencies import PagingDep, page_envelope
from .requests.envelope import API, Envelope

router = APIRouter(prefix=API, tags=["admin"], route_class=JsonRoute)

UserPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_.@+-]{1,128}$", examples=["ann"])]


class Invitation(BaseModel):
    """An invited user; send them `/invitations/{link}`. The response shows it once."""

    user: Profile
    link: str


class NewRole(BaseModel):
    """The role to give a user."""

    model_config = ConfigDict(extra="forbid")

    role: Role


@router.get("/admin/users", **allow_from("Admin"))
async def list_users(request: Request, paging: PagingDep) -> Envelope[Page[Profile]]:
    """List users by their address."""
    page = await directory_of(request).page(limit=paging.limit, cursor=paging.cursor("users"))
    return page_envelope(request, page, paging.seal_next(page.cursor, "users"))


@router.post("/admin/users/invite", status_code=201, **allow_from("Admin", "writes"))
async def invite_user(draft: InvitationDraft, request: Request) -> Envelope[Invitation]:
    """Invite a person by their address; 409 if a user has it."""
    invited = await directory_of(request).invite(draft)
    return Envelope[Invitation].of(request, Invitation(user=invited.profile, link=invited.secret))


@router.get("/admin/users/{user_id}", **allow_from("Admin"))
async def get_user(user_id: UserPath, request: Request) -> Envelope[Profile]:
    """Return one user."""
    found = await directory_of(request).get(user_id)
    if found is None:
        raise NotFound(f"User not found: user_id={user_id!r}.")
    return Envelope[Profile].of(request, found)


@router.patch("/admin/users/{user_id}/role", **allow_from("Admin", "writes"))
async def change_role(
    user_id: UserPath, change: NewRole, request: Request, caller: CurrentCaller
) -> Envelope[Profile]:
    """Give a user another role, from their next request on."""
    stored = await directory_of(request).set_role(user_id, change.role, by=caller.user_id)
    return Envelope[Profile].of(request, stored)


@router.patch("/admin/users/{user_id}/enable", **allow_from("Admin", "writes"))
async def enable_user(user_id: UserPath, request: Request, caller: CurrentCaller) -> Envelope[Profile]:
    """Give a disabled user access again."""
    stored = await directory_of(request).set_enabled(user_id, enabled=True, by=caller.user_id)
    return Envelope[Profile].of(request, stored)


@router.patch("/admin/users/{user_id}/disable", **allow_from("Admin", "writes"))
async def disable_user(user_id: UserPath, request: Request, caller: CurrentCaller) -> Envelope[Profile]:
    """Take a user's access away at once, with all sessions and tokens."""
    stored = await directory_of(request).set_enabled(user_id, enabled=False, by=caller.user_id)
    return Envelope[Profile].of(request, stored)


@router.post("/jobs/expire", **allow_from("Admin", "writes"))
async def run_expiry(request: Request) -> Envelope[ExpiryReport]:
    """Expire the content whose date has passed; a second run finds nothing."""
    report = await asyncio.to_thread(request.app.state.workers.expire)
    return Envelope[ExpiryReport].of(request, report)
