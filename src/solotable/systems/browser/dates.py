"""Times as people read them: "today, 18:04", "2 days ago", "9 November 2026". Days are counted in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NEAR_DAYS = 7


@dataclass(frozen=True, slots=True)
class Moment:
    """A time in a `<time>` element: machines read `iso`, people read `text`, and `full` is its title."""

    iso: str
    text: str
    full: str


def long_day(day: date) -> str:
    """Return a day with its year.

    >>> long_day(date(2026, 11, 9))
    '9 November 2026'
    """
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def short_day(day: date) -> str:
    """Return a day for the axis of a chart.

    >>> short_day(date(2026, 11, 9))
    '9 Nov'
    """
    return f"{day.day} {_MONTHS[day.month - 1][:3]}"


def relative(when: datetime, now: datetime, *, clock: bool = True) -> Moment:
    """Return a time relative to now; `clock` adds the hour to times of today and yesterday.

    >>> relative(datetime(2026, 11, 9, 18, 4, tzinfo=UTC), datetime(2026, 11, 9, 20, tzinfo=UTC)).text
    'today, 18:04'
    """
    at, today = when.astimezone(UTC), now.astimezone(UTC).date()
    return Moment(at.isoformat().replace("+00:00", "Z"), _text(at, today, clock), full_time(at))


def plain_day(when: datetime) -> Moment:
    """Return the day of a time."""
    at = when.astimezone(UTC)
    return Moment(at.date().isoformat(), long_day(at.date()), full_time(at))


def month_of(when: datetime) -> Moment:
    """Return the month of a time.

    >>> month_of(datetime(2024, 3, 2, tzinfo=UTC)).text
    'March 2024'
    """
    at = when.astimezone(UTC)
    return Moment(f"{at:%Y-%m}", f"{_MONTHS[at.month - 1]} {at.year}", full_time(at))


def at_clock(when: datetime) -> Moment:
    """Return the hour of a time, where a heading says its day."""
    at = when.astimezone(UTC)
    return Moment(at.isoformat().replace("+00:00", "Z"), f"{at:%H:%M}", full_time(at))


def full_time(when: datetime) -> str:
    """Return a time with its day and zone."""
    at = when.astimezone(UTC)
    return f"{long_day(at.date())}, {at:%H:%M} UTC"


def heading_of(day: date, today: date) -> str:
    """Return the heading of a day in a list.

    >>> heading_of(date(2026, 11, 13), date(2026, 11, 15))
    'Friday'
    """
    age = (today - day).days
    if age == 0:
        return "Today"
    if age == 1:
        return "Yesterday"
    return _WEEKDAYS[day.weekday()] if 0 < age < _NEAR_DAYS else long_day(day)


def _text(at: datetime, today: date, clock: bool) -> str:
    age = (today - at.date()).days
    hour = f", {at:%H:%M}" if clock else ""
    if age == 0:
        return f"today{hour}"
    if age == 1:
        return f"yesterday{hour}"
    if 1 < age < _NEAR_DAYS:
        return f"{age} days ago"
    if at.date() == today + timedelta(days=1):
        return "tomorrow"
    return long_day(at.date())
