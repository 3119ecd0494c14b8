"""The charge of a call that repeats: its request is the general flow's, and other calls have none."""

from __future__ import annotations

import random
from typing import Any

import pytest

from solotable.errors import DataError, SolotableError
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded, Schedule, ScheduleWindow
from solotable.systems.limiter.buckets.repeated_charge import FirstWrite, begin
from solotable.systems.limiter.buckets.writes.charge_request import Charge, build_request

from .ground import ACME, Place

RPM = Limit.per_minute("rpm", 10)
TPM = Limit.per_minute("tpm", 1000)


def _limiter(place: Place, *limits: Limit, **options: Any) -> Limiter:
    return Limiter(place.db, ACME, limits=limits or (RPM, TPM), **options)


def _first(made: Limiter, consume: Any, entity: str = "u") -> FirstWrite | None:
    first = begin(made.context, entity, {"r": consume})
    if first is not None:
        first.bucket.free_lane(first.lane)
    return first


def _acquire(made: Limiter, consume: Any, entity: str = "u") -> bool:
    try:
        with made.acquire(entity, "r", consume):
            return True
    except RateLimitExceeded:
        return False


@pytest.mark.parametrize(
    "limits",
    [
        (RPM, TPM),
        (Limit.fixed_window("rpm", 10, 60), TPM),
        (Limit.session("rpm", 10, 60), Limit.fixed_window("tpm", 1000, 3600)),
    ],
    ids=["token buckets", "window", "session"],
)
@pytest.mark.parametrize("named", [("rpm", "tpm"), ("tpm", "rpm"), ("rpm",)], ids=" ".join)
def test_a_repeated_charge_sends_the_request_of_the_general_flow(
    place: Place, limits: tuple[Limit, ...], named: tuple[str, ...]
) -> None:
    made, dice = _limiter(place, *limits, cache_seconds=1e6), random.Random(0)
    compared = 0
    for _ in range(60):
        consume = {name: dice.randint(1, 3 if name == "rpm" else 200) for name in named}
        first = _first(made, consume)
        if first is not None:
            charge = Charge(first.charge.rules, {name: amount * 1000 for name, amount in consume.items()})
            state = first.bucket.shards[0]
            general, takes = build_request(
                made.context.writer, first.bucket, 0, charge, first.lane, state, first.now
            )
            assert (first.request, first.charge, takes) == (general, charge, True)
            compared += 1
        _acquire(made, consume)
        place.clock.seconds += dice.choice((0.0, 0.001, 2.5, 30.0, 400.0))
    assert compared > 15


def test_only_a_call_that_repeats_the_last_one_is_repeated(place: Place) -> None:
    made = _limiter(place)
    assert _first(made, {"rpm": 1, "tpm": 5}) is None
    _acquire(made, {"rpm": 1, "tpm": 5})
    assert _first(made, {"rpm": 2, "tpm": 6}) is not None
    for other in ({"rpm": 1}, {"tpm": 5, "rpm": 1}, {"rpm": 1, "x": 5}, {"rpm": 0, "tpm": 5}):
        assert _first(made, other) is None
    for amount in (True, 1.5, -1, 11, 10**30):
        assert _first(made, {"rpm": amount, "tpm": 5}) is None
    for invalid in (True, -1, 0.00001):
        with pytest.raises(DataError):
            _acquire(made, {"rpm": invalid, "tpm": 5})
    # The bucket is known to lack so much.
    assert _first(made, {"rpm": 10, "tpm": 5}) is None


def test_a_charge_is_repeated_while_the_limits_are_cached(place: Place) -> None:
    made = _limiter(place, cache_seconds=60)
    _acquire(made, {"rpm": 1})
    assert _first(made, {"rpm": 1}) is not None
    hits = made.cache_stats().hits
    place.clock.seconds += 61
    assert _first(made, {"rpm": 1}) is None
    _acquire(made, {"rpm": 1})
    assert _first(made, {"rpm": 1}) is not None
    assert made.cache_stats().hits == hits + 1
    made.set_limits([Limit.per_minute("rpm", 5)], entity="u", resource="r")
    assert _first(made, {"rpm": 1}) is None
    assert [_acquire(made, {"rpm": 1}) for _ in range(6)].count(True) <= 5


@pytest.mark.parametrize(
    "limits",
    [
        (Limit.per_minute("rpm", 10, soft=True),),
        (Limit.concurrency("rpm", 10, 60),),
        (Limit.sliding_window("rpm", 10, 60),),
    ],
    ids=["soft", "concurrency", "sliding"],
)
def test_limits_with_more_than_one_write_are_not_repeated(place: Place, limits: tuple[Limit, ...]) -> None:
    made = _limiter(place, *limits)
    for _ in range(2):
        assert _acquire(made, {"rpm": 1})
        assert _first(made, {"rpm": 1}) is None


def test_modes_parents_and_limits_of_a_call_are_not_repeated(place: Place) -> None:
    made = _limiter(place)
    made.create_entity("org")
    made.create_entity("kid", parent="org", cascade=True)
    _acquire(made, {"rpm": 1}, "kid")
    assert _first(made, {"rpm": 1}, "kid") is None
    made.set_limits([RPM], entity="u", mode="shadow")
    _acquire(made, {"rpm": 1})
    assert _first(made, {"rpm": 1}) is None
    with made.acquire("v", "r", {"rpm": 1}, limits=[RPM]):
        pass
    assert _first(made, {"rpm": 1}, "v") is None
    made.set_mode("w", "deny")
    _acquire(made, {"rpm": 1}, "x")
    made.set_mode("x", "deny")
    assert _first(made, {"rpm": 1}, "x") is None


def test_a_repeated_charge_that_another_process_preceded_is_decided_by_the_item(place: Place) -> None:
    one, other = _limiter(place, RPM), _limiter(place, RPM)
    for made in (one, other):
        _acquire(made, {"rpm": 1})
    # `one` remembers 9 tokens, of which `other` takes 6.
    assert _acquire(other, {"rpm": 6})
    assert _first(one, {"rpm": 3}) is not None
    assert not _acquire(one, {"rpm": 3})
    assert _acquire(one, {"rpm": 2})
    assert one.available("u", "r") == {"rpm": 0}


def test_limits_of_the_program_that_change_by_the_hour_change_for_calls_that_repeat(place: Place) -> None:
    hours = ScheduleWindow("08:00-18:00", [Limit.per_minute("rpm", 3)])
    made = Limiter(place.db, ACME, limits=Schedule([RPM], [hours]), cache_seconds=1e9)
    place.clock.seconds += 8 * 3600 - 1
    for _ in range(3):
        assert _acquire(made, {"rpm": 1})
        assert _first(made, {"rpm": 1}) is None
    place.clock.seconds += 1
    with made.acquire("u", "r", {"rpm": 1}) as lease:
        assert [status.limit.capacity for status in lease.statuses] == [3]


def test_a_call_that_takes_nothing_writes_nothing_however_often_it_repeats(place: Place) -> None:
    made = _limiter(place)
    _acquire(made, {"rpm": 1})
    place.sent()
    for _ in range(3):
        assert _acquire(made, {})
        assert _first(made, {}) is None
    assert "UpdateItem" not in place.sent()


def test_calls_of_denied_entities_are_not_remembered(place: Place) -> None:
    made = _limiter(place)
    made.set_mode("w", "deny")
    for entity in ("w", "no name: \n"):
        with pytest.raises(SolotableError), made.acquire(entity, "r", {"rpm": 1}):
            pass
        assert made.context.writer.cache.find(entity, "r") is None
