"""Kinds of limits on every target: what each admits and when, mixed in one bucket, and when limits change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from solotable.errors import DataError
from solotable.systems.limiter import Limit, RateLimitExceeded
from solotable.systems.limiter.manifest import format_limit, parse_limit, read_manifest

from .either import either
from .ground import Place
from .test_meters import SECOND, seconds_of

DAY = 86_400
HOUR = 3600
KINDS = [
    Limit.per_minute("x", 5),
    Limit.fixed_window("x", 5, 60),
    Limit.sliding_window("x", 5, 60),
    Limit.session("x", 5, 60),
    Limit.calendar("x", 5, "hour"),
    Limit.calendar("x", 5, "day", timezone="Europe/Berlin", anchor=6),
    Limit.calendar("x", 5, "week", anchor="sun"),
    Limit.calendar("x", 5, "month", timezone="America/New_York", anchor=31),
    Limit.calendar("x", 5, "year", anchor="02-29T12:30"),
]


def at(place: Place, microseconds: int) -> None:
    place.clock.seconds = seconds_of(microseconds)


def now(place: Place) -> int:
    return int(place.clock.seconds * SECOND)


def take(ours: Any, amount: float = 1, name: str = "x") -> None:
    with ours.acquire("u", "r", {name: amount}):
        pass


@pytest.mark.parametrize("limit", KINDS, ids=str)
def test_a_told_time_is_admitted_and_one_microsecond_before_it_is_not(
    place: Place, mode: str, limit: Limit
) -> None:
    ours = either(place, mode, limits=[limit], remember_rejections=0)
    place.clock.seconds += 1234.5
    take(ours, 4)
    place.clock.seconds += 0.25
    for amount in (2, 5):
        with pytest.raises(RateLimitExceeded) as refused:
            take(ours, amount)
        told = now(place) + round(refused.value.retry_after_seconds * SECOND)
        assert round(ours.time_until("u", "r", {"x": amount}) * SECOND) + now(place) == told
        at(place, told - 1)
        with pytest.raises(RateLimitExceeded):
            take(ours, amount)
        at(place, told)
        take(ours, amount)
        assert ours.available("u", "r")["x"] <= 5 - amount


@pytest.mark.parametrize("limit", KINDS, ids=str)
def test_a_limit_is_untouched_when_its_status_says_so(place: Place, mode: str, limit: Limit) -> None:
    ours = either(place, mode, limits=[limit], remember_rejections=0)
    assert ours.statuses("u", "r")[0].reset_after_seconds == 0
    place.clock.seconds += 1234.5
    with ours.acquire("u", "r", {"x": 4}) as lease:
        (after,) = lease.statuses
    with pytest.raises(RateLimitExceeded) as refused:
        take(ours, 2)
    (stored,) = ours.statuses("u", "r")
    assert after.reset_after_seconds == stored.reset_after_seconds
    assert refused.value.statuses[0].reset_after_seconds == stored.reset_after_seconds
    full = now(place) + round(stored.reset_after_seconds * SECOND)
    at(place, full - 1)
    assert ours.available("u", "r")["x"] < 5
    at(place, full)
    assert ours.available("u", "r")["x"] == 5


def test_a_mix_of_kinds_is_charged_in_one_write(place: Place, mode: str) -> None:
    limits = [
        Limit.per_minute("bucket", 10),
        Limit.fixed_window("fixed", 10, HOUR),
        Limit.sliding_window("sliding", 10, HOUR),
        Limit.session("session", 10, HOUR),
        Limit.calendar("quota", 10, "month", timezone="Asia/Tokyo"),
    ]
    ours = either(place, mode, limits=limits)
    ours.available("u", "r")
    amounts = {limit.name: index + 1 for index, limit in enumerate(limits)}
    with ours.acquire("u", "r", amounts):
        pass
    place.sent()
    with ours.acquire("u", "r", amounts) as lease:
        assert place.sent() == ["UpdateItem"]
        lease.adjust(fixed=-1, session=1, sliding=-1, quota=1)
    assert ours.available("u", "r") == {"bucket": 8, "fixed": 7, "sliding": 5, "session": 1, "quota": -1}
    # All or none: nothing is taken from the others when one lacks tokens.
    with pytest.raises(RateLimitExceeded) as refused, ours.acquire("u", "r", dict.fromkeys(amounts, 2)):
        pass
    assert {status.limit.name for status in refused.value.violations} == {"session", "quota"}
    assert ours.available("u", "r")["sliding"] == 5


def test_what_was_taken_in_a_period_that_is_over_is_not_given_back_to_the_next(
    place: Place, mode: str
) -> None:
    limits = [Limit.fixed_window("f", 10, 60), Limit.session("s", 10, 60), Limit.calendar("c", 10, "hour")]
    ours = either(place, mode, limits=limits)
    place.clock.seconds += 59 * 60 + 50
    with ours.acquire("u", "r", {"f": 8, "s": 8, "c": 8}) as lease:
        place.clock.seconds += 70
        with ours.acquire("u", "r", {"f": 3, "s": 3, "c": 3}):
            pass
        lease.release(f=8, s=8, c=8)
    assert ours.available("u", "r") == {"f": 7, "s": 7, "c": 7}
    # In the same period it is given back.
    with pytest.raises(ZeroDivisionError), ours.acquire("u", "r", {"f": 7, "s": 7, "c": 7}):
        raise ZeroDivisionError
    assert ours.available("u", "r") == {"f": 7, "s": 7, "c": 7}


def test_a_sliding_window_gives_back_to_the_window_before(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[Limit.sliding_window("x", 10, 60)])
    with ours.acquire("u", "r", {"x": 8}) as lease:
        place.clock.seconds += 75
        take(ours, 2)
        # A quarter of the window has passed: 10 - 8 * 3/4 - 2.
        assert ours.available("u", "r")["x"] == 2
        lease.release(x=4)
    assert ours.available("u", "r")["x"] == 5


def test_a_session_begins_with_the_first_use_and_not_with_an_hour(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[Limit.session("x", 3, 5 * HOUR)], remember_rejections=0)
    place.clock.seconds += 1700.125
    take(ours, 1)
    place.clock.seconds += 4 * HOUR
    take(ours, 2)
    with pytest.raises(RateLimitExceeded) as refused:
        take(ours)
    assert refused.value.retry_after_seconds == pytest.approx(HOUR)
    place.clock.seconds += HOUR
    take(ours, 3)
    assert ours.time_until("u", "r", {"x": 1}) == pytest.approx(5 * HOUR)


def test_a_quota_keeps_what_was_consumed_when_it_changes(place: Place, mode: str) -> None:
    """An upgrade adds tokens at once, and a downgrade leaves no debt to the next month."""
    ours = either(place, mode, cache_seconds=0)

    def quota(amount: int) -> None:
        ours.set_limits([Limit.calendar("x", amount, "month")], entity="u", resource="r")

    quota(1000)
    take(ours, 900)
    quota(2000)
    assert ours.available("u", "r")["x"] == 1100
    take(ours, 600)
    quota(500)
    assert ours.available("u", "r")["x"] == 0
    place.clock.seconds = datetime(2035, 2, 1, tzinfo=UTC).timestamp()
    assert ours.available("u", "r")["x"] == 500


def test_tokens_are_kept_when_a_limit_changes_its_kind(place: Place, mode: str) -> None:
    ours = either(place, mode, cache_seconds=0)
    place.clock.seconds += 10
    found = None
    for limit in [Limit.per_hour("x", 100), *(each for each in KINDS if each.kind != "token_bucket")] * 2:
        ours.set_limits([limit], entity="u", resource="r")
        found = ours.available("u", "r")["x"]
        if found:
            take(ours, 1)
            assert ours.available("u", "r")["x"] == found - 1
    # Of 100 tokens 5 were left by the first limit of five, and each limit took one.
    assert found == 0


def test_a_clock_that_is_behind_admits_no_more_than_the_limit(place: Place, mode: str) -> None:
    limits = [Limit.fixed_window("f", 5, 60), Limit.sliding_window("w", 5, 60), Limit.session("s", 5, 60)]
    ours = either(place, mode, limits=limits, remember_rejections=0)
    place.clock.seconds += 62
    with ours.acquire("u", "r", {"f": 3, "w": 3, "s": 3}):
        pass
    place.clock.seconds -= 5
    for name in ("f", "w", "s"):
        admitted = 0
        while admitted < 9:
            try:
                take(ours, 1, name)
            except RateLimitExceeded:
                break
            admitted += 1
        assert admitted <= 2
    place.clock.seconds += 5
    assert all(left <= 2 for left in ours.available("u", "r").values())


@pytest.mark.parametrize("limit", KINDS, ids=str)
def test_every_form_of_a_limit_says_the_same(limit: Limit) -> None:
    assert Limit.parse(str(limit)) == limit
    assert Limit.from_dict(limit.as_dict()) == limit
    assert parse_limit(format_limit(limit)) == limit
    text = format_limit(limit).partition("=")[2]
    file = read_manifest(f"system:\n  limits:\n    x: {text!r}\n", "limits.yaml")
    assert [content.limits for content in file.levels.values()] == [(limit,)]
    members = {name: value for name, value in limit.as_dict().items() if name != "name"}
    file = read_manifest(f"system:\n  limits:\n    x: {members}\n", "limits.yaml")
    assert [content.limits for content in file.levels.values()] == [(limit,)]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"kind": "leaky"}, "The kind of limit 'x' is one of token_bucket, fixed_window"),
        ({"kind": "fixed_window", "refill": 3}, "The refill of limit 'x' is its capacity, 5"),
        (
            {"kind": "sliding_window", "capacity": 10**10},
            "The capacity of limit 'x' is a whole number from 0",
        ),
        ({"kind": "calendar"}, "Limit 'x' has no per; a calendar is per hour"),
        ({"kind": "calendar", "per": "decade"}, "The per of a calendar is hour, day, week, month or year"),
        (
            {"kind": "calendar", "per": "day", "timezone": "Mars/Base"},
            "The timezone 'Mars/Base' is not known",
        ),
        ({"kind": "calendar", "per": "month", "anchor": 32}, "a day from 1 to 31"),
        ({"kind": "calendar", "per": "year", "anchor": "02-30"}, "a day as 04-06"),
        ({"kind": "calendar", "per": "week", "anchor": "someday"}, "a weekday as mon"),
        ({"kind": "calendar", "per": "day", "anchor": True}, "an hour from 0 to 23"),
        ({"per": "day"}, "Limit 'x' has per, which only a calendar has"),
    ],
)
def test_a_wrong_limit_is_rejected_with_what_is_wrong(members: dict[str, Any], message: str) -> None:
    period = {} if members.get("kind") == "calendar" else {"period_seconds": 60}
    with pytest.raises(DataError, match=message):
        Limit.from_dict({"name": "x", "capacity": 5, **period, **members})


def test_a_manifest_reports_the_line_of_a_wrong_member() -> None:
    text = "system:\n  limits:\n    x:\n      kind: calendar\n      per: month\n      anchor: 40\n"
    text += "      capacity: 5\n"
    with pytest.raises(DataError, match=r"limits.yaml:6: The anchor of a calendar per month"):
        read_manifest(text, "limits.yaml")


@pytest.mark.parametrize(
    "text", ["x=5/fixed:", "x=5/calendar:", "x=5/calendar:month:15,Nowhere", "x=5/fixed:1+9"]
)
def test_a_stored_text_that_is_not_a_limit_is_rejected(text: str) -> None:
    with pytest.raises(DataError):
        Limit.parse(text)


def test_session_and_sliding_buckets_are_never_split(place: Place, mode: str) -> None:
    for limit in (Limit.session("x", 10_000, 60), Limit.sliding_window("x", 10_000, 60)):
        ours = either(place, mode, limits=[limit], shard_above=1, most_shards=4)
        for _ in range(12):
            place.clock.seconds += 0.3
            with ours.acquire("hot", limit.kind, {"x": 1}):
                pass
    assert {item["level"]["N"] for item in place.raw("Bucket")} == {"0"}


def test_a_fixed_window_is_split_and_counts_exactly(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[Limit.fixed_window("x", 800, HOUR)], shard_above=1, most_shards=4)
    taken = 0
    for _ in range(40):
        place.clock.seconds += 0.3
        take(ours, 1)
        taken += 1
    assert len(place.raw("Bucket")) > 1
    assert ours.available("u", "r")["x"] <= 800 - taken
    place.clock.seconds += HOUR
    assert ours.available("u", "r")["x"] == 800
