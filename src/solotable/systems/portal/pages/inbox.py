"""`/inbox`: messages by day, and a stream that says when one arrives."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.responses import Response, StreamingResponse

from solotable.systems.browser.redirects import see
from solotable.systems.browser.render import Done
from solotable.systems.portal.identity.sessions import Sessions
from solotable.systems.portal.services.notifications.inbox import Inbox

from .browser.visits import LIVE_POLICY, Visit
from .library import seal_of
from .views.inbox import inbox_page

_PAGE = 30
_MESSAGES = {"read": Done(title="Marked as read."), "all": Done(title="All messages are read.")}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSettings:
    """How often a stream looks for messages, when it ends, and how many a process serves."""

    poll_seconds: float = 1.0
    heartbeat_seconds: float = 15.0
    most_seconds: float = 600.0
    most_streams: int = 500


async def show_inbox(visit: Visit) -> Response:
    """Show a page of messages."""
    inbox, only_unread = Inbox(visit.db), visit.query("unread") == "1"
    name = f"inbox {only_unread}"
    cursor = seal_of(visit).open(
        visit.request.query_params.get("cursor"), user_id=visit.caller.user_id, list_name=name
    )
    # Before the list: a message that arrives in between is then an event of the stream.
    mark = await _mark(visit)
    page = await inbox.list(visit.caller, unread_only=only_unread, limit=_PAGE, cursor=cursor)
    view = inbox_page(
        page.items,
        unread=await inbox.unread(visit.caller),
        only_unread=only_unread,
        next_cursor=seal_of(visit).seal(page.cursor, user_id=visit.caller.user_id, list_name=name),
        mark=mark,
        now=datetime.now(UTC),
    )
    done = _MESSAGES.get(visit.query("done"))
    return await visit.page("inbox.html", page=view, policy=LIVE_POLICY, done=done)


async def mark_read(visit: Visit) -> Response:
    """Mark one message as read."""
    await Inbox(visit.db).mark_read(visit.caller, visit.request.path_params["notification_id"])
    return see("/inbox?done=read")


async def mark_all_read(visit: Visit) -> Response:
    """Mark all messages as read."""
    await Inbox(visit.db).mark_all_read(visit.caller)
    return see("/inbox?done=all")


async def stream_inbox(visit: Visit) -> Response:
    """Send an event when the newest message or the number of unread ones changes (server-sent events)."""
    settings: LiveSettings = visit.state.live
    if visit.state.open_streams >= settings.most_streams:
        # The page works without the stream; the browser tries again.
        return Response(status_code=503, headers={"retry-after": "30"})
    return StreamingResponse(
        _events(visit, settings), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _events(visit: Visit, settings: LiveSettings) -> AsyncIterator[str]:
    visit.state.open_streams += 1
    try:
        end = time.monotonic() + settings.most_seconds
        sent, beat = "", time.monotonic()
        yield "retry: 3000\n\n"
        while True:
            # A session that ended, or a disabled user, gets nothing more.
            if await Sessions(visit.db).find(visit.signed_in.token) is None:
                return
            mark = await _mark(visit)
            if mark != sent:
                sent = mark
                yield f"event: inbox\ndata: {mark}\n\n"
            elif time.monotonic() - beat > settings.heartbeat_seconds:
                beat = time.monotonic()
                yield ": alive\n\n"
            if time.monotonic() >= end or visit.state.stopping.is_set():
                return
            await _pause(visit.state.stopping, settings.poll_seconds)
    finally:
        visit.state.open_streams -= 1


async def _mark(visit: Visit) -> str:
    """Return a text that changes with the inbox: the number of unread messages and the newest one."""
    inbox = Inbox(visit.db)
    newest = await inbox.list(visit.caller, limit=1)
    name = newest.items[0].notification_id if newest.items else ""
    unread = await inbox.unread(visit.caller)
    return f"{unread}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


async def _pause(stopping: asyncio.Event, seconds: float) -> None:
    """Wait for some seconds, or until the app stops."""
    try:
        await asyncio.wait_for(stopping.wait(), seconds)
    except TimeoutError:
        return
