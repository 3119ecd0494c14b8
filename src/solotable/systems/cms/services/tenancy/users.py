"""The users of a tenant and their roles.

A user cannot change their own role, or manage a higher one. A user's id is a digest of the address. Only a
global administrator may use a token's subject as the id: others could lock out its owner that way.
"""

from __future__ import annotations

from collections.abc import Collection

from solotable import AsyncStore, Page
from solotable.systems.cms.entities.tenancy import Role, User, UserSummary
from solotable.systems.errors import InvalidInput, validate
from solotable.systems.formats.email_addresses import normalise_email

from .identities import Identities, normalise_claim

#: The order of the roles of persons; RENDERER is a program's role.
RANKS = {"CUSTOMER": 0, "EDITOR": 1, "TENANT_ADMIN": 2, "GLOBAL_ADMIN": 3}


class Forbidden(InvalidInput):
    """The manager's role does not allow this change; nothing was written."""


def rank(roles: Collection[str]) -> int:
    """Return the highest rank among some roles; -1 for none."""
    return max((RANKS.get(role, -1) for role in roles), default=-1)


class Users:
    """The users of one tenant, with the roles of their manager."""

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
        """Add a user; AlreadyExists or NotUnique if the tenant has the id or the address already.

        `user_id` is the subject of tokens without an address; only a global administrator may set it.
        """
        self._check_rank(role)
        if user_id is not None and self._rank < RANKS["GLOBAL_ADMIN"]:
            raise Forbidden("Leave out user_id: only a GLOBAL_ADMIN may set it.")
        id = user_id or self._identities.user_id(email)  # noqa: A001 - the services' name for an entity's id
        return await self._store.create(
            validate(User, user_id=id, email=normalise_email(email), name=name, role=role)
        )

    async def get(self, user_id: str) -> User:
        """Return a user, or raise NotFound."""
        return await self._store.require(User, user_id=user_id)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[UserSummary]:
        """Return the users of the tenant."""
        return await self._store.page(User.listed(), limit=limit, cursor=cursor)

    async def set_role(self, user_id: str, role: Role) -> User:
        """Change the role of a user, up to the manager's own."""
        self._check_rank(role)
        return await self._store.update(await self._managed(user_id), set={"role": role})

    async def set_enabled(self, user_id: str, *, enabled: bool) -> User:
        """Enable or disable a user."""
        return await self._store.update(await self._managed(user_id), set={"enabled": enabled})

    async def rename(self, user_id: str, name: str) -> User:
        """Change the name of a user."""
        return await self._store.update(await self._managed(user_id, own=True), set={"name": name})

    async def delete(self, user_id: str) -> None:
        """Delete a user."""
        await self._store.delete(await self._managed(user_id))

    async def _managed(self, user_id: str, *, own: bool = False) -> User:
        user = await self._store.require(User, user_id=user_id, consistent=True)
        if await self._is_manager(user):
            if not own:
                raise Forbidden("You cannot change your own role or access; ask another administrator.")
            return user
        self._check_rank(user.role)
        return user

    async def _is_manager(self, user: User) -> bool:
        # The token may lack the address, or have another one now.
        if user.email == normalise_claim(self._manager[2]):
            return True
        return user.user_id in await self._identities.known_ids(*self._manager)

    def _check_rank(self, role: str) -> None:
        if self._rank < RANKS["TENANT_ADMIN"] or RANKS[role] > self._rank:
            raise Forbidden(
                f"To manage a user with the role {role} you need at least that role, and TENANT_ADMIN."
            )
