"""`/routes`, `/redirects`, `/resolve`: the paths of a tenant, for those who look after them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request

from solotable.systems.cms.entities import Content, RouteSummary
from solotable.systems.cms.routes.access import EDITORS, READERS, allow
from solotable.systems.cms.routes.body_limits import JsonRoute
from solotable.systems.cms.routes.dependencies import SiteStore
from solotable.systems.cms.services import Moved, Routes
from solotable.web import Page, Paging

from .sitemaps import refresh

router = APIRouter(tags=["routes"], route_class=JsonRoute)

PathText = Annotated[str, Query(min_length=1, max_length=400, examples=["/about-us"])]


@router.get("/routes", **allow(*READERS))
async def list_routes(store: SiteStore, paging: Paging) -> Page[RouteSummary]:
    """List routes by path."""
    return Page[RouteSummary].of(await Routes(store).list(limit=paging.limit, cursor=paging.cursor))


@router.get("/redirects", **allow(*READERS))
async def list_redirects(store: SiteStore, paging: Paging) -> Page[Moved]:
    """List redirects; a page of them may be empty and still have a cursor."""
    return Page[Moved].of(await Routes(store).redirects(limit=paging.limit, cursor=paging.cursor))


@router.delete("/redirects", status_code=204, **allow(*EDITORS))
async def release_redirect(store: SiteStore, path: PathText, request: Request) -> None:
    """Give up a redirect, so that another page may have its path."""
    await Routes(store).release(path)
    refresh(request, store)


@router.get("/resolve", **allow(*READERS))
async def resolve_path(store: SiteStore, path: PathText, preview: bool = False) -> Content | Moved:
    """Return the page at a path, or where it has moved to; with `preview` also what is not published."""
    found = await Routes(store).resolve(path, preview=preview)
    if found is None:
        raise HTTPException(404, "There is no page at this path.")
    return found
