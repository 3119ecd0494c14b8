"""Pages: create, change, list and delete them together with their routes.

A page and its route are written in one transaction. Lists read an index without blocks. Deleting a page
(C0.14) removes it, its route and its redirects in one transaction. Its versions stay for `recover` until
`purge` removes them.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator

from solotable import ANY, AsyncStore, Page
from solotable.errors import ConditionFailed, NotFound, SolotableError, VersionConflict
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
    is_public,
)
from solotable.systems.cms.errors import unwrap_slug_failure
from solotable.systems.cms.formats.slugs import page_slug
from solotable.systems.cms.formats.timestamps import Now, now_ms
from solotable.systems.errors import InvalidInput, unwrap_failure, validate
from solotable.systems.formats.json_sizes import CHECKED
from solotable.web.http.timestamps import Timestamp


class _PageMoved(ConditionFailed):
    """The route that was read is gone, because another request moved the page."""


class _Scheduled(BaseModel):
    """The status of a page and its time of publication, which go together."""

    status: ContentStatus = "draft"
    publish_at: Timestamp | None = None

    @model_validator(mode="after")
    def _check_schedule(self) -> Self:
        if (self.status == "scheduled") != (self.publish_at is not None):
            raise ValueError('send publish_at together with the status "scheduled"')
        return self


class ContentDraft(_Scheduled):
    """A new page; without a slug its path is made from its title."""

    model_config = ConfigDict(extra="forbid")

    title: Title
    slug: str | None = None
    kind: ContentKind = "page"
    description: Description = ""
    blocks: Blocks = []
    seo: Seo = {}


class ContentPatch(_Scheduled):
    """A change of a page; an absent field keeps its value, and null is not allowed."""

    model_config = ConfigDict(extra="forbid")

    title: Title = ""
    slug: str = ""
    kind: ContentKind = "page"
    description: Description = ""
    blocks: Blocks = []
    seo: Seo = {}

    def given(self) -> dict[str, Any]:
        """Return the given fields."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        # Without a time, the date of a former publication stays.
        return {name: value for name, value in given.items() if name != "publish_at" or value is not None}


class Contents:
    """The pages of one tenant."""

    def __init__(self, store: AsyncStore, *, now: Now = now_ms) -> None:
        self._store = store
        self._now = now

    async def create(self, draft: ContentDraft) -> Content:
        """Create a page and its route, or raise SlugTaken."""
        slug = page_slug(draft.title if draft.slug is None else draft.slug)
        content = validate(Content, CHECKED, **{**dict(draft), "slug": slug})
        with unwrap_slug_failure(slug):
            async with self._store.transaction() as tx:
                created = tx.create(content)
                tx.create(Route(slug=slug, node_id=content.node_id))
        return created

    async def get(self, node_id: str) -> Content:
        """Return the current version of a page, or raise NotFound."""
        return await self._store.require(Content, node_id=node_id)

    async def is_public(self, node_id: str) -> bool:
        """Return whether visitors see a page, without reading its blocks."""
        found = await self._store.first(Content.summary_of(node_id))
        return found is not None and found.node_id == node_id and is_public(found, self._now())

    async def update(self, node_id: str, patch: ContentPatch, *, version: int | None = None) -> Content:
        """Change a page and return it; the history keeps the former version.

        `version` is the one that the caller read; if the stored one differs, VersionConflict is raised. A
        new slug moves the route in the same transaction, and the old path redirects to the new one.
        """
        changes = patch.given()
        if not changes:
            return await self.get(node_id)
        expected = ANY if version is None else version
        if "slug" not in changes:
            return await self._store.update(Content, node_id=node_id, version=expected, set=changes)
        return await self._move(node_id, changes, version)

    async def _move(self, node_id: str, changes: dict[str, Any], version: int | None) -> Content:
        slug = changes["slug"] = page_slug(changes["slug"])

        async def attempt() -> Content:
            current = await self._store.require(Content, node_id=node_id, consistent=True)
            expected = current.version if version is None else version
            if slug == current.slug:
                return await self._store.update(Content, node_id=node_id, version=expected, set=changes)
            renaming = self._store.names(Route).renaming(current.slug, to=slug, version=ANY)
            try:
                with unwrap_slug_failure(slug):
                    async with self._store.transaction() as tx:
                        tx.update(Content, node_id=node_id, version=expected, set=changes)
                        tx.include(renaming)
            except NotFound as error:
                raise _PageMoved("Another request moved the page.") from error
            return await self._store.require(Content, node_id=node_id, consistent=True)

        def may_retry(error: SolotableError) -> bool:
            # A client that names a version wants to see a conflict of that version.
            return isinstance(error, _PageMoved) or (version is None and isinstance(error, VersionConflict))

        return await self._store.retry_conflicts(attempt, when=may_retry)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[ContentSummary]:
        """Return pages, newest first, without their blocks."""
        return await self._store.page(Content.listed(), limit=limit, cursor=cursor)

    async def inbox(
        self, status: ContentStatus, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ContentSummary]:
        """Return the pages in a status, the oldest first."""
        return await self._store.page(Content.in_status(status), limit=limit, cursor=cursor)

    async def delete(self, node_id: str, *, version: int | None = None) -> None:
        """Delete a page, its route and its redirects; `/` and `/contact` cannot be deleted."""
        current = await self._store.require(Content, node_id=node_id, consistent=True)
        with unwrap_failure():
            async with self._store.transaction() as tx:
                tx.delete(Content, node_id=node_id, version=current.version if version is None else version)
                tx.delete(Route, slug=current.slug, version=ANY)

    async def recover(self, node_id: str) -> Content:
        """Restore a deleted page at the path that it had, or raise SlugTaken."""
        if await self._store.get(Content, node_id=node_id, consistent=True) is not None:
            raise InvalidInput(f"Page {node_id!r} is not deleted.")
        history = self._store.history(Content, node_id=node_id)
        last = next(iter((await history.list(limit=1)).items), None)
        if last is None:
            raise NotFound(f"Page {node_id!r} does not exist and has no versions.")
        with unwrap_slug_failure(last.slug):
            async with self._store.transaction() as tx:
                tx.include(history.restoring(last.version))
                tx.create(Route(slug=last.slug, node_id=node_id))
        return await self._store.require(Content, node_id=node_id, consistent=True)

    async def purge(self, node_id: str) -> int:
        """Purge the versions of a deleted page; return how many there were."""
        if await self._store.get(Content, node_id=node_id, consistent=True) is not None:
            raise InvalidInput(f"Page {node_id!r} is not deleted; delete it first.")
        return await self._store.history(Content, node_id=node_id).purge()
