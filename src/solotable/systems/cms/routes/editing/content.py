"""`/content`: pages, as editors make, change, find and delete them. Blocks are in no list."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from solotable.systems.cms.entities import Content, ContentStatus, ContentSummary
from solotable.systems.cms.routes.access import ADMINS, EDITORS, READERS, allow
from solotable.systems.cms.routes.body_limits import JsonRoute
from solotable.systems.cms.routes.dependencies import Expected, Id, SiteStore, tagged
from solotable.systems.cms.routes.site.sitemaps import refresh
from solotable.systems.cms.services import ContentDraft, ContentPatch, Contents, Moved, Routes
from solotable.web import Page, Paging

router = APIRouter(prefix="/content", tags=["content"], route_class=JsonRoute)


@router.get("", **allow(*READERS))
async def list_content(
    store: SiteStore,
    paging: Paging,
    status: Annotated[ContentStatus | None, Query(description="Only these, oldest first: the inbox.")] = None,
    kind: Annotated[
        Literal["Redirect"] | None, Query(alias="type", description="Redirects instead of pages.")
    ] = None,
) -> Page[ContentSummary] | Page[Moved]:
    """List pages, newest first, without their blocks; or redirects."""
    if kind is not None:
        moved = await Routes(store).redirects(limit=paging.limit, cursor=paging.cursor)
        return Page[Moved].of(moved)
    contents = Contents(store)
    if status is None:
        found = await contents.list(limit=paging.limit, cursor=paging.cursor)
    else:
        found = await contents.inbox(status, limit=paging.limit, cursor=paging.cursor)
    return Page[ContentSummary].of(found)


@router.post("", status_code=201, **allow(*EDITORS))
async def create_content(
    draft: ContentDraft, store: SiteStore, response: Response, request: Request
) -> Content:
    """Make a page and its route together; a path that is taken is a 409."""
    made = await Contents(store).create(draft)
    refresh(request, store)
    response.headers["location"] = f"/content/{made.node_id}"
    return tagged(response, made)


@router.get("/{node_id}", **allow(*READERS))
async def get_content(node_id: Id, store: SiteStore, response: Response) -> Content:
    """Return a page as it is now."""
    return tagged(response, await Contents(store).get(node_id))


@router.put("/{node_id}", **allow(*EDITORS))
async def update_content(
    node_id: Id,
    patch: ContentPatch,
    store: SiteStore,
    version: Expected,
    request: Request,
    response: Response,
) -> Content:
    """Change the fields that are given; a new slug leaves a redirect at the old path."""
    stored = await Contents(store).update(node_id, patch, version=version)
    refresh(request, store)
    return tagged(response, stored)


@router.delete("/{node_id}", status_code=204, **allow(*EDITORS))
async def delete_content(node_id: Id, store: SiteStore, version: Expected, request: Request) -> None:
    """Delete a page, its route and its redirects; its versions stay until they are purged."""
    await Contents(store).delete(node_id, version=version)
    refresh(request, store)


@router.post("/{node_id}/recover", **allow(*EDITORS))
async def recover_content(node_id: Id, store: SiteStore, response: Response, request: Request) -> Content:
    """Give a deleted page back, under the path it had."""
    found = await Contents(store).recover(node_id)
    refresh(request, store)
    return tagged(response, found)


@router.delete("/{node_id}/versions", status_code=204, **allow(*ADMINS))
async def purge_content(node_id: Id, store: SiteStore) -> None:
    """Remove the versions of a deleted page for good."""
    await Contents(store).purge(node_id)
