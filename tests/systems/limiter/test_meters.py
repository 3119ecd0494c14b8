"""Windows, calendars and sessions against slow, obvious models, through the real write.

Times are whole microseconds: a told time is admitted, one microsecond before it is refused.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from solotable._connect import over
from solotable.engines import sqlite
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.admin.calendar_period import CalendarPeriod, Per
from solotable.systems.limiter.admin.limits import MOST_SLIDING_TOKENS, MOST_TOKENS
from solotable.systems.limiter.meters.rules import meter_of
from solotable.systems.limiter.table import limiter
from tests.store.opening import START, Clock

SECOND = 1_000_000
DAY = 86_400


def seconds_of(microseconds: int) -> float:
    """Return a clock's seconds that the limiter reads as exactly so many microseconds."""
    found = microseconds / SECOND
    while int(found * SECOND) < microseconds:
        found = math.nextafter(found, math.inf)
    while int(found * SECOND) > microseconds:
        found = math.nextafter(found, 0.0)
    return found


@dataclass
class Windows:
    """Fixed periods: what was taken in each, and what one owes to the next."""

    amount: int
    period_of: Callable[[int], int]
    taken: Counter[int] = field(default_factory=Counter)

    def left(self, now: int) -> int:
        current, debt = self.period_of(now), 0
        for period in sorted(each for each in self.taken if each < current):
            later = min([each for each in self.taken if each > period] + [current])
            debt = max(0, debt + self.taken[period] - self.amount)
            debt = max(0, debt - self.amount * (min(later, current) - period - 1))
        return min(self.amount, self.amount - debt - self.taken[current])

    def take(self, now: int, amount: int) -> int:
        self.taken[self.period_of(now)] += amount
        return self.period_of(now)

    def give_back(self, now: int, amount: int, period: int) -> None:
        if period == self.period_of(now):
            self.taken[period] -= amount


