"""Schedules: which limits apply at a time, from when to when, against a model that asks every minute."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solotable import Database
from solotable.errors import DataError
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded, Schedule, ScheduleWindow
from solotable.systems.limiter.admin.calendar_period import WEEKDAYS
from solotable.systems.limiter.admin.schedule import parse_rules, render_rules
from solotable.systems.limiter.manifest import Level, compare, read_manifest
from solotable.systems.limiter.manifest.plan import content_of, level_of, lines
from tests.store.opening import Clock

from .either import either
from .ground import ACME, Place

SECOND = 1_000_000
USUAL = [Limit.per_minute("rpm", 100)]
BUSY = [Limit.per_minute("rpm", 10), Limit.calendar("quota", 5, "day", timezone="Europe/Berlin", anchor=6)]
WINDOWS = [
    ("mon-fri", 8 * 60, 18 * 60),
    ("sat,sun", 0, 24 * 60),
    ("fri-mon", 22 * 60, 30 * 60),
    ("wed", 30, 31),
    ("", 2 * 60 + 15, 2 * 60 + 45),
    ("mon-sun", 0, 24 * 60),
]


def text_of(days: str, start: int, end: int) -> str:
    ends = end if end <= 24 * 60 else end - 24 * 60
    return f"{days} {start // 60:02d}:{start % 60:02d}-{ends // 60:02d}:{ends % 60:02d}".strip()


def slow(windows: list[tuple[str, int, int]], zone: str, minute: int) -> int | None:
    """Return the first window that has a minute since the epoch, by the wall clock alone."""
    wall = datetime.fromtimestamp(minute * 60, ZoneInfo(zone))
    for index, (days, start, end) in enumerate(windows):
        for before in (0, 1):
            day = WEEKDAYS[(wall.weekday() - before) % 7]
            since_midnight = before * 1440 + wall.hour * 60 + wall.minute
            if _has(days, day) and start <= since_midnight < end:
                return index
    return None


def _has(days: str, day: str) -> bool:
    for part in days.split(",") if days else ["mon-sun"]:
        first, _, last = part.partition("-")
        count = (WEEKDAYS.index(last or first) - WEEKDAYS.index(first)) % 7
        if day in [WEEKDAYS[(WEEKDAYS.index(first) + step) % 7] for step in range(count + 1)]:
            return True
    return False


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(WINDOWS), min_size=1, max_size=4),
    st.sampled_from(["UTC", "Asia/Kathmandu", "America/Sao_Paulo"]),
    st.datetimes(datetime(2030, 1, 1), datetime(2031, 1, 1)),
)
def test_a_schedule_chooses_as_the_wall_clock_says(
    windows: list[tuple[str, int, int]], zone: str, when: datetime
) -> None:
    """No clock changes in these zones and years, so that the wall clock alone is right."""
    limits = [[Limit.per_minute("rpm", 1 + index)] for index in range(len(windows))]
    schedule = Schedule(
        USUAL,
        [ScheduleWindow(text_of(*window), limits[index]) for index, window in enumerate(windows)],
        timezone=zone,
    )
    assert parse_rules(render_rules(schedule)) == schedule
    minute = int(when.replace(tzinfo=UTC).timestamp()) // 60
    found = schedule.at(minute * 60 * SECOND + 17)
    chosen = slow(windows, zone, minute)
    assert list(found.limits) == (USUAL if chosen is None else limits[chosen])
    for edge, before in ((found.since, True), (found.until, False)):
        if edge is None:
            # Nothing changes in a week.
            step = -1 if before else 1
            assert {slow(windows, zone, minute + step * each) for each in range(0, 7 * 1440, 7)} == {chosen}
        else:
            first, last = (edge // SECOND // 60, minute) if before else (minute, edge // SECOND // 60 - 1)
            assert {slow(windows, zone, each) for each in {first, last, (first + last) // 2}} == {chosen}
            assert slow(windows, zone, first - 1 if before else last + 1) != chosen


@pytest.mark.parametrize(
    ("now", "window", "since", "until"),
    [
        # The clocks go from 02:00 to 03:00: the window of 02:30 to 03:30 begins and ends at 03:30.
        ("2026-03-29T03:29+02:00", None, None, None),
        ("2026-10-25T02:30+02:00", "02:30-03:30", "2026-10-25T02:30+02:00", "2026-10-25T03:30+01:00"),
        ("2026-10-25T02:45+01:00", "02:30-03:30", "2026-10-25T02:30+02:00", "2026-10-25T03:30+01:00"),
    ],
)
def test_a_schedule_across_a_change_of_clocks(
    now: str, window: str | None, since: str | None, until: str | None
) -> None:
    schedule = Schedule(USUAL, [ScheduleWindow("02:30-03:30", BUSY)], timezone="Europe/Berlin")
    found = schedule.at(_micro(now))
    assert found.window == window
    if since is not None and until is not None:
        assert (found.since, found.until) == (_micro(since), _micro(until))


def _micro(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


def test_the_instant_of_a_change_is_the_same_at_every_time_of_a_window() -> None:
    schedule = Schedule(USUAL, [ScheduleWindow("mon-fri 08:00-18:00", BUSY)], timezone="Europe/Berlin")
    start = datetime(2026, 3, 23, tzinfo=ZoneInfo("Europe/Berlin"))
    seen = set()
    for minutes in range(0, 8 * 1440, 13):
        now = int((start + timedelta(minutes=minutes)).timestamp()) * SECOND
        fresh = Schedule.parse(str(schedule)).at(now)
        assert schedule.at(now) == fresh
        seen.add((fresh.since, fresh.until))
    # The weekend before, five days, four nights, the weekend, and Monday with its night.
    assert len(seen) == 13
    assert all(since is not None and until is not None and since < until for since, until in seen)


@pytest.mark.parametrize(
    "when",
    ["", "monday", "mon-fri 8-18", "25:00-26:00", "mon 08:00-08:00", "mon tue 08:00-09:00", "10:00-24:30"],
)
def test_a_window_that_cannot_be_read_is_rejected(when: str) -> None:
    with pytest.raises(DataError, match="The when of a window is days and times"):
        ScheduleWindow(when, BUSY)


def test_a_schedule_needs_windows_and_a_known_zone() -> None:
    with pytest.raises(DataError, match="1 to 20 windows; got 0"):
        Schedule(USUAL, [])
    with pytest.raises(DataError, match="'Nowhere' is not known"):
        Schedule(USUAL, [ScheduleWindow("mon", BUSY)], timezone="Nowhere")


BERLIN = Schedule(
    [Limit.per_hour("x", 100)],
    [ScheduleWindow("mon-fri 08:00-18:00", [Limit.per_hour("x", 10)])],
    timezone="Europe/Berlin",
)
#: A Monday.
MORNING = datetime(2035, 1, 8, 8, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()


def take(ours: Any, amount: int = 1) -> None:
    with ours.acquire("u", "r", {"x": amount}):
        pass


def test_the_limits_of_a_call_are_those_of_its_time(place: Place, mode: str) -> None:
    place.clock.seconds = MORNING - 60
    ours = either(place, mode, cache_seconds=10**9)
    stored = ours.set_limits(BERLIN, entity="u", resource="r")
    assert stored.schedule == BERLIN
    assert ours.get_limits(entity="u", resource="r").schedule == BERLIN
    night = ours.effective_limits("u", "r")
    assert (night.limits[0].capacity, night.window) == (100, None)
    assert night.until == datetime.fromtimestamp(MORNING, UTC)
    take(ours, 30)
    assert ours.available("u", "r") == {"x": 70}
    place.clock.seconds = MORNING
    day = ours.effective_limits("u", "r")
    assert (day.limits[0].capacity, day.window, day.source) == (10, "mon-fri 08:00-18:00", "entity-resource")
    # The tokens stay, up to the new capacity; no limits are read again.
    place.sent()
    take(ours, 4)
    assert set(place.sent()) == {"UpdateItem"}
    assert ours.available("u", "r") == {"x": 6}
    place.clock.seconds = MORNING + 10 * 3600
    assert ours.available("u", "r") == {"x": 10}
    take(ours, 10)
    place.clock.seconds += 3600
    assert ours.available("u", "r") == {"x": 100}


def test_clocks_that_differ_convert_a_bucket_once_per_change(place: Place, mode: str) -> None:
    """The process that is behind follows the one that has moved the bucket on, and never moves it back."""
    behind = Clock()
    ours = either(place, mode, cache_seconds=10**9)
    other = Database(place.engine, replace(place.db.scope, clock=behind))
    late = Limiter(other, ACME, cache_seconds=10**9)
    place.clock.seconds = MORNING - 30
    ours.set_limits(BERLIN, entity="u", resource="r")
    rules = []
    for tick in range(60):
        place.clock.seconds, behind.seconds = MORNING - 30 + tick, MORNING - 33 + tick
        for one in (ours, late):
            with suppress(RateLimitExceeded), one.acquire("u", "r", {"x": 0.125}):
                pass
            rules += [item["rules"]["S"] for item in place.raw("Bucket")]
    assert sum(one != other for one, other in pairwise(rules)) == 1
    assert rules[-1] == "x=10/3600"


FILE = """
system:
  limits: {x: 100/hour}
  schedule:
    timezone: Europe/Berlin
    windows:
      - when: mon-fri 08:00-18:00
        limits: {x: 10/hour}
