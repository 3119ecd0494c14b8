"""Memberships: join, leave, invite, approve, change roles; members, neighbourhoods of a user, history.

| | visitor | user | member | admin | creator |
|---|---|---|---|---|---|
| join a public neighbourhood, ask to join a private one | | x | | | |
| see the members of a public neighbourhood | x | x | x | x | x |
| see the members of a private neighbourhood | | | x | x | x |
| invite | | | public ones | x | x |
| see requests, e-mail addresses and the history; approve | | | | x | x |
| change roles, remove members | | | | members | members and admins |
| hand over the neighbourhood | | | | | x |
| leave | | | x | x | after the handover |
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from pydantic import BaseModel

from solotable import AsyncDatabase, Page
from solotable.errors import NotFound, TransactionFailed
from solotable.systems.community.entities.neighbourhoods import (
    EventKind,
    Membership,
    MembershipEvent,
    Neighbourhood,
)
from solotable.systems.community.entities.users import User
from solotable.systems.community.entities.values import MemberStatus, Role
from solotable.systems.community.errors import AlreadyMember, Forbidden, LastAdmin, NotMember
from solotable.systems.community.formats.names import normalise_handle
from solotable.systems.community.membership_changes import (
    MembershipChange,
    explain_failure,
    is_membership_conflict,
    next_membership,
)
from solotable.systems.community.membership_lists import MembershipView, list_memberships
from solotable.systems.community.roles import Caller

from .drafts import utc_now
from .neighbourhoods import membership_of
from .users import ContactProfile, Profile


class MemberView(BaseModel):
    """A member in a list; `profile` is None for an account that is being deleted."""

    did: str
    role: Role
    status: MemberStatus
    joined_at: datetime | None = None
    profile: Profile | ContactProfile | None = None


#: The next status and role, and what the history says of it.
Step = tuple[MemberStatus, Role, EventKind]
#: From the stored membership and the neighbourhood to the next step; raises if it is not allowed.
Decision = Callable[[Membership | None, Neighbourhood], Step]


class Memberships:
    """Who is in which neighbourhood."""

    def __init__(self, db: AsyncDatabase, *, now: Callable[[], datetime] = utc_now) -> None:
        self._db = db
        self._now = now

    async def join(self, caller: Caller, neighbourhood_id: str) -> Membership:
        """Join a public neighbourhood, or accept an invitation; ask to join a private one (pending).

        Raises AlreadyMember if the caller is a member or has asked.
        """

        def decide(before: Membership | None, found: Neighbourhood) -> Step:
            if before is not None and before.is_active:
                raise AlreadyMember("You are a member of this neighbourhood.")
            if before is not None and before.status == "invited":
                return "active", before.role, "joined"
            if found.privacy == "public":
                return "active", "member", "joined"
            if before is not None and before.status == "pending":
                raise AlreadyMember("You asked to join; an admin has to approve it.")
            return "pending", "member", "requested"

        return await self._change(caller, neighbourhood_id, caller.require_user(), decide)

    async def leave(self, caller: Caller, neighbourhood_id: str) -> Membership:
        """Leave a neighbourhood, withdraw a request or decline an invitation.

        Raises NotMember, and LastAdmin for the creator and the last admin: hand it over first.
        """

        def decide(before: Membership | None, found: Neighbourhood) -> Step:
            if before is None or before.status == "left":
                raise NotMember("You are not a member of this neighbourhood.")
            if before.is_active and before.role == "creator":
                text = "The creator cannot leave; hand the neighbourhood over to another member first."
                raise LastAdmin(text, item=None)
            return "left", before.role, "left" if before.is_active else "declined"

        return await self._change(caller, neighbourhood_id, caller.require_user(), decide)

    async def invite(self, caller: Caller, neighbourhood_id: str, did: str) -> Membership:
        """Invite a user; one who has asked to join becomes a member."""
        inviter = await self._require_member(caller, neighbourhood_id)

        def decide(before: Membership | None, found: Neighbourhood) -> Step:
            if found.privacy == "private" and not inviter.is_admin:
                raise Forbidden("Only an admin invites to a private neighbourhood.")
            if before is not None and before.status in ("active", "invited"):
                raise AlreadyMember("The user is a member of this neighbourhood, or is invited.")
            if before is not None and before.status == "pending" and inviter.is_admin:
                return "active", "member", "joined"
            return "invited", "member", "invited"

        await self._db.require(User, did=did)
        return await self._change(caller, neighbourhood_id, did, decide)

    async def approve(self, caller: Caller, neighbourhood_id: str, did: str) -> Membership:
        """Approve a request to join, as an admin."""
        return await self._answer(caller, neighbourhood_id, did, "active", "joined")

    async def reject(self, caller: Caller, neighbourhood_id: str, did: str) -> Membership:
        """Reject a request to join, as an admin."""
        return await self._answer(caller, neighbourhood_id, did, "left", "declined")

    async def change_role(self, caller: Caller, neighbourhood_id: str, did: str, role: Role) -> Membership:
        """Change the role of a member; `creator` hands the neighbourhood over.

        Raises LastAdmin if no admin would be left, NotMember, or Forbidden.
        """
        if role == "creator":
            return await self._hand_over(caller, neighbourhood_id, did)
        actor = await self._require_admin(caller, neighbourhood_id)

        def decide(before: Membership | None, found: Neighbourhood) -> Step:
            if before is None or not before.is_active:
                raise NotMember("The user is not a member of this neighbourhood.")
            _check_target(actor, before)
            return "active", role, "role_changed"

        return await self._change(caller, neighbourhood_id, did, decide)

    async def remove(self, caller: Caller, neighbourhood_id: str, did: str) -> Membership:
        """Remove a member, an invitation or a request, as an admin."""
        actor = await self._require_admin(caller, neighbourhood_id)

        def decide(before: Membership | None, found: Neighbourhood) -> Step:
            if before is None or before.status == "left":
                raise NotMember("The user is not a member of this neighbourhood.")
            _check_target(actor, before)
            return "left", before.role, "removed"

        return await self._change(caller, neighbourhood_id, did, decide)

    async def members(
        self,
        caller: Caller,
        neighbourhood_id: str,
        *,
        status: MemberStatus = "active",
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[MemberView]:
        """Return the members of a neighbourhood (S2.14).

        Admins also see other statuses, and the e-mail addresses of members. A user who is invited, asks or
        has left is not a member: otherwise an invitation would show any address to any admin.
        """
        found = await self._db.require(Neighbourhood, neighbourhood_id=neighbourhood_id)
        member = await membership_of(self._db, caller, neighbourhood_id)
        is_admin = caller.is_operator or (member is not None and member.is_admin)
        is_inside = is_admin or (member is not None and member.is_active)
        if found.privacy == "private" and not is_inside:
            raise Forbidden("Only members see the members of a private neighbourhood.")
        if status != "active" and not is_admin:
            raise Forbidden("Only admins see requests and invitations.")
        with_email = caller.is_operator or (is_admin and status == "active")
        query = Membership.of_neighbourhood(neighbourhood_id).where(lambda each: each.status == status)
        page = await self._db.page(query, limit=limit, cursor=cursor, unknown="skip")
        users = await self._db.get_many(User, [{"did": each.user_did} for each in page])
        shown = [
            MemberView(
                did=each.user_did,
                role=each.role,
                status=each.status,
                joined_at=each.joined_at,
                profile=None if user is None else _profile(user, with_email=with_email),
            )
            for each, user in zip(page, users, strict=True)
        ]
        return Page(shown, page.cursor, page.scanned, previous=page.previous)

    async def member(self, caller: Caller, neighbourhood_id: str, did: str) -> Membership:
        """Return one member with one GetItem of the membership (S2.14), or raise NotMember."""
        found = await self._db.require(Neighbourhood, neighbourhood_id=neighbourhood_id)
        if found.privacy == "private" and caller.did != did and not caller.is_operator:
            await self._require_member(caller, neighbourhood_id)
        member = await self._db.get(Membership, neighbourhood_id=neighbourhood_id, user_did=did)
        if member is None or not member.is_active:
            raise NotMember("The user is not a member of this neighbourhood.")
        return member

    async def of_user(
        self,
        caller: Caller,
        did: str,
        *,
        status: MemberStatus = "active",
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[MembershipView]:
        """Return the neighbourhoods of a user, the newest membership first (S2.10).

        Other callers see public neighbourhoods, and private ones of which they are members themselves. Only
        the user sees requests and invitations. The memberships of a deleted account are hidden from others.
        """
        return await list_memberships(self._db, caller, did, status=status, limit=limit, cursor=cursor)

    async def of_handle(
        self, caller: Caller, handle: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[MembershipView]:
        """Return the neighbourhoods of the user with a handle (C2.10), or raise NotFound."""
        name = normalise_handle(handle)
        user = await self._db.first(User.with_handle(name), unknown="skip")
        if user is None:
            raise NotFound(f"User not found: bluesky_handle={name!r}.")
        return await self.of_user(caller, user.did, limit=limit, cursor=cursor)

    async def history(
        self, caller: Caller, neighbourhood_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[MembershipEvent]:
        """Return what happened to the memberships of a neighbourhood, newest first (S2.24), for admins."""
        if not caller.is_operator:
            await self._require_admin(caller, neighbourhood_id)
        return await self._db.page(
            MembershipEvent.of_neighbourhood(neighbourhood_id), limit=limit, cursor=cursor, unknown="skip"
        )

    async def history_of_user(
        self, caller: Caller, *, limit: int = 50, cursor: str | None = None
    ) -> Page[MembershipEvent]:
        """Return what happened to the memberships of the caller, newest first."""
        return await self._db.page(
            MembershipEvent.of_user(caller.require_user()), limit=limit, cursor=cursor, unknown="skip"
        )

    async def _answer(
        self, caller: Caller, neighbourhood_id: str, did: str, status: MemberStatus, kind: EventKind
    ) -> Membership:
        await self._require_admin(caller, neighbourhood_id)

        def decide(before: Membership | None, found: Neighbourhood) -> Step:
            if before is not None and before.is_active:
                raise AlreadyMember("The user is a member of this neighbourhood.")
            if before is None or before.status != "pending":
                raise NotMember("The user has not asked to join this neighbourhood.")
            return status, "member", kind

        return await self._change(caller, neighbourhood_id, did, decide)

    async def _hand_over(self, caller: Caller, neighbourhood_id: str, did: str) -> Membership:
        """Make another member the creator; the creator becomes an admin, in the same transaction."""

        async def attempt() -> Membership:
            now = self._now()
            found, heir, creator = await self._read_three(caller, neighbourhood_id, did)
            if creator is None or not creator.is_active or creator.role != "creator":
                raise Forbidden("Only the creator hands the neighbourhood over.")
            if heir is None or not heir.is_active:
                raise NotMember("The user is not a member of this neighbourhood.")
            if heir.user_did == creator.user_did:
                return heir
            changes: list[tuple[Membership, Role]] = [(heir, "creator"), (creator, "admin")]
            try:
                async with self._db.transaction() as tx:
                    tx.put(found.model_copy(update={"creator_did": did}))
                    stored = [
                        MembershipChange(
                            before=each,
                            after=each.model_copy(update={"role": role}),
                            kind="role_changed",
                            actor_did=caller.did,
                        ).write(tx, now=now)
                        for each, role in changes
                    ]
            except TransactionFailed as failed:
                raise explain_failure(failed) from failed
            return stored[0]

        return await self._db.retry_conflicts(attempt, when=is_membership_conflict)

    async def _read_three(
        self, caller: Caller, neighbourhood_id: str, did: str
    ) -> tuple[Neighbourhood, Membership | None, Membership | None]:
        """Return the neighbourhood, the membership of a user and that of the caller."""
        found = await self._db.require(Neighbourhood, neighbourhood_id=neighbourhood_id, consistent=True)
        heir = await self._db.get(
            Membership, neighbourhood_id=neighbourhood_id, user_did=did, consistent=True
        )
        return found, heir, await membership_of(self._db, caller, neighbourhood_id)

    async def _change(self, caller: Caller, neighbourhood_id: str, did: str, decide: Decision) -> Membership:
        """Read, decide and write; repeat it if another request changed the membership."""

        async def attempt() -> Membership:
            now = self._now()
            found, before = await self._db.get_many(
                Neighbourhood.key(neighbourhood_id=neighbourhood_id),
                Membership.key(neighbourhood_id=neighbourhood_id, user_did=did),
                consistent=True,
            )
            if found is None:
                raise NotFound("The neighbourhood does not exist.")
            status, role, kind = decide(before, found)
            if before is not None and (before.status, before.role) == (status, role):
                return before
            after = next_membership(
                before, neighbourhood_id=neighbourhood_id, user_did=did, status=status, role=role, now=now
            )
            change = MembershipChange(before=before, after=after, kind=kind, actor_did=caller.did)
            try:
                async with self._db.transaction() as tx:
                    return change.write(tx, now=now)
            except TransactionFailed as failed:
                raise explain_failure(failed) from failed

        return await self._db.retry_conflicts(attempt, when=is_membership_conflict)

    async def _require_member(self, caller: Caller, neighbourhood_id: str) -> Membership:
        caller.require_user()
        member = await membership_of(self._db, caller, neighbourhood_id)
        if member is None or not member.is_active:
            raise Forbidden("Only members may do this.")
        return member

    async def _require_admin(self, caller: Caller, neighbourhood_id: str) -> Membership:
        member = await self._require_member(caller, neighbourhood_id)
        if not member.is_admin:
            raise Forbidden("Only admins may do this.")
        return member


def _check_target(actor: Membership, target: Membership) -> None:
    """Raise unless an admin may change this member: admins change members, the creator also admins."""
    if not target.is_active or (target.user_did == actor.user_did and target.role != "creator"):
        return
    if target.role == "creator":
        text = "The creator keeps the role until they hand the neighbourhood over."
        raise LastAdmin(text, item=None)
    if target.role == "admin" and actor.role != "creator":
        raise Forbidden("Only the creator changes or removes an admin.")


def _profile(user: User, *, with_email: bool) -> Profile | ContactProfile:
    return (ContactProfile if with_email else Profile).model_validate(user, from_attributes=True)
