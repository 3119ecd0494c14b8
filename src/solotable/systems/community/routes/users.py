"""`/api/user` and `/api/users`: the caller's own account, profiles, and their neighbourhoods."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query

from solotable.systems.community.entities.values import MemberStatus
from solotable.systems.community.identity.verification import EmailVerification
from solotable.systems.community.membership_lists import MembershipView
from solotable.systems.community.services.drafts import ProfilePatch
from solotable.systems.community.services.memberships import Memberships
from solotable.systems.community.services.users import OwnProfile, Profile, Users
from solotable.systems.errors import InvalidInput
from solotable.systems.openapi_examples import with_example
from solotable.systems.routes import ExpectedVersion, JsonRoute, set_etag
from solotable.web import Page

from .requests.access import allow
from .requests.dependencies import CallDep, DidPath, PagingDep, page_of
from .requests.rate_limits import limit_address
from .schemas.bodies import DidList, EmailAddress, EmailToken

router = APIRouter(
    prefix="/api", tags=["users"], route_class=JsonRoute, dependencies=[Depends(limit_address)]
)

#: One profile of the batch.
PROFILE_EXAMPLE = {"did": "did:plc:abc123", "display_name": "Alice", "profile_images": {"avatar": None}}
_Time = Annotated[datetime | None, Query(description="With a zone, as 2026-01-01T00:00:00Z.")]


def _users(call: CallDep) -> Users:
    return Users(call.db, now=call.settings.now)


@router.get("/user", **allow("user"))
async def get_own_profile(call: CallDep) -> OwnProfile:
    """Return the caller's profile, with their e-mail address."""
    found = OwnProfile.model_validate(call.client.user, from_attributes=True)
    return set_etag(call.response, found)


@router.put("/user", **allow("user"))
async def update_profile(patch: ProfilePatch, call: CallDep, version: ExpectedVersion) -> OwnProfile:
    """Change the given fields; null removes an optional one. A new address is not verified."""
    async with call.limited("profile_updates"):
        return set_etag(call.response, await _users(call).update(call.caller, patch, version=version))


@router.post("/user/email", status_code=202, **allow("user"))
async def send_email_proof(body: EmailAddress, call: CallDep) -> OwnProfile:
    """Store an address and send it a message; its token verifies the address within 24 hours."""
    if call.settings.mailer is None:
        raise HTTPException(404, "This community sends no e-mail.")
    async with call.limited("profile_updates"):
        return await _verification(call).start(call.caller, body.email)


@router.post("/user/email/verify", **allow("user"))
async def verify_email(body: EmailToken, call: CallDep) -> OwnProfile:
    """Verify the caller's address with the token of the message."""
    verified = await _verification(call).finish(body.token, did=call.did)
    return OwnProfile.model_validate(verified, from_attributes=True)


@router.get("/users", **allow("operator"))
async def list_users(
    call: CallDep, paging: PagingDep, created_from: _Time = None, created_until: _Time = None
) -> Page[OwnProfile]:
    """List users, newest first; with both times, those who were created in the period."""
    if (created_from is None) is not (created_until is None):
        raise InvalidInput("Give both created_from and created_until.")
    period = None
    if created_from is not None and created_until is not None:
        if created_from.tzinfo is None or created_until.tzinfo is None:
            raise InvalidInput("created_from and created_until need a zone, as 2026-01-01T00:00:00Z.")
        period = (created_from, created_until)
    name = ("users", created_from, created_until)
    page = await _users(call).list(
        call.caller, created=period, limit=paging.limit, cursor=paging.cursor(*name)
    )
    return page_of(page, paging.seal_next(page.cursor, *name))


@router.post("/users/batch", **with_example([PROFILE_EXAMPLE]), **allow("user"))
async def get_profiles(body: DidList, call: CallDep) -> list[Profile]:
    """Return up to 100 profiles in the given order, without those that do not exist."""
    return list(await _users(call).batch(call.caller, body.dids))


@router.get("/users/me/nbhds", **allow("user"))
async def list_own_neighbourhoods(
    call: CallDep, paging: PagingDep, status: MemberStatus = "active"
) -> Page[MembershipView]:
    """List the caller's neighbourhoods, the newest membership first; by status also requests."""
    name = ("nbhds", call.did, status)
    page = await Memberships(call.db, now=call.settings.now).of_user(
        call.caller, call.did, status=status, limit=paging.limit, cursor=paging.cursor(*name)
    )
    return page_of(page, paging.seal_next(page.cursor, *name))


@router.get("/users/{did}", **allow("user"))
async def get_profile(did: DidPath, call: CallDep) -> Profile:
    """Return a profile, without the e-mail address."""
    return await _users(call).get(call.caller, did)


@router.get("/users/{did}/nbhds", **allow("user"))
async def list_neighbourhoods_of_user(did: DidPath, call: CallDep, paging: PagingDep) -> Page[MembershipView]:
    """List the neighbourhoods of a user; private ones only if the caller is in them too."""
    name = ("nbhds", did)
    page = await Memberships(call.db, now=call.settings.now).of_user(
        call.caller, did, limit=paging.limit, cursor=paging.cursor(*name)
    )
    return page_of(page, paging.seal_next(page.cursor, *name))


def _verification(call: CallDep) -> EmailVerification:
    settings = call.settings
    return EmailVerification(
        call.db, call.state.email_proofs, settings.mailer, base_url=settings.base_url, now=settings.now
    )
