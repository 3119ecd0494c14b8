"""Content: create, read, list, change and delete it. `lifecycle` changes its status, `files` its file.

A deleted user's content keeps its owner until an Admin transfers it: it stays visible and can be approved,
and only an Admin can change a draft (C3.12). Notifications about deleted content stay until they expire.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from solotable import AsyncDatabase, Page, Query, one_of
from solotable.systems.errors import InvalidInput, unwrap_failure, validate
from solotable.systems.portal.entities.content import Content, ContentSummary
from solotable.systems.portal.entities.notifications import FileRemoval
from solotable.systems.portal.entities.values import STATUSES, Status
from solotable.systems.portal.errors import Forbidden
from solotable.systems.portal.roles import Caller

from .access import check_editable, check_visible, visible_statuses
from .drafts import ContentDraft, ContentPatch, OwnerPatch, utc_now
from .pages import page_with_rows


class Contents:
    """The content of the portal."""

    def __init__(self, db: AsyncDatabase, *, now: Callable[[], datetime] = utc_now) -> None:
        self._db = db
        self._now = now

    async def create(self, caller: Caller, draft: ContentDraft) -> Content:
        """Create a Draft that the caller owns."""
        caller.require("Contributor")
        return await self._db.create(validate(Content, **dict(draft), owner_user_id=caller.user_id))

    async def get(self, caller: Caller, content_id: str, *, consistent: bool = False) -> Content:
        """Return content, or raise NotFound if the caller may not see it."""
        found = await self._db.require(Content, content_id=content_id, consistent=consistent)
        check_visible(caller, found)
        return found

    async def list(
        self,
        caller: Caller,
        *,
        status: Status | None = None,
        product_suite: str | None = None,
        product_concept: str | None = None,
        owner: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[ContentSummary]:
        """Return a page of content, newest first: Approved by default, every status for an owner.

        With a product or an owner, the status is a filter: a page is full unless it is the last (C3.6).
        """
        query = _select(product_suite, product_concept, owner)
        shown = _shown(caller, status, owner)
        if query is None:
            query = Content.with_status(status or "Approved")
        elif shown != frozenset(STATUSES):
            query = query.where(lambda content: one_of(content.status, sorted(shown)))
        return await page_with_rows(self._db, query, limit=limit, cursor=cursor)

    async def update(
        self, caller: Caller, content_id: str, patch: ContentPatch, *, revision: int | None = None
    ) -> Content:
        """Change the given fields, if `revision` is the stored one (C3.12)."""
        found = await self.get(caller, content_id, consistent=True)
        check_editable(caller, found)
        return await self._put(found, patch.given(), revision)

    async def transfer(
        self, caller: Caller, content_id: str, owner_user_id: str, *, revision: int | None = None
    ) -> Content:
        """Give content to another owner, such as that of a user who left (Admin)."""
        caller.require("Admin")
        patch = validate(OwnerPatch, owner_user_id=owner_user_id)
        found = await self._db.require(Content, content_id=content_id, consistent=True)
        return await self._put(found, patch.given(), revision)

    async def delete(self, caller: Caller, content_id: str, *, revision: int | None = None) -> None:
        """Delete content; the worker removes its file (Admin)."""
        caller.require("Admin")
        found = await self._db.require(Content, content_id=content_id, consistent=True)
        expected = found.revision if revision is None else revision
        with unwrap_failure():
            async with self._db.transaction() as tx:
                tx.delete(Content, content_id=content_id, version=expected)
                if found.s3_key is not None:
                    tx.put(FileRemoval(s3_key=found.s3_key, requested_at=self._now()))

    async def _put(self, found: Content, changes: dict[str, Any], revision: int | None) -> Content:
        if revision is not None:
            changes["revision"] = revision
        return await self._db.put(found.model_copy(update=changes))


def _select(suite: str | None, concept: str | None, owner: str | None) -> Query[ContentSummary] | None:
    """Return the query of a product or an owner; None without both."""
    if owner is not None:
        query = Content.of_owner(owner)
        if suite is not None:
            query = query.where(lambda content: content.product_suite == suite)
        if concept is not None:
            query = query.where(lambda content: content.product_concept == concept)
        return query
    if concept is not None and suite is None:
        raise InvalidInput("product_concept: needs a product_suite too.")
    if suite is None:
        return None
    return Content.of_suite(suite) if concept is None else Content.of_product(suite, concept)


def _shown(caller: Caller, status: Status | None, owner: str | None) -> frozenset[Status]:
    """Return the statuses that a list shows, or raise Forbidden for one that the caller may not see."""
    visible = frozenset(STATUSES) if owner == caller.user_id else visible_statuses(caller)
    if status is None:
        return visible if owner is not None else frozenset({"Approved"})
    if status not in visible:
        raise Forbidden(f"Content that is {status} is listed for Approvers, and for its owner.")
    return frozenset({status})
