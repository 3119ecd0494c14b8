"""Hot buckets: shards grow and shrink, all together never have more than the bucket, and nothing is lost."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solotable import AsyncDatabase, Database
from solotable._connect import over, to_async
from solotable._flows.retry import Retries
from solotable._protocol.engine import Capabilities
from solotable.engines import sqlite
from solotable.errors import DataError
from solotable.systems.limiter import AsyncLimiter, Limit, Limiter, NeverSatisfiable, RateLimitExceeded
from solotable.systems.limiter.table import limiter
from solotable.systems.limiter.usage import aggregate
from solotable.testing.engines.wrapper import EngineWrapper
from tests.store.opening import Clock

from .ground import ACME, Place

RPM = Limit.per_minute("rpm", 6000)


def diced(place: Place, seed: int = 1) -> Database:
    dice = random.Random(seed)
    scope = replace(place.db.scope, retries=Retries(random=dice.random))
    return Database(place.watched, scope)


def hot(place: Place, **options: Any) -> Limiter:
    """Return a limiter that halves a shard from ten writes a second on."""
    given: dict[str, Any] = {"limits": [RPM], "shard_above": 10, "remember_rejections": 0.0} | options
    return Limiter(diced(place), ACME, **given)


def heat(place: Place, ours: Limiter, *, seconds: float = 3.0, each: float = 0.01, amount: float = 1) -> int:
    """Call for some seconds, and return how many calls were admitted."""
    admitted = 0
    for _ in range(round(seconds / each)):
        place.clock.seconds += each
        try:
            with ours.acquire("u", "r", {"rpm": amount}):
                admitted += 1
        except RateLimitExceeded:
            pass
    return admitted


def shards(place: Place) -> dict[int, int]:
    """Return the level of each shard."""
    return {int(item["shard"]["N"]): int(item["level"]["N"]) for item in place.raw("Bucket")}


def consumed(place: Place) -> int:
    return sum(int(item.get("consumed_rpm", {"N": "0"})["N"]) for item in place.raw("Bucket")) // 1000


def test_a_hot_bucket_is_spread_and_a_cold_one_is_whole_again(place: Place) -> None:
    ours = hot(place, most_shards=8)
    heat(place, ours)
    grown = shards(place)
    assert len(grown) > 1
    # Every throw of the dice has one shard.
    assert sum(1 / (1 << level) for level in grown.values()) == 1
    before = ours.available("u", "r")["rpm"]
    for _ in range(400):
        place.clock.seconds += 5
        with ours.acquire("u", "r", {"rpm": 1}):
            pass
        if len(shards(place)) == 1:
            break
    assert shards(place) == {0: 0}
    assert before <= ours.available("u", "r")["rpm"] <= 6000
    (bucket,) = place.raw("Bucket")
    assert "expires" in bucket


def test_a_bucket_is_not_spread_further_than_it_may_be(place: Place) -> None:
    ours = hot(place, most_shards=2)
    heat(place, ours, seconds=6)
    assert shards(place) == {0: 1, 1: 1}
    never = hot(place, shard_above=None, most_shards=1)
    assert never.available("u", "r")["rpm"] <= 6000


class OnAmazon(EngineWrapper):
    """An engine that says that Amazon answers."""

    @property
    def capabilities(self) -> Capabilities:
        """Those of the inner engine, on Amazon."""
        return replace(super().capabilities, amazon=True)


def test_l3_only_amazon_shards_by_default(place: Place) -> None:
    """L3: on the embedded engine, our server and DynamoDB Local a shard buys nothing."""
    assert Limiter(place.db, ACME).context.writer.shard_above is None
    assert AsyncLimiter(place.adb, ACME).context.writer.shard_above is None
    engine = OnAmazon(place.watched)
    assert Limiter(Database(engine, place.db.scope), ACME).context.writer.shard_above == 700
    adb = AsyncDatabase(to_async(engine), place.db.scope)
    assert AsyncLimiter(adb, ACME).context.writer.shard_above == 700
    assert Limiter(place.db, ACME, shard_above=9).context.writer.shard_above == 9
    for wrong in (0, "many", 7.5, True):
        with pytest.raises(DataError, match="shard_above is a number of writes per second"):
            Limiter(place.db, ACME, shard_above=wrong)  # type: ignore[arg-type]  # what is rejected


def test_a_small_bucket_is_not_spread_at_all(place: Place) -> None:
    """A half that holds less than eight calls would refuse for no reason."""
    ours = hot(place, limits=[Limit.per_second("rpm", 100)])
    heat(place, ours, amount=20)
    assert shards(place) == {0: 0}


def test_sharded_buckets_never_admit_more_than_the_bucket_has(place: Place) -> None:
    """The stated bound is the bucket itself: its capacity and what came in, and not one token more."""
    limit = Limit.per_minute("rpm", 600)
    ours = hot(place, limits=[limit], most_shards=16)
    others = [hot(place, limits=[limit], most_shards=16) for _ in range(3)]
    begun = place.clock.seconds
    admitted = 0
    for turn in range(2000):
        place.clock.seconds += 0.01
        try:
            with [ours, *others][turn % 4].acquire("u", "r", {"rpm": 1}):
                admitted += 1
        except RateLimitExceeded:
            pass
    assert len(shards(place)) >= 4
    bound = 600 + (place.clock.seconds - begun) * 10
    assert admitted <= bound
    # And sharding costs little of it: what a new half begins without.
    assert admitted >= 0.85 * bound
    # Shards that were joined are gone with their counters; what was counted of them is not.
    aggregate(place.db)
    assert ours.usage_summary(entity="u", window="day").limits["rpm"].total == admitted


def test_c1_14_tokens_go_back_to_the_shard_that_they_came_from(place: Place) -> None:
    heat(place, hot(place))
    ours = hot(place, shard_above=None)
    place.clock.seconds += 600
    before = {
        item["PK"]["S"]: item["consumed_rpm"]["N"] for item in place.raw("Bucket") if "consumed_rpm" in item
    }
    for _ in range(20):
        with pytest.raises(ZeroDivisionError), ours.acquire("u", "r", {"rpm": 5}) as lease:  # noqa: PT012 - the block is the test
            lease.consume(rpm=2)
            raise ZeroDivisionError
    after = {
        item["PK"]["S"]: item["consumed_rpm"]["N"]
        for item in place.raw("Bucket")
        if item.get("consumed_rpm", {"N": "0"})["N"] != "0"
    }
    assert after == before
    assert ours.available("u", "r") == {"rpm": 6000}


def test_tokens_go_back_after_their_shard_was_joined(place: Place) -> None:
    ours = hot(place, most_shards=2)
    heat(place, ours)
    assert len(shards(place)) == 2
    place.clock.seconds += 600
    leases = []
    for _ in range(8):
        lease = ours.acquire("u", "r", {"rpm": 100})
        lease.__enter__()
        leases.append(lease)
    for _ in range(200):
        place.clock.seconds += 11
        with hot(place, most_shards=2).acquire("u", "r", {"rpm": 0.001}):
            pass
        with ours.acquire("u", "r", {"rpm": 0.001}):
            pass
        if len(shards(place)) == 1:
            break
    assert len(shards(place)) == 1
    for lease in leases:
        lease.release(rpm=100)
        lease.__exit__(None, None, None)
    assert ours.available("u", "r") == {"rpm": 6000} or ours.available("u", "r") == {"rpm": 5999}


def test_a_call_that_asks_for_more_than_a_shards_part_takes_from_all(place: Place) -> None:
    heat(place, hot(place, most_shards=4), seconds=8)
    assert len(shards(place)) == 4
    ours = hot(place, shard_above=None)
    with ours.acquire("u", "r", {"rpm": 1}):
        place.clock.seconds += 600
    counted = consumed(place)
    with ours.acquire("u", "r", {"rpm": 5000}) as lease:
        lease.adjust(rpm=500)
    assert ours.available("u", "r")["rpm"] == 500
    assert consumed(place) == counted + 5500
    with pytest.raises(RateLimitExceeded), ours.acquire("u", "r", {"rpm": 5000}):
        pass
    assert ours.available("u", "r")["rpm"] == 500
    with pytest.raises(NeverSatisfiable), ours.acquire("u", "r", {"rpm": 6001}):
        pass
    with pytest.raises(ZeroDivisionError), ours.acquire("u", "r", {"rpm": 400}):
        raise ZeroDivisionError
    assert ours.available("u", "r")["rpm"] == 500


def test_new_limits_reach_every_shard(place: Place) -> None:
    ours = hot(place)
    heat(place, ours)
    ours.set_limits([Limit.per_minute("rpm", 60)], entity="u", resource="r")
    assert {item["rules"]["S"] for item in place.raw("Bucket")} == {"rpm=60/60"}
    assert ours.available("u", "r")["rpm"] <= 60


def test_another_process_finds_the_shards(place: Place) -> None:
    heat(place, hot(place))
    grown = shards(place)
    other = hot(place, shard_above=None)
    for _ in range(50):
        with other.acquire("u", "r", {"rpm": 1}):
            pass
    assert shards(place) == grown
    touched = [item for item in place.raw("Bucket") if any(name.startswith("~") for name in item)]
    assert len(touched) == len(grown)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.001, 0.02, 1.1, 30.0]), st.integers(1, 60), st.integers(0, 2)),
        max_size=120,
    ),
    st.integers(0, 1000),
)
def test_any_history_of_shards_stays_within_the_bound(steps: list[tuple[float, int, int]], seed: int) -> None:
    clock = Clock()
    engine = sqlite.open(sqlite.MEMORY, clock=clock)
    opened = over(engine, [limiter], clock=clock)
    dice = random.Random(seed)
    db = Database(engine, replace(opened.scope, retries=Retries(random=dice.random)))
    limit = Limit.per_minute("rpm", 600)
    many = [
        Limiter(db, ACME, limits=[limit], shard_above=3, most_shards=8, remember_rejections=0.0)
        for _ in range(3)
    ]
    # What a bucket may have handed out by now, in the strictest reading: a token bucket of its own.
    tokens, at = 600.0, clock()
    for pause, amount, who in steps:
        clock.seconds += pause
        tokens, at = min(600.0, tokens + (clock() - at) * 10), clock()
        try:
            with many[who].acquire("u", "r", {"rpm": amount}):
                tokens -= amount
        except RateLimitExceeded:
            pass
        assert tokens >= -0.001
    engine.close()
