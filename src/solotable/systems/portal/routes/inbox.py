"""`/v1/notifications` and `/v1/subscriptions` of the caller; a caller reaches no other user's."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel

from solotable.systems.portal.entities.notifications import Notification
from solotable.systems.portal.entities.subscriptions import Subscription
from solotable.systems.portal.services.drafts import SubscriptionDraft
from solotable.systems.portal.services.notifications.inbox import Inbox
from solotable.systems.portal.services.subscriptions import Subscriptions
from solotable.systems.routes import JsonRoute
from solotable.web import Page

from .requests.access import allow_from
from .requests.dependencies import CallDep, PagingDep, page_envelope
from .requests.envelope import API, Envelope

router = APIRouter(prefix=API, tags=["inbox"], route_class=JsonRoute)

NotificationPath = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9_.@+:-]{1,300}$",
        examples=["approved:01JD0QK7V3M8Z6X2T9R4C5B1AE:ann:1794873600000000"],
    ),
]
SubscriptionPath = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$", examples=["01JD0QK7V3M8Z6X2T9R4C5B1AE"])
]


class Unread(BaseModel):
    """How many notifications are unread."""

    unread: int


class Marked(BaseModel):
    """How many notifications a request marked as read."""

    marked: int


@router.get("/notifications", **allow_from("Viewer"))
async def list_notifications(
    call: CallDep, paging: PagingDep, *, unread: bool = False
) -> Envelope[Page[Notification]]:
    """List the caller's notifications, newest first; with `unread` only those that are not read."""
    cursor = paging.cursor("notifications", unread)
    page = await Inbox(call.db).list(call.caller, unread_only=unread, limit=paging.limit, cursor=cursor)
    return page_envelope(call.request, page, paging.seal_next(page.cursor, "notifications", unread))


@router.get("/notifications/unread", **allow_from("Viewer"))
async def count_unread(call: CallDep) -> Envelope[Unread]:
    """Return the number of unread notifications, which is kept and not counted."""
    return call.reply(Unread(unread=await Inbox(call.db).unread(call.caller)))


@router.post("/notifications/read", **allow_from("Viewer", "writes"))
async def mark_all(call: CallDep) -> Envelope[Marked]:
    """Mark all notifications as read."""
    return call.reply(Marked(marked=await Inbox(call.db).mark_all_read(call.caller)))


@router.get("/notifications/{notification_id}", **allow_from("Viewer"))
async def get_notification(notification_id: NotificationPath, call: CallDep) -> Envelope[Notification]:
    """Return one notification of the caller."""
    return call.reply(await Inbox(call.db).get(call.caller, notification_id))


@router.post("/notifications/{notification_id}/read", **allow_from("Viewer", "writes"))
async def mark_notification(notification_id: NotificationPath, call: CallDep) -> Envelope[Notification]:
    """Mark a notification as read; a second call changes nothing."""
    return call.reply(await Inbox(call.db).mark_read(call.caller, notification_id))


@router.get("/subscriptions", **allow_from("Viewer"))
async def list_subscriptions(call: CallDep, paging: PagingDep) -> Envelope[Page[Subscription]]:
    """List the caller's subscriptions, newest first."""
    cursor = paging.cursor("subscriptions")
    page = await Subscriptions(call.db).list(call.caller, limit=paging.limit, cursor=cursor)
    return page_envelope(call.request, page, paging.seal_next(page.cursor, "subscriptions"))


@router.post("/subscriptions", status_code=201, **allow_from("Viewer", "writes"))
async def create_subscription(draft: SubscriptionDraft, call: CallDep) -> Envelope[Subscription]:
    """Follow a suite, a concept or tags; what is absent, or `*`, matches everything."""
    created = await Subscriptions(call.db).create(call.caller, draft)
    call.response.headers["location"] = f"{API}/subscriptions/{created.subscription_id}"
    return call.reply(created)


@router.get("/subscriptions/{subscription_id}", **allow_from("Viewer"))
async def get_subscription(subscription_id: SubscriptionPath, call: CallDep) -> Envelope[Subscription]:
    """Return one subscription of the caller."""
    return call.reply(await Subscriptions(call.db).get(call.caller, subscription_id))


@router.delete("/subscriptions/{subscription_id}", status_code=204, **allow_from("Viewer", "writes"))
async def delete_subscription(subscription_id: SubscriptionPath, call: CallDep) -> None:
    """Stop a subscription."""
    await Subscriptions(call.db).delete(call.caller, subscription_id)
