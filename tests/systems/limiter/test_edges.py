"""Where the core is easily wrong: the moment of a refusal, all shards at once, clocks, odd numbers."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

import pytest

from solotable import AsyncDatabase, Database
from solotable._flows.retry import Retries
from solotable._protocol.engine import Capabilities
from solotable._protocol.replies import BatchGot
from solotable._protocol.requests import BatchGetItem, Request, UpdateItem
from solotable._store.runner import Inline, run
from solotable.errors import ConditionFailed, DataError
from solotable.systems.limiter import (
    AsyncLimiter,
    LeaseExpired,
    Limit,
    Limiter,
    LimiterUnavailable,
    LimitStatus,
    NeverSatisfiable,
    NoLimits,
    RateLimitExceeded,
)
from solotable.systems.limiter.admin.limits import milli
from solotable.systems.limiter.buckets.acquire import acquire
from solotable.systems.limiter.buckets.bucket import Bucket
from solotable.systems.limiter.buckets.local_cache import LocalCache
from solotable.systems.limiter.buckets.shards import merge, read_shards, split
from solotable.testing.engines.faults import Faults
from solotable.testing.engines.faulty import FaultyEngine
from tests.waiting import wait_until_async

from .ground import ACME, Place

RPM = Limit.per_minute("rpm", 600)


def made(place: Place, **options: Any) -> Limiter:
    given: dict[str, Any] = {"limits": [RPM], "shard_above": None, "remember_rejections": 0.0} | options
    return Limiter(place.db, ACME, **given)


def spend(ours: Limiter, amount: float) -> None:
    with ours.acquire("u", "r", {"rpm": amount}):
        pass


def halved(place: Place, ours: Limiter, *shards: int) -> None:
    """Halve shards, as some process does when they are hot."""
    writer = ours.context.writer
    known = writer.cache.bucket("u", "r")
    for shard in shards:
        # Past the engine that is watched, as another process.
        run(read_shards(writer, known, consistent=True), place.engine)
        run(split(writer, known, shard, known.shards[shard]), place.engine)


def levels(place: Place) -> dict[int, int]:
    return {int(item["shard"]["N"]): int(item["level"]["N"]) for item in place.raw("Bucket")}


# Refusals ----------------------------------------------------------------------------------


def test_tokens_that_come_in_while_a_call_is_refused_do_not_hide_why(place: Place) -> None:
    """The child gets its tokens back, which takes time, and until then the parent has enough again."""
    ours = made(place)
    ours.create_entity("org")
    ours.create_entity("kid", parent="org", cascade=True)
    with ours.acquire("org", "r", {"rpm": 600}):
        pass

    def slow() -> None:
        place.clock.seconds += 0.2
        place.watched.slip_in(UpdateItem, slow)

    ours = made(place)
    place.watched.slip_in(UpdateItem, slow)
    with pytest.raises(RateLimitExceeded) as refused, ours.acquire("kid", "r", {"rpm": 5}):
        pass
    assert refused.value.primary_violation.entity == "org"
    assert 0 < refused.value.retry_after_seconds <= 0.5


def test_a_refusal_of_all_shards_says_when_they_have_enough(place: Place) -> None:
    ours = made(place)
    spend(ours, 1)
    halved(place, ours, 0, 0, 1)
    place.clock.seconds += 600
    spend(ours, 480)
    assert ours.available("u", "r") == {"rpm": 120}
    with pytest.raises(RateLimitExceeded) as refused, ours.acquire("u", "r", {"rpm": 480}):
        pass
    assert refused.value.retry_after_seconds == pytest.approx(36.0)
    place.clock.seconds += 36
    spend(ours, 480)


# All shards at once ------------------------------------------------------------------------


def on_update(place: Place, number: int, action: Callable[[], object]) -> None:
    """Do something before the update with this number."""

    def count() -> None:
        nonlocal number
        number -= 1
        if number:
            place.watched.slip_in(UpdateItem, count)
        else:
            action()

    place.watched.slip_in(UpdateItem, count)


@pytest.mark.parametrize("turn", [1, 2])
def test_a_shard_that_is_halved_while_all_are_asked_costs_no_less(place: Place, turn: int) -> None:
    ours, other = made(place), made(place)
    spend(ours, 1)
    halved(place, ours, 0)
    place.clock.seconds += 600
    on_update(place, turn, lambda: halved(place, other, 1))
    spend(ours, 480)
    assert sorted(levels(place).values()) == [1, 2, 2]
    # A new half begins with a sixteenth of a bucket less.
    assert ours.available("u", "r")["rpm"] <= 120


@pytest.mark.parametrize("then", ["halved", "joined"])
def test_what_all_shards_gave_goes_back_once_whatever_becomes_of_them(place: Place, then: str) -> None:
    ours = made(place)
    spend(ours, 1)
    halved(place, ours, 0)
    place.clock.seconds += 600
    writer = ours.context.writer
    known = writer.cache.bucket("u", "r")
    lease = ours.acquire("u", "r", {"rpm": 480})
    lease.__enter__()
    if then == "halved":
        halved(place, ours, 0)
    else:
        place.run(merge(writer, known, 0, known.shards[0]))
    before = ours.available("u", "r")["rpm"]
    lease.release(rpm=60)
    lease.__exit__(None, None, None)
    assert ours.available("u", "r")["rpm"] == before + 60


def test_a_part_that_cannot_be_taken_gives_the_others_back(place: Place) -> None:
    ours = made(place)
    spend(ours, 1)
    halved(place, ours, 0)
    place.clock.seconds += 600
    faults = Faults()
    broken = Limiter(Database(FaultyEngine(place.watched, faults), place.db.scope), ACME, limits=[RPM])
    broken.available("u", "r")
    faults.unreachable("UpdateItem", after=1, times=5)
    with pytest.raises(LimiterUnavailable), broken.acquire("u", "r", {"rpm": 480}):
        pass
    assert ours.available("u", "r") == {"rpm": 600}


# Hot and cold ------------------------------------------------------------------------------


def test_a_bucket_that_was_slow_for_long_is_spread_as_soon_as_it_is_hot(place: Place) -> None:
    ours = made(place, shard_above=10, limits=[Limit.per_second("rpm", 1000)])
    for _ in range(20):
        place.clock.seconds += 60
        spend(ours, 1)
    for _ in range(150):
        place.clock.seconds += 0.02
        spend(ours, 1)
    assert len(levels(place)) > 1


def test_all_shards_are_used_though_this_process_would_have_made_fewer(place: Place) -> None:
    ours = made(place)
    spend(ours, 1)
    halved(place, ours, 0, 0, 1)
    place.clock.seconds += 600
    dice = iter([0.0, 0.3, 0.6, 0.9] * 100)
    scope = replace(place.db.scope, retries=Retries(random=lambda: next(dice)))
    few = Limiter(Database(place.watched, scope), ACME, limits=[RPM], most_shards=1, remember_rejections=0.0)
    few.available("u", "r")
    for _ in range(58):
        spend(few, 10)


def test_a_join_that_cannot_read_does_not_fail_the_call_that_has_its_tokens(place: Place) -> None:
    class Unprocessed(FaultyEngine):
        armed = False

        def handle(self, request: Request[Any], /) -> Any:
            if self.armed and isinstance(request, BatchGetItem):
                (part,) = request.tables
                return BatchGot(responses={}, unprocessed={part.table: {"Keys": list(part.keys)}})
            return super().handle(request)

    ours = made(place)
    spend(ours, 1)
    halved(place, ours, 0)
    engine = Unprocessed(place.watched, Faults())
    cold = Limiter(Database(engine, place.db.scope), ACME, limits=[RPM])
    spend(cold, 1)
    spend(cold, 1)
    engine.armed = True
    place.clock.seconds += 30
    spend(cold, 1)
    assert len(levels(place)) == 2


# Clocks and memory -------------------------------------------------------------------------


def test_reads_ignore_a_clock_that_was_far_ahead(place: Place) -> None:
    place.clock.seconds += 365 * 86_400
    spend(made(place), 400)
    place.clock.seconds -= 365 * 86_400
    ours = made(place, remember_rejections=1.0)
    assert ours.available("u", "r") == {"rpm": 200}
    assert ours.time_until("u", "r", {"rpm": 260}) == pytest.approx(6.0)
    spend(ours, 200)
    assert ours.available("u", "r") == {"rpm": 0}


def test_a_bucket_that_is_forgotten_while_a_lease_has_it_keeps_its_lanes() -> None:
    cache = LocalCache(max_size=1)
    held = cache.bucket("u", "r")
    mine = held.take_lane(1)
    cache.bucket("v", "r")
    assert cache.bucket("u", "r").take_lane(2).name != mine.name
    cache.bucket("v", "r")
    del held
    assert cache.bucket("u", "r") is not None


def test_a_call_with_its_own_limits_does_not_change_the_parents_limits(place: Place) -> None:
    old, new = Limit.per_minute("rpm", 600), Limit.per_minute("rpm", 60)
    ours, operator = made(place, limits=[]), made(place, limits=[])
    operator.set_limits([old])
    operator.create_entity("org")
    operator.create_entity("kid", parent="org", cascade=True)
    with ours.acquire("kid", "r", {"rpm": 1}):
        pass
    place.clock.seconds += 1
    operator.set_limits([new], entity="org", resource="r")
    with ours.acquire("kid", "r", {"rpm": 1}, limits=[Limit.per_minute("rpm", 50)]):
        pass
    buckets = {item["entity"]["S"]: item["rules"]["S"] for item in place.raw("Bucket")}
    assert buckets == {"org": "rpm=60/60", "kid": "rpm=50/60"}


# Numbers and errors ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "amount",
    [
        10**5000,
        Decimal("sNaN"),
        Decimal("1E+999999"),
        Decimal("-1E+999999"),
        Decimal("1.0000000000000000000000000000001"),
        Decimal("1E-999999"),
        float("inf"),
        0.1 + 0.2,
        True,
        "1",
    ],
    ids=lambda amount: type(amount).__name__,
)
def test_an_amount_that_is_none_is_refused_in_one_sentence(amount: Any) -> None:
    with pytest.raises(DataError, match=r"is (at most|a number of)"):
        milli(amount)


def test_amounts_are_read_exactly_whatever_the_program_rounds_to() -> None:
    with localcontext() as context:
        context.prec = 2
        assert milli(Decimal("123456.789")) == 123_456_789
        assert milli(1234.5) == 1_234_500
    with pytest.raises(DataError, match="thousands of digits"):
        Limit.per_minute("rpm", 10**5000)


@pytest.mark.parametrize(
    "error",
    [
        RateLimitExceeded([LimitStatus("u", "r", RPM, 0, 1000, 0.1)]),
        NeverSatisfiable("u", "r", RPM, 1_000_000),
        NoLimits("u", "r"),
        LeaseExpired(),
        LimiterUnavailable("It is down."),
    ],
)
def test_an_error_of_a_worker_reaches_its_caller(error: Exception) -> None:
    found = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)


# How long a bucket is kept -----------------------------------------------------------------


def test_a_debt_survives_the_write_of_a_process_that_does_not_know_it(place: Place) -> None:
    ours, other = made(place), made(place)
    lease = other.acquire("u", "r", {"rpm": 1})
    with lease, ours.acquire("u", "r", {"rpm": 1}) as deep:
        deep.adjust(rpm=60_000 * 60)
        lease.adjust(rpm=-1)
        # What follows ends `deep` first, as its block is the inner one.
    (bucket,) = place.raw("Bucket")
    paid = place.clock.seconds + 60_000 * 6
    assert int(bucket["expires"]["N"]) > paid


def test_a_limit_that_takes_ages_to_fill_has_a_date_all_the_same(place: Place) -> None:
    ages = Limit.custom("rpm", capacity=10**12, refill=1, period_seconds=86_400)
    ours = made(place, limits=[ages])
    spend(ours, 10**12)
    found = place.store.get(Bucket, entity="u", resource="r", shard=0)
    assert found is not None
    assert found.expires is not None
    assert found.expires.year < 2200


# A table that cannot be asked --------------------------------------------------------------


def test_what_the_system_said_of_that_outlives_a_change_of_limits(place: Place) -> None:
    faults = Faults()
    ours = Limiter(Database(FaultyEngine(place.watched, faults), place.db.scope), ACME, limits=[RPM])
    ours.set_limits([RPM], on_unavailable="allow")
    spend(ours, 1)
    ours.invalidate_config_cache()
    faults.unreachable(times=1000)
    with ours.acquire("u", "r", {"rpm": 1}) as lease:
        assert not lease.limited


def test_c1_14_a_call_that_is_cancelled_while_it_waits_to_ask_again_gives_back(place: Place) -> None:
    class Busy(FaultyEngine):
        """In process, and waiting in earnest."""

        @property
        def capabilities(self) -> Capabilities:
            return replace(super().capabilities, sleep=None)

    faults = Faults()
    engine = Busy(place.watched, faults)
    scope = replace(place.db.scope, retries=Retries(random=lambda: 1.0))
    ours = made(place)
    ours.create_entity("org")
    ours.create_entity("kid", parent="org", cascade=True)

    async def scenario() -> dict[str, int]:
        limited = AsyncLimiter(AsyncDatabase(Inline(engine), scope), ACME, limits=[RPM])
        await limited.available("kid", "r")
        # The child is charged; the parent is to be asked again.
        throttled = faults.throttle("UpdateItem", after=1, times=2)

        async def call() -> None:
            async with limited.acquire("kid", "r", {"rpm": 4}):
                await asyncio.Event().wait()

        task = asyncio.create_task(call())
        await wait_until_async(lambda: throttled.fired)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await limited.available("kid", "r")

    assert place.wait(scenario()) == {"rpm": 600}
    assert {item.get("consumed_rpm", {"N": "0"})["N"] for item in place.raw("Bucket")} == {"0"}


# Limits that come and go -------------------------------------------------------------------


@pytest.mark.parametrize("spread", [False, True])
def test_calls_that_give_different_limits_do_not_fill_each_others(place: Place, spread: bool) -> None:
    ours = made(place, limits=[])
    mine, theirs = [Limit.per_minute("a", 80)], [Limit.per_hour("b", 40)]
    admitted = {"a": 0, "b": 0}
    for turn in range(60):
        for limits in (mine, theirs):
            name = limits[0].name
            try:
                with ours.acquire("u", "r", {name: 5}, limits=limits):
                    admitted[name] += 5
            except RateLimitExceeded:
                pass
        if spread and turn == 1:
            halved(place, ours, 0)
    assert admitted["a"] <= 80
    assert admitted["b"] <= 40
    assert admitted["a"] >= 70
    for item in place.raw("Bucket"):
        assert {item["rules"]["S"], item["past"]["S"]} == {"b=40/3600", "a=80/60"}
    if spread:
        return
    # Once it is full nothing is kept of it.
    place.clock.seconds += 4000
    for limits in (mine, theirs, mine):
        for _ in range(4):
            with ours.acquire("u", "r", {limits[0].name: 5}, limits=limits):
                pass
    (bucket,) = place.raw("Bucket")
    assert bucket["past"]["S"] == "b=40/3600"
    place.clock.seconds += 4000
    for limits in (theirs, mine):
        with ours.acquire("u", "r", {limits[0].name: 0.001}, limits=limits):
            place.clock.seconds += 4000
    (bucket,) = place.raw("Bucket")
    assert not {"past", "used_b"} & bucket.keys()


def test_c1_8_limits_that_change_at_every_call_lose_nothing_of_what_comes_in(place: Place) -> None:
    """A hundred a day come in at one in 864 seconds, also if the limits change twice a second."""
    ours = made(place, limits=[])
    slow, quick = Limit.per_day("slow", 100), Limit.per_second("quick", 10)
    spent = ours.acquire("u", "r", {"slow": 100}, limits=[slow, quick])
    with spent:
        pass
    for turn in range(400):
        place.clock.seconds += 0.54
        given = [[slow, quick], [Limit.per_day("slow", 100, burst=101), quick], [quick]][turn % 3]
        with ours.acquire("u", "r", {"quick": 1}, limits=given):
            pass
    # A quarter of a token, less what is below a millionth of one.
    with ours.acquire("u", "r", {"slow": 0.249}, limits=[slow, quick]):
        pass


def test_a_limit_of_the_past_is_kept_for_as_long_as_it_takes_to_fill(place: Place) -> None:
    ours = made(place, limits=[])
    for limits in ([Limit.per_day("b", 10)], [Limit.per_second("a", 1)], [Limit.per_second("a", 1)]):
        with ours.acquire("u", "r", {limits[0].name: 1}, limits=limits):
            place.clock.seconds += 2
    (bucket,) = place.raw("Bucket")
    assert int(bucket["expires"]["N"]) > place.clock.seconds + 86_400


def test_giving_back_does_not_hide_that_a_clock_was_far_ahead(place: Place) -> None:
    ours, wrong = made(place), made(place)
    with ours.acquire("u", "r", {"rpm": 100}) as lease:
        place.clock.seconds += 365 * 86_400
        spend(wrong, 400)
        place.clock.seconds -= 365 * 86_400
        lease.release(rpm=50)
    assert made(place).available("u", "r") == {"rpm": 250}
    spend(made(place), 250)


# Lanes -------------------------------------------------------------------------------------


def test_l10_a_crowd_adds_at_most_16_lanes(place: Place) -> None:
    """L10: an item has at most sixteen lanes though a hundred calls came at once just now."""
    ours = made(place)
    spend(ours, 1)
    flows = [acquire(ours.context, "u", {"r": {"rpm": 1}}) for _ in range(100)]
    for flow, request in [(flow, next(flow)) for flow in flows]:
        with pytest.raises(StopIteration):
            flow.send(place.engine.handle(request))
    (bucket,) = place.raw("Bucket")
    assert len([name for name in bucket if name.startswith("~")]) == 16
    place.spent()
    spend(ours, 1)
    assert place.spent() == (0.0, 1.0)


def test_a_lane_with_a_write_that_was_not_answered_stays(place: Place) -> None:
    ours = made(place)
    spend(ours, 1)
    flows = [acquire(ours.context, "u", {"r": {"rpm": 1}}) for _ in range(8)]
    asked = [(flow, next(flow)) for flow in flows]
    lost = [request for _, request in asked[:2]]
    for flow, _ in asked[:2]:
        flow.close()
    for flow, request in asked[2:]:
        with pytest.raises(StopIteration):
            flow.send(place.engine.handle(request))
    for request in lost:
        place.engine.handle(request)
    for _ in range(4):
        spend(ours, 1)
    # Whoever was broken off may have sent them, and they may arrive again.
    for request in lost:
        with pytest.raises(ConditionFailed):
            place.engine.handle(request)


def test_mistakes_of_a_newcomer_are_explained(place: Place) -> None:
    ours = Limiter(place.db, ACME, limits=[Limit.per_minute("rpm", 5)])
    given: Any = 1
    with pytest.raises(DataError, match=r'amounts by limit, such as {"rpm": 1}; got 1'):
        ours.acquire("u", "r", given)
    url: Any = "sqlite://"
    for kind in (Limiter, AsyncLimiter):
        with pytest.raises(DataError, match=r"open a URL with Limiter.open\('sqlite://'\)"):
            kind(url)
