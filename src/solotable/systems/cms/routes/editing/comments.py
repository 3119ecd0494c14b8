"""`/comments`: approved comments for visitors; all comments, and moderation, for editors."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field

from solotable.systems.cms.entities import Comment, CommentDetail, CommentStatus, CommentSummary
from solotable.systems.cms.routes.access import EDITORS, READERS
from solotable.systems.cms.routes.body_limits import Email, IdText
from solotable.systems.cms.routes.dependencies import ActiveStore, Clock, Pepper, ReaderStore
from solotable.systems.cms.services import Comments, Contents
from solotable.systems.routes import JsonRoute, allow
from solotable.web import OptionalPrincipal, Page, Paging
from solotable.web.http.timestamps import Timestamp

router = APIRouter(prefix="/comments", tags=["comments"], route_class=JsonRoute)


class NewComment(BaseModel):
    """A new comment."""

    model_config = ConfigDict(extra="forbid")

    page_id: IdText
    author_name: Annotated[str, Field(min_length=1, max_length=100)]
    author_email: Email | None = None
    body: Annotated[str, Field(min_length=1, max_length=4000)]


class Moderation(BaseModel):
    """A moderation decision; `page_id`, `at` and `comment_id` are those of the list."""

    model_config = ConfigDict(extra="forbid")

    page_id: IdText
    at: Timestamp
    comment_id: IdText
    status: CommentStatus


@router.get("", openapi_extra={"x-roles": [], "security": [{}, {"Token": []}, {"ApiKey": []}]})
async def list_comments(
    store: ReaderStore,
    principal: OptionalPrincipal,
    paging: Paging,
    now: Clock,
    page_id: Annotated[
        str | None, Query(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$", examples=["01JD0QK7V3M8Z6X2T9R4C5B1AE"])
    ] = None,
    status: Annotated[
        CommentStatus | None, Query(description="Only comments in this status; for editors.")
    ] = None,
) -> Page[CommentDetail] | Page[CommentSummary]:
    """List the approved comments on a page; for editors all of them, or those in a status."""
    comments = Comments(store)
    if principal.has(*EDITORS):
        if page_id is None:
            inbox = await comments.inbox(status or "pending", limit=paging.limit, cursor=paging.cursor)
            return Page[CommentSummary].of(inbox)
        if status is not None:
            raise HTTPException(422, "Send page_id or status, not both.")
        found = await comments.of_page(page_id, limit=paging.limit, cursor=paging.cursor)
        return Page[CommentDetail].of(found)
    if page_id is None or status not in (None, "approved"):
        raise HTTPException(422, "Send page_id; only editors see comments that are not approved.")
    # The comments of an unpublished or deleted page are hidden with it.
    if not await Contents(store, now=now).is_public(page_id):
        return Page[CommentSummary](items=[])
    shown = await comments.shown(page_id, limit=paging.limit, cursor=paging.cursor)
    return Page[CommentSummary].of(shown)


@router.post("", status_code=201, **allow(*READERS))
async def post_comment(body: NewComment, store: ActiveStore, pepper: Pepper) -> CommentSummary:
    """Create a comment on a published page; it is shown after its approval."""
    created = await Comments(store, pepper=pepper).post(
        body.page_id, author_name=body.author_name, body=body.body, author_email=body.author_email
    )
    return CommentSummary.model_validate(created.model_dump(include=set(CommentSummary.model_fields)))


@router.put("", **allow(*EDITORS))
async def moderate_comment(body: Moderation, store: ActiveStore) -> Comment:
    """Set the status of a comment."""
    return await Comments(store).moderate(body.page_id, body.at, body.comment_id, body.status)
