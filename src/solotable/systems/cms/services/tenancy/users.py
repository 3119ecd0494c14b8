"""The people of a tenant and their roles: nobody changes their own role, or manages a higher one.

A user's id follows from their address. Only a global administrator may make a record for a subject instead:
an administrator who could name a subject could keep its owner out.
"""

from __future__ import annotations

from collections.abc import Collection

from solotable import AsyncStore, Page
from solotable.systems.cms.entities.tenancy import Role, User, UserSummary
from solotable.systems.cms.errors import Refused, made
from solotable.systems.cms.formats.email_addresses import normalised

from .identities import Identities, address_of

#: Who may do more stands higher; RENDERER is no person's role.
RANKS = {"CUSTOMER": 0, "EDITOR": 1, "TENANT_ADMIN": 2, "GLOBAL_ADMIN": 3}


class Forbidden(Refused):
    """Somebody may not do this to somebody else; nothing was written."""


def rank(roles: Collection[str]) -> int:
    """Return how high the highest of some roles stands; -1 for none."""
    return max((RANKS.get(role, -1) for role in roles), default=-1)


class Users:
    """The people of one tenant, as somebody with these roles manages them."""

    def __init__(
        self,
        store: AsyncStore,
        *,
        manager_id: str,
        roles: Collection[str],
        manager_email: str | None = None,
        manager_issuer: str = "",
        pepper: bytes = b"",
    ) -> None:
        self._store = store
        self._manager = (manager_issuer, manager_id, manager_email)
        self._rank = rank(roles)
        self._identities = Identities(store, pepper=pepper)

    async def create(
        self, *, email: str, name: str = "", role: Role = "EDITOR", user_id: str | None = None
    ) -> User:
        """Add somebody; AlreadyExists or NotUnique if they or their address are here already.

        `user_id` is the subject of their tokens, for tokens without an address; a global administrator's.
        """
        self._judge(role)
        if user_id is not None and self._rank < RANKS["GLOBAL_ADMIN"]:
            raise Forbidden("Leave user_id out: only a GLOBAL_ADMIN makes a record for a subject.")
        id = user_id or self._identities.user_id(email)  # noqa: A001 - as entities name it
        return await self._store.create(made(User, user_id=id, email=normalised(email), name=name, role=role))

    async def get(self, user_id: str) -> User:
        """Return somebody, or raise NotFound."""
        return await self._store.require(User, user_id=user_id)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[UserSummary]:
        """Return the users of the tenant."""
        return await self._store.page(User.listed(), limit=limit, cursor=cursor)

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
        if await self._is_manager(user):
            if not own:
                raise Forbidden("Nobody changes their own role or access; ask another administrator.")
            return user
        self._judge(user.role)
        return user

    async def _is_manager(self, user: User) -> bool:
        # Also by an address that their token has not, or not any more.
        if user.email == address_of(self._manager[2]):
            return True
        return user.user_id in await self._identities.known_ids(*self._manager)

    def _judge(self, role: str) -> None:
        if self._rank < RANKS["TENANT_ADMIN"] or RANKS[role] > self._rank:
            raise Forbidden(
                f"Managing somebody who is {role} takes a role as high, and TENANT_ADMIN at least."
            )
