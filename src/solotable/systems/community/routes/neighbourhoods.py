"""`/api/neighborhoods`: neighbourhoods, their members, requests and invitations."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Response

from solotable.systems.community.entities.neighbourhoods import Membership, MembershipEvent
from solotable.systems.community.entities.values import MemberStatus
from solotable.systems.community.services.drafts import NeighbourhoodDraft, NeighbourhoodPatch
from solotable.systems.community.services.invitations import Invitations, InvitationTicket
from solotable.systems.community.services.memberships import Memberships, MemberView
from solotable.systems.community.services.neighbourhoods import Neighbourhoods, NeighbourhoodView
from solotable.systems.routes import PUBLIC, ExpectedVersion, JsonRoute, set_etag
from solotable.web import Page

from .requests.access import allow
from .requests.dependencies import (
    CallDep,
    DidPath,
    NeighbourhoodPath,
    PagingDep,
    PublicCallDep,
    PublicPagingDep,
    page_of,
)
from .requests.rate_limits import limit_address
from .schemas.bodies import (
    InvitationCode,
    InvitationDraft,
    InvitationSummary,
    JoinResult,
    MemberChange,
    MemberInvitation,
)

API = "/api/neighborhoods"
router = APIRouter(
    prefix=API, tags=["neighbourhoods"], route_class=JsonRoute, dependencies=[Depends(limit_address)]
)

_DigestPath = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", examples=["5f1d" * 16])]


def _services(call: CallDep) -> Neighbourhoods:
    return Neighbourhoods(call.db, now=call.settings.now)


def _memberships(call: CallDep) -> Memberships:
    return Memberships(call.db, now=call.settings.now)


def _invitations(call: CallDep) -> Invitations:
    return Invitations(call.db, now=call.settings.now)


@router.get("", **PUBLIC)
async def list_neighbourhoods(call: PublicCallDep, paging: PublicPagingDep) -> Page[NeighbourhoodView]:
    """List public neighbourhoods, newest first; a private one is in no list."""
    page = await _services(call).list(limit=paging.limit, cursor=paging.cursor("neighbourhoods"))
    return page_of(page, paging.seal_next(page.cursor, "neighbourhoods"))


@router.post("", status_code=201, **allow("user"))
async def create_neighbourhood(draft: NeighbourhoodDraft, call: CallDep) -> NeighbourhoodView:
    """Create a neighbourhood; the caller is its creator. 409 if the name is taken."""
    async with call.limited("neighbourhoods"):
        created = await _services(call).create(call.caller, draft)
    call.response.headers["location"] = f"{API}/{created.id}"
    return set_etag(call.response, created)


@router.get("/{neighbourhood_id}", **PUBLIC)
async def get_neighbourhood(neighbourhood_id: NeighbourhoodPath, call: PublicCallDep) -> NeighbourhoodView:
    """Return a neighbourhood; of a private one, visitors see the name only."""
    return set_etag(call.response, await _services(call).get(call.caller, neighbourhood_id))


@router.put("/{neighbourhood_id}", **allow("admin"))
async def update_neighbourhood(
    neighbourhood_id: NeighbourhoodPath, patch: NeighbourhoodPatch, call: CallDep, version: ExpectedVersion
) -> NeighbourhoodView:
    """Change the given fields. `If-Match` names the version to change."""
    stored = await _services(call).update(call.caller, neighbourhood_id, patch, version=version)
    return set_etag(call.response, stored)


@router.delete("/{neighbourhood_id}", status_code=204, **allow("creator"))
async def delete_neighbourhood(neighbourhood_id: NeighbourhoodPath, call: CallDep) -> None:
    """Delete a neighbourhood."""
    await _services(call).delete(call.caller, neighbourhood_id)


@router.get("/{neighbourhood_id}/members", **PUBLIC)
async def list_members(
    neighbourhood_id: NeighbourhoodPath,
    call: PublicCallDep,
    paging: PublicPagingDep,
    status: Annotated[MemberStatus, Query(description="Others than `active` are for admins.")] = "active",
) -> Page[MemberView]:
    """List members; of a private neighbourhood for members only. Admins see e-mail addresses."""
    name = ("members", neighbourhood_id, status)
    page = await _memberships(call).members(
        call.caller, neighbourhood_id, status=status, limit=paging.limit, cursor=paging.cursor(*name)
    )
    return page_of(page, paging.seal_next(page.cursor, *name))


@router.post(
    "/{neighbourhood_id}/join",
    status_code=201,
    responses={202: {"description": "The request waits for an admin.", "model": JoinResult}},
    **allow("user"),
)
async def join_neighbourhood(
    neighbourhood_id: NeighbourhoodPath, call: CallDep, code: InvitationCode | None = None
) -> JoinResult:
    """Join a public neighbourhood, or use an invitation (201); ask to join a private one (202).

    409 if the caller is a member, or has asked.
    """
    if code is not None:
        member = await _invitations(call).accept(call.caller, neighbourhood_id, code.code)
    else:
        member = await _memberships(call).join(call.caller, neighbourhood_id)
    if member.status == "pending":
        call.response.status_code = 202
    return JoinResult.of(member)


@router.delete("/{neighbourhood_id}/leave", status_code=204, **allow("user"))
async def leave_neighbourhood(neighbourhood_id: NeighbourhoodPath, call: CallDep) -> None:
    """Leave a neighbourhood; 404 if the caller is not in it, 409 for the last admin."""
    await _memberships(call).leave(call.caller, neighbourhood_id)


@router.put("/{neighbourhood_id}/members/{did}", **allow("admin"))
async def change_member(
    neighbourhood_id: NeighbourhoodPath, did: DidPath, change: MemberChange, call: CallDep
) -> JoinResult:
    """Change a role, or approve a request by the status `active`; `creator` hands the neighbourhood over."""
    services = _memberships(call)
    member: Membership | None = None
    if change.status == "active":
        member = await services.approve(call.caller, neighbourhood_id, did)
    if change.role is not None:
        member = await services.change_role(call.caller, neighbourhood_id, did, change.role)
    assert member is not None  # the body has one of both
    return JoinResult.of(member)


@router.delete("/{neighbourhood_id}/members/{did}", status_code=204, **allow("admin"))
async def remove_member(neighbourhood_id: NeighbourhoodPath, did: DidPath, call: CallDep) -> None:
    """Remove a member, a request or an invitation of a user."""
    await _memberships(call).remove(call.caller, neighbourhood_id, did)


@router.post("/{neighbourhood_id}/members", status_code=201, **allow("member"))
async def invite_member(
    neighbourhood_id: NeighbourhoodPath, invited: MemberInvitation, call: CallDep
) -> JoinResult:
    """Invite a user by their DID, or approve their request."""
    return JoinResult.of(await _memberships(call).invite(call.caller, neighbourhood_id, invited.did))


@router.get("/{neighbourhood_id}/history", **allow("admin"))
async def list_history(
    neighbourhood_id: NeighbourhoodPath, call: CallDep, paging: PagingDep
) -> Page[MembershipEvent]:
    """List who joined, left and changed their role, newest first."""
    name = ("history", neighbourhood_id)
    page = await _memberships(call).history(
        call.caller, neighbourhood_id, limit=paging.limit, cursor=paging.cursor(*name)
    )
    return page_of(page, paging.seal_next(page.cursor, *name))


@router.get("/{neighbourhood_id}/invitations", **allow("admin"))
async def list_invitations(
    neighbourhood_id: NeighbourhoodPath, call: CallDep, paging: PagingDep
) -> Page[InvitationSummary]:
    """List the invitations that are not used; their codes are not stored."""
    name = ("invitations", neighbourhood_id)
    page = await _invitations(call).list(
        call.caller, neighbourhood_id, limit=paging.limit, cursor=paging.cursor(*name)
    )
    shown = page_of(page, paging.seal_next(page.cursor, *name))
    shown.items = [InvitationSummary.model_validate(each, from_attributes=True) for each in shown.items]
    return shown


@router.post("/{neighbourhood_id}/invitations", status_code=201, **allow("admin"))
async def create_invitation(
    neighbourhood_id: NeighbourhoodPath, draft: InvitationDraft, call: CallDep
) -> InvitationTicket:
    """Create a code that makes one user a member; the response shows it once."""
    role: Literal["admin", "member"] = draft.role
    return await _invitations(call).create(call.caller, neighbourhood_id, role=role)


@router.delete("/{neighbourhood_id}/invitations/{digest}", status_code=204, **allow("admin"))
async def revoke_invitation(
    neighbourhood_id: NeighbourhoodPath, digest: _DigestPath, call: CallDep
) -> Response:
    """Revoke an invitation."""
    await _invitations(call).revoke(call.caller, neighbourhood_id, digest)
    return Response(status_code=204)
