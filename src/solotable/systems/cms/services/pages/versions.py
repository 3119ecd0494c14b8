"""The former versions of a page: list, read, compare, and go forward to one of them.

A restore (C0.6) writes old content as a new version: what it replaces becomes a snapshot, under the
condition that it is the version that was read. The address and the status are not content: a restore
neither moves a route nor publishes anything.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from solotable import AsyncStore, Page, VersionDifference
from solotable.errors import NotFound
from solotable.systems.cms.entities.pages import Content, ContentStatus
from solotable.systems.cms.errors import Refused

#: Snapshots are in no index, so a page of the list reads them whole: 20 of 40 KB are 100 read units.
MOST_LISTED = 20


class VersionSummary(BaseModel):
    """What the list shows of a version."""

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
        self, node_id: str, *, limit: int = MOST_LISTED, cursor: str | None = None
    ) -> Page[VersionSummary]:
        """Return the former versions, newest first, without their blocks."""
        history = self._store.history(Content, node_id=node_id)
        return await history.views(VersionSummary, limit=min(limit, MOST_LISTED), cursor=cursor)

    async def get(self, node_id: str, version: int) -> Content:
        """Return one version, also the current one, or raise NotFound."""
        found = await self._store.history(Content, node_id=node_id).get(version)
        if found is None:
            raise NotFound(f"Page {node_id!r} has no version {version}.")
        return found

    async def diff(self, node_id: str, before: int, after: int) -> VersionDifference:
        """Return which fields differ between two versions, and how."""
        return await self._store.history(Content, node_id=node_id).diff(before, after)

    async def restore(self, node_id: str, version: int, *, over: int | None = None) -> Content:
        """Write the content of a former version as a new one; `over` is the version that the caller saw."""
        current = await self._store.require(Content, node_id=node_id, consistent=True)
        if version == current.version:
            raise Refused(f"Version {version} is the current one; there is nothing to restore.")
        former = await self.get(node_id, version)
        kept = {
            "version": current.version if over is None else over,
            "slug": current.slug,
            "status": current.status,
            "created": current.created,
            "restored_from": version,
        }
        return await self._store.put(former.model_copy(update=kept))
