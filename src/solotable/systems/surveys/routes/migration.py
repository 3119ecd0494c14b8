"""`/admin/migrate`, `/admin/verify`, `/admin/rollback` and `/admin/flags/table`: move to one table."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, HTTPException, Request
from pydantic import Field

from solotable.systems.formats.inputs import Input
from solotable.systems.routes import JsonRoute, allow
from solotable.systems.surveys.services.migration import MigrationState, SurveyMigration, Verification
from solotable.systems.surveys.sync.reset import reset_all_spaces
from solotable.web import DatabaseDep

from .access import GLOBAL_ADMINS

router = APIRouter(tags=["migration"], route_class=JsonRoute)


class MigrateRequest(Input):
    """How long to work, and how fast."""

    seconds: Annotated[float, Field(ge=0, le=20)] = 5.0
    #: The write units in a second, of all workers together.
    rate: Annotated[float, Field(gt=0, le=1_000_000)] | None = None


class TableFlag(Input):
    """Which table serves."""

    percent: Literal[0, 10, 50, 100]
    #: Whether the new table takes the writes.
    writes: bool | None = None


def _migration(request: Request) -> SurveyMigration:
    found: SurveyMigration | None = request.app.state.migration
    if found is None:
        raise HTTPException(404, "This installation has no migration.")
    return found


ActiveMigration = Annotated[SurveyMigration, Depends(_migration)]


@router.post("/admin/migrate", **allow(*GLOBAL_ADMINS))
async def migrate(body: MigrateRequest, migration: ActiveMigration) -> MigrationState:
    """Work on the migration for some seconds; the first call starts it. Repeat it until it is Running."""
    return await asyncio.to_thread(migration.work, seconds=body.seconds, rate=body.rate)


@router.post("/admin/verify", **allow(*GLOBAL_ADMINS))
async def verify(migration: ActiveMigration) -> Verification:
    """Compare the old tables with the new one, item by item."""
    return await asyncio.to_thread(migration.verify)


@router.post("/admin/rollback", **allow(*GLOBAL_ADMINS))
async def roll_back(migration: ActiveMigration) -> MigrationState:
    """Return to the old tables; what was written to the new one is there."""
    return await asyncio.to_thread(migration.roll_back)


@router.put("/admin/flags/table", **allow(*GLOBAL_ADMINS))
async def choose_table(
    body: TableFlag, migration: ActiveMigration, db: DatabaseDep, request: Request
) -> MigrationState:
    """Choose the share of the reads that the new table serves: 0, 10, 50 or 100 per cent, and the writes.

    When the new table begins to take writes, devices load their surveys again: the copy has no log.
    """
    before = await asyncio.to_thread(migration.state)
    after = await asyncio.to_thread(migration.choose_table, percent=body.percent, writes=body.writes)
    if after.writes == "target" and before.writes == "source":
        await reset_all_spaces(db, request.app.state.sync)
    return after
