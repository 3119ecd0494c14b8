"""`/routes`, `/redirects`, `/resolve`: the paths of a tenant, for editors and renderers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request

from solotable.systems.cms.entities import Content, RouteSummary
from solotable.systems.cms.routes.access import EDITORS, READERS
from solotable.systems.cms.routes.dependencies import ActiveStore, Clock
from solotable.systems.cms.services import PathRedirect, Routes
from solotable.systems.routes import JsonRoute, allow
from solotable.web import Page, Paging

from .sitemaps import forget_site

router = APIRouter(tags=["routes"], route_class=JsonRoute)

PathText = Annotated[str, Query(min_length=1, max_length=400, examples=["/about-us"])]


@router.get("/routes", **allow(*READERS))
async def list_routes(store: ActiveStore, paging: Paging) -> Page[RouteSummary]:
    """List routes by path."""
    return Page[RouteSummary].of(await Routes(store).list(limit=paging.limit, cursor=paging.cursor))


@router.get("/redirects", **allow(*READERS))
async def list_redirects(store: ActiveStore, paging: Paging) -> Page[PathRedirect]:
    """List redirects; an empty page may still have a cursor."""
    return Page[PathRedirect].of(await Routes(store).redirects(limit=paging.limit, cursor=paging.cursor))


@router.delete("/redirects", status_code=204, **allow(*EDITORS))
async def release_redirect(store: ActiveStore, path: PathText, request: Request) -> None:
    """Delete a redirect, so that another page can use its path."""
    await Routes(store).release(path)
    forget_site(request, store)


@router.get("/resolve", **allow(*READERS))
async def resolve_path(
    store: ActiveStore, path: PathText, now: Clock, preview: bool = False
) -> Content | PathRedirect:
    """Return the page at a path, or its redirect; with `preview` unpublished pages too."""
    found = await Routes(store, now=now).resolve(path, preview=preview)
    if found is None:
        raise HTTPException(404, "No page has this path.")
    return found
