"""The people of a tenant and their roles: nobody changes their own role, or manages a higher one."""

from __future__ import annotations

from collections.abc import Collection

from solotable import AsyncStore, Page
from solotable.systems.cms.entities.tenancy import Role, User
from solotable.systems.cms.identity import normalised
from solotable.systems.cms.refusals import Refused, made

#: Who may do more stands higher; RENDERER is no person's role.
RANKS = {"CUSTOMER": 0, "EDITOR": 1, "TENANT_ADMIN": 2, "GLOBAL_ADMIN": 3}


class Forbidden(Refused):
    """Somebody may not do this to somebody else; nothing was written."""


def rank(roles: Collection[str]) -> int:
    """Return how high the highest of some roles stands; -1 for none."""
    return max((RANKS.get(role, -1) for role in roles), default=-1)


class Users:
    """The people of one tenant, as somebody with these roles manages them."""

    def __init__(self, store: AsyncStore, *, manager_id: str, roles: Collection[str]) -> None:
        self._store = store
        self._manager_id = manager_id
        self._rank = rank(roles)

    async def create(self, *, email: str, name: str = "", role: Role = "EDITOR") -> User:
        """Add somebody; NotUnique if their address is here already."""
        self._judge(role)
        return await self._store.create(made(User, email=normalised(email), name=name, role=role))

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
        if user_id == self._manager_id:
            if not own:
                raise Forbidden("Nobody changes their own role or access; ask another administrator.")
            return user
        self._judge(user.role)
        return user

    def _judge(self, role: str) -> None:
        if self._rank < RANKS["TENANT_ADMIN"] or RANKS[role] > self._rank:
            raise Forbidden(
                f"Managing somebody who is {role} takes a role as high, and TENANT_ADMIN at least."
            )
