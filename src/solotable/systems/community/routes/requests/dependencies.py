"""Dependencies of routes: the database, pages with sealed cursors, versions."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import Depends, Path, Request, Response

import solotable
from solotable import AsyncDatabase
from solotable.systems.community.entities.values import Did, Id, RecordKey
from solotable.systems.community.roles import Caller
from solotable.systems.community.settings import CommunitySettings
from solotable.systems.http.cursors import CursorSeal, SealedPaging
from solotable.systems.http.rate_limits import taken
from solotable.web import DatabaseDep, Page, PageParams, Paging

from .access import Client, CurrentClient, VisitingClient
from .rate_limits import LimitName, user_subject

_ID = "01JD0QK7V3M8Z6X2T9R4C5B1AE"
NeighbourhoodPath = Annotated[Id, Path(examples=[_ID])]
SitePath = Annotated[Id, Path(examples=[_ID])]
JobPath = Annotated[Id, Path(examples=[_ID])]
TemplatePath = Annotated[Id, Path(examples=["blog"])]
DidPath = Annotated[Did, Path(examples=["did:plc:abc123"])]
RecordPath = Annotated[RecordKey, Path(examples=["3l7f2kq2abc2d"])]


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a client, with what its route needs."""

    request: Request
    response: Response
    client: Client
    db: AsyncDatabase

    @property
    def caller(self) -> Caller:
        """The caller of services."""
        return self.client.caller

    @property
    def did(self) -> str:
        """The DID of the user, or raise Forbidden."""
        return self.caller.require_user()

    @property
    def state(self) -> Any:
        """The app's state."""
        return self.request.app.state

    @property
    def settings(self) -> CommunitySettings:
        """The settings of the installation."""
        return cast(CommunitySettings, self.state.settings)

    def limited(self, name: LimitName) -> AbstractAsyncContextManager[object]:
        """Take a token of the user for as long as a block lasts; an error gives it back."""
        return taken(self.request, name, user_subject(self.did))


async def get_call(request: Request, response: Response, client: CurrentClient, db: DatabaseDep) -> Call:
    """Return the call of a request."""
    return Call(request, response, client, db)


async def get_public_call(
    request: Request, response: Response, client: VisitingClient, db: DatabaseDep
) -> Call:
    """Return the call of a request that needs no credential."""
    return Call(request, response, client, db)


CallDep = Annotated[Call, Depends(get_call)]
PublicCallDep = Annotated[Call, Depends(get_public_call)]


def _sealed(request: Request, client: Client, paging: PageParams) -> SealedPaging:
    seal = cast(CursorSeal, request.app.state.cursor_seal)
    subject = "operator" if client.caller.is_operator else client.caller.did or ""
    return SealedPaging(seal, subject, paging)


async def get_paging(request: Request, client: CurrentClient, paging: Paging) -> SealedPaging:
    """Return the requested page; its cursors work for this client only."""
    return _sealed(request, client, paging)


async def get_public_paging(request: Request, client: VisitingClient, paging: Paging) -> SealedPaging:
    """Return the requested page of a public list."""
    return _sealed(request, client, paging)


PagingDep = Annotated[SealedPaging, Depends(get_paging)]
PublicPagingDep = Annotated[SealedPaging, Depends(get_public_paging)]


def page_of(page: solotable.Page[Any], next_cursor: str | None) -> Page[Any]:
    """Return a page of a service as a response body, with a sealed cursor."""
    return Page[Any].model_construct(items=list(page.items), next_cursor=next_cursor)
