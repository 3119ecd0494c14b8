"""Windows of usage: hours, days and months, in UTC and nothing else. Pure.

A window is from its start up to the next one's, which is no longer in it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal, get_args

from solotable.errors import DataError
from solotable.systems.limiter.admin.limits import MICROSECONDS

Window = Literal["hour", "day", "month"]
WINDOWS: tuple[Window, ...] = get_args(Window)
#: How long a row is kept after its window has ended. A month's bill is asked for a year later, too.
KEPT: dict[Window, timedelta] = {
    "hour": timedelta(days=90),
    "day": timedelta(days=90),
    "month": timedelta(days=400),
}

_HOUR = 3600 * MICROSECONDS


def window_of(given: str) -> Window:
    """Return the name of a window, or refuse it."""
    for window in WINDOWS:
        if given == window:
            return window
    raise DataError(f"Usage is kept by {', '.join(WINDOWS)}; {given!r} is no window.")


def floor(window: Window, moment: datetime) -> datetime:
    """Return the start of the window that a moment lies in.

    >>> floor("month", datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC)).isoformat()
    '2026-02-01T00:00:00+00:00'
    """
    if moment.tzinfo is None:
        raise DataError(f"{moment!r} has no time zone; give the moment with one.")
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        raise _too_far(moment) from None
    hour = moment.replace(minute=0, second=0, microsecond=0)
    if window == "hour":
        return hour
    return hour.replace(hour=0) if window == "day" else hour.replace(hour=0, day=1)


def following(window: Window, start: datetime) -> datetime:
    """Return the start of the next window."""
    if window == "month":
        return (start + timedelta(days=31)).replace(day=1)
    return start + (timedelta(hours=1) if window == "hour" else timedelta(days=1))


def preceding(window: Window, start: datetime) -> datetime:
    """Return the start of the window before."""
    return floor(window, start - timedelta(microseconds=1))


def ceiling(window: Window, moment: datetime) -> datetime:
    """Return the first start of a window that is not before a moment."""
    start = floor(window, moment)
    try:
        return start if start == moment else following(window, start)
    except OverflowError:
        raise _too_far(moment) from None


def _too_far(moment: datetime) -> DataError:
    return DataError(f"{moment.isoformat()} is at the edge of the calendar; give a moment within it.")


def count(window: Window, since: datetime, until: datetime) -> int:
    """Return how many windows there are from one start up to another."""
    if until <= since:
        return 0
    if window == "month":
        return (until.year - since.year) * 12 + until.month - since.month
    return (until - since) // (timedelta(hours=1) if window == "hour" else timedelta(days=1))


def expiry(window: Window, start: datetime) -> datetime:
    """Return until when the row of a window is kept."""
    return following(window, start) + KEPT[window]


def starts_at(micros: int) -> tuple[tuple[Window, datetime], ...]:
    """Return the hour, the day and the month that a moment in microseconds lies in."""
    return _starts(micros // _HOUR)


# Records come in the order of their time, or nearly so: a page of them has one or two hours.
@lru_cache(maxsize=256)
def _starts(hour: int) -> tuple[tuple[Window, datetime], ...]:
    moment = datetime.fromtimestamp(hour * 3600, UTC)
    return tuple((window, floor(window, moment)) for window in WINDOWS)
