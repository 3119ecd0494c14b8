"""Dependencies of routes: pages with sealed cursors, revisions, the storage and the search index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Path, Request, Response
from pydantic import BaseModel

import solotable
from solotable import AsyncDatabase
from solotable.systems.http.cursors import CursorSeal, SealedPaging
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.entities.values import ContentId
from solotable.systems.portal.roles import Caller
from solotable.systems.portal.search.service import Search
from solotable.systems.storage import Storage
from solotable.web import DatabaseDep, Page, Paging, etag

from .access import CurrentCaller
from .envelope import Envelope

RowT = TypeVar("RowT", bound=BaseModel)
ViewT = TypeVar("ViewT")

ContentPath = Annotated[ContentId, Path(examples=["01JD0QK7V3M8Z6X2T9R4C5B1AE"])]


async def get_paging(request: Request, caller: CurrentCaller, paging: Paging) -> SealedPaging:
    """Return the requested page."""
    return SealedPaging(cast(CursorSeal, request.app.state.cursor_seal), caller.user_id, paging)


PagingDep = Annotated[SealedPaging, Depends(get_paging)]


def page_envelope(
    request: Request,
    page: solotable.Page[RowT],
    next_cursor: str | None,
) -> Envelope[Page[Any]]:
    """Return a page of the store in an envelope, with a sealed cursor."""
    found = Page[Any].model_construct(items=list(page.items), next_cursor=next_cursor)
    return Envelope[Page[Any]].of(request, found)


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a caller, with what its route needs."""

    request: Request
    response: Response
    caller: Caller
    db: AsyncDatabase

    def reply(self, data: ViewT) -> Envelope[ViewT]:
        """Return a result in its envelope."""
        return Envelope[ViewT].of(self.request, data)

    def content(self, content: Content) -> Envelope[Content]:
        """Return content in its envelope, with its revision as the ETag."""
        self.response.headers["etag"] = etag(content.revision)
        return Envelope[Content].of(self.request, content)


async def get_call(request: Request, response: Response, caller: CurrentCaller, db: DatabaseDep) -> Call:
    """Return the call of a request."""
    return Call(request, response, caller, db)


CallDep = Annotated[Call, Depends(get_call)]


async def get_storage(request: Request) -> Storage:
    """Return the app's file storage."""
    return cast(Storage, request.app.state.storage)


async def get_search(request: Request) -> Search:
    """Return the app's search."""
    return cast(Search, request.app.state.search)


StorageDep = Annotated[Storage, Depends(get_storage)]
SearchDep = Annotated[Search, Depends(get_search)]
