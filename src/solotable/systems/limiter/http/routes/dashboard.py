"""`/api/dashboard`, `/health`: available tokens, and bucket changes. Nothing is taken."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import StreamingResponse

from solotable.errors import DataError, SolotableError
from solotable.flow import arun, scope_of
from solotable.systems.limiter.admin.limits import Amount
from solotable.systems.limiter.admin.names import LIMIT
from solotable.systems.limiter.admin.namespaces import namespaces
from solotable.systems.limiter.errors import LimitStatus, NoLimits
from solotable.systems.limiter.http.bucket_feed import BucketFeed, StreamSettings, stream_events
from solotable.systems.limiter.operations import fewest
from solotable.systems.limiter.rate_limiter import AsyncLimiter
from solotable.web import DatabaseDep, Page, Paging

from .access import APPS, OPERATORS, PUBLIC, allow
from .bodies import AvailabilityOut, DashboardRow, Health, StatusOut, WaitOut
from .dependencies import EntityPath, LimiterDep, ResourceQuery

router = APIRouter()

AmountTexts = Annotated[
    list[Annotated[str, Query(pattern=rf"^{LIMIT}:[0-9]{{1,12}}(\.[0-9]{{1,3}})?$")]],
    Query(
        min_length=1, max_length=10, description="A limit and an amount, for each limit.", examples=["rpm:1"]
    ),
]


@router.get("/api/dashboard/availability/{entity}", tags=["dashboard"], **allow(*APPS))
async def availability(entity: EntityPath, resource: ResourceQuery, limiter: LimiterDep) -> AvailabilityOut:
    """Return the available tokens of an entity; the fewer with a parent that is charged too."""
    statuses = await limiter.statuses(entity, resource)
    limits = [StatusOut.of(each) for each in statuses]
    return AvailabilityOut(entity=entity, resource=resource, available=fewest(statuses), limits=limits)


@router.get("/api/dashboard/wait-time/{entity}", tags=["dashboard"], **allow(*APPS))
async def wait_time(
    entity: EntityPath, resource: ResourceQuery, consume: AmountTexts, limiter: LimiterDep
) -> WaitOut:
    """Return the seconds until enough is available, if nothing else is taken; 422 if it never is."""
    wait = await limiter.time_until(entity, resource, _amounts(consume))
    return WaitOut(entity=entity, resource=resource, wait_seconds=wait)


@router.get("/api/dashboard/entities", tags=["dashboard"], **allow(*OPERATORS))
async def dashboard_entities(
    resource: ResourceQuery, limiter: LimiterDep, paging: Paging
) -> Page[DashboardRow]:
    """List entities with their limits for a resource, as stored now."""
    page = await limiter.entities(limit=paging.limit, cursor=paging.cursor)
    rows = [
        DashboardRow(
            entity_id=each.entity_id,
            name=each.name,
            parent_id=each.parent_id,
            limits=[StatusOut.of(status) for status in await _statuses(limiter, each.entity_id, resource)],
        )
        for each in page.items
    ]
    return Page[DashboardRow](items=rows, next_cursor=page.cursor)


@router.get(
    "/api/dashboard/stream",
    tags=["dashboard"],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    **allow(*OPERATORS),
)
async def stream(request: Request, limiter: LimiterDep) -> StreamingResponse:
    """Send every change of a bucket of the namespace from now on, as server-sent events.

    A stream ends after some minutes, and browsers connect again; changes in between are not sent.
    """
    feed = cast(BucketFeed, request.app.state.bucket_feed)
    settings = cast(StreamSettings, request.app.state.stream)
    return StreamingResponse(
        stream_events(feed, limiter.namespace, settings),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


@router.get("/health", tags=["health"], **PUBLIC)
async def health(db: DatabaseDep) -> Health:
    """Return whether the table responds."""
    try:
        await arun(namespaces(scope_of(db), limit=1), db)
    except SolotableError:
        raise HTTPException(503, "The table does not respond.") from None
    return Health(status="ok")


async def _statuses(limiter: AsyncLimiter, entity: str, resource: str) -> list[LimitStatus]:
    try:
        return await limiter.statuses(entity, resource)
    except NoLimits:
        return []


def _amounts(texts: list[str]) -> dict[str, Amount]:
    found: dict[str, Amount] = {}
    for each in texts:
        name, _, amount = each.partition(":")
        if name in found:
            raise DataError(f"The amount of {name!r} is given twice.")
        found[name] = float(amount) if "." in amount else int(amount)
    return found
