"""`/usage`, `/audit`: what was consumed and who changed what. `/metrics`: what this process decided."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from solotable.observe.series import CONTENT_TYPE
from solotable.systems.limiter.usage import Window
from solotable.web import DatabaseDep, Page, Paging, TenantId
from solotable.web.http.timestamps import Timestamp

from .access import OPERATORS, allow
from .bodies import AuditOut, SummaryOut, UsageOut
from .dependencies import LimiterDep, OneEntity, OneResource, namespace_limiters

router = APIRouter()


Since = Annotated[Timestamp | None, Query(description="Windows that begin at this time or later.")]
Until = Annotated[Timestamp | None, Query(description="Windows that begin before this time.")]


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
    """List the usage of an entity, of a resource, or of both, oldest first."""
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
    return Page[AuditOut].of(found, AuditOut.model_validate)


@router.get(
    "/metrics",
    tags=["metrics"],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    **allow(*OPERATORS),
)
async def metrics(request: Request, namespace: TenantId, db: DatabaseDep) -> Response:
    """Return the acquires of a namespace in this process since its start, as Prometheus text."""
    text = await namespace_limiters(request).metrics(db, namespace)
    return Response(text, headers={"content-type": CONTENT_TYPE})
