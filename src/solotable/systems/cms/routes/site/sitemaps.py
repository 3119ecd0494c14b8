"""`/sitemap.xml`: the published pages of a site, read from the index of statuses and remembered for a minute.

The protocol of sitemaps allows 50,000 pages in a file. A larger site has an index there, whose files are
`/sitemap.xml?part=1` and so on. Nothing is read that is not published, or of another tenant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from fastapi import Request

from solotable import AsyncStore
from solotable.systems.cms.entities import ContentSummary
from solotable.systems.cms.routes.editing.graph import graphs
from solotable.systems.cms.services import Contents
from solotable.systems.cms.services.visitors import tenant_of
from solotable.web.ttl_cache import Kept

from .markup import sitemap_index_xml, sitemap_xml

MOST_IN_PART = 50_000
MOST_PARTS = 20
_AT_ONCE = 1000
#: Stands for where the site is until an answer is made; no path holds it unescaped.
_HERE = "|"


@dataclass(frozen=True, slots=True)
class Sitemap:
    """A file of a sitemap without where the site is, and for an index where its parts begin."""

    text: str
    starts: tuple[str | None, ...] = ()


class Sitemaps:
    """The sitemaps of all tenants, as many as fit into so many characters."""

    def __init__(
        self,
        *,
        ttl_seconds: float = 60.0,
        most_characters: int = 32_000_000,
        most_in_part: int = MOST_IN_PART,
        most_parts: int = MOST_PARTS,
    ) -> None:
        self._most_in_part = most_in_part
        self._most_parts = most_parts
        self._kept: Kept[tuple[str, int], Sitemap] = Kept(
            ttl_seconds=ttl_seconds, most=most_characters, weigh=lambda each: len(each.text)
        )

    async def text(self, store: AsyncStore, part: int | None, *, base: str) -> str | None:
        """Return the sitemap of a store's tenant, or a part of it; None for a part that is not there."""
        tenant = tenant_of(store)
        found = await self._kept.get((tenant, 0), lambda: self._whole(store))
        if part is not None:
            if part > len(found.starts):
                return None
            start = found.starts[part - 1]
            found = await self._kept.get((tenant, part), lambda: self._part(store, start))
        return found.text.replace(_HERE, base)

    def forget(self, tenant: str) -> None:
        """Read the pages of a tenant again, as one of them has changed."""
        self._kept.forget(lambda key: key[0] == tenant)

    async def _whole(self, store: AsyncStore) -> Sitemap:
        first, cursor = await self._read(store, None)
        starts: list[str | None] = [None]
        while cursor is not None and len(starts) < self._most_parts:
            start = cursor
            rows, cursor = await self._read(store, start)
            if rows:
                starts.append(start)
        if len(starts) == 1:
            return Sitemap(sitemap_xml(first, base=_HERE))
        return Sitemap(sitemap_index_xml(len(starts), base=_HERE), tuple(starts))

    async def _part(self, store: AsyncStore, start: str | None) -> Sitemap:
        rows, _ = await self._read(store, start)
        return Sitemap(sitemap_xml(rows, base=_HERE))

    async def _read(self, store: AsyncStore, cursor: str | None) -> tuple[list[ContentSummary], str | None]:
        contents, rows = Contents(store), list[ContentSummary]()
        while True:
            limit = min(_AT_ONCE, self._most_in_part - len(rows))
            page = await contents.inbox("published", limit=limit, cursor=cursor)
            rows.extend(page.items)
            cursor = page.cursor
            if cursor is None or len(rows) >= self._most_in_part:
                return rows, cursor


def sitemaps(request: Request) -> Sitemaps:
    """Return what the app remembers of sitemaps."""
    return cast(Sitemaps, request.app.state.sitemaps)


def refresh(request: Request, store: AsyncStore) -> None:
    """Have the sitemap and the graph of a store's tenant read again, as a page of it has changed."""
    sitemaps(request).forget(tenant_of(store))
    graphs(request).forget(tenant_of(store))
