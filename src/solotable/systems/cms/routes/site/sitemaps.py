"""`/sitemap.xml`: the published pages of a site, read from the status index and cached for a minute.

The sitemap protocol allows 50,000 pages per file. For a larger site it is an index of the files
`/sitemap.xml?part=1` and so on. It holds published pages of one tenant only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from fastapi import Request

from solotable import AsyncStore
from solotable.cache import TTLCache
from solotable.systems.cms.entities import ContentSummary
from solotable.systems.cms.formats.timestamps import Now, now_ms
from solotable.systems.cms.routes.editing.graph import graphs
from solotable.systems.cms.services import Contents, Schedule
from solotable.systems.cms.services.visitors import tenant_of

from .markup import sitemap_index_xml, sitemap_xml
from .post_lists import post_lists

MAX_PAGES_IN_PART = 50_000
MAX_PARTS = 20
_PAGE_SIZE = 1000
#: Placeholder for the site's base URL in cached texts; no path holds it unescaped.
_BASE = "|"


@dataclass(frozen=True, slots=True)
class Sitemap:
    """A sitemap file with a placeholder for the base URL; an index also has the cursors of its parts."""

    text: str
    starts: tuple[str | None, ...] = ()


class Sitemaps:
    """The sitemaps of all tenants; `max_characters` bounds the cache."""

    def __init__(
        self,
        *,
        ttl_seconds: float = 60.0,
        max_characters: int = 32_000_000,
        max_pages_in_part: int = MAX_PAGES_IN_PART,
        max_parts: int = MAX_PARTS,
        now: Now = now_ms,
    ) -> None:
        self._now = now
        self._max_pages_in_part = max_pages_in_part
        self._max_parts = max_parts
        self._cache: TTLCache[tuple[str, int], Sitemap] = TTLCache(
            ttl_seconds=ttl_seconds,
            max_size=max_characters,
            size_of=lambda sitemap: len(sitemap.text),
            group_of=lambda key: key[0],
        )

    async def text(self, store: AsyncStore, part: int | None, *, base: str) -> str | None:
        """Return the sitemap of a store's tenant, or one part; None for a part that does not exist."""
        tenant = tenant_of(store)
        found = await self._cache.load_async((tenant, 0), lambda: self._whole(store))
        if part is not None:
            if part > len(found.starts):
                return None
            start = found.starts[part - 1]
            found = await self._cache.load_async((tenant, part), lambda: self._part(store, start))
        return found.text.replace(_BASE, base)

    def forget(self, tenant: str) -> None:
        """Forget the sitemap of a tenant after a page changed."""
        self._cache.forget_group(tenant)

    async def _whole(self, store: AsyncStore) -> Sitemap:
        first, cursor = await self._read(store, None)
        starts: list[str | None] = [None]
        while cursor is not None and len(starts) < self._max_parts:
            start = cursor
            rows, cursor = await self._read(store, start)
            if rows:
                starts.append(start)
        if len(starts) == 1:
            return Sitemap(sitemap_xml(first, base=_BASE))
        return Sitemap(sitemap_index_xml(len(starts), base=_BASE), tuple(starts))

    async def _part(self, store: AsyncStore, start: str | None) -> Sitemap:
        rows, _ = await self._read(store, start)
        return Sitemap(sitemap_xml(rows, base=_BASE))

    async def _read(self, store: AsyncStore, cursor: str | None) -> tuple[list[ContentSummary], str | None]:
        contents, rows = Contents(store), list[ContentSummary]()
        if cursor is None:
            # Public pages that no job has set to published yet; they are few.
            rows += await Schedule(store, now=self._now).due()
        while True:
            limit = max(1, min(_PAGE_SIZE, self._max_pages_in_part - len(rows)))
            page = await contents.inbox("published", limit=limit, cursor=cursor)
            rows.extend(page.items)
            cursor = page.cursor
            if cursor is None or len(rows) >= self._max_pages_in_part:
                return rows, cursor


def sitemaps(request: Request) -> Sitemaps:
    """Return the app's cache of sitemaps."""
    return cast(Sitemaps, request.app.state.sitemaps)


def forget_site(request: Request, store: AsyncStore) -> None:
    """Forget the sitemap, the list of posts and the graph of a store's tenant after a page changed."""
    sitemaps(request).forget(tenant_of(store))
    post_lists(request).forget(tenant_of(store))
    graphs(request).forget(tenant_of(store))
