"""The text and the HTML of a digest. Titles and messages are escaped; links lead to the portal only."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from solotable.systems.mail.port import MailMessage
from solotable.systems.portal.entities.notifications import Notification

#: The notifications that an e-mail lists; it says how many more there are.
MOST_SHOWN = 20


def digest_message(
    to: str, name: str, unread: Sequence[Notification], more: int, base_url: str, message_id: str
) -> MailMessage:
    """Return the e-mail for unread notifications, the newest first, and `more` that it does not list."""
    count = len(unread) + more
    return MailMessage(
        to=to,
        subject=f"{count} unread {'notification' if count == 1 else 'notifications'}",
        text=_text(name, unread, more, base_url),
        html=_html(name, unread, more, base_url),
        message_id=message_id,
    )


def _text(name: str, unread: Sequence[Notification], more: int, base_url: str) -> str:
    blocks = [f"Hello {name}," if name else "Hello,", "this is new since your last e-mail:"]
    for each in unread:
        lines = [each.title, each.message, _link(each, base_url)]
        blocks.append("\n".join(line for line in lines if line))
    if more:
        blocks.append(f"And {more} more: {base_url}/notifications")
    blocks.append(f"Change what you receive: {base_url}/subscriptions")
    return "\n\n".join(blocks) + "\n"


def _html(name: str, unread: Sequence[Notification], more: int, base_url: str) -> str:
    rows = "".join(_html_row(each, base_url) for each in unread)
    rest = f'<p><a href="{escape(base_url)}/notifications">And {more} more</a></p>' if more else ""
    greeting = f"Hello {escape(name)}," if name else "Hello,"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Notifications</title></head>'
        '<body style="font-family: sans-serif; max-width: 40em">'
        f"<p>{greeting}</p><p>this is new since your last e-mail:</p><ul>{rows}</ul>{rest}"
        f'<p><a href="{escape(base_url)}/subscriptions">Change what you receive</a></p></body></html>'
    )


def _html_row(each: Notification, base_url: str) -> str:
    link = _link(each, base_url)
    title = f'<a href="{escape(link)}">{escape(each.title)}</a>' if link else escape(each.title)
    message = f"<br>{escape(each.message)}" if each.message else ""
    return f"<li><strong>{title}</strong>{message}</li>"


def _link(each: Notification, base_url: str) -> str:
    return f"{base_url}/content/{quote(each.content_id, safe='')}" if each.content_id else ""