@dataclass
class Sliding:
    """Two windows: the one before counts by the part of it that is less than a window ago."""

    amount: int
    length: int
    taken: Counter[int] = field(default_factory=Counter)

    def left(self, now: int) -> int:
        window = now // self.length
        inside = Fraction((window + 1) * self.length - now, self.length)
        return math.floor(self.amount - self.taken[window] - inside * self.taken[window - 1])

    def take(self, now: int, amount: int) -> int:
        self.taken[now // self.length] += amount
        return now // self.length

    def give_back(self, now: int, amount: int, period: int) -> None:
        self.taken[period] -= amount


@dataclass
class Sessions:
    """A session begins with the first use after the one before has ended."""

    amount: int
    length: int
    start: int = -(10**30)
    taken: int = 0

    def left(self, now: int) -> int:
        return self.amount - self.taken if now < self.start + self.length else self.amount

    def take(self, now: int, amount: int) -> int:
        if now >= self.start + self.length:
            self.start, self.taken = now, 0
        self.taken += amount
        return self.start

    def give_back(self, now: int, amount: int, period: int) -> None:
        if period == self.start:
            self.taken -= amount


Model = Windows | Sliding | Sessions


def model_of(limit: Limit) -> Model:
    amount, length = limit.capacity * 1000, limit.period_seconds * SECOND
    match limit.kind:
        case "fixed_window":
            return Windows(amount, lambda now: now // length)
        case "calendar":
            assert limit.calendar_period is not None
            return Windows(amount, limit.calendar_period.index)
        case "sliding_window":
            return Sliding(amount, length)
    return Sessions(amount, length)


AMOUNTS = st.integers(1, 10**6)
LENGTHS = st.sampled_from([1, 7, 60, 3600, DAY])
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"])
CALENDARS = st.one_of(
    st.builds(CalendarPeriod, st.just("hour"), ZONES, st.integers(0, 59)),
    st.builds(CalendarPeriod, st.just("day"), ZONES, st.integers(0, 23)),
    st.builds(CalendarPeriod, st.just("week"), ZONES, st.sampled_from(["mon", "sun", "satT02:30"])),
    st.builds(CalendarPeriod, st.just("month"), ZONES, st.sampled_from([1, 15, 29, 30, 31, "31T02:30"])),
    st.builds(CalendarPeriod, st.just("year"), ZONES, st.sampled_from(["01-01", "02-29", "03-29T02:30"])),
)
LIMITS = st.one_of(
    st.builds(Limit.fixed_window, st.just("x"), AMOUNTS, LENGTHS),
    st.builds(Limit.sliding_window, st.just("x"), AMOUNTS, LENGTHS),
    st.builds(Limit.session, st.just("x"), AMOUNTS, LENGTHS),
    st.builds(
        lambda amount, period: Limit.calendar(
            "x", amount, period.per, timezone=period.timezone, anchor=period.anchor
        ),
        AMOUNTS,
        CALENDARS,
    ),
)
PAUSES = st.one_of(
    st.integers(0, 50),
    st.integers(0, 2 * SECOND),
    st.integers(0, 3 * DAY * SECOND),
    st.just(400 * DAY * SECOND),
)
STEPS = st.lists(
    st.tuples(PAUSES, st.sampled_from(["acquire", "adjust", "late", "wait"]), st.integers(1, 1000), PAUSES),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(LIMITS, STEPS)
def test_every_kind_does_what_its_model_does(limit: Limit, steps: list[tuple[int, str, int, int]]) -> None:
    clock, now, model = Clock(), int(START) * SECOND, model_of(limit)
    engine = sqlite.open(sqlite.MEMORY, clock=clock)
    ours = Limiter(
        over(engine, [limiter], clock=clock),
        "acme",
        limits=[limit],
        remember_rejections=0.0,
        cache_seconds=1e9,
    )

    def go(to: int) -> None:
        nonlocal now
        now, clock.seconds = to, seconds_of(to)

    for pause, verb, part, late in steps:
        go(now + pause)
        amount = max(1, limit.capacity * part // 1000)
        cost = amount * 1000
        if verb == "adjust":
            with ours.acquire("u", "r", {}) as lease:
                lease.adjust(x=amount)
            model.take(now, cost)
        else:
            try:
                with ours.acquire("u", "r", {"x": amount}) as lease:
                    assert model.left(now) >= cost
                    period = model.take(now, cost)
                    if verb == "late":
                        go(now + late)
                        lease.release(x=amount)
                        model.give_back(now, cost, period)
            except RateLimitExceeded as refused:
                assert model.left(now) < cost
                wait = round(refused.retry_after_seconds * SECOND)
                # A float of centuries is coarser than a microsecond.
                if verb == "wait" and wait < 3000 * DAY * SECOND:
                    assert model.left(now + wait - 1) < cost <= model.left(now + wait)
                    go(now + wait - 1)
                    assert _is_refused(ours, amount)
                    go(now + 1)
                    assert not _is_refused(ours, amount)
                    model.take(now, cost)
        assert ours.available("u", "r")["x"] == model.left(now) // 1000
    engine.close()


def _is_refused(ours: Limiter, amount: int) -> bool:
    try:
        with ours.acquire("u", "r", {"x": amount}):
            return False
    except RateLimitExceeded:
        return True


@settings(max_examples=300, deadline=None)
@given(CALENDARS, st.datetimes(datetime(1995, 1, 1), datetime(2090, 1, 1)), st.integers(0, SECOND - 1))
@example(CalendarPeriod("day", "Europe/Berlin", "02:30"), datetime(2026, 3, 29, 1, 0), 0)
@example(CalendarPeriod("day", "Pacific/Apia"), datetime(2011, 12, 30, 10, 0), 0)
def test_a_period_begins_when_the_clock_of_its_zone_shows_the_anchor(
    period: CalendarPeriod, when: datetime, micro: int
) -> None:
    now = int(when.replace(tzinfo=UTC).timestamp()) * SECOND + micro
    index = period.index(now)
    start, end = period.start(index), period.start(index + 1)
    assert start <= now < end
    # Consecutive numbers, each for one period: no period is skipped or counted twice.
    assert period.index(start) == period.index(end - 1) == index
    assert period.index(end) > index
    zone = ZoneInfo(period.timezone)
    wall = datetime.fromtimestamp(start // SECOND, zone)
    before = datetime.fromtimestamp(start // SECOND - 7200, zone)
    if wall.utcoffset() == before.utcoffset():
        assert _shows(period, wall)


def _shows(period: CalendarPeriod, wall: datetime) -> bool:
    """Return whether a clock shows the anchor of a period."""
    date, _, time = period.anchor.partition("T")
    match period.per:
        case "hour":
            return f"{wall:%M}" == period.anchor
        case "day":
            return f"{wall:%H:%M}" == period.anchor
        case "week":
            return f"{wall:%a}".lower() == date and f"{wall:%H:%M}" == (time or "00:00")
        case "month":
            is_last = (wall + timedelta(days=1)).day == 1
            right = wall.day == int(date) or (is_last and wall.day < int(date))
        case _:
            right = f"{wall:%m-%d}" in ({date, "02-28"} if date == "02-29" else {date})
    return right and f"{wall:%H:%M}" == (time or "00:00")


@pytest.mark.parametrize(
    ("per", "zone", "anchor", "now", "start", "hours"),
    [
        ("day", "Europe/Berlin", None, "2026-03-29T12:00+02:00", "2026-03-29T00:00+01:00", 23),
        ("day", "Europe/Berlin", None, "2026-10-25T12:00+01:00", "2026-10-25T00:00+02:00", 25),
        ("day", "America/New_York", 6, "2026-03-08T05:59-04:00", "2026-03-07T06:00-05:00", 23),
        # 02:30 does not exist on this day, and counts as one hour after 01:30.
        ("day", "Europe/Berlin", "02:30", "2026-03-29T03:30+02:00", "2026-03-29T03:30+02:00", 23),
        # 02:30 exists twice on this day; the first counts.
        ("day", "Europe/Berlin", "02:30", "2026-10-25T02:30+01:00", "2026-10-25T02:30+02:00", 25),
        ("hour", "Asia/Kathmandu", None, "2026-11-16T10:59+05:45", "2026-11-16T10:00+05:45", 1),
        ("week", "UTC", None, "2026-11-15T23:59+00:00", "2026-11-09T00:00+00:00", 168),
        ("week", "Europe/Berlin", "sun", "2026-03-29T00:00+01:00", "2026-03-29T00:00+01:00", 167),
        ("month", "UTC", 31, "2028-02-29T00:00+00:00", "2028-02-29T00:00+00:00", 31 * 24),
        ("month", "UTC", 31, "2027-02-27T23:59+00:00", "2027-01-31T00:00+00:00", 28 * 24),
        ("month", "UTC", 30, "2027-03-01T00:00+00:00", "2027-02-28T00:00+00:00", 30 * 24),
        ("month", "Europe/Berlin", None, "2026-03-31T23:59+02:00", "2026-03-01T00:00+01:00", 31 * 24 - 1),
        ("year", "UTC", "02-29", "2026-02-28T00:00+00:00", "2026-02-28T00:00+00:00", 365 * 24),
        ("year", "UTC", "02-29", "2028-02-28T23:59+00:00", "2027-02-28T00:00+00:00", 366 * 24),
        ("year", "Europe/London", "04-06", "2027-04-05T23:59+01:00", "2026-04-06T00:00+01:00", 365 * 24),
    ],
)
def test_periods_across_clock_changes_month_ends_and_leap_years(
    per: Per, zone: str, anchor: int | str | None, now: str, start: str, hours: int
) -> None:
    limit = Limit.calendar("x", 5, per, timezone=zone, anchor=anchor)
    assert Limit.parse(str(limit)) == limit
    period = limit.calendar_period
    assert period is not None
    index = period.index(_micro(now))
    assert period.start(index) == _micro(start)
    assert period.start(index + 1) - period.start(index) == hours * 3600 * SECOND
    meter = meter_of(limit)
    used = meter.charged(meter.full(_micro(now)), _micro(now), meter.cost(5000))
    wait = meter.wait(used, _micro(now), meter.cost(1))
    assert _micro(now) + wait == _micro(start) + hours * 3600 * SECOND
    assert meter.credits(used, _micro(now) + wait - 1) == 0
    assert meter.credits(used, _micro(now) + wait) == meter.depth


def _micro(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


@pytest.mark.parametrize(
    "limit",
    [
        Limit.fixed_window("x", MOST_TOKENS, 1),
        Limit.sliding_window("x", MOST_SLIDING_TOKENS, 1),
        Limit.session("x", MOST_TOKENS, 1),
        Limit.calendar("x", MOST_TOKENS, "hour"),
    ],
    ids=lambda limit: limit.kind,
)
def test_every_number_of_every_kind_fits_into_the_38_digits_of_dynamodb(limit: Limit) -> None:
    meter = meter_of(limit)
    year_9999 = 253_402_300_799 * SECOND
    used = meter.charged(
        meter.full(year_9999), year_9999, meter.cost(MOST_TOKENS * 1000, 6 if meter.splits else 0)
    )
    assert len(str(used)) <= 38
    # A debt of any size ends at a time that can be written.
    assert meter.wait(used, year_9999, meter.depth) >= 0


def test_debts_of_a_calendar_end_after_the_last_date_too() -> None:
    limit = Limit.calendar("x", 1, "year", timezone="Europe/Berlin", anchor="02-29")
    meter, now = meter_of(limit), int(START) * SECOND
    used = meter.charged(meter.full(now), now, meter.cost(MOST_TOKENS * 1000))
    assert meter.wait(used, now, meter.cost(1000)) > 10**11 * DAY * SECOND
