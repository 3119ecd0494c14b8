"""`/content`: create, change, list and delete pages. Lists leave out the blocks."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from solotable.systems.cms.entities import Content, ContentStatus, ContentSummary
from solotable.systems.cms.routes.access import ADMINS, EDITORS, READERS
from solotable.systems.cms.routes.dependencies import ActiveStore
from solotable.systems.cms.routes.site.sitemaps import forget_site
from solotable.systems.cms.services import ContentDraft, ContentPatch, Contents, PathRedirect, Routes
from solotable.systems.routes import ExpectedVersion, Id, JsonRoute, allow, set_etag
from solotable.web import Page, Paging

router = APIRouter(prefix="/content", tags=["content"], route_class=JsonRoute)


@router.get("", **allow(*READERS))
async def list_content(
    store: ActiveStore,
    paging: Paging,
    status: Annotated[
        ContentStatus | None, Query(description="Only pages in this status, oldest first.")
    ] = None,
    kind: Annotated[
        Literal["Redirect"] | None, Query(alias="type", description="Redirects instead of pages.")
    ] = None,
) -> Page[ContentSummary] | Page[PathRedirect]:
    """List pages, newest first, without their blocks; or redirects."""
    if kind is not None:
        moved = await Routes(store).redirects(limit=paging.limit, cursor=paging.cursor)
        return Page[PathRedirect].of(moved)
    contents = Contents(store)
    if status is None:
        found = await contents.list(limit=paging.limit, cursor=paging.cursor)
    else:
        found = await contents.inbox(status, limit=paging.limit, cursor=paging.cursor)
    return Page[ContentSummary].of(found)


@router.post("", status_code=201, **allow(*EDITORS))
async def create_content(
    draft: ContentDraft, store: ActiveStore, response: Response, request: Request
) -> Content:
    """Create a page and its route; 409 if another page has the path."""
    created = await Contents(store).create(draft)
    forget_site(request, store)
    response.headers["location"] = f"/content/{created.node_id}"
    return set_etag(response, created)


@router.get("/{node_id}", **allow(*READERS))
async def get_content(node_id: Id, store: ActiveStore, response: Response) -> Content:
    """Return the current version of a page."""
    return set_etag(response, await Contents(store).get(node_id))


@router.put("/{node_id}", **allow(*EDITORS))
async def update_content(
    node_id: Id,
    patch: ContentPatch,
    store: ActiveStore,
    version: ExpectedVersion,
    request: Request,
    response: Response,
) -> Content:
    """Change the given fields; a new slug leaves a redirect at the old path."""
    stored = await Contents(store).update(node_id, patch, version=version)
    forget_site(request, store)
    return set_etag(response, stored)


@router.delete("/{node_id}", status_code=204, **allow(*EDITORS))
async def delete_content(node_id: Id, store: ActiveStore, version: ExpectedVersion, request: Request) -> None:
    """Delete a page, its route and its redirects; its versions stay until a purge."""
    await Contents(store).delete(node_id, version=version)
    forget_site(request, store)


@router.post("/{node_id}/recover", **allow(*EDITORS))
async def recover_content(node_id: Id, store: ActiveStore, response: Response, request: Request) -> Content:
    """Restore a deleted page at the path that it had."""
    found = await Contents(store).recover(node_id)
    forget_site(request, store)
    return set_etag(response, found)


@router.delete("/{node_id}/versions", status_code=204, **allow(*ADMINS))
async def purge_content(node_id: Id, store: ActiveStore) -> None:
    """Purge the versions of a deleted page."""
    await Contents(store).purge(node_id)
