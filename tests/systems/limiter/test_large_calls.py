"""L5: calls that need several shards take unequal parts, and are told the exact time when refused."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from solotable import Database
from solotable._connect import over
from solotable._flows.retry import Retries
from solotable._protocol.requests import UpdateItem
from solotable._store.runner import run
from solotable.engines import sqlite
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.admin.limits import MICROSECONDS
from solotable.systems.limiter.buckets.charge import Charged
from solotable.systems.limiter.buckets.shards import charge_one, read_shards, split
from solotable.systems.limiter.buckets.writes.charge_request import Charge
from solotable.systems.limiter.meters.rules import rules_of
from solotable.systems.limiter.table import limiter
from tests.store.opening import Clock

from .ground import ACME, Place

RPM = Limit.per_minute("rpm", 3000)


def made(db: Database, limit: Limit = RPM, **options: Any) -> Limiter:
    scope = replace(db.scope, retries=Retries(random=random.Random(1).random))
    given: dict[str, Any] = {"limits": [limit], "shard_above": None, "remember_rejections": 0.0} | options
    return Limiter(Database(db.engine, scope), ACME, **given)


def spend(ours: Limiter, amount: float = 1) -> None:
    with ours.acquire("u", "r", {"rpm": amount}):
        pass


def grow(ours: Limiter, taken: list[int], limit: Limit = RPM) -> None:
    """Split a full bucket into so many shards, and take this from each, in thousandths."""
    spend(ours, 0.001)
    writer = ours.context.writer
    known = writer.cache.bucket("u", "r")
    while len(known.shards) < len(taken):
        shard = min(known.shards, key=lambda each: (known.shards[each].level, each))
        run(split(writer, known, shard, known.shards[shard]), ours._engine)
        run(read_shards(writer, known, consistent=True), ours._engine)
    rules = rules_of((limit,), 0)
    for shard, amount in zip(sorted(known.shards), taken, strict=True):
        if amount:
            outcome = run(charge_one(writer, known, shard, Charge(rules, {"rpm": amount})), ours._engine)
            assert isinstance(outcome, Charged)


def test_l5_a_call_takes_what_each_shard_has(place: Place) -> None:
    """L5: "asks for 300 and has 57 left" while 2,512 are there."""
    ours = made(place.db)
    grow(ours, [370_000, 0, 0, 370_000, 0, 60_000, 0, 0])
    assert ours.available("u", "r") == {"rpm": 2199}
    for asked in (300, 700, 1100):
        assert made(place.db).time_until("u", "r", {"rpm": asked}) == 0.0
        spend(made(place.db), asked)
    assert ours.available("u", "r") == {"rpm": 99}


@pytest.mark.parametrize("asked", [400, 1200, 1800, 3000])
def test_l5_a_refused_call_gets_the_exact_time(place: Place, asked: int) -> None:
    """L5: admitted at that time and not a microsecond earlier; `time_until` says the same."""
    ours = made(place.db)
    grow(ours, [374_000, 330_000, 374_999, 200_000, 370_000, 360_000, 374_000, 372_000])
    with pytest.raises(RateLimitExceeded) as refused, made(place.db).acquire("u", "r", {"rpm": asked}):
        pass
    status = refused.value.primary_violation
    assert status.available == ours.available("u", "r")["rpm"] == 244
    wait = refused.value.retry_after_seconds
    assert ours.time_until("u", "r", {"rpm": asked}) == wait
    begun = place.clock.seconds
    place.clock.seconds = begun + wait - 0.000_002
    with pytest.raises(RateLimitExceeded):
        spend(ours, asked)
    assert ours.available("u", "r")["rpm"] == asked - 1
    place.clock.seconds = begun + wait + 0.000_002
    spend(ours, asked)
    assert ours.available("u", "r") == {"rpm": 0}


def test_l5_a_refused_small_call_says_what_one_call_can_take(place: Place) -> None:
    """Low finding: refusals read "asks for 1 and has 1 left"."""
    ours = made(place.db)
    grow(ours, [374_400, 374_500, 374_200, 374_900, 374_700, 374_600, 374_100, 374_300])
    assert ours.available("u", "r") == {"rpm": 4}
    with pytest.raises(RateLimitExceeded, match=r"asks for 1 rpm of 'r' and has 0 left") as refused:
        spend(ours)
    assert ours.time_until("u", "r", {"rpm": 1}) == refused.value.retry_after_seconds
    place.clock.seconds += refused.value.retry_after_seconds + 0.000_001
    spend(ours)


def test_l5_a_refused_charge_goes_on_to_the_shard_with_most(place: Place) -> None:
    ours = made(place.db)
    grow(ours, [374_500, 374_500, 374_500, 374_500, 374_500, 374_500, 374_500, 300_000])
    writer = ours.context.writer
    run(read_shards(writer, writer.cache.bucket("u", "r"), consistent=True), ours._engine)
    place.sent()
    for _ in range(70):
        spend(ours)
    assert place.sent().count("UpdateItem") <= 140


def test_l5_what_a_large_call_costs(place: Place) -> None:
    """The table in the guide: few shards are charged, and read only if what is remembered is not enough."""
    ours = made(place.db)
    grow(ours, [0] * 8)
    place.spent()
    spend(ours, 250)
    assert place.spent() == (0, 1)
    spend(ours, 1000)
    assert place.spent() == (0, 4)
    fresh = made(place.db)
    fresh.available("other", "r")
    with fresh.acquire("u", "r", {"rpm": 1}):
        place.spent()
    # All eight are read, and all are needed.
    spend(fresh, 1400)
    assert place.spent() == (8, 8)


def test_l5_parts_go_back_if_a_shard_is_emptied_in_between(place: Place) -> None:
    ours, other = made(place.db), made(place.db)
    grow(ours, [0, 0, 0, 0])
    spend(other, 1)

    def empty() -> None:
        spend(other, 2400)

    place.watched.slip_in(UpdateItem, lambda: place.watched.slip_in(UpdateItem, empty))
    with pytest.raises(RateLimitExceeded) as refused:
        spend(ours, 2000)
    assert refused.value.primary_violation.available == ours.available("u", "r")["rpm"] == 598


def test_l5_more_than_a_shards_part_is_settled_with_several(place: Place) -> None:
    """A shard that is deep in debt would refuse for long while others have tokens."""
    ours = made(place.db)
    grow(ours, [0] * 8)
    with ours.acquire("u", "r", {"rpm": 1}) as lease:
        lease.adjust(rpm=2000)
    assert ours.available("u", "r") == {"rpm": 998}
    levels = [int(item["used_rpm"]["N"]) for item in place.raw("Bucket")]
    meter = rules_of((RPM,), 0).meters["rpm"]
    now = int(place.clock() * MICROSECONDS)
    assert min(meter.tokens(used, now, 3) for used in levels) > 0
    with ours.acquire("u", "r", {"rpm": 900}) as lease:
        lease.release(rpm=800)
    assert ours.available("u", "r") == {"rpm": 898}


def test_l5_large_calls_merge_quiet_shards(place: Place) -> None:
    """L11: three hours of large calls left nine shards."""
    ours = made(place.db, shard_above=100)
    grow(ours, [0] * 8)
    for _ in range(40):
        place.clock.seconds += 60
        spend(ours, 1500)
    assert len(place.raw("Bucket")) == 1


def test_l5_an_odd_capacity_can_be_taken_whole(place: Place) -> None:
    """Sixteen shards of 1,001 tokens lack a fraction of a thousandth each."""
    limit = Limit.per_minute("rpm", 1001)
    ours = made(place.db, limit)
    grow(ours, [0] * 16, limit)
    place.clock.seconds += 600
    assert made(place.db, limit).time_until("u", "r", {"rpm": 1001}) == 0.0
    spend(ours, 1001)
    assert ours.available("u", "r") == {"rpm": 0}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 375_000), min_size=8, max_size=8),
    st.integers(1, 3000),
    st.sampled_from([0.0, 0.3, 7.0]),
)
# The two shards that a new process tries first are the emptiest.
@example([352423, 0, 0, 94223, 361078, 0, 344725, 0], 45, 0.0)
def test_l5_any_call_is_admitted_if_the_shards_have_it(taken: list[int], asked: int, pause: float) -> None:
    """A large call by the sum of all shards, a small one by one of them; refused with the exact wait."""
    clock = Clock()
    engine = sqlite.open(sqlite.MEMORY, clock=clock)
    db = Database(engine, over(engine, [limiter], clock=clock).scope)
    grow(made(db), [max(0, each - 1) for each in taken])
    clock.seconds += pause
    ours = made(db)
    available, wait = ours.available("u", "r")["rpm"], ours.time_until("u", "r", {"rpm": asked})
    is_small = asked * 8 <= 375
    if wait:
        assert available < asked or is_small
        with pytest.raises(RateLimitExceeded) as refused:
            spend(made(db), asked)
        assert refused.value.retry_after_seconds == wait
        assert refused.value.primary_violation.available is not None
        assert refused.value.primary_violation.available < asked
        clock.seconds += wait + 1 / MICROSECONDS
    spend(made(db), asked)
    assert made(db).available("u", "r")["rpm"] >= 0
    engine.close()
