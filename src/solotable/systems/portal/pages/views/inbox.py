"""The inbox page: messages by day, unread ones marked, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from urllib.parse import quote, urlencode

from solotable.systems.browser.dates import Moment, at_clock, heading_of
from solotable.systems.portal.entities.notifications import Notification

from .shared import content_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A message."""

    id: str
    kind: str
    unread: bool
    title: str
    message: str
    reason: str
    url: str
    at: Moment


@dataclass(frozen=True, slots=True)
class MailDay:
    """The messages of a day."""

    label: str
    mails: tuple[Mail, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxPage:
    """The inbox."""

    days: tuple[MailDay, ...]
    unread: int
    only_unread: bool
    empty: str
    more_url: str
    #: The state of the inbox; the script loads the page again when the stream reports another one.
    mark: str


def inbox_page(
    found: Sequence[Notification],
    *,
    unread: int,
    only_unread: bool,
    next_cursor: str | None,
    mark: str,
    now: datetime,
) -> InboxPage:
    """Return the inbox with some notifications, newest first."""
    today = now.astimezone(UTC).date()
    days = tuple(
        MailDay(heading_of(day, today), tuple(_mail(each) for each in group))
        for day, group in groupby(found, key=lambda each: each.created_at.astimezone(UTC).date())
    )
    more = ""
    if next_cursor is not None:
        given = {"unread": "1"} if only_unread else {}
        more = "/inbox?" + urlencode({**given, "cursor": next_cursor})
    return InboxPage(
        days=days,
        unread=unread,
        only_unread=only_unread,
        empty="You have read everything."
        if only_unread
        else "Messages about content that you follow arrive here.",
        more_url=more,
        mark=mark,
    )


def _mail(notification: Notification) -> Mail:
    url = ""
    if notification.content_id is not None:
        # Reading the content marks the message as read.
        message = quote(notification.notification_id, safe="")
        url = f"{content_url(notification.content_id)}?message={message}"
    return Mail(
        id=notification.notification_id,
        kind=notification.type,
        unread=not notification.read,
        title=notification.title,
        message=notification.message,
        reason=notification.reason,
        url=url,
        at=at_clock(notification.created_at),
    )
