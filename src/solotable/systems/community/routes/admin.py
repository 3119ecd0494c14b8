"""`/admin`: exports and restores, for operators."""

from __future__ import annotations

import asyncio
from typing import cast

from fastapi import APIRouter, Depends, Request

from solotable.systems.community.recovery import ExportReport, Recovery, RestoreReport
from solotable.systems.routes import JsonRoute

from .requests.access import allow
from .requests.rate_limits import limit_address
from .schemas.bodies import RestoreRequest

router = APIRouter(
    prefix="/admin", tags=["admin"], route_class=JsonRoute, dependencies=[Depends(limit_address)]
)


def _recovery(request: Request) -> Recovery:
    return cast(Recovery, request.app.state.recovery)


@router.post("/export", status_code=201, **allow("operator"))
async def export_table(request: Request) -> ExportReport:
    """Export all items as JSON, unless the day (UTC) has an export; wait until it is complete."""
    return await asyncio.to_thread(_recovery(request).export_day)


@router.post("/restore", status_code=202, **allow("operator"))
async def restore_table(body: RestoreRequest, request: Request) -> RestoreReport:
    """Restore the table of a moment as another table; the live table stays as it is."""
    return await asyncio.to_thread(_recovery(request).restore, body.table, body.at)
