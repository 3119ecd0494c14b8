"""The former versions of a page: list, read, compare and restore them.

A restore (C0.6) writes old content as a new version, if the stored version is the one that was read; the
history keeps what it replaces. Slug, status and schedule stay: a restore neither moves a route nor publishes
a page.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from solotable import AsyncStore, Page, VersionDifference
from solotable.errors import NotFound
from solotable.systems.cms.entities.pages import Content, ContentStatus
from solotable.systems.errors import InvalidInput

#: No index holds snapshots, so a list reads whole items: 20 of 40 KB are 100 read units.
MAX_LISTED = 20


class VersionSummary(BaseModel):
    """A version in a list."""

    version: int
    title: str
    slug: str
    status: ContentStatus
    updated: datetime | None = None
    restored_from: int | None = None


class Versions:
    """The versions of the pages of one tenant."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def list(
        self, node_id: str, *, limit: int = MAX_LISTED, cursor: str | None = None
    ) -> Page[VersionSummary]:
        """Return the former versions, newest first, without their blocks."""
        history = self._store.history(Content, node_id=node_id)
        return await history.views(VersionSummary, limit=min(limit, MAX_LISTED), cursor=cursor)

    async def get(self, node_id: str, version: int) -> Content:
        """Return one version, former or current, or raise NotFound."""
        found = await self._store.history(Content, node_id=node_id).get(version)
        if found is None:
            raise NotFound(f"Page {node_id!r} has no version {version}.")
        return found

    async def diff(self, node_id: str, before: int, after: int) -> VersionDifference:
        """Return the fields that differ between two versions."""
        return await self._store.history(Content, node_id=node_id).diff(before, after)

    async def restore(self, node_id: str, version: int, *, over: int | None = None) -> Content:
        """Write the content of a former version as a new one; `over` is the version that the caller read."""
        current = await self._store.require(Content, node_id=node_id, consistent=True)
        if version == current.version:
            raise InvalidInput(f"Version {version} is the current one; there is nothing to restore.")
        former = await self.get(node_id, version)
        unchanged = {
            "version": current.version if over is None else over,
            "slug": current.slug,
            "status": current.status,
            "publish_at": current.publish_at,
            "created": current.created,
            "restored_from": version,
        }
        return await self._store.put(former.model_copy(update=unchanged))
