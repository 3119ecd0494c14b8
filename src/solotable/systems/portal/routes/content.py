"""`/v1/content`: list, search, read and change content, and its lifecycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from solotable.systems.errors import InvalidInput
from solotable.systems.portal.entities.content import Content, ContentSummary
from solotable.systems.portal.entities.values import Status
from solotable.systems.portal.search.records import LONGEST_TEXT
from solotable.systems.portal.services.contents import Contents
from solotable.systems.portal.services.drafts import ContentDraft, ContentPatch
from solotable.systems.portal.services.lifecycle import Lifecycle
from solotable.systems.routes import ExpectedVersion, JsonRoute
from solotable.web import Page, etag, not_modified

from .requests.access import allow_from
from .requests.dependencies import CallDep, ContentPath, PagingDep, SearchDep, page_envelope
from .requests.envelope import API, Envelope
from .searches import find_content, search_query

router = APIRouter(prefix=f"{API}/content", tags=["content"], route_class=JsonRoute)

_Product = Annotated[str | None, Query(min_length=1, max_length=100)]


@dataclass(frozen=True, slots=True)
class ContentFilters:
    """The query of a list of content."""

    query: Annotated[str | None, Query(min_length=1, max_length=LONGEST_TEXT)] = None
    product_suite: _Product = None
    product_concept: _Product = None
    status: Status | None = None
    mine: Annotated[bool, Query(description="Only the caller's own content, of every status.")] = False

    @property
    def name(self) -> tuple[str | bool | None, ...]:
        """The list that a cursor belongs to."""
        return ("content", self.query, self.product_suite, self.product_concept, self.status, self.mine)


@router.get("", **allow_from("Viewer"))
async def list_content(
    call: CallDep, search: SearchDep, paging: PagingDep, filters: Annotated[ContentFilters, Depends()]
) -> Envelope[Page[ContentSummary]]:
    """List content, newest first, by default Approved content; with `query` search it, best first."""
    cursor = paging.cursor(*filters.name)
    if filters.query is not None and filters.mine:
        raise InvalidInput("Give either query or mine.")
    if filters.query is not None:
        query = search_query(
            call.caller, filters.query, filters.product_suite, filters.product_concept, filters.status
        )
        page = await find_content(search, query, limit=paging.limit, cursor=cursor)
    else:
        page = await Contents(call.db).list(
            call.caller,
            status=filters.status,
            product_suite=filters.product_suite,
            product_concept=filters.product_concept,
            owner=call.caller.user_id if filters.mine else None,
            limit=paging.limit,
            cursor=cursor,
        )
    return page_envelope(call.request, page, paging.seal_next(page.cursor, *filters.name))


@router.post("", status_code=201, **allow_from("Contributor", "writes"))
async def create_content(draft: ContentDraft, call: CallDep) -> Envelope[Content]:
    """Create a Draft; the caller is its owner."""
    created = await Contents(call.db).create(call.caller, draft)
    call.response.headers["location"] = f"{API}/content/{created.content_id}"
    return call.content(created)


@router.get("/{content_id}", responses={304: {"description": "Not modified."}}, **allow_from("Viewer"))
async def get_content(content_id: ContentPath, call: CallDep) -> Envelope[Content]:
    """Return content; 404 if the caller may not see it."""
    found = await Contents(call.db).get(call.caller, content_id)
    if not_modified(call.request, etag(found.revision)):
        # FastAPI returns a Response as it is.
        return Response(status_code=304, headers={"etag": etag(found.revision)})  # type: ignore[return-value]
    return call.content(found)


@router.put("/{content_id}", **allow_from("Contributor", "writes"))
async def update_content(
    content_id: ContentPath, patch: ContentPatch, call: CallDep, revision: ExpectedVersion
) -> Envelope[Content]:
    """Change the given fields; null removes an optional one. `If-Match` names the revision to change."""
    return call.content(await Contents(call.db).update(call.caller, content_id, patch, revision=revision))


@router.delete("/{content_id}", status_code=204, **allow_from("Admin", "writes"))
async def delete_content(content_id: ContentPath, call: CallDep, revision: ExpectedVersion) -> None:
    """Delete content and its file. Messages about it stay until they expire."""
    await Contents(call.db).delete(call.caller, content_id, revision=revision)


@router.post("/{content_id}/approve", **allow_from("Approver", "writes"))
async def approve_content(
    content_id: ContentPath, call: CallDep, revision: ExpectedVersion
) -> Envelope[Content]:
    """Approve a Draft or Deprecated content; subscribers hear of it in the background. Twice is a 409."""
    return call.content(await Lifecycle(call.db).approve(call.caller, content_id, revision=revision))


@router.post("/{content_id}/deprecate", **allow_from("Approver", "writes"))
async def deprecate_content(
    content_id: ContentPath, call: CallDep, revision: ExpectedVersion
) -> Envelope[Content]:
    """Mark Approved content as old; only an Admin downloads it afterwards."""
    return call.content(await Lifecycle(call.db).deprecate(call.caller, content_id, revision=revision))


@router.post("/{content_id}/expire", **allow_from("Approver", "writes"))
async def expire_content(
    content_id: ContentPath, call: CallDep, revision: ExpectedVersion
) -> Envelope[Content]:
    """End content now; subscribers and recent downloaders hear of it."""
    return call.content(await Lifecycle(call.db).expire(call.caller, content_id, revision=revision))


@router.post("/{content_id}/reopen", **allow_from("Admin", "writes"))
async def reopen_content(
    content_id: ContentPath, call: CallDep, revision: ExpectedVersion
) -> Envelope[Content]:
    """Make Expired content a Draft again."""
    return call.content(await Lifecycle(call.db).reopen(call.caller, content_id, revision=revision))
