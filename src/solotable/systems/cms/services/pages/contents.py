"""Pages: made, changed, listed and deleted, each together with the route that leads to them.

Content and route are written in one transaction or not at all. Lists read an index that holds no blocks.
Deleting a page (C0.14) removes it, its route and its redirects in one transaction; its versions stay, so
that `recover` gives it back, until `purge` removes them.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from solotable import ANY, AsyncStore, Page
from solotable.errors import NotFound, VersionConflict
from solotable.systems.cms.entities.pages import (
    Blocks,
    Content,
    ContentKind,
    ContentStatus,
    ContentSummary,
    Description,
    Route,
    Seo,
    Title,
)
from solotable.systems.cms.errors import Refused, first_reason, made
from solotable.systems.cms.formats.slugs import free_slug

#: How often a move that meets another one of the same page is made again.
_ATTEMPTS = 10


class ContentDraft(BaseModel):
    """A new page; without a slug its path is made of its title."""

    model_config = ConfigDict(extra="forbid")

    title: Title
    slug: str | None = None
    kind: ContentKind = "page"
    status: ContentStatus = "draft"
    description: Description = ""
    blocks: Blocks = []
    seo: Seo = {}


class ContentPatch(BaseModel):
    """A change of a page; what is not given stays as it is, and null is not a value of any field."""

    model_config = ConfigDict(extra="forbid")

    title: Title = ""
    slug: str = ""
    kind: ContentKind = "page"
    status: ContentStatus = "draft"
    description: Description = ""
    blocks: Blocks = []
    seo: Seo = {}

    def given(self) -> dict[str, Any]:
        """Return the fields that were given."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class Contents:
    """The pages of one tenant."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def create(self, draft: ContentDraft) -> Content:
        """Make a page and its route; AlreadyExists if the path is taken, and nothing is written."""
        slug = free_slug(draft.title if draft.slug is None else draft.slug)
        content = made(Content, **draft.model_dump(exclude={"slug"}), slug=slug)
        with first_reason():
            async with self._store.transaction() as tx:
                created = tx.create(content)
                tx.create(Route(slug=slug, node_id=content.node_id))
        return created

    async def get(self, node_id: str) -> Content:
        """Return a page as it is now, or raise NotFound."""
        return await self._store.require(Content, node_id=node_id)

    async def is_published(self, node_id: str) -> bool:
        """Say whether everybody may see a page, without reading its blocks."""
        found = await self._store.first(Content.shown_as(node_id))
        return found is not None and found.node_id == node_id and found.status == "published"

    async def update(self, node_id: str, patch: ContentPatch, *, version: int | None = None) -> Content:
        """Change a page and return it; the version it had becomes a snapshot.

        `version` is the one that the caller saw; another one is a VersionConflict. A new slug moves the
        route in the same transaction, and the old path leads to the new one.
        """
        changes = patch.given()
        if not changes:
            return await self.get(node_id)
        expected = ANY if version is None else version
        if "slug" not in changes:
            return await self._store.update(Content, node_id=node_id, version=expected, set=changes)
        return await self._move(node_id, changes, version)

    async def _move(self, node_id: str, changes: dict[str, Any], version: int | None) -> Content:
        changes["slug"] = free_slug(changes["slug"])
        for attempt in range(1, _ATTEMPTS + 1):
            current = await self._store.require(Content, node_id=node_id, consistent=True)
            try:
                return await self._moved(current, changes, current.version if version is None else version)
            except (NotFound, VersionConflict) as refused:
                # Somebody else moved it: the route that was read is elsewhere, the page is not gone.
                meant = version is not None and isinstance(refused, VersionConflict)
                if meant or attempt == _ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _moved(self, current: Content, changes: dict[str, Any], expected: int) -> Content:
        node_id = current.node_id
        if changes["slug"] == current.slug:
            return await self._store.update(Content, node_id=node_id, version=expected, set=changes)
        renaming = self._store.names(Route).renaming(current.slug, to=changes["slug"], version=ANY)
        with first_reason():
            async with self._store.transaction() as tx:
                tx.update(Content, node_id=node_id, version=expected, set=changes)
                tx.include(renaming)
        return await self._store.require(Content, node_id=node_id, consistent=True)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[ContentSummary]:
        """Return pages, newest first, without their blocks."""
        return await self._store.page(Content.listed(), limit=limit, cursor=cursor)

    async def inbox(
        self, status: ContentStatus, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ContentSummary]:
        """Return the pages in a status, those that wait longest first."""
        return await self._store.page(Content.in_status(status), limit=limit, cursor=cursor)

    async def delete(self, node_id: str, *, version: int | None = None) -> None:
        """Delete a page, its route and its redirects; `/` and `/contact` are refused."""
        current = await self._store.require(Content, node_id=node_id, consistent=True)
        with first_reason():
            async with self._store.transaction() as tx:
                tx.delete(Content, node_id=node_id, version=current.version if version is None else version)
                tx.delete(Route, slug=current.slug, version=ANY)

    async def recover(self, node_id: str) -> Content:
        """Give a deleted page back, under the path it had; AlreadyExists if that is taken by now."""
        if await self._store.get(Content, node_id=node_id, consistent=True) is not None:
            raise Refused(f"Page {node_id!r} is not deleted.")
        history = self._store.history(Content, node_id=node_id)
        last = next(iter((await history.list(limit=1)).items), None)
        if last is None:
            raise NotFound(f"There is no page {node_id!r}, and no version of it.")
        with first_reason():
            async with self._store.transaction() as tx:
                tx.include(history.restoring(last.version))
                tx.create(Route(slug=last.slug, node_id=node_id))
        return await self._store.require(Content, node_id=node_id, consistent=True)

    async def purge(self, node_id: str) -> int:
        """Remove the versions of a deleted page for good; return how many."""
        if await self._store.get(Content, node_id=node_id, consistent=True) is not None:
            raise Refused(f"Page {node_id!r} is not deleted; delete it first.")
        return await self._store.history(Content, node_id=node_id).purge()
