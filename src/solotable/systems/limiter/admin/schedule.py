"""Schedules: limits that change by weekday and time of day. Pure.

A window is days and times by the clocks of a time zone, as in `mon-fri 08:00-18:00`. The first window of the
list that has the current time applies; without one, the limits of the schedule itself. A window that ends
before it begins, as in `fri 22:00-06:00`, ends on the next day.

Every process computes the same instant of a change. It becomes the revision of the limits, so a bucket that
one process has moved to the next window is not moved back by another whose clock is behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from solotable.errors import DataError

from .calendar_period import WEEKDAYS, zone_of
from .limits import Limit, Limits, limits_of, parse, render
from .names import shorten

MOST_WINDOWS = 20
_FORM = "days and times, as in 'mon-fri 08:00-18:00', 'sat,sun' or '22:00-06:00'"
_TIMES = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)")
_SECOND = 1_000_000
#: A week and a day in both directions: what does not change in that time never changes.
_DAYS = range(-8, 9)
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class ScheduleWindow:
    """Days and times, and the limits then."""

    when: str
    limits: Limits

    def __init__(self, when: str, limits: Iterable[Limit]) -> None:
        _parse_when(when)
        object.__setattr__(self, "when", " ".join(when.lower().split()))
        object.__setattr__(self, "limits", limits_of(limits))

    def as_dict(self) -> dict[str, Any]:
        """Return the window as JSON has it."""
        return {"when": self.when, "limits": [limit.as_dict() for limit in self.limits]}


class ScheduledLimits(NamedTuple):
    """The limits at a time, the window that they are of, and from when to when it applies."""

    limits: Limits
    window: str | None
    #: In microseconds; None: always.
    since: int | None
    until: int | None


@dataclass(frozen=True, slots=True)
class Schedule:
    """Limits by weekday and time of day: `limits` apply outside of all windows."""

    limits: Limits
    windows: tuple[ScheduleWindow, ...]
    timezone: str = "UTC"
    #: The last result of `at`, replaced as a whole: other threads read it.
    _last: list[ScheduledLimits] = field(default_factory=list, compare=False, repr=False)

    def __init__(
        self, limits: Iterable[Limit], windows: Iterable[ScheduleWindow], *, timezone: str = "UTC"
    ) -> None:
        zone_of(timezone)
        object.__setattr__(self, "limits", limits_of(limits))
        object.__setattr__(self, "windows", tuple(windows))
        object.__setattr__(self, "timezone", timezone)
        object.__setattr__(self, "_last", [])
        if not 0 < len(self.windows) <= MOST_WINDOWS:
            raise DataError(f"A schedule has 1 to {MOST_WINDOWS} windows; got {len(self.windows)}.")

    @property
    def names(self) -> set[str]:
        """The names of all limits, at whatever time they apply."""
        groups = (self.limits, *(window.limits for window in self.windows))
        return {limit.name for limits in groups for limit in limits}

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Parse what `str` returns."""
        limits, timezone, *windows = text.split("|")
        pairs = (window.partition(">") for window in windows)
        found = [ScheduleWindow(when, parse(rules)) for when, _, rules in pairs]
        return cls(parse(limits), found, timezone=timezone)

    def __str__(self) -> str:
        windows = (f"{window.when}>{render(window.limits)}" for window in self.windows)
        return "|".join((render(self.limits), self.timezone, *windows))

    def as_dict(self) -> dict[str, Any]:
        """Return the schedule as JSON has it, without the limits outside of its windows."""
        return {"timezone": self.timezone, "windows": [window.as_dict() for window in self.windows]}

    def at(self, now: int) -> ScheduledLimits:
        """Return the limits at a time in microseconds."""
        for last in self._last:
            if (last.since is None or last.since <= now) and (last.until is None or now < last.until):
                return last
        found = self._compute(now)
        self._last[:] = [found]
        return found

    def _compute(self, now: int) -> ScheduledLimits:
        zone = zone_of(self.timezone)
        today = datetime.fromtimestamp(now // _SECOND, zone).replace(tzinfo=None)
        midnight = today.replace(hour=0, minute=0, second=0)
        spans: list[tuple[int, int, int]] = []
        for index, window in enumerate(self.windows):
            days, start, end = _parse_when(window.when)
            for offset in _DAYS:
                day = midnight + timedelta(days=offset)
                if day.weekday() in days:
                    spans.append((self._instant(day, start), self._instant(day, end), index))
        # Beyond a week in both directions, spans are missing on one side of an edge.
        first, last = self._instant(midnight, -7 * 1440), self._instant(midnight, 8 * 1440)
        edges = sorted({edge for start, end, _ in spans for edge in (start, end) if first < edge < last})

        def choice(at: int) -> int | None:
            return min((index for start, end, index in spans if start <= at < end), default=None)

        chosen, since, until = choice(now), None, None
        for edge in edges:
            if edge <= now and choice(edge - 1) != choice(edge):
                since = edge
            elif edge > now and choice(edge) != chosen:
                until = edge
                break
        limits = self.limits if chosen is None else self.windows[chosen].limits
        return ScheduledLimits(limits, None if chosen is None else self.windows[chosen].when, since, until)

    def _instant(self, day: datetime, minutes: int) -> int:
        local = day + timedelta(minutes=minutes)
        instant = local.replace(tzinfo=zone_of(self.timezone)).astimezone(UTC).replace(tzinfo=None)
        return (instant - _EPOCH) // timedelta(seconds=1) * _SECOND


def _parse_when(when: object) -> tuple[frozenset[int], int, int]:
    """Return the weekdays of a window, from 0, and its start and end in minutes."""
    if not isinstance(when, str):
        raise DataError(f"The when of a window is {_FORM}; got {shorten(when)}.")
    words = when.lower().split()
    times = words.pop() if words and words[-1][:1].isdigit() else "00:00-24:00"
    found = _TIMES.fullmatch(times)
    days = _parse_days(words[0]) if len(words) == 1 else frozenset(range(7)) if not words else None
    if found is None or not days or not when.strip():
        raise DataError(f"The when of a window is {_FORM}; got {shorten(when)}.")
    hours = [int(each) for each in found.groups()]
    start, end = hours[0] * 60 + hours[1], hours[2] * 60 + hours[3]
    if end > 24 * 60 or start == end:
        raise DataError(f"The when of a window is {_FORM}; got {shorten(when)}.")
    return days, start, end if end > start else end + 24 * 60


def _parse_days(text: str) -> frozenset[int] | None:
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if first not in WEEKDAYS or last not in WEEKDAYS:
            return None
        start, end = WEEKDAYS.index(first), WEEKDAYS.index(last)
        found.update(range(start, end + 1) if start <= end else (*range(start, 7), *range(end + 1)))
    return frozenset(found)


def render_rules(limits: Limits | Schedule) -> str:
    """Return limits, or a schedule, in their stored form."""
    return str(limits) if isinstance(limits, Schedule) else render(limits)


def parse_rules(text: str) -> Limits | Schedule:
    """Parse what `render_rules` returned."""
    return Schedule.parse(text) if "|" in text else parse(text)
