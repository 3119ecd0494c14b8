"""`/audit/graph`: the pages of a site with their links, for editors. Cached for a minute, and paged."""

from __future__ import annotations

from typing import cast

from fastapi import APIRouter, Request

from solotable import AsyncDatabase, AsyncStore
from solotable.cache import TTLCache
from solotable.systems.cms.formats.timestamps import Now, now_ms
from solotable.systems.cms.routes.access import EDITORS
from solotable.systems.cms.routes.dependencies import ActingDatabase, ActiveStore
from solotable.systems.cms.services.pages.graph import Graph, GraphNode, Graphs
from solotable.systems.cms.services.visitors import tenant_of
from solotable.systems.routes import JsonRoute, allow
from solotable.web import Page, Paging

router = APIRouter(tags=["audit"], route_class=JsonRoute)


class GraphCache:
    """The graphs of all tenants; `max_size` bounds the sum of their pages and links."""

    def __init__(self, *, ttl_seconds: float = 60.0, max_size: int = 500_000, now: Now = now_ms) -> None:
        self._now = now
        self._cache: TTLCache[str, Graph] = TTLCache(
            ttl_seconds=ttl_seconds, max_size=max_size, size_of=lambda graph: graph.size
        )

    async def graph(self, db: AsyncDatabase, store: AsyncStore) -> Graph:
        """Return the graph of a store's tenant."""
        return await self._cache.load_async(tenant_of(store), Graphs(db, store, now=self._now).read)

    def forget(self, tenant: str) -> None:
        """Forget the graph of a tenant after a page changed."""
        self._cache.forget(tenant)


def graphs(request: Request) -> GraphCache:
    """Return the app's cache of graphs."""
    return cast(GraphCache, request.app.state.graphs)


@router.get("/audit/graph", **allow(*EDITORS))
async def list_graph(
    request: Request, db: ActingDatabase, store: ActiveStore, paging: Paging
) -> Page[GraphNode]:
    """List pages, newest first, with their links, broken links, and whether they are orphans."""
    graph = await graphs(request).graph(db, store)
    found = await Graphs(db, store).nodes(graph, limit=paging.limit, cursor=paging.cursor)
    return Page[GraphNode].of(found)
