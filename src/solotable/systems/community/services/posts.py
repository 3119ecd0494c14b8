"""Posts of a site: create, read, list, change and delete them. Each one is an item (C2.11)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from solotable import AsyncDatabase, Page
from solotable.errors import AlreadyExists, NotFound, TransactionFailed
from solotable.systems.community.entities.sites import Post, PostSummary, Site
from solotable.systems.community.formats.names import normalise_slug, shorten_slug
from solotable.systems.community.formats.record_keys import new_record_key
from solotable.systems.community.roles import Caller
from solotable.systems.errors import first_error, validate

from .drafts import PostDraft, PostPatch, utc_now

#: Two processes may draw the same key in one microsecond.
_ATTEMPTS = 5


class Posts:
    """The posts of a caller's sites."""

    def __init__(self, db: AsyncDatabase, *, now: Callable[[], datetime] = utc_now) -> None:
        self._db = db
        self._now = now

    async def create(self, caller: Caller, site_id: str, draft: PostDraft) -> Post:
        """Create a post, if the site exists in the same moment; raise NotFound if it does not."""
        did = caller.require_user()
        slug = shorten_slug(draft.title) if draft.slug is None else normalise_slug(draft.slug)
        fields: dict[str, Any] = {**dict(draft), "slug": slug, "did": did, "site_id": site_id}
        if draft.status == "published":
            fields["published_at"] = self._now()
        for attempt in range(_ATTEMPTS):
            post = validate(Post, **fields, rkey=new_record_key())
            try:
                async with self._db.transaction() as tx:
                    tx.check(Site, did=did, site_id=site_id)
                    return tx.create(post)
            except TransactionFailed as failed:
                cause = first_error(failed)
                if not isinstance(cause, AlreadyExists) or attempt + 1 == _ATTEMPTS:
                    raise cause from failed
        raise AssertionError("the last attempt returns or raises")

    async def get(self, caller: Caller, site_id: str, rkey: str, *, consistent: bool = False) -> Post:
        """Return a post with one GetItem, or raise NotFound."""
        found = await self._db.require(Post, site_id=site_id, rkey=rkey, consistent=consistent)
        await self._check_owner(caller, found)
        return found

    async def list(
        self, caller: Caller, site_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[PostSummary]:
        """Return the posts of a site without their texts, newest first."""
        await self._db.require(Site, did=caller.require_user(), site_id=site_id)
        return await self._db.page(Post.listed(site_id), limit=limit, cursor=cursor, unknown="skip")

    async def update(
        self, caller: Caller, site_id: str, rkey: str, patch: PostPatch, *, version: int | None = None
    ) -> Post:
        """Change a post, if `version` is the stored one."""
        changes = patch.given()
        if "slug" in changes:
            changes["slug"] = normalise_slug(changes["slug"])
        found = await self.get(caller, site_id, rkey, consistent=True)
        if changes.get("status") == "published" and found.published_at is None:
            changes["published_at"] = self._now()
        if version is not None:
            changes["version"] = version
        return await self._db.put(found.model_copy(update=changes))

    async def delete(self, caller: Caller, site_id: str, rkey: str) -> None:
        """Delete a post, or raise NotFound."""
        found = await self.get(caller, site_id, rkey, consistent=True)
        await self._db.delete(found)

    async def _check_owner(self, caller: Caller, post: Post) -> None:
        """Raise NotFound for a post of another user, or of a deleted site."""
        if post.did != caller.require_user():
            raise NotFound(f"Post not found: site_id={post.site_id!r}, rkey={post.rkey!r}.")
        await self._db.require(Site, did=post.did, site_id=post.site_id)