entities:
  u:
    limits: {x: 5}
    schedule:
      windows: [{when: "sat,sun", limits: {x: {capacity: 3, kind: fixed_window, period: minute}}}]
"""


def test_a_file_has_schedules(place: Place, mode: str) -> None:
    ours = either(place, mode)
    manifest = read_manifest(FILE, "limits.yaml")
    for level, content in manifest.levels.items():
        ours.set_limits(content.rules, entity=level.entity, resource=level.resource)
    assert ours.get_limits().schedule == BERLIN
    stored = {level_of(each): content_of(each) for each in ours.stored_limits()}
    assert (
        compare(manifest, {level: each for level, each in stored.items() if each}, prune=True).changes == ()
    )
    assert lines(stored[Level("u", None)]) == ["x=5/minute", "sat,sun (UTC): x=3/fixed:minute"]


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("{}", "limits.yaml:4: A schedule has a list of windows"),
        ("{windows: []}", "limits.yaml:4: A schedule has 1 to 20 windows; got 0."),
        ("{windows: [{when: mon}]}", "limits.yaml:4: A window has when"),
        ("{windows: [{when: mo, limits: {x: 1}}]}", "limits.yaml:4: The when of a window is days and times"),
        (
            "{timezone: Mars, windows: [{when: mon, limits: {x: 1}}]}",
            "limits.yaml:4: The timezone 'Mars' is not",
        ),
        ("{zone: UTC}", "limits.yaml:4: Schedule has timezone and windows; got 'zone'."),
    ],
)
def test_a_file_reports_what_is_wrong_with_a_schedule(schedule: str, message: str) -> None:
    with pytest.raises(DataError) as found:
        read_manifest(f"resources:\n  r:\n    limits: {{x: 1}}\n    schedule: {schedule}\n", "limits.yaml")
    assert message in str(found.value)


def test_limits_of_the_program_may_change_by_the_hour(place: Place, mode: str) -> None:
    windows = [ScheduleWindow("mon-sun 08:00-18:00", [Limit.per_minute("rpm", 10)])]
    ours = either(place, mode, limits=Schedule(USUAL, windows))
    place.clock.seconds += -place.clock.seconds % 86_400 + 7 * 3600
    with ours.acquire("u", "r", {"rpm": 5}):
        pass
    assert ours.available("u", "r") == {"rpm": 95}
    place.clock.seconds += 2 * 3600
    assert ours.available("u", "r") == {"rpm": 10}
    place.clock.seconds += 10 * 3600
    # The bucket keeps its tokens, and refills by its new limits from the next call on.
    with ours.acquire("u", "r", {"rpm": 10}):
        place.clock.seconds += 60
    assert ours.available("u", "r") == {"rpm": 100}
    # Stored limits apply instead, also those of a level that is above the program's.
    ours.set_limits([Limit.per_minute("rpm", 7)])
    assert ours.available("u", "r") == {"rpm": 7}


WEEKENDS = Schedule(USUAL, [ScheduleWindow("sat,sun", BUSY)])


@pytest.mark.parametrize(
    "wrong", [WEEKENDS, USUAL[0], ["60/minute"], 7], ids=["schedule", "limit", "text", "int"]
)
def test_a_call_takes_a_list_of_limits(place: Place, wrong: Any) -> None:
    ours = Limiter(place.db, ACME)
    with pytest.raises(DataError, match="Limits are a list"):
        ours.available("u", "r", limits=wrong)
    with pytest.raises(DataError, match="are a list"), ours.acquire("u", "r", {"rpm": 1}, limits=wrong):
        pass
    if not isinstance(wrong, Schedule):
        with pytest.raises(DataError, match="Limits are a list"):
            Limiter(place.db, ACME, limits=wrong)
        with pytest.raises(DataError, match="Limits are a list"):
            ours.set_limits(wrong)
