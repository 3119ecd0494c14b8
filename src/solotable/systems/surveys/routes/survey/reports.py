"""`/surveys/{id}/report`, `/status`, `/photos/export` and `/reports/{token}`: what a client gets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, cast

from fastapi import APIRouter, HTTPException, Path, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import Field

from solotable import AsyncStore
from solotable.errors import NotFound
from solotable.flow import scope_of
from solotable.systems.formats.inputs import Input
from solotable.systems.routes import PUBLIC, Id
from solotable.systems.surveys.entities.access import Tenant
from solotable.systems.surveys.report.links import MAX_DAYS, ReportLinks
from solotable.systems.surveys.report.pdf import NoPrinter, find_browser, print_pdf
from solotable.systems.surveys.report.photo_export import export_photos
from solotable.systems.surveys.report.service import report_html
from solotable.systems.surveys.routes.access import Owned, Viewed, in_survey
from solotable.systems.surveys.routes.dependencies import StorageDep
from solotable.systems.surveys.services.survey.form_status import FormStatus, read_form_status
from solotable.systems.surveys.services.survey.surveys import Surveys
from solotable.web import get_database

router = APIRouter(prefix="/surveys/{survey_id}", tags=["reports"])
public_router = APIRouter(tags=["reports"])
#: The page itself allows the digests of its styles only; a browser enforces both.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
#: A link is a credential: no cache, no search engine and no other site learns it.
_PRIVATE = {
    "content-security-policy": _POLICY,
    "cache-control": "private, no-store",
    "referrer-policy": "no-referrer",
    "x-robots-tag": "noindex, nofollow",
}
#: `**PDF`: a route whose response is a PDF.
PDF: dict[str, Any] = {
    "response_class": Response,
    "responses": {
        200: {"description": "The report.", "content": {"application/pdf": {}}},
        406: {"description": "The server has no program that prints a PDF."},
    },
}
_NO_LINK = "The link does not exist or has ended."
Token = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,600}\.[A-Za-z0-9_-]{43}$", examples=["eyJ0.c2ln"])]


class LinkDraft(Input):
    """A new link to a report."""

    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 7


class CreatedLink(Input):
    """A link to a report: its path on this server, and when it ends."""

    path: str
    expires: datetime


@router.get("/report", response_class=HTMLResponse, **in_survey("viewer"))
async def get_report(survey_id: Id, survey: Viewed, files: StorageDep, request: Request) -> HTMLResponse:
    """Return the report of a survey as an HTML page that prints well."""
    page = await _report(request, survey.store, survey_id, files)
    return HTMLResponse(page, headers={"content-security-policy": _POLICY})


@router.post("/report/links", status_code=201, **in_survey("owner"))
async def create_link(survey_id: Id, body: LinkDraft, survey: Owned, request: Request) -> CreatedLink:
    """Create a link to the report that needs no credential; it ends after some days."""
    await Surveys(survey.store).get(survey_id)
    links = cast(ReportLinks, request.app.state.report_links)
    token, expires = links.sign(
        survey.store.tenant_id or "", survey_id, now=scope_of(survey.store).now(), days=body.days
    )
    return CreatedLink(path=f"/reports/{token}", expires=expires)


@public_router.get("/reports/{token}", response_class=HTMLResponse, **PUBLIC)
async def get_shared_report(token: Token, files: StorageDep, request: Request) -> HTMLResponse:
    """Return the report that a link opens; 404 for a link that has ended."""
    pdf_url = f"/reports/{token}/report.pdf" if find_browser() is not None else None
    return HTMLResponse(await _shared(request, token, files, pdf_url), headers=_PRIVATE)


@public_router.get("/reports/{token}/report.pdf", **PDF, **PUBLIC)
async def get_shared_pdf(token: Token, files: StorageDep, request: Request) -> Response:
    """Return the report that a link opens as a PDF."""
    return await _print(request, await _shared(request, token, files), _PRIVATE)


@router.get("/report.pdf", **PDF, **in_survey("viewer"))
async def get_report_pdf(survey_id: Id, survey: Viewed, files: StorageDep, request: Request) -> Response:
    """Return the report of a survey as a PDF; 406 where the server has no program to print it."""
    return await _print(request, await _report(request, survey.store, survey_id, files))


@router.get("/status", **in_survey("viewer"))
async def get_form_status(survey_id: Id, survey: Viewed) -> FormStatus:
    """Return what is missing to complete each section, by the survey's configuration."""
    return await read_form_status(survey.store, survey_id)


@router.post(
    "/photos/export",
    response_class=StreamingResponse,
    responses={200: {"description": "The photos.", "content": {"application/zip": {}}}},
    **in_survey("viewer"),
)
async def export_survey_photos(survey_id: Id, survey: Viewed, files: StorageDep) -> StreamingResponse:
    """Return the photos of a survey as a ZIP, with readable names and a manifest."""
    chunks = await export_photos(survey.store, files, survey_id)
    name = {"content-disposition": 'attachment; filename="photos.zip"'}
    return StreamingResponse(chunks, media_type="application/zip", headers=name)


async def _report(
    request: Request, store: AsyncStore, survey_id: str, files: StorageDep, pdf_url: str | None = None
) -> str:
    tenant = await get_database(request).get(Tenant, id=store.tenant_id or "")
    firm = "" if tenant is None else tenant.name
    return await report_html(store, files, survey_id, firm=firm, pdf_url=pdf_url)


async def _shared(request: Request, token: str, files: StorageDep, pdf_url: str | None = None) -> str:
    """Return the page that a token opens; 404 for one that has ended, or whose survey has."""
    database = get_database(request)
    links = cast(ReportLinks, request.app.state.report_links)
    link = links.read(token, now=scope_of(database).now())
    if link is None:
        raise HTTPException(404, _NO_LINK)
    try:
        return await _report(request, database.tenant(link.tenant), link.survey_id, files, pdf_url)
    except NotFound:
        raise HTTPException(404, _NO_LINK) from None


async def _print(request: Request, page: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a page as a PDF. Each print is a program of some 100 MB, so requests wait for the others."""
    try:
        async with request.app.state.printing:
            printed = await asyncio.to_thread(print_pdf, page)
    except NoPrinter as error:
        raise HTTPException(406, str(error)) from error
    name = {"content-disposition": 'attachment; filename="report.pdf"'}
    return Response(printed, media_type="application/pdf", headers={**(headers or {}), **name})
