"""The link graph of a site: links between pages, broken links, and orphans.

No published page and no menu (`navLinks`, `footerLinks` of the settings) links to an orphan; `/` and
`/contact` are never orphans. Reading a graph reads the whole site, so cache it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel

from solotable import AsyncDatabase, AsyncStore, Page
from solotable.systems.cms.entities.pages import (
    PROTECTED,
    Content,
    ContentKind,
    ContentStatus,
    ContentSummary,
    is_public,
)
from solotable.systems.cms.formats.links import links_in
from solotable.systems.cms.formats.timestamps import Now, now_ms
from solotable.systems.cms.services.tenancy.tenants import Tenants
from solotable.systems.cms.services.visitors import tenant_of

from .routing import Routes

#: The pages of a graph; for a larger site it is partial and has no orphans.
MAX_PAGES = 5_000
_PAGE_SIZE = 100
_CONCURRENT_READS = 10
_MENUS = ("navLinks", "footerLinks")


class GraphNode(BaseModel):
    """A page and its links. `orphan` is null if the site is too large or the page is not in the graph."""

    node_id: str
    slug: str
    title: str
    kind: ContentKind
    status: ContentStatus
    #: The ids of the pages that it links to.
    links: list[str]
    #: Links to paths of the site that do not exist.
    broken: list[str]
    #: The number of published pages that link to it.
    incoming: int
    orphan: bool | None


@dataclass(frozen=True, slots=True)
class Graph:
    """The links of a site, by the ids of pages."""

    links: Mapping[str, tuple[str, ...]]
    broken: Mapping[str, tuple[str, ...]]
    incoming: Mapping[str, int]
    #: The pages in menus, and those that need no link.
    linked: frozenset[str]
    complete: bool

    @property
    def size(self) -> int:
        """The number of pages and links."""
        return len(self.links) + sum(map(len, self.links.values())) + sum(map(len, self.broken.values()))

    def node(self, page: ContentSummary) -> GraphNode:
        """Return a page with its links."""
        known = page.node_id in self.links
        incoming = self.incoming.get(page.node_id, 0)
        orphan = not incoming and page.node_id not in self.linked
        return GraphNode(
            **page.model_dump(include={"node_id", "slug", "title", "kind", "status"}),
            links=list(self.links.get(page.node_id, ())),
            broken=list(self.broken.get(page.node_id, ())),
            incoming=incoming,
            orphan=orphan if known and self.complete else None,
        )


@dataclass(slots=True)
class _Site:
    """The data of a site from which its graph is made."""

    domain: str | None
    menus: set[str]
    ids: dict[str, str] = field(default_factory=dict)
    targets: dict[str, set[str]] = field(default_factory=dict)
    published: set[str] = field(default_factory=set)

    def graph(self, complete: bool) -> Graph:
        links: dict[str, tuple[str, ...]] = {}
        broken: dict[str, tuple[str, ...]] = {}
        incoming: dict[str, int] = {}
        for node_id, paths in self.targets.items():
            found = {self.ids[path] for path in paths if path in self.ids} - {node_id}
            links[node_id] = tuple(sorted(found))
            broken[node_id] = (
                tuple(sorted(path for path in paths if path not in self.ids)) if complete else ()
            )
            if node_id in self.published:
                for each in found:
                    incoming[each] = incoming.get(each, 0) + 1
        linked = frozenset(self.ids[path] for path in self.menus | set(PROTECTED) if path in self.ids)
        return Graph(links, broken, incoming, linked, complete)


class Graphs:
    """The graph of one tenant's site."""

    def __init__(self, db: AsyncDatabase, store: AsyncStore, *, now: Now = now_ms) -> None:
        self._db = db
        self._store = store
        self._now = now

    async def read(self, *, max_pages: int = MAX_PAGES) -> Graph:
        """Return the graph of the site: read the index of pages, their blocks, and the redirects."""
        config = await Tenants(self._db).get(tenant_of(self._store))
        menus = links_in([config.settings.get(name) for name in _MENUS], config.domain)
        site = _Site(config.domain, menus)
        pages, complete = await self._pages(max_pages)
        for start in range(0, len(pages), _CONCURRENT_READS):
            await self._links_of(site, pages[start : start + _CONCURRENT_READS])
        site.ids |= {page.slug: page.node_id for page in pages}
        await self._redirects(site)
        return site.graph(complete)

    async def nodes(self, graph: Graph, *, limit: int = 50, cursor: str | None = None) -> Page[GraphNode]:
        """Return pages, newest first, with their links in a graph."""
        found = await self._store.page(Content.listed(), limit=limit, cursor=cursor)
        return Page(items=[graph.node(each) for each in found], cursor=found.cursor, scanned=found.scanned)

    async def _pages(self, max_pages: int) -> tuple[list[ContentSummary], bool]:
        pages: list[ContentSummary] = []
        cursor: str | None = None
        while len(pages) < max_pages:
            limit = min(_PAGE_SIZE, max_pages - len(pages))
            found = await self._store.page(Content.listed(), limit=limit, cursor=cursor)
            pages += found.items
            cursor = found.cursor
            if cursor is None:
                return pages, True
        return pages, False

    async def _links_of(self, site: _Site, pages: Iterable[ContentSummary]) -> None:
        reads = [self._store.first(Content.links_of(page.node_id)) for page in pages]
        for found in await asyncio.gather(*reads):
            if found is not None:
                site.targets[found.node_id] = links_in(found.blocks, site.domain)
                if is_public(found, self._now()):
                    site.published.add(found.node_id)

    async def _redirects(self, site: _Site) -> None:
        routes, cursor = Routes(self._store), None
        while True:
            found = await routes.redirects(limit=1000, cursor=cursor)
            site.ids |= {each.path: site.ids[each.to] for each in found if each.to in site.ids}
            cursor = found.cursor
            if cursor is None:
                return
