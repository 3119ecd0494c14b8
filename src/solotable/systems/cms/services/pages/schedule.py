"""Scheduled pages: list those whose time has come, and set their status to published.

Visitors see a scheduled page from its time on, without a job. `publish_due` only brings the stored status up
to date: lists by status, the audit trail and the history then show the publication. Any number of workers may
run it, because each change needs the version that was read. A published page stays published, whatever the
clock does afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

from solotable import Actor, AsyncDatabase, AsyncStore
from solotable.errors import NotFound, VersionConflict
from solotable.systems.cms.entities.pages import Content, ContentSummary, is_public
from solotable.systems.cms.formats.timestamps import Now, now_ms
from solotable.systems.cms.services.tenancy.tenants import Tenants

#: The actor of publications in the audit trail.
SCHEDULER = Actor(id="schedule", name="Schedule")
_PAGE_SIZE = 100


class Schedule:
    """The scheduled pages of one tenant."""

    def __init__(self, store: AsyncStore, *, now: Now = now_ms) -> None:
        self._store = store
        self._now = now

    async def due(self) -> list[ContentSummary]:
        """Return the scheduled pages that are public, without their blocks."""
        due: list[ContentSummary] = []
        cursor: str | None = None
        while True:
            page = await self._store.page(Content.in_status("scheduled"), limit=_PAGE_SIZE, cursor=cursor)
            now = self._now()
            due += [each for each in page.items if is_public(each, now)]
            cursor = page.cursor
            if cursor is None:
                return due

    async def publish_due(self) -> int:
        """Set the status of due pages to published; return how many this call changed."""
        return await self.publish(await self.due())

    async def publish(self, pages: Iterable[ContentSummary]) -> int:
        """Set the status of pages to published, except of those that changed since they were read."""
        count = 0
        for page in pages:
            # Another worker, or an editor who moved the time, comes first: its version wins.
            try:
                await self._store.update(
                    Content, node_id=page.node_id, version=page.version, set={"status": "published"}
                )
            except (NotFound, VersionConflict):
                continue
            count += 1
        return count


async def publish_due(db: AsyncDatabase, *, now: Now = now_ms) -> int:
    """Publish the due pages of all active tenants; return how many pages this call changed."""
    tenants, cursor, count = Tenants(db), None, 0
    while True:
        page = await tenants.list(limit=_PAGE_SIZE, cursor=cursor)
        for tenant in page.items:
            if tenant.status == "active":
                count += await Schedule(db.tenant(tenant.id).acting(SCHEDULER), now=now).publish_due()
        cursor = page.cursor
        if cursor is None:
            return count
