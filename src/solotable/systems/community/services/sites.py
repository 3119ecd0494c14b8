"""Sites: create, read, list, change, export, delete and restore them.

A deleted site is purged 7 days later (S2.25) with its posts, builds and logs. Until then it keeps its
subdomain and can be restored. `archive` exports a site and deletes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from solotable import AsyncDatabase, Page
from solotable.errors import NotFound
from solotable.systems.community.entities.neighbourhoods import Membership, Neighbourhood
from solotable.systems.community.entities.sites import Post, Site, SiteOwner
from solotable.systems.community.entities.users import User
from solotable.systems.community.errors import Forbidden, TooMany, name_taken
from solotable.systems.community.formats.names import normalise_subdomain
from solotable.systems.community.roles import Caller
from solotable.systems.errors import unwrap_failure, validate

from .drafts import SiteDraft, SitePatch, utc_now

#: Of one user. Two requests at the same time may exceed it by one.
MAX_SITES = 50


class Sites:
    """The sites of users; a caller reaches their own only."""

    def __init__(self, db: AsyncDatabase, *, now: Callable[[], datetime] = utc_now) -> None:
        self._db = db
        self._now = now

    async def create(self, caller: Caller, draft: SiteDraft) -> Site:
        """Create a site, its lookup by id and the lock of its subdomain, or raise NameTaken (C2.4)."""
        did = caller.require_user()
        subdomain = normalise_subdomain(draft.title if draft.subdomain is None else draft.subdomain)
        made = validate(Site, **{**dict(draft), "subdomain": subdomain}, did=did)
        if await self._db.count(Site.of_user(did)) >= MAX_SITES:
            raise TooMany(f"You have {MAX_SITES} sites already; delete one first.", item=None)
        if made.neighbourhood_id is not None:
            await self._check_neighbourhood(did, made.neighbourhood_id)
        with name_taken():
            async with self._db.transaction() as tx:
                tx.check(User, did=did)
                created = tx.create(made)
                tx.create(SiteOwner(site_id=made.site_id, did=did))
        return created

    async def get(self, caller: Caller, site_id: str, *, consistent: bool = False) -> Site:
        """Return a site of the caller with one GetItem (S2.15), or raise NotFound."""
        return await self._db.require(Site, did=caller.require_user(), site_id=site_id, consistent=consistent)

    async def list(self, caller: Caller, *, limit: int = 50, cursor: str | None = None) -> Page[Site]:
        """Return the sites of the caller with one Query (S2.15)."""
        return await self._db.page(
            Site.of_user(caller.require_user()), limit=limit, cursor=cursor, unknown="skip"
        )

    async def by_id(self, site_id: str) -> Site:
        """Return a site by its id alone, with two GetItems (C2.8), or raise NotFound."""
        owner = await self._db.require(SiteOwner, site_id=site_id, consistent=True)
        return await self._db.require(Site, did=owner.did, site_id=site_id, consistent=True)

    async def at_subdomain(self, subdomain: str) -> Site:
        """Return the published site at a subdomain, or raise NotFound; for the server of sites.

        A site of an account that is being deleted is not found.
        """
        found = await self._db.first(Site.with_subdomain(subdomain), unknown="skip")
        if found is None or found.status != "published":
            raise NotFound(f"Site not found: subdomain={subdomain!r}.")
        await self._db.require(User, did=found.did)
        return found

    async def of_neighbourhood(
        self, caller: Caller, neighbourhood_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Site]:
        """Return the published sites that a neighbourhood shows, newest first.

        Only members see the sites of a private neighbourhood. A site of a user who left, or whose account is
        being deleted, is not shown.
        """
        found = await self._db.require(Neighbourhood, neighbourhood_id=neighbourhood_id)
        if found.privacy == "private" and not caller.is_operator:
            await self._require_member(caller.require_user(), neighbourhood_id)
        query = Site.of_neighbourhood(neighbourhood_id).where(lambda site: site.status == "published")
        page = await self._db.page(query, limit=limit, cursor=cursor, unknown="skip")
        owners = await self._owners(neighbourhood_id, page)
        shown = [site for site in page if site.did in owners]
        return Page(shown, page.cursor, page.scanned, previous=page.previous)

    async def update(
        self, caller: Caller, site_id: str, patch: SitePatch, *, version: int | None = None
    ) -> Site:
        """Change a site, if `version` is the stored one; another subdomain moves its lock."""
        changes = patch.given()
        if "subdomain" in changes:
            changes["subdomain"] = normalise_subdomain(changes["subdomain"])
        found = await self.get(caller, site_id, consistent=True)
        neighbourhood = changes.get("neighbourhood_id")
        if neighbourhood is not None and neighbourhood != found.neighbourhood_id:
            await self._check_neighbourhood(found.did, neighbourhood)
        if version is not None:
            changes["version"] = version
        with name_taken():
            return await self._db.put(found.model_copy(update=changes))

    async def delete(self, caller: Caller, site_id: str) -> None:
        """Delete a site, or raise NotFound; it can be restored for 7 days (S2.25)."""
        found = await self.get(caller, site_id, consistent=True)
        with unwrap_failure():
            await self._db.delete(found)

    async def restore(self, caller: Caller, site_id: str) -> Site:
        """Undo the deletion of a site within 7 days, or raise NotFound."""
        return await self._db.undelete(Site, did=caller.require_user(), site_id=site_id)

    async def export(self, caller: Caller, site_id: str) -> dict[str, Any]:
        """Return a site and its posts as JSON (S2.18)."""
        found = await self.get(caller, site_id, consistent=True)
        posts = [post async for post in self._db.all(Post.of_site(site_id).consistent(), unknown="skip")]
        return site_document(found, posts)

    async def archive(self, caller: Caller, site_id: str) -> dict[str, Any]:
        """Export a site and delete it; it can be restored for 7 days (S2.25)."""
        document = await self.export(caller, site_id)
        found = await self.get(caller, site_id, consistent=True)
        marked = await self._db.put(found.model_copy(update={"exported_at": self._now()}))
        with unwrap_failure():
            await self._db.delete(marked)
        return document

    async def _owners(self, neighbourhood_id: str, sites: Iterable[Site]) -> set[str]:
        """Return the owners who are members of the neighbourhood and have an account."""
        dids = list(dict.fromkeys(site.did for site in sites))
        users = await self._db.get_many(User, [{"did": did} for did in dids])
        keys = [{"neighbourhood_id": neighbourhood_id, "user_did": did} for did in dids]
        members = await self._db.get_many(Membership, keys)
        return {
            did
            for did, user, member in zip(dids, users, members, strict=True)
            if user is not None and member is not None and member.is_active
        }

    async def _check_neighbourhood(self, did: str, neighbourhood_id: str) -> None:
        """Raise unless a member may show a site in a neighbourhood."""
        found = await self._db.require(Neighbourhood, neighbourhood_id=neighbourhood_id)
        member = await self._require_member(did, neighbourhood_id)
        if not found.settings.allow_site_creation and not member.is_admin:
            raise Forbidden("This neighbourhood lets only admins add sites.")
        if found.settings.require_email_verification:
            user = await self._db.require(User, did=did, consistent=True)
            if not user.email_verified:
                raise Forbidden("This neighbourhood needs a verified e-mail address.")

    async def _require_member(self, did: str, neighbourhood_id: str) -> Membership:
        member = await self._db.get(Membership, neighbourhood_id=neighbourhood_id, user_did=did)
        if member is None or not member.is_active:
            raise Forbidden("Only members may do this.")
        return member


def site_document(site: Site, posts: Sequence[Post]) -> dict[str, Any]:
    """Return a site and its posts as JSON values."""
    return {
        "site": site.model_dump(mode="json"),
        "posts": [post.model_dump(mode="json") for post in posts],
    }
