"""Users and their profiles: sign up, read, list and change them.

The e-mail address of a user is for that user, for operators, and for admins of the user's neighbourhoods.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from solotable import AsyncDatabase, Page
from solotable.errors import AlreadyExists, NotFound, NotUnique
from solotable.systems.community.entities.accounts import AccountDeletion
from solotable.systems.community.entities.users import ProfileImages, User
from solotable.systems.community.errors import AccountDeleted, NameTaken, name_taken
from solotable.systems.community.formats.names import normalise_handle
from solotable.systems.community.roles import Caller
from solotable.systems.errors import InvalidInput, validate
from solotable.systems.formats.email_addresses import normalise_email

from .drafts import ProfilePatch, utc_now

#: DynamoDB: a BatchGetItem reads at most 100 items (C2.12).
MAX_BATCH = 100
#: Two users may prove one handle in turn.
_ATTEMPTS = 5


class Profile(BaseModel):
    """What every caller sees of a user."""

    did: str
    bluesky_handle: str | None = None
    display_name: str
    bio: str = ""
    location: str = ""
    website: str | None = None
    profile_images: ProfileImages
    created_at: datetime | None = None


class ContactProfile(Profile):
    """What admins of a neighbourhood see of its members."""

    email: str | None = None
    email_verified: bool = False


class OwnProfile(ContactProfile):
    """What a user and operators see."""

    bluesky_did: str | None = None
    updated_at: datetime | None = None
    version: int


class Users:
    """The users of the community."""

    def __init__(self, db: AsyncDatabase, *, now: Callable[[], datetime] = utc_now) -> None:
        self._db = db
        self._now = now

    async def sign_in(
        self, did: str, *, handle: str | None = None, bluesky_did: str | None = None, display_name: str = ""
    ) -> User:
        """Return the user of a verified login; the first login creates the user.

        The provider has proven the handle: a user who had it before loses it. A deleted account keeps its
        handle until the purge, and the user has none until then. The display name stays.
        Raises AccountDeleted in the 30 days of grace, and NameTaken if another user has the `bluesky_did`.
        """
        name = None if handle is None else normalise_handle(handle)
        found = await self._db.get(User, did=did, consistent=True)
        if found is None:
            shown = display_name or (name or did)[:100]
            user = validate(
                User, did=did, bluesky_handle=name, bluesky_did=bluesky_did or did, display_name=shown
            )
            try:
                return await self._take_handle(self._db.create, user)
            except NameTaken:
                raise
            except AlreadyExists as error:
                return await self._existing(did, error)
        changes: dict[str, Any] = {}
        if name is not None and name != found.bluesky_handle:
            changes["bluesky_handle"] = name
        if bluesky_did is not None and bluesky_did != found.bluesky_did:
            changes["bluesky_did"] = bluesky_did
        if not changes:
            return found
        return await self._take_handle(self._db.put, found.model_copy(update=changes))

    async def get(self, caller: Caller, did: str) -> Profile | OwnProfile:
        """Return a profile with one GetItem (S2.12), or raise NotFound."""
        return view_of(caller, await self._db.require(User, did=did))

    async def by_handle(self, caller: Caller, handle: str) -> Profile | OwnProfile:
        """Return the profile of a handle (C2.10), or raise NotFound."""
        name = normalise_handle(handle)
        found = await self._db.first(User.with_handle(name), unknown="skip")
        if found is None:
            raise NotFound(f"User not found: bluesky_handle={name!r}.")
        return view_of(caller, found)

    async def batch(self, caller: Caller, dids: Sequence[str]) -> Sequence[Profile]:
        """Return the profiles of at most 100 users in their order (C2.12); unknown users are left out."""
        unique = list(dict.fromkeys(dids))
        if len(unique) > MAX_BATCH:
            raise InvalidInput(f"dids: has {len(unique)} users, more than {MAX_BATCH}.")
        found = await self._db.get_many(User, [{"did": did} for did in unique])
        return [view_of(caller, user) for user in found if user is not None]

    async def list(
        self,
        caller: Caller,
        *,
        created: tuple[datetime, datetime] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Profile]:
        """Return users, newest first (S2.13), or those of a period such as January (S2.8), for operators."""
        caller.require_operator()
        query = User.newest() if created is None else User.created_between(*created)
        page = await self._db.page(query, limit=limit, cursor=cursor, unknown="skip")
        shown: list[Profile] = [view_of(caller, user) for user in page]
        return Page(shown, page.cursor, page.scanned, previous=page.previous)

    async def update(self, caller: Caller, patch: ProfilePatch, *, version: int | None = None) -> OwnProfile:
        """Change the caller's profile, if `version` is the stored one."""
        changes = patch.given()
        did = caller.require_user()
        found = await self._db.require(User, did=did, consistent=True)
        if "email" in changes:
            email = changes["email"]
            changes["email"] = None if email is None else normalise_email(email)
            if changes["email"] != found.email:
                changes["email_verified"] = False
        if version is not None:
            changes["version"] = version
        with name_taken():
            stored = await self._db.put(found.model_copy(update=changes))
        return OwnProfile.model_validate(stored, from_attributes=True)

    async def verify_email(self, did: str, email: str) -> User:
        """Mark the address of a user as verified, if it is still that address."""
        address = normalise_email(email)

        def verify(user: User) -> User:
            if user.email != address:
                raise InvalidInput("email: is not the address of the user any more; ask for another message.")
            user.email_verified = True
            return user

        return await self._db.modify(User, verify, did=did)

    async def _take_handle(self, write: Callable[[User], Awaitable[User]], user: User) -> User:
        """Write a user; if another user has the handle, take it from them first."""
        for _ in range(_ATTEMPTS):
            try:
                return await write(user)
            except NotUnique as error:
                if error.field != "bluesky_handle":
                    raise NameTaken(error.field, str(error.value)) from error
                holder = await self._db.get(User, did=(error.holder or {}).get("did", ""), consistent=True)
                if holder is None:
                    user = user.model_copy(update={"bluesky_handle": None})
                elif holder.bluesky_handle == user.bluesky_handle:
                    await self._db.put(holder.model_copy(update={"bluesky_handle": None}))
        return await write(user.model_copy(update={"bluesky_handle": None}))

    async def _existing(self, did: str, error: AlreadyExists) -> User:
        """Return a user whom another request created, or raise AccountDeleted."""
        found = await self._db.get(User, did=did, consistent=True)
        if found is not None:
            return found
        waiting = await self._db.get(AccountDeletion, did=did, consistent=True)
        if waiting is not None:
            until = f"{waiting.due_at:%Y-%m-%d %H:%M} UTC"
            text = f"This account was deleted. Recover it until {until}, or wait for its purge."
            raise AccountDeleted(text, item=None) from error
        raise error


def view_of(caller: Caller, user: User) -> Profile | OwnProfile:
    """Return what a caller sees of a user."""
    is_private = caller.is_operator or caller.did == user.did
    return (OwnProfile if is_private else Profile).model_validate(user, from_attributes=True)
