"""`/comments`: approved ones for everybody, all with addresses for editors, who moderate them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field

from solotable.systems.cms.entities import Comment, CommentDetail, CommentStatus, CommentSummary
from solotable.systems.cms.routes.access import EDITORS, READERS, allow
from solotable.systems.cms.routes.body_limits import Email, IdText, JsonRoute
from solotable.systems.cms.routes.dependencies import Pepper, ReaderStore, SiteStore
from solotable.systems.cms.services import Comments, Contents
from solotable.web import Page, Paging, Visitor
from solotable.web.http.timestamps import Moment

router = APIRouter(prefix="/comments", tags=["comments"], route_class=JsonRoute)


class NewComment(BaseModel):
    """A comment as it is sent."""

    model_config = ConfigDict(extra="forbid")

    page_id: IdText
    author_name: Annotated[str, Field(min_length=1, max_length=100)]
    author_email: Email | None = None
    body: Annotated[str, Field(min_length=1, max_length=4000)]


class Moderation(BaseModel):
    """What is decided about which comment; page, time and id are as the list has them."""

    model_config = ConfigDict(extra="forbid")

    page_id: IdText
    at: Moment
    comment_id: IdText
    status: CommentStatus


@router.get("", openapi_extra={"x-roles": [], "security": [{}, {"Token": []}, {"ApiKey": []}]})
async def list_comments(
    store: ReaderStore,
    principal: Visitor,
    paging: Paging,
    page_id: Annotated[
        str | None, Query(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$", examples=["01JD0QK7V3M8Z6X2T9R4C5B1AE"])
    ] = None,
    status: Annotated[CommentStatus | None, Query(description="Only these; for editors.")] = None,
) -> Page[CommentDetail] | Page[CommentSummary]:
    """List the comments on a page: the approved ones, or for editors all of them, or those in a status."""
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
        raise HTTPException(422, "Send page_id; without an editor's role only approved comments are shown.")
    # With a page that is withdrawn or deleted its comments are not there either.
    if not await Contents(store).is_published(page_id):
        return Page[CommentSummary](items=[])
    shown = await comments.shown(page_id, limit=paging.limit, cursor=paging.cursor)
    return Page[CommentSummary].of(shown)


@router.post("", status_code=201, **allow(*READERS))
async def post_comment(body: NewComment, store: SiteStore, pepper: Pepper) -> CommentSummary:
    """Take a comment on a published page; it is shown when it was approved."""
    made = await Comments(store, pepper=pepper).post(
        body.page_id, author_name=body.author_name, body=body.body, author_email=body.author_email
    )
    return CommentSummary.model_validate(made.model_dump(include=set(CommentSummary.model_fields)))


@router.put("", **allow(*EDITORS))
async def moderate_comment(body: Moderation, store: SiteStore) -> Comment:
    """Approve, reject or otherwise judge a comment."""
    return await Comments(store).moderate(body.page_id, body.at, body.comment_id, body.status)
