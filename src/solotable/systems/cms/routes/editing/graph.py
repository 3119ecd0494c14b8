"""`/audit/graph`: the pages of a site with their links, for editors. Read once a minute, and paged."""

from __future__ import annotations

from typing import cast

from fastapi import APIRouter, Request

from solotable import AsyncDatabase, AsyncStore
from solotable.systems.cms.routes.access import EDITORS, allow
from solotable.systems.cms.routes.body_limits import JsonRoute
from solotable.systems.cms.routes.dependencies import ActingDatabase, SiteStore
from solotable.systems.cms.services.pages.graph import Graph, GraphNode, Graphs
from solotable.systems.cms.services.visitors import tenant_of
from solotable.web import Page, Paging
from solotable.web.ttl_cache import Kept

router = APIRouter(tags=["audit"], route_class=JsonRoute)


class GraphCache:
    """The graphs of all tenants, as many as have so many pages and links together."""

    def __init__(self, *, ttl_seconds: float = 60.0, most: int = 500_000) -> None:
        self._kept: Kept[str, Graph] = Kept(ttl_seconds=ttl_seconds, most=most, weigh=lambda each: each.size)

    async def graph(self, db: AsyncDatabase, store: AsyncStore) -> Graph:
        """Return the graph of a store's tenant."""
        return await self._kept.get(tenant_of(store), Graphs(db, store).read)

    def forget(self, tenant: str) -> None:
        """Read the pages of a tenant again, as one of them has changed."""
        self._kept.forget(lambda each: each == tenant)


def graphs(request: Request) -> GraphCache:
    """Return what the app remembers of graphs."""
    return cast(GraphCache, request.app.state.graphs)


@router.get("/audit/graph", **allow(*EDITORS))
async def list_graph(
    request: Request, db: ActingDatabase, store: SiteStore, paging: Paging
) -> Page[GraphNode]:
    """List pages, newest first, with their links, links that lead nowhere, and whether they are orphans."""
    graph = await graphs(request).graph(db, store)
    found = await Graphs(db, store).nodes(graph, limit=paging.limit, cursor=paging.cursor)
    return Page[GraphNode].of(found)
