"""The identity port, and the local provider that keeps users in a table.

`Directory` is what routes and pages call. Implement it for your identity provider, or use `LocalDirectory`.
Every request reads the user, so a user who is disabled or loses a role is rejected at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from solotable import AsyncDatabase, NotFound, Page, new_id
from solotable.errors import ConditionFailed
from solotable.systems.errors import unwrap_failure, validate
from solotable.systems.portal.roles import Caller, Role

from .passwords import check_strength, hash_password, verify_password
from .users import Email, PersonName, User

INVITATION_DAYS = 7


class OwnAccount(ConditionFailed):
    """Administrators do not disable or demote themselves, so that one remains."""

    def __init__(self) -> None:
        super().__init__("You cannot change your own role or access; ask another administrator.", item=None)


class Profile(BaseModel):
    """A user as administrators see them; never a password or a secret."""

    user_id: str
    email: str
    name: str
    role: Role
    enabled: bool
    #: Whether the user has accepted the invitation.
    active: bool

    def caller(self) -> Caller:
        """Return the caller of this user's requests."""
        return Caller(user_id=self.user_id, name=self.name, role=self.role)


class InvitationDraft(BaseModel):
    """A person to invite."""

    model_config = ConfigDict(extra="forbid")

    email: Email
    name: PersonName
    role: Role = "Viewer"


@dataclass(frozen=True, slots=True)
class Invited:
    """An invited user, and the secret of the link to send them; the directory keeps its digest only."""

    profile: Profile
    secret: str


class Directory(Protocol):
    """Users and their roles. Every method but `get` and `page` is for administrators."""

    async def get(self, user_id: str) -> Profile | None:
        """Return a user as they are now; None for an unknown one."""

    async def page(self, *, limit: int = 50, cursor: str | None = None) -> Page[Profile]:
        """Return users by their address."""

    async def invite(self, draft: InvitationDraft) -> Invited:
        """Create a user with an invitation, or raise NotUnique for a known address."""

    async def set_role(self, user_id: str, role: Role, *, by: str) -> Profile:
        """Change a role, or raise NotFound or OwnAccount."""

    async def set_enabled(self, user_id: str, *, enabled: bool, by: str) -> Profile:
        """Give or take away access; both end all sessions of the user."""


class LocalDirectory:
    """Users in the table `portal_users`, with invitations and passwords."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db

    async def get(self, user_id: str) -> Profile | None:
        """Return a user, read consistently: a disabled user must not pass."""
        found = await self._db.get(User, user_id=user_id, consistent=True)
        return None if found is None else _profile(found)

    async def page(self, *, limit: int = 50, cursor: str | None = None) -> Page[Profile]:
        """Return users by their address."""
        found = await self._db.page(User.listed(), limit=limit, cursor=cursor)
        return Page([_profile(each) for each in found.items], found.cursor, found.scanned)

    async def invite(self, draft: InvitationDraft) -> Invited:
        """Create a user who can sign in after they accepted the invitation."""
        user_id = new_id().lower()
        secret = secrets.token_urlsafe(32)
        user = validate(
            User,
            user_id=user_id,
            email=draft.email.lower(),
            name=draft.name,
            role=draft.role,
            invitation=_digest(secret),
            invited_until=self._now() + timedelta(days=INVITATION_DAYS),
        )
        with unwrap_failure():
            created = await self._db.create(user)
        return Invited(_profile(created), f"{user_id}.{secret}")

    async def add(
        self, user_id: str, draft: InvitationDraft, *, password: str | None = None, n: int | None = None
    ) -> Profile:
        """Create a user without an invitation, for example the first administrator."""
        hashed = None if password is None else hash_password(password, **({} if n is None else {"n": n}))
        user = validate(User, user_id=user_id, **(dict(draft) | {"email": draft.email.lower()}))
        with unwrap_failure():
            return _profile(await self._db.create(user.model_copy(update={"password": hashed})))

    async def set_password(self, user_id: str, password: str) -> Profile:
        """Replace a password, and end all sessions of the user."""
        check_strength(password)
        current = await self._db.require(User, user_id=user_id, consistent=True)
        hashed = await asyncio.to_thread(hash_password, password)
        stored = await self._db.update(
            User,
            user_id=user_id,
            version=current.version,
            set={"password": hashed},
            add={"generation": 1},
            remove=["invitation", "invited_until"],
        )
        return _profile(stored)

    async def set_role(self, user_id: str, role: Role, *, by: str) -> Profile:
        """Change a role."""
        return await self._change(user_id, by, {"role": role})

    async def set_enabled(self, user_id: str, *, enabled: bool, by: str) -> Profile:
        """Give or take away access, and end all sessions of the user."""
        return await self._change(user_id, by, {"enabled": enabled}, ends_sessions=True)

    async def invited(self, link: str) -> Profile:
        """Return the user of an invitation, or raise NotFound for a used, changed or expired one."""
        return _profile(await self._invited(link))

    async def accept(self, link: str, password: str) -> Profile:
        """Set the password of an invited user; the invitation ends."""
        check_strength(password)
        found = await self._invited(link)
        hashed = await asyncio.to_thread(hash_password, password)
        stored = await self._db.update(
            User,
            user_id=found.user_id,
            version=found.version,
            set={"password": hashed},
            remove=["invitation", "invited_until"],
        )
        return _profile(stored)

    async def verify(self, email: str, password: str) -> Profile | None:
        """Return the enabled user with this address and password; None for any mistake."""
        found = await self._db.first(User.with_email(email.strip().lower()))
        stored = None if found is None or not found.enabled else found.password
        # An unknown address takes as long as a wrong password, so that the time reveals no address.
        verified = await asyncio.to_thread(verify_password, password, stored)
        return _profile(found) if verified and found is not None else None

    async def _invited(self, link: str) -> User:
        user_id, _, secret = link.partition(".")
        found = await self._db.get(User, user_id=user_id, consistent=True)
        given = _digest(secret)
        if (
            found is None
            or not found.enabled
            or found.invitation is None
            or not hmac.compare_digest(found.invitation, given)
            or found.invited_until is None
            or found.invited_until <= self._now()
        ):
            raise NotFound("This invitation does not exist, has expired or was used.")
        return found

    async def _change(
        self, user_id: str, by: str, change: dict[str, object], *, ends_sessions: bool = False
    ) -> Profile:
        if user_id == by:
            raise OwnAccount
        current = await self._db.require(User, user_id=user_id, consistent=True)
        stored = await self._db.update(
            User,
            user_id=user_id,
            version=current.version,
            set=change,
            add={"generation": 1} if ends_sessions else {},
        )
        return _profile(stored)

    def _now(self) -> datetime:
        return datetime.now(UTC)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _profile(user: User) -> Profile:
    return Profile(
        user_id=user.user_id,
        email=user.email,
        name=user.name,
        role=user.role,
        enabled=user.enabled,
        active=user.password is not None,
    )
