"""Usage windows: hours, days and months in UTC. Pure.

A window begins at its start and ends before the start of the next one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal, get_args

from solotable.errors import DataError
from solotable.systems.limiter.admin.limits import MICROSECONDS

Window = Literal["hour", "day", "month"]
WINDOWS: tuple[Window, ...] = get_args(Window)
#: How long a row stays after the end of its window. A month's bill is needed a year later, too.
RETENTION: dict[Window, timedelta] = {
    "hour": timedelta(days=90),
    "day": timedelta(days=90),
    "month": timedelta(days=400),
}
#: Months differ in length.
_LENGTHS = {"hour": timedelta(hours=1), "day": timedelta(days=1)}
_HOUR = 3600 * MICROSECONDS


def window_of(given: str) -> Window:
    """Return the name of a window, or raise DataError."""
    for window in WINDOWS:
        if given == window:
            return window
    raise DataError(f"A usage window is {', '.join(WINDOWS)}; got {given!r}.")


def floor(window: Window, moment: datetime) -> datetime:
    """Return the start of the window that a moment is in.

    >>> floor("month", datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC)).isoformat()
    '2026-02-01T00:00:00+00:00'
    """
    if moment.tzinfo is None:
        raise DataError(f"{moment!r} has no time zone; give the time with one.")
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        raise _out_of_range(moment) from None
    hour = moment.replace(minute=0, second=0, microsecond=0)
    if window == "hour":
        return hour
    return hour.replace(hour=0) if window == "day" else hour.replace(hour=0, day=1)


def following(window: Window, start: datetime) -> datetime:
    """Return the start of the next window."""
    if window == "month":
        return (start + timedelta(days=31)).replace(day=1)
    return start + _LENGTHS[window]


def preceding(window: Window, start: datetime) -> datetime:
    """Return the start of the window before."""
    return floor(window, start - timedelta(microseconds=1))


def ceiling(window: Window, moment: datetime) -> datetime:
    """Return the first start of a window that is not before a moment."""
    start = floor(window, moment)
    try:
        return start if start == moment else following(window, start)
    except OverflowError:
        raise _out_of_range(moment) from None


def _out_of_range(moment: datetime) -> DataError:
    return DataError(f"{moment.isoformat()} is at the edge of the calendar; give a time within it.")


def count(window: Window, since: datetime, until: datetime) -> int:
    """Return how many windows there are from one start to another."""
    if until <= since:
        return 0
    if window == "month":
        return (until.year - since.year) * 12 + until.month - since.month
    return (until - since) // _LENGTHS[window]


def expiry(window: Window, start: datetime) -> datetime:
    """Return when the row of a window expires."""
    return following(window, start) + RETENTION[window]


def starts_at(micros: int) -> tuple[tuple[Window, datetime], ...]:
    """Return the hour, the day and the month of a time in microseconds."""
    return _starts(micros // _HOUR)


# Records come almost in the order of their time: a page of them has one or two hours.
@lru_cache(maxsize=256)
def _starts(hour: int) -> tuple[tuple[Window, datetime], ...]:
    moment = datetime.fromtimestamp(hour * 3600, UTC)
    return tuple((window, floor(window, moment)) for window in WINDOWS)
