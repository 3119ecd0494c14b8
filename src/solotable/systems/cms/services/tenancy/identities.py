"""The users of a token: its subject is bound to its e-mail address at first sight, and stays bound.

A later token may have another address, or none: it still belongs to every user that its subject was bound to.
A token without a binding and without an address is rejected. Only verified tokens write bindings.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from solotable import AsyncStore
from solotable.errors import DataError
from solotable.systems.cms.entities.tenancy import Identity, User
from solotable.systems.cms.services.visitors import tenant_of
from solotable.systems.formats.email_addresses import digest, normalise_email, pseudonym

#: The roles that a role includes.
_INCLUDED = {
    "CUSTOMER": {"CUSTOMER"},
    "RENDERER": {"RENDERER"},
    "EDITOR": {"EDITOR", "RENDERER"},
    "TENANT_ADMIN": {"TENANT_ADMIN", "EDITOR", "RENDERER", "CUSTOMER"},
    "GLOBAL_ADMIN": {"GLOBAL_ADMIN", "TENANT_ADMIN", "EDITOR", "RENDERER", "CUSTOMER"},
}
#: The addresses of one subject. A token with one more is rejected, so that no binding is lost.
MAX_ADDRESSES = 8
_MAX_ID = 128

#: The roles of a token whose user the tenant does not have: those that it claims, or none.
UnknownUsers = Literal["claims", "reject"]


class Identities:
    """The subjects of tokens and their users, of one tenant."""

    def __init__(self, store: AsyncStore, *, pepper: bytes = b"") -> None:
        self._store = store
        self._pepper = pepper

    def user_id(self, email: str) -> str:
        """Return the id of the user with this address."""
        return pseudonym(tenant_of(self._store), email, self._pepper)

    async def known_ids(self, issuer: str, subject: str, email: str | None) -> set[str]:
        """Return the ids of a credential, without a binding."""
        found = await self._store.get(Identity, identity_id=self._identity_id(issuer, subject))
        return self._ids(found, subject, email)

    async def bind(self, issuer: str, subject: str, email: str | None) -> set[str] | None:
        """Return the ids of a verified token, and bind its address; None to reject the token."""
        identity_id, user_id = self._identity_id(issuer, subject), self._user_id_of(email)
        if user_id is None:
            return await self.known_ids(issuer, subject, None)

        def add(identity: Identity) -> Identity | None:
            bound = identity.user_ids
            if user_id in bound or len(bound) >= MAX_ADDRESSES:
                return None
            return identity.model_copy(update={"user_ids": [*bound, user_id]})

        new = Identity(identity_id=identity_id, user_ids=[])
        stored = await self._store.modify(Identity, add, default=new, identity_id=identity_id)
        return self._ids(stored, subject, None) if user_id in stored.user_ids else None

    def _ids(self, found: Identity | None, subject: str, email: str | None) -> set[str]:
        ids = set() if found is None else set(found.user_ids)
        if len(subject) <= _MAX_ID:
            ids.add(subject)
        if (user_id := self._user_id_of(email)) is not None:
            ids.add(user_id)
        return ids

    def _identity_id(self, issuer: str, subject: str) -> str:
        return digest(tenant_of(self._store), f"{len(issuer)}:{issuer}{subject}", self._pepper)

    def _user_id_of(self, email: str | None) -> str | None:
        address = normalise_claim(email)
        return None if address is None else self.user_id(address)


def normalise_claim(email: str | None) -> str | None:
    """Return the normal form of a claimed address; None if it is not an address."""
    try:
        return None if email is None else normalise_email(email)
    except DataError:
        return None


async def current_roles(  # noqa: PLR0913 - the claims of a token, and the options of an installation
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
    """Return the claimed roles that a token's user has in the store's tenant.

    None: the tenant does not have the user, and the claims count. Empty: the user is disabled, or cannot be
    identified. The tenant's record narrows the claims and never widens them. Without `binds` nothing is
    written, for a tenant that does not exist or is not active.
    """
    identities = Identities(store, pepper=pepper)
    ids = await (identities.bind if binds else identities.known_ids)(issuer, subject, email)
    if not ids:
        return frozenset()
    found = await store.get_many(User, [{"user_id": each} for each in sorted(ids)])
    known = [user for user in found if user is not None]
    if not known:
        # Without an address the user may be a disabled one.
        has_address = ids != {subject} and unknown_users == "claims"
        return None if has_address else frozenset()
    if not all(user.enabled for user in known):
        return frozenset()
    allowed = frozenset[str]().union(*(_INCLUDED.get(role, {role}) for role in claimed))
    return allowed.intersection(*(_INCLUDED[user.role] for user in known))
