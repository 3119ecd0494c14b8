"""Neighbourhoods: create, read, list, change and delete them.

A private neighbourhood is in no list. A caller who is not a member sees its name, so that they can ask to
join, and neither its members nor their number.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from pydantic import BaseModel

from solotable import AsyncDatabase, Page
from solotable.errors import NotFound
from solotable.systems.community.entities.neighbourhoods import (
    Membership,
    MembershipEvent,
    Neighbourhood,
    NeighbourhoodSettings,
)
from solotable.systems.community.entities.users import User
from solotable.systems.community.entities.values import Privacy, Role
from solotable.systems.community.errors import Forbidden, name_taken
from solotable.systems.community.formats.names import normalise_slug
from solotable.systems.community.roles import Caller
from solotable.systems.errors import unwrap_failure, validate

from .drafts import NeighbourhoodDraft, NeighbourhoodPatch, utc_now


class NeighbourhoodView(BaseModel):
    """What a caller sees; a private neighbourhood has None for what is hidden from the caller."""

    id: str
    name: str
    slug: str
    privacy: Privacy
    description: str | None = None
    creator_did: str | None = None
    settings: NeighbourhoodSettings | None = None
    member_count: int | None = None
    created_at: datetime | None = None
    version: int = 0
    #: The role of the caller; None if the caller is not a member.
    role: Role | None = None

    @classmethod
    def whole(cls, found: Neighbourhood, role: Role | None = None) -> NeighbourhoodView:
        """Return all fields."""
        fields = {name: getattr(found, name) for name in cls.model_fields if name not in ("id", "role")}
        return cls(id=found.neighbourhood_id, role=role, **fields)

    @classmethod
    def closed(cls, found: Neighbourhood) -> NeighbourhoodView:
        """Return the fields of a private neighbourhood that a visitor may see."""
        return cls(id=found.neighbourhood_id, name=found.name, slug=found.slug, privacy=found.privacy)


class Neighbourhoods:
    """The neighbourhoods of the community."""

    def __init__(self, db: AsyncDatabase, *, now: Callable[[], datetime] = utc_now) -> None:
        self._db = db
        self._now = now

    async def create(self, caller: Caller, draft: NeighbourhoodDraft) -> NeighbourhoodView:
        """Create a neighbourhood with the caller as its creator, or raise NameTaken (C2.4)."""
        did, now = caller.require_user(), self._now()
        slug = normalise_slug(draft.name if draft.slug is None else draft.slug)
        made = validate(Neighbourhood, **{**dict(draft), "slug": slug}, creator_did=did)
        nid = made.neighbourhood_id
        with name_taken():
            async with self._db.transaction() as tx:
                tx.check(User, did=did)
                made = tx.create(made)
                tx.create(
                    Membership(
                        neighbourhood_id=nid,
                        user_did=did,
                        role="creator",
                        status="active",
                        joined_at=now,
                        changed_at=now,
                    )
                )
                tx.create(
                    MembershipEvent(
                        neighbourhood_id=nid,
                        at=now,
                        kind="joined",
                        user_did=did,
                        actor_did=did,
                        role="creator",
                    )
                )
        return NeighbourhoodView.whole(
            made.model_copy(update={"member_count": 1, "admin_count": 1}), "creator"
        )

    async def get(self, caller: Caller, neighbourhood_id: str) -> NeighbourhoodView:
        """Return a neighbourhood, or raise NotFound."""
        found = await self._db.require(Neighbourhood, neighbourhood_id=neighbourhood_id)
        return await self._view(caller, found)

    async def by_slug(self, caller: Caller, slug: str) -> NeighbourhoodView:
        """Return the neighbourhood with a slug or a name (S2.9), or raise NotFound."""
        normal = normalise_slug(slug)
        found = await self._db.first(Neighbourhood.with_slug(normal), unknown="skip")
        if found is None:
            raise NotFound(f"Neighbourhood not found: slug={normal!r}.")
        return await self._view(caller, found)

    async def is_taken(self, name: str) -> bool:
        """Return whether a neighbourhood has the slug of a name (S2.9).

        The index may be late, and another caller may be faster: `create` decides (C2.4).
        """
        return await self._db.first(Neighbourhood.with_slug(normalise_slug(name)), unknown="skip") is not None

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[NeighbourhoodView]:
        """Return the public neighbourhoods, newest first (S2.8)."""
        page = await self._db.page(Neighbourhood.newest(), limit=limit, cursor=cursor, unknown="skip")
        shown = [NeighbourhoodView.whole(found) for found in page]
        return Page(shown, page.cursor, page.scanned, previous=page.previous)

    async def update(
        self, caller: Caller, neighbourhood_id: str, patch: NeighbourhoodPatch, *, version: int | None = None
    ) -> NeighbourhoodView:
        """Change a neighbourhood as its admin, if `version` is the stored one.

        A change of the privacy moves it into the list of public neighbourhoods, or out of it (C2.2).
        """
        role = await self._require_role(caller, neighbourhood_id, "admin")
        changes = patch.given()
        if "slug" in changes:
            changes["slug"] = normalise_slug(changes["slug"])
        found = await self._db.require(Neighbourhood, neighbourhood_id=neighbourhood_id, consistent=True)
        if version is not None:
            changes["version"] = version
        with name_taken():
            stored = await self._db.put(found.model_copy(update=changes))
        return NeighbourhoodView.whole(stored, role)

    async def delete(self, caller: Caller, neighbourhood_id: str) -> None:
        """Delete a neighbourhood as its creator; the purge removes its memberships 30 days later.

        Its history is kept (S2.24). Its slug stays taken until the purge.
        """
        await self._require_role(caller, neighbourhood_id, "creator")
        found = await self._db.require(Neighbourhood, neighbourhood_id=neighbourhood_id, consistent=True)
        with unwrap_failure():
            await self._db.delete(found)

    async def _view(self, caller: Caller, found: Neighbourhood) -> NeighbourhoodView:
        member = await membership_of(self._db, caller, found.neighbourhood_id)
        if member is not None and member.is_active:
            return NeighbourhoodView.whole(found, member.role)
        if found.privacy == "public" or caller.is_operator:
            return NeighbourhoodView.whole(found)
        return NeighbourhoodView.closed(found)

    async def _require_role(self, caller: Caller, neighbourhood_id: str, least: Role) -> Role | None:
        await self._db.require(Neighbourhood, neighbourhood_id=neighbourhood_id)
        member = await membership_of(self._db, caller, neighbourhood_id)
        if caller.is_operator:
            return None if member is None else member.role
        if member is None or not member.is_admin or (least == "creator" and member.role != "creator"):
            raise Forbidden(f"Only {'an admin' if least == 'admin' else 'the creator'} may do this.")
        return member.role


async def membership_of(db: AsyncDatabase, caller: Caller, neighbourhood_id: str) -> Membership | None:
    """Return the membership of a caller with one GetItem; None for a visitor."""
    if caller.did is None:
        return None
    return await db.get(Membership, neighbourhood_id=neighbourhood_id, user_did=caller.did, consistent=True)
