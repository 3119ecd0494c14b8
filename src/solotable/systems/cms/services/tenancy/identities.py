"""Which users a token stands for. A subject is bound to its e-mail address at first sight, and stays bound.

A token may come without the address, or with another: it still stands for every user that its subject was
seen as. A token that is unbound and has no address is refused.
Bindings come from verified tokens only; no user can write one for another user.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from solotable import AsyncStore
from solotable.errors import AlreadyExists, DataError, VersionConflict
from solotable.systems.cms.entities.tenancy import Identity, User
from solotable.systems.cms.formats.email_addresses import digest, normalised, pseudonym
from solotable.systems.cms.services.visitors import tenant_of

#: What else a user may do who has a role: all that those with these may.
_WITHIN = {
    "CUSTOMER": {"CUSTOMER"},
    "RENDERER": {"RENDERER"},
    "EDITOR": {"EDITOR", "RENDERER"},
    "TENANT_ADMIN": {"TENANT_ADMIN", "EDITOR", "RENDERER", "CUSTOMER"},
    "GLOBAL_ADMIN": {"GLOBAL_ADMIN", "TENANT_ADMIN", "EDITOR", "RENDERER", "CUSTOMER"},
}
#: Addresses that one subject may be seen with. One more is refused, so that no old one is forgotten.
MOST_ADDRESSES = 8
_LONGEST_ID = 128
_ATTEMPTS = 10

#: What a token may do whose user is not on record: what it claims, or nothing.
UnknownUsers = Literal["claims", "refuse"]


class Identities:
    """The subjects of tokens and the users that they stand for, of one tenant."""

    def __init__(self, store: AsyncStore, *, pepper: bytes = b"") -> None:
        self._store = store
        self._pepper = pepper

    def user_id(self, email: str) -> str:
        """Return the id of the user with an address."""
        return pseudonym(tenant_of(self._store), email, self._pepper)

    async def known_ids(self, issuer: str, subject: str, email: str | None) -> set[str]:
        """Return the ids that a credential stands for, without binding anything."""
        found = await self._store.get(Identity, identity_id=self._identity_id(issuer, subject))
        return self._ids(found, subject, email)

    async def bind(self, issuer: str, subject: str, email: str | None) -> set[str] | None:
        """Return the ids that a verified token stands for, and bind its address; None refuses it."""
        identity_id, current = self._identity_id(issuer, subject), self._current(email)
        for attempt in range(1, _ATTEMPTS + 1):
            found = await self._store.get(Identity, identity_id=identity_id, consistent=attempt > 1)
            bound = [] if found is None else found.user_ids
            if current is None or current in bound:
                return self._ids(found, subject, None)
            if len(bound) >= MOST_ADDRESSES:
                return None
            try:
                if found is None:
                    await self._store.create(Identity(identity_id=identity_id, user_ids=[current]))
                else:
                    await self._store.update(found, set={"user_ids": [*bound, current]})
            except (AlreadyExists, VersionConflict):
                # Another process saw the subject at the same time.
                if attempt == _ATTEMPTS:
                    raise
            else:
                return self._ids(found, subject, email)
        raise AssertionError("the last attempt returns or raises")

    def _ids(self, found: Identity | None, subject: str, email: str | None) -> set[str]:
        ids = set() if found is None else set(found.user_ids)
        if len(subject) <= _LONGEST_ID:
            ids.add(subject)
        if (current := self._current(email)) is not None:
            ids.add(current)
        return ids

    def _identity_id(self, issuer: str, subject: str) -> str:
        return digest(tenant_of(self._store), f"{len(issuer)}:{issuer}{subject}", self._pepper)

    def _current(self, email: str | None) -> str | None:
        address = address_of(email)
        return None if address is None else self.user_id(address)


def address_of(email: str | None) -> str | None:
    """Return the one spelling of an address that others made; None for what is none."""
    try:
        return None if email is None else normalised(email)
    except DataError:
        return None


async def standing(  # noqa: PLR0913 - what a token says, and what an installation decides
    store: AsyncStore,
    subject: str,
    email: str | None,
    claimed: Collection[str],
    *,
    issuer: str = "",
    pepper: bytes = b"",
    unknown_users: UnknownUsers = "claims",
    binds: bool = True,
) -> frozenset[str] | None:
    """Return which of the roles that a token claims its user has in the store's tenant.

    None: the user is not on record, and the claims stand. Nothing: the user is kept out, or cannot be known.
    What the tenant has on record narrows a claim and never widens it. Without `binds` nothing is written: for
    a tenant that is not there, or not open.
    """
    identities = Identities(store, pepper=pepper)
    ids = await (identities.bind if binds else identities.known_ids)(issuer, subject, email)
    if not ids:
        return frozenset()
    found = await store.get_many(User, [{"user_id": each} for each in sorted(ids)])
    known = [user for user in found if user is not None]
    if not known:
        # Without an address the user may be one who is disabled.
        named = ids != {subject} and unknown_users == "claims"
        return None if named else frozenset()
    if not all(user.enabled for user in known):
        return frozenset()
    theirs = frozenset[str]().union(*(_WITHIN.get(role, {role}) for role in claimed))
    return theirs.intersection(*(_WITHIN[user.role] for user in known))
