"""Records that several pages show: links, badges, and steps of the lifecycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import urlencode

from solotable.systems.browser.dates import long_day, relative
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.entities.values import STATUSES, Status

#: Ring, half ring, triangle, dash: a shape beside the word, so that colour says nothing alone.
_SHAPES: dict[str, str] = {"Approved": "good", "Deprecated": "fair", "Expired": "poor", "Draft": "none"}


@dataclass(frozen=True, slots=True)
class Link:
    """A link in a text."""

    label: str
    url: str


@dataclass(frozen=True, slots=True)
class StatusBadge:
    """A status as a word and a shape."""

    word: str
    shape: str

    @classmethod
    def of(cls, status: str) -> StatusBadge:
        """Return the badge of a status."""
        return cls(status, _SHAPES[status])


@dataclass(frozen=True, slots=True)
class Step:
    """A status in the lifecycle of content, past, now or later."""

    status: str
    place: Literal["past", "now", "later"]
    note: str = ""


def library_url(**filters: str | list[str]) -> str:
    """Return the library with filters; empty ones are left out.

    >>> library_url(suite="A & B", query="")
    '/?suite=A+%26+B'
    """
    given = {name: value for name, value in filters.items() if value}
    return f"/?{urlencode(given, doseq=True)}" if given else "/"


def content_url(content_id: str) -> str:
    """Return the page of content."""
    return f"/content/{content_id}"


def product_of(suite: str | None, concept: str | None) -> str:
    """Return a product in words; empty without one."""
    return ", ".join(each for each in (suite, concept) if each)


def steps_of(content: Content | None, now: datetime, people: Mapping[str, str]) -> tuple[Step, ...]:
    """Return the lifecycle of content, with the names of people by their ids; None for new content.

    Content can expire without being deprecated, so only what is known is said.
    """
    if content is None:
        return tuple(Step(each, "now" if each == "Draft" else "later") for each in STATUSES)
    changed, by = content.status_changed_at, people.get(content.status_changed_by or "")
    notes = dict.fromkeys(STATUSES, "")
    notes["Draft"] = _note(people.get(content.owner_user_id), content.created_at, now)
    if content.status != "Draft" or changed is not None:
        notes[content.status] = _note(by, changed, now)
    if content.status == "Draft":
        notes["Approved"] = "by an Approver"
    if content.status != "Expired" and content.expiry_date is not None:
        notes["Expired"] = f"on {long_day(content.expiry_date.date())}"
    return tuple(Step(status, _place(status, content.status), notes[status]) for status in STATUSES)


def _place(status: Status, current: Status) -> Literal["past", "now", "later"]:
    if status == current:
        return "now"
    if current == "Expired":
        return "past" if status == "Draft" else "later"
    return "past" if STATUSES.index(status) < STATUSES.index(current) else "later"


def _note(name: str | None, when: datetime | None, now: datetime) -> str:
    parts = [f"by {name}"] if name else []
    if when is not None:
        parts.append(relative(when, now, clock=False).text)
    return ", ".join(parts)
