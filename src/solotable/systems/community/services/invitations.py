"""Invitations by code: the first user of a code becomes a member, also of a private neighbourhood."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from solotable import AsyncDatabase, Page
from solotable.errors import TransactionFailed
from solotable.systems.community.entities.neighbourhoods import Invitation, Membership, Neighbourhood
from solotable.systems.community.errors import AlreadyMember, Forbidden, InvitationOver
from solotable.systems.community.membership_changes import (
    MembershipChange,
    explain_failure,
    is_membership_conflict,
    next_membership,
)
from solotable.systems.community.roles import Caller

from .drafts import utc_now
from .neighbourhoods import membership_of

_OVER = "The invitation does not exist, was used or revoked, or has expired."


class InvitationTicket(BaseModel):
    """A new invitation; `code` is shown once and is not stored."""

    code: str
    expires_at: datetime | None


class Invitations:
    """The invitations of neighbourhoods."""

    def __init__(self, db: AsyncDatabase, *, now: Callable[[], datetime] = utc_now) -> None:
        self._db = db
        self._now = now

    async def create(
        self, caller: Caller, neighbourhood_id: str, *, role: Literal["admin", "member"] = "member"
    ) -> InvitationTicket:
        """Create an invitation for 14 days, as an admin; only the creator invites admins."""
        await self._db.require(Neighbourhood, neighbourhood_id=neighbourhood_id)
        actor = await self._require_admin(caller, neighbourhood_id)
        if role == "admin" and actor.role != "creator":
            raise Forbidden("Only the creator invites admins.")
        code = secrets.token_urlsafe(24)
        made = await self._db.create(
            Invitation(
                neighbourhood_id=neighbourhood_id,
                digest=digest_of(code),
                created_by=caller.require_user(),
                role=role,
            )
        )
        return InvitationTicket(code=code, expires_at=made.expires_at)

    async def accept(self, caller: Caller, neighbourhood_id: str, code: str) -> Membership:
        """Become a member with a code, which is used up; raises InvitationOver or AlreadyMember.

        A code ends when its maker is not an admin any more.
        """
        did, digest = caller.require_user(), digest_of(code)

        async def attempt() -> Membership:
            now = self._now()
            invitation, before = await self._db.get_many(
                Invitation.key(neighbourhood_id=neighbourhood_id, digest=digest),
                Membership.key(neighbourhood_id=neighbourhood_id, user_did=did),
                consistent=True,
            )
            if invitation is None:
                raise InvitationOver(_OVER)
            if before is not None and before.is_active:
                raise AlreadyMember("You are a member of this neighbourhood.")
            await self._check_maker(invitation)
            after = next_membership(
                before,
                neighbourhood_id=neighbourhood_id,
                user_did=did,
                status="active",
                role=invitation.role,
                now=now,
            )
            change = MembershipChange(
                before=before, after=after, kind="joined", actor_did=invitation.created_by
            )
            try:
                async with self._db.transaction() as tx:
                    # The condition lets one of two requests with the same code through.
                    tx.delete(invitation, where=lambda each: each.digest == digest)
                    return change.write(tx, now=now)
            except TransactionFailed as failed:
                if failed.failures and failed.failures[0].position == 0:
                    raise InvitationOver(_OVER) from failed
                raise explain_failure(failed) from failed

        return await self._db.retry_conflicts(attempt, when=is_membership_conflict)

    async def list(
        self, caller: Caller, neighbourhood_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Invitation]:
        """Return the invitations that are not used, for admins; the codes are not stored."""
        await self._require_admin(caller, neighbourhood_id)
        return await self._db.page(
            Invitation.of_neighbourhood(neighbourhood_id), limit=limit, cursor=cursor, unknown="skip"
        )

    async def revoke(self, caller: Caller, neighbourhood_id: str, digest: str) -> None:
        """Revoke an invitation by the digest in the list, as an admin, or raise InvitationOver."""
        await self._require_admin(caller, neighbourhood_id)
        gone = await self._db.delete(Invitation, neighbourhood_id=neighbourhood_id, digest=digest)
        if gone is None:
            raise InvitationOver(_OVER)

    async def _check_maker(self, invitation: Invitation) -> None:
        """Raise InvitationOver unless its maker could make it now, so that a removed admin stays out."""
        maker = await self._db.get(
            Membership,
            neighbourhood_id=invitation.neighbourhood_id,
            user_did=invitation.created_by,
            consistent=True,
        )
        if maker is None or not maker.is_admin or (invitation.role == "admin" and maker.role != "creator"):
            raise InvitationOver(_OVER)

    async def _require_admin(self, caller: Caller, neighbourhood_id: str) -> Membership:
        caller.require_user()
        member = await membership_of(self._db, caller, neighbourhood_id)
        if member is None or not member.is_admin:
            raise Forbidden("Only admins may do this.")
        return member


def digest_of(code: str) -> str:
    """Return the digest under which an invitation is stored."""
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()
