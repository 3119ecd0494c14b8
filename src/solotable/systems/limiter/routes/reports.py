"""`/usage`, `/audit`: what was consumed, and who changed what, as far as the jobs have come."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AfterValidator, AwareDatetime

from solotable.systems.limiter.usage import Window
from solotable.web import Page, Paging

from .access import OPERATORS, allow
from .scope import LimiterDep, OneEntity, OneResource
from .shapes import AuditOut, SummaryOut, UsageOut

router = APIRouter()
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def _in_our_time(moment: datetime) -> datetime:
    # The first and last hours of the calendar overflow when they are turned to UTC.
    if not _EARLIEST <= moment <= _LATEST:
        raise ValueError("is between the years 2000 and 2200")
    return moment.astimezone(UTC)


Moment = Annotated[AwareDatetime, AfterValidator(_in_our_time)]
Since = Annotated[Moment | None, Query(description="Windows that begin at this moment or later.")]
Until = Annotated[Moment | None, Query(description="Windows that begin before this moment.")]


@router.get("/usage", tags=["usage"], **allow(*OPERATORS))
async def usage(
    limiter: LimiterDep,
    paging: Paging,
    entity: OneEntity = None,
    resource: OneResource = None,
    window: Window = "hour",
    since: Since = None,
    until: Until = None,
) -> Page[UsageOut]:
    """List the usage of an entity, of a resource, or of one by the other, oldest first."""
    found = await limiter.usage(
        entity=entity,
        resource=resource,
        window=window,
        since=since,
        until=until,
        limit=paging.limit,
        cursor=paging.cursor,
    )
    return Page[UsageOut](items=[UsageOut(**each.as_dict()) for each in found], next_cursor=found.cursor)


@router.get("/usage/summary", tags=["usage"], **allow(*OPERATORS))
async def usage_summary(
    limiter: LimiterDep,
    entity: OneEntity = None,
    resource: OneResource = None,
    window: Window = "hour",
    since: Since = None,
    until: Until = None,
) -> SummaryOut:
    """Return totals, means and peaks by limit."""
    found = await limiter.usage_summary(
        entity=entity, resource=resource, window=window, since=since, until=until
    )
    return SummaryOut(**found.as_dict())


@router.get("/audit", tags=["audit"], **allow(*OPERATORS))
async def audit(limiter: LimiterDep, paging: Paging, entity: OneEntity = None) -> Page[AuditOut]:
    """List who changed which entity and which limits, newest first."""
    found = await limiter.audit(entity=entity, limit=paging.limit, cursor=paging.cursor)
    return Page[AuditOut].of(found, lambda each: AuditOut(**each.as_dict()))
