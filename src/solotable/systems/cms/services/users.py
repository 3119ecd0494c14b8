"""The people of a tenant and their roles: nobody changes their own role, or manages a higher one.

Somebody is found by one read: their id is the subject of their tokens, where that is known, and otherwise
follows from their address.
"""

from __future__ import annotations

from collections.abc import Collection

from solotable import AsyncStore, Page
from solotable.errors import DataError
from solotable.systems.cms.entities.tenancy import Role, User
from solotable.systems.cms.identity import normalised, pseudonym
from solotable.systems.cms.refusals import Refused, made

from .visitors import tenant_of

#: Who may do more stands higher; RENDERER is no person's role.
RANKS = {"CUSTOMER": 0, "EDITOR": 1, "TENANT_ADMIN": 2, "GLOBAL_ADMIN": 3}
#: What else somebody may do who has a role: all that those with these may.
_WITHIN = {
    "CUSTOMER": {"CUSTOMER"},
    "RENDERER": {"RENDERER"},
    "EDITOR": {"EDITOR", "RENDERER"},
    "TENANT_ADMIN": {"TENANT_ADMIN", "EDITOR", "RENDERER", "CUSTOMER"},
    "GLOBAL_ADMIN": {"GLOBAL_ADMIN", "TENANT_ADMIN", "EDITOR", "RENDERER", "CUSTOMER"},
}
_LONGEST_ID = 128


class Forbidden(Refused):
    """Somebody may not do this to somebody else; nothing was written."""


def rank(roles: Collection[str]) -> int:
    """Return how high the highest of some roles stands; -1 for none."""
    return max((RANKS.get(role, -1) for role in roles), default=-1)


async def standing(
    store: AsyncStore, subject: str, email: str | None, claimed: Collection[str], *, pepper: bytes = b""
) -> frozenset[str] | None:
    """Return which of the roles that somebody claims are theirs in the store's tenant, by one read.

    None: they are not among the tenant's people. Nothing: they are kept out, or claim nothing of theirs.
    What the tenant has on record narrows a claim and never widens it.
    """
    ids = {subject} if len(subject) <= _LONGEST_ID else set()
    if (address := _address(email)) is not None:
        ids.add(_id_of(store, address, pepper))
    keys = [{"user_id": each} for each in sorted(ids)]
    known = [user for user in await store.get_many(User, keys) if user is not None] if keys else []
    if not known:
        return None
    if not all(user.enabled for user in known):
        return frozenset()
    theirs = frozenset[str]().union(*(_WITHIN.get(role, {role}) for role in claimed))
    return theirs.intersection(*(_WITHIN[user.role] for user in known))


def _address(email: str | None) -> str | None:
    """Return the one spelling of an address that others made; None for what is none."""
    try:
        return None if email is None else normalised(email)
    except DataError:
        return None


def _id_of(store: AsyncStore, email: str, pepper: bytes) -> str:
    return pseudonym(tenant_of(store), email, pepper)


class Users:
    """The people of one tenant, as somebody with these roles manages them."""

    def __init__(
        self,
        store: AsyncStore,
        *,
        manager_id: str,
        roles: Collection[str],
        manager_email: str | None = None,
        pepper: bytes = b"",
    ) -> None:
        self._store = store
        self._manager_id = manager_id
        self._manager_email = _address(manager_email)
        self._rank = rank(roles)
        self._pepper = pepper

    async def create(
        self, *, email: str, name: str = "", role: Role = "EDITOR", user_id: str | None = None
    ) -> User:
        """Add somebody; AlreadyExists or NotUnique if they or their address are here already.

        `user_id` is the subject of their tokens; without it they are known by their address.
        """
        self._judge(role)
        id = user_id or _id_of(self._store, email, self._pepper)  # noqa: A001 - as entities name it
        return await self._store.create(made(User, user_id=id, email=normalised(email), name=name, role=role))

    async def get(self, user_id: str) -> User:
        """Return somebody, or raise NotFound."""
        return await self._store.require(User, user_id=user_id)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[User]:
        """Return the people of the tenant."""
        return await self._store.page(User.of_tenant(), limit=limit, cursor=cursor)

    async def set_role(self, user_id: str, role: Role) -> User:
        """Give somebody another role, up to one's own."""
        self._judge(role)
        return await self._store.update(await self._managed(user_id), set={"role": role})

    async def set_enabled(self, user_id: str, *, enabled: bool) -> User:
        """Let somebody in, or keep them out."""
        return await self._store.update(await self._managed(user_id), set={"enabled": enabled})

    async def rename(self, user_id: str, name: str) -> User:
        """Give somebody another name."""
        return await self._store.update(await self._managed(user_id, own=True), set={"name": name})

    async def delete(self, user_id: str) -> None:
        """Remove somebody."""
        await self._store.delete(await self._managed(user_id))

    async def _managed(self, user_id: str, *, own: bool = False) -> User:
        user = await self._store.require(User, user_id=user_id, consistent=True)
        if self._is_manager(user):
            if not own:
                raise Forbidden("Nobody changes their own role or access; ask another administrator.")
            return user
        self._judge(user.role)
        return user

    def _is_manager(self, user: User) -> bool:
        # An identity provider knows people by ids of its own; their address is what both have.
        return user.user_id == self._manager_id or user.email == self._manager_email

    def _judge(self, role: str) -> None:
        if self._rank < RANKS["TENANT_ADMIN"] or RANKS[role] > self._rank:
            raise Forbidden(
                f"Managing somebody who is {role} takes a role as high, and TENANT_ADMIN at least."
            )
