"""`/surveys/{id}/report`, `/status` and `/photos/export`: what a client gets, and what is missing."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from solotable.systems.routes import Id
from solotable.systems.surveys.entities.access import Tenant
from solotable.systems.surveys.report.pdf import NoPrinter, print_pdf
from solotable.systems.surveys.report.photo_export import export_photos
from solotable.systems.surveys.report.service import report_html
from solotable.systems.surveys.routes.access import OpenSurvey, Viewed, in_survey
from solotable.systems.surveys.routes.dependencies import StorageDep
from solotable.systems.surveys.services.survey.form_status import FormStatus, read_form_status
from solotable.web import get_database

router = APIRouter(prefix="/surveys/{survey_id}", tags=["reports"])
#: The page itself allows the digests of its styles only; a browser enforces both.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


@router.get("/report", response_class=HTMLResponse, **in_survey("viewer"))
async def get_report(survey_id: Id, survey: Viewed, files: StorageDep, request: Request) -> HTMLResponse:
    """Return the report of a survey as an HTML page that prints well."""
    page = await _report(request, survey, files)
    return HTMLResponse(page, headers={"content-security-policy": _POLICY})


@router.get(
    "/report.pdf",
    response_class=Response,
    responses={
        200: {"description": "The report.", "content": {"application/pdf": {}}},
        406: {"description": "The server has no program that prints a PDF."},
    },
    **in_survey("viewer"),
)
async def get_report_pdf(survey_id: Id, survey: Viewed, files: StorageDep, request: Request) -> Response:
    """Return the report of a survey as a PDF; 406 where the server has no program to print it."""
    page = await _report(request, survey, files)
    try:
        printed = await asyncio.to_thread(print_pdf, page)
    except NoPrinter as error:
        raise HTTPException(406, str(error)) from error
    name = {"content-disposition": 'attachment; filename="report.pdf"'}
    return Response(printed, media_type="application/pdf", headers=name)


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


async def _report(request: Request, survey: OpenSurvey, files: StorageDep) -> str:
    tenant = await get_database(request).get(Tenant, id=survey.store.tenant_id or "")
    firm = "" if tenant is None else tenant.name
    return await report_html(survey.store, files, survey.survey_id, firm=firm)
