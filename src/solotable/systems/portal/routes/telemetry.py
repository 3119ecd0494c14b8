"""`/v1/events` and `/v1/analytics`: what users did. The server sets the time and the user (C3.10)."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from solotable.systems.errors import InvalidInput
from solotable.systems.portal.entities.events import ActivityEvent
from solotable.systems.portal.entities.values import UserId
from solotable.systems.portal.events.analytics import (
    MOST_DAYS,
    Analytics,
    ContentFigures,
    Overview,
    UserFigures,
)
from solotable.systems.portal.events.recording import EventDraft, EventLog
from solotable.systems.routes import JsonRoute
from solotable.web import Page

from .requests.access import allow_from
from .requests.dependencies import CallDep, PagingDep, page_envelope
from .requests.envelope import API, Envelope

router = APIRouter(prefix=API, tags=["events"], route_class=JsonRoute)

Days = Annotated[int, Query(ge=1, le=MOST_DAYS, description="The number of days, today included.")]


@router.post("/events", status_code=201, **allow_from("Viewer", "telemetry"))
async def record_event(draft: EventDraft, call: CallDep) -> Envelope[ActivityEvent]:
    """Record an event of the caller; a body with a user or a time is a 422."""
    [event] = await EventLog(call.db).record_many([draft], user_id=call.caller.user_id)
    return call.reply(event)


@router.get("/events", **allow_from("Admin"))
async def list_events(
    call: CallDep,
    paging: PagingDep,
    date: Annotated[dt.date | None, Query(examples=["2026-11-16"])] = None,
    user_id: Annotated[UserId | None, Query(examples=["ann"])] = None,
) -> Envelope[Page[ActivityEvent]]:
    """List the events of a day or of a user, newest first; name one of the two."""
    name = ("events", date, user_id)
    cursor, log = paging.cursor(*name), EventLog(call.db)
    if (date is None) is (user_id is None):
        raise InvalidInput("Give either date or user_id.")
    if date is not None:
        page = await log.of_day(date, limit=paging.limit, cursor=cursor)
    else:
        page = await log.of_user(user_id or "", limit=paging.limit, cursor=cursor)
    return page_envelope(call.request, page, paging.seal_next(page.cursor, *name))


class ContentReport(BaseModel):
    """The content with the most events of a period."""

    days: int
    rows: list[ContentFigures]


class UserReport(BaseModel):
    """The users with the most events of a period."""

    days: int
    rows: list[UserFigures]


@router.get("/analytics/overview", **allow_from("Admin"))
async def show_overview(call: CallDep, days: Days = 30) -> Envelope[Overview]:
    """Return the numbers of the last days by day, and of the period before, from kept totals."""
    return call.reply(await Analytics(call.db).overview(days))


@router.get("/analytics/content", **allow_from("Admin"))
async def show_content_report(call: CallDep, days: Days = 30) -> Envelope[ContentReport]:
    """Return the content with the most events in the last days, at most 100."""
    return call.reply(ContentReport(days=days, rows=await Analytics(call.db).content(days)))


@router.get("/analytics/users", **allow_from("Admin"))
async def show_user_report(call: CallDep, days: Days = 30) -> Envelope[UserReport]:
    """Return the users with the most events in the last days, at most 100."""
    return call.reply(UserReport(days=days, rows=await Analytics(call.db).users(days)))
