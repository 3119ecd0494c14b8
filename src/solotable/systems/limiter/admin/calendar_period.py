"""Calendar periods: hours, days, weeks, months and years of a time zone, each from its anchor. Pure.

A period begins when the clocks of the zone show its anchor. A time that the clocks skip counts as it would
have been before the change, a time that they show twice counts the first time. So a day has 23 or 25 hours
when the clocks change. A day of a month that is too short is its last day.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Literal, get_args

from solotable.errors import DataError

from .names import shorten

Per = Literal["hour", "day", "week", "month", "year"]
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
#: The longest length of each period, in seconds.
NOMINAL_SECONDS: dict[Per, int] = {
    "hour": 3600,
    "day": 86_400,
    "week": 7 * 86_400,
    "month": 31 * 86_400,
    "year": 366 * 86_400,
}
_MEAN_SECONDS: dict[Per, int] = {**NOMINAL_SECONDS, "month": 2_629_746, "year": 31_556_952}
_DEFAULT_ANCHORS: dict[Per, str] = {
    "hour": "00",
    "day": "00:00",
    "week": "mon",
    "month": "1",
    "year": "01-01",
}
_ANCHOR_FORMS: dict[Per, str] = {
    "hour": "a minute from 0 to 59",
    "day": "an hour from 0 to 23, or a time as 06:30",
    "week": "a weekday as mon, with a time as monT06:30",
    "month": "a day from 1 to 31, with a time as 15T06:30",
    "year": "a day as 04-06, with a time as 04-06T06:30",
}
_TIME = r"([01]\d|2[0-3]):([0-5]\d)"
_SECOND = 1_000_000
#: By the wall clock of any zone.
_EPOCH = datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
#: The Monday before the epoch.
_EPOCH_WEEK = _EPOCH_DAY - 3
#: Dates have an end; later periods have a mean length.
_LAST_YEAR = 9000


@dataclass(frozen=True, slots=True)
class CalendarPeriod:
    """The periods of a calendar: `per` in a time zone, beginning at an anchor."""

    per: Per
    timezone: str = "UTC"
    #: As text, see `parse_anchor`.
    anchor: str = ""

    def __post_init__(self) -> None:
        if self.per not in get_args(Per):
            raise DataError(
                f"The per of a calendar is hour, day, week, month or year; got {shorten(self.per)}."
            )
        zone_of(self.timezone)
        object.__setattr__(self, "anchor", parse_anchor(self.per, self.anchor))

    @classmethod
    def parse(cls, text: str) -> CalendarPeriod:
        """Parse what `str` returns: `month`, `month:15`, `day:06:00,Europe/Berlin`."""
        period, _, timezone = text.partition(",")
        per, _, anchor = period.partition(":")
        return cls(per, timezone or "UTC", anchor)  # type: ignore[arg-type]  # checked in __post_init__

    def __str__(self) -> str:
        anchor = "" if self.anchor == _DEFAULT_ANCHORS[self.per] else f":{self.anchor}"
        return f"{self.per}{anchor}{'' if self.timezone == 'UTC' else f',{self.timezone}'}"

    def index(self, now: int) -> int:
        """Return the number of the period of a time in microseconds: one more for each period."""
        last = self._last_index()
        if now >= self._start(last):
            return last + (now - self._start(last)) // (_MEAN_SECONDS[self.per] * _SECOND)
        seconds = now // _SECOND
        if self.per == "hour":
            found = seconds // 3600
        else:
            local = datetime.fromtimestamp(seconds, zone_of(self.timezone))
            found = _index_of_date(self.per, local)
        # The anchor may be later on the same date, and the zone may skip or repeat a part of it.
        while self._start(found) > now:
            found -= 1
        while self._start(found + 1) <= now:
            found += 1
        return found

    def start(self, index: int) -> int:
        """Return when a period begins, in microseconds."""
        last = self._last_index()
        if index > last:
            return self._start(last) + (index - last) * _MEAN_SECONDS[self.per] * _SECOND
        return self._start(index)

    def _last_index(self) -> int:
        if self.per == "hour":
            return (datetime(_LAST_YEAR, 1, 1, tzinfo=UTC) - _EPOCH.replace(tzinfo=UTC)) // timedelta(hours=1)
        return _index_of_date(self.per, datetime(_LAST_YEAR, 1, 1, tzinfo=UTC))

    def _start(self, index: int) -> int:
        zone, (months, days, minutes) = zone_of(self.timezone), _anchor_parts(self.per, self.anchor)
        if self.per == "hour":
            # The offsets of some zones are not whole hours.
            offset = _offset_seconds(datetime.fromtimestamp(index * 3600, zone))
            return (index * 3600 + (minutes * 60 - offset) % 3600) * _SECOND
        local = _date_of_index(self.per, index, months, days) + timedelta(minutes=minutes)
        seconds = (local - _EPOCH) // timedelta(seconds=1)
        return (seconds - _offset_seconds(local.replace(tzinfo=zone))) * _SECOND


def _index_of_date(per: Per, local: datetime) -> int:
    match per:
        case "day":
            return local.toordinal() - _EPOCH_DAY
        case "week":
            return (local.toordinal() - _EPOCH_WEEK) // 7
        case "month":
            return local.year * 12 + local.month - 1
    return local.year


def _date_of_index(per: Per, index: int, months: int, days: int) -> datetime:
    match per:
        case "day":
            return datetime.fromordinal(index + _EPOCH_DAY)
        case "week":
            return datetime.fromordinal(index * 7 + _EPOCH_WEEK + days)
        case "month":
            year, month = index // 12, index % 12 + 1
        case _:
            year, month = index, months
    return datetime(year, month, min(days, monthrange(year, month)[1]))


def _offset_seconds(local: datetime) -> int:
    return (local.utcoffset() or timedelta()) // timedelta(seconds=1)


@lru_cache(maxsize=512)
def zone_of(name: str) -> tzinfo:
    """Return a time zone by its IANA name, or raise DataError."""
    from zoneinfo import ZoneInfo

    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):
        raise DataError(
            f"The timezone {shorten(name)} is not known; write an IANA name such as Europe/Berlin. Where the "
            f"system has no time zones, install them: pip install tzdata."
        ) from None


def parse_anchor(per: Per, anchor: object) -> str:
    """Return an anchor in its stored form, or raise DataError; empty or None is the usual one.

    >>> parse_anchor("month", 31), parse_anchor("week", "Sunday"), parse_anchor("day", 6)
    ('31', 'sun', '06:00')
    """
    if anchor is None or anchor == "":
        return _DEFAULT_ANCHORS[per]
    text = str(anchor).strip().lower() if type(anchor) in (int, str) else "?"
    date, mark, time = text.partition("t") if per in ("month", "year") else _split_weekday(per, text)
    if mark and not re.fullmatch(_TIME, time):
        raise _wrong_anchor(per, anchor)
    suffix = f"T{time}" if mark and time != "00:00" else ""
    if per == "hour" and re.fullmatch(r":?[0-5]?\d", text):
        return f"{int(text.removeprefix(':')):02d}"
    if per == "day" and re.fullmatch(_TIME, text):
        return text
    if per == "day" and re.fullmatch(r"[01]?\d|2[0-3]", text):
        return f"{int(text):02d}:00"
    if per == "week" and date in WEEKDAYS:
        return date + suffix
    if per == "month" and re.fullmatch(r"0?[1-9]|[12]\d|3[01]", date):
        return f"{int(date)}{suffix}"
    if per == "year" and re.fullmatch(r"\d\d-\d\d", date):
        month, day = map(int, date.split("-"))
        if 1 <= month <= 12 and 1 <= day <= monthrange(2024, month)[1]:
            return date + suffix
    raise _wrong_anchor(per, anchor)


def _split_weekday(per: Per, text: str) -> tuple[str, str, str]:
    """Return the weekday, the mark and the time: names of weekdays have a `t` too."""
    found = re.fullmatch(r"([a-z]+?)(?:(t)(\d\d:\d\d))?", text) if per == "week" else None
    if found is None:
        return text, "", ""
    name, mark, time = found.groups()
    full = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    return (name[:3] if name in full else name), mark or "", time or ""


def _wrong_anchor(per: Per, anchor: object) -> DataError:
    return DataError(f"The anchor of a calendar per {per} is {_ANCHOR_FORMS[per]}; got {shorten(anchor)}.")


@lru_cache(maxsize=512)
def _anchor_parts(per: Per, anchor: str) -> tuple[int, int, int]:
    """Return the month, the day (of the month, or of the week from 0), and the minutes of the day or hour."""
    if per == "hour":
        return 1, 1, int(anchor)
    date, _, time = (anchor, "", anchor) if per == "day" else anchor.partition("T")
    minutes = int(time[:2]) * 60 + int(time[3:]) if time else 0
    match per:
        case "week":
            return 1, WEEKDAYS.index(date), minutes
        case "month":
            return 1, int(date), minutes
        case "year":
            return int(date[:2]), int(date[3:]), minutes
    return 1, 1, minutes
