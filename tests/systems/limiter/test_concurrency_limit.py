"""Concurrency limits: tokens in use, holds that end with their lease or expire, on every target."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from solotable import AsyncDatabase, Database
from solotable._connect import over, to_async
from solotable.engines import sqlite
from solotable.errors import OutcomeUnknown, VersionConflict
from solotable.flow import ItemUpdate
from solotable.flow.requests import UpdateItem
from solotable.systems.limiter import (
    Bucket,
    LeaseExpired,
    Limit,
    Limiter,
    NeverSatisfiable,
    RateLimitExceeded,
)
from solotable.systems.limiter.http.http_leases import HttpLeases
from solotable.systems.limiter.lease import AcquireRequest
from solotable.systems.limiter.manifest import format_limit, parse_limit
from solotable.systems.limiter.meters.rules import meter_of
from solotable.systems.limiter.rate_limiter import AsyncLimiter
from solotable.systems.limiter.table import limiter as table
from solotable.testing.engines.faults import Faults
from solotable.testing.engines.faulty import FaultyEngine

from .either import either
from .ground import ACME, Place
from .test_kinds import at, now
from .test_meters import SECOND

JOBS = Limit.concurrency("jobs", 3, 60)


def jobs(place: Place, mode: str, **options: Any) -> Any:
    return either(place, mode, limits=[JOBS, Limit.per_minute("rpm", 100)], remember_rejections=0, **options)


def hold(ours: Any, amount: int = 1) -> Any:
    """Return a lease whose block was entered and never ends, as that of a process that dies."""
    return ours.acquire("u", "r", {"jobs": amount, "rpm": 1}).__enter__()


def holds(place: Place) -> int:
    (item,) = place.raw("Bucket")
    return sum(name.startswith("+") for name in item)


def test_a_lease_holds_its_tokens_until_its_block_ends(place: Place, mode: str) -> None:
    ours = jobs(place, mode)
    with ours.acquire("u", "r", {"jobs": 2}):
        with ours.acquire("u", "r", {"jobs": 1}):
            assert ours.available("u", "r")["jobs"] == 0
            with pytest.raises(RateLimitExceeded), ours.acquire("u", "r", {"jobs": 1}):
                pass
        assert ours.available("u", "r")["jobs"] == 1
        with pytest.raises(ZeroDivisionError), ours.acquire("u", "r", {"jobs": 1, "rpm": 1}):
            raise ZeroDivisionError
        assert ours.available("u", "r") == {"jobs": 1, "rpm": 100}
    assert ours.available("u", "r")["jobs"] == 3
    assert holds(place) == 0
    (item,) = place.raw("Bucket")
    # Uses are counted, and not undone by the end of a lease.
    assert item["consumed_jobs"]["N"] == "4000"


def test_a_process_that_dies_frees_its_tokens_when_they_expire(place: Place, mode: str) -> None:
    ours = jobs(place, mode)
    hold(ours, 1)
    place.clock.seconds += 10
    hold(ours, 2)
    with pytest.raises(RateLimitExceeded) as refused:
        hold(ours, 2)
    assert refused.value.retry_after_seconds == pytest.approx(60)
    with pytest.raises(RateLimitExceeded) as refused:
        hold(ours, 1)
    told = now(place) + round(refused.value.retry_after_seconds * SECOND)
    assert ours.time_until("u", "r", {"jobs": 1}) == refused.value.retry_after_seconds == pytest.approx(50)
    at(place, told - 1)
    with pytest.raises(RateLimitExceeded):
        hold(ours, 1)
    at(place, told)
    assert ours.available("u", "r")["jobs"] == 1
    hold(ours, 1)
    # The expired hold was removed by the write that needed its tokens.
    assert holds(place) == 2
    place.clock.seconds += 1000
    assert ours.available("u", "r")["jobs"] == 3
    with ours.acquire("u", "r", {"jobs": 3}):
        assert holds(place) == 1
    assert holds(place) == 0


def test_a_stored_bucket_shows_expired_holds_as_available(place: Place, mode: str) -> None:
    ours = jobs(place, mode)
    hold(ours, 2)
    found = place.store.get(Bucket, entity="u", resource="r", shard=0)
    assert found is not None
    meter = meter_of(JOBS)
    used = found.used(meter)
    assert used is not None
    assert meter.tokens(used, now(place)) == 1000
    assert meter.tokens(used, now(place) + 60 * SECOND) == 3000


def test_a_hold_that_has_expired_is_not_given_back_twice(place: Place, mode: str) -> None:
    ours, other = jobs(place, mode), jobs(place, mode)
    with ours.acquire("u", "r", {"jobs": 3}):
        place.clock.seconds += 61
        hold(other, 3)
    assert ours.available("u", "r")["jobs"] == 0
    assert holds(place) == 1


def test_a_lease_is_extended(place: Place, mode: str) -> None:
    ours, other = jobs(place, mode), jobs(place, mode)
    with ours.acquire("u", "r", {"jobs": 3}) as lease:
        for _ in range(3):
            place.clock.seconds += 45
            assert lease.extend() == instant(place, 60)
            with pytest.raises(RateLimitExceeded):
                hold(other)
        place.clock.seconds += 61
        hold(other)
        with pytest.raises(LeaseExpired):
            lease.extend()
    assert other.available("u", "r")["jobs"] == 2
    with pytest.raises(LeaseExpired):
        lease.extend()


def test_more_than_the_limit_is_never_satisfiable_and_limits_may_change(place: Place, mode: str) -> None:
    ours = either(place, mode, cache_seconds=0, remember_rejections=0)
    ours.set_limits([JOBS], entity="u", resource="r")
    with pytest.raises(NeverSatisfiable), ours.acquire("u", "r", {"jobs": 4}):
        pass
    with ours.acquire("u", "r", {"jobs": 2}):
        ours.set_limits([Limit.concurrency("jobs", 5, 60)], entity="u", resource="r")
        assert ours.available("u", "r")["jobs"] == 3
        with ours.acquire("u", "r", {"jobs": 3}):
            assert ours.available("u", "r")["jobs"] == 0
    assert ours.available("u", "r")["jobs"] == 5
    with ours.acquire("u", "r", {"jobs": 5}):
        ours.set_limits([Limit.per_minute("jobs", 9)], entity="u", resource="r")
        with ours.acquire("u", "r", {"jobs": 4}):
            pass
    # The end of the lease gives nothing to a limit of another kind.
    assert ours.available("u", "r")["jobs"] == 5
    assert holds(place) == 0
    with ours.acquire("u", "r", {"jobs": 1}):
        ours.set_limits([JOBS], entity="u", resource="r")
        assert ours.available("u", "r")["jobs"] == 3
    assert ours.available("u", "r")["jobs"] == 3


def test_a_parent_counts_the_leases_of_its_children(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[Limit.concurrency("jobs", 2)], remember_rejections=0)
    ours.create_entity("org")
    for child in ("a", "b"):
        ours.create_entity(child, parent="org", cascade=True)
    with ours.acquire("a", "r", {"jobs": 1}), ours.acquire("b", "r", {"jobs": 1}):
        with pytest.raises(RateLimitExceeded), ours.acquire("a", "r", {"jobs": 1}):
            pass
        assert ours.available("a", "r")["jobs"] == 0
    assert ours.available("org", "r")["jobs"] == 2


def test_adjustments_resets_and_top_ups_leave_the_sum_of_the_holds(place: Place, mode: str) -> None:
    ours = either(place, mode, cache_seconds=0, remember_rejections=0)
    ours.set_limits([JOBS], entity="u", resource="r")
    with ours.acquire("u", "r", {"jobs": 1}) as lease:
        ours.reset("u", resource="r")
        ours.top_up("u", "r", {"jobs": 2})
        assert ours.available("u", "r")["jobs"] == 2
        lease.consume(jobs=1)
        assert ours.available("u", "r")["jobs"] == 1
        lease.adjust(jobs=1)
    assert ours.available("u", "r")["jobs"] == 3
    (item,) = place.raw("Bucket")
    assert item["used_jobs"]["N"] == "0"
    assert holds(place) == 0


def test_a_soft_limit_that_is_exceeded_holds_nothing(place: Place, mode: str) -> None:
    soft = [replace(JOBS, soft=True)]
    ours = either(place, mode, limits=soft, remember_rejections=0)
    with ours.acquire("u", "r", {"jobs": 3}):
        with ours.acquire("u", "r", {"jobs": 1}) as lease:
            assert [status.limit.name for status in lease.exceeded] == ["jobs"]
        assert ours.available("u", "r")["jobs"] == 0
    assert ours.available("u", "r")["jobs"] == 3


@pytest.mark.parametrize("keep", [True, False])
def test_a_stored_lease_holds_tokens_until_it_is_ended(place: Place, keep: bool) -> None:
    ours = AsyncLimiter(place.adb, ACME, limits=[JOBS, Limit.per_minute("rpm", 100)])
    leases = HttpLeases(place.adb, ours)
    request = AcquireRequest("u", "r", {"jobs": 2, "rpm": 4})
    stored = place.wait(leases.acquire(request)).lease
    assert stored is not None
    assert place.wait(ours.available("u", "r")) == {"jobs": 1, "rpm": 96}
    place.wait(leases.end(stored.lease_id, keep=keep))
    assert place.wait(ours.available("u", "r")) == {"jobs": 3, "rpm": 96 if keep else 100}


def test_a_stored_lease_is_extended_until_what_it_holds_has_expired(place: Place) -> None:
    long = Limit.concurrency("jobs", 3, 7200)
    ours = AsyncLimiter(place.adb, ACME, limits=[long, Limit.per_minute("rpm", 100)])
    leases, others = HttpLeases(place.adb, ours), HttpLeases(place.adb, AsyncLimiter(place.adb, ACME))
    stored = place.wait(leases.acquire(AcquireRequest("u", "r", {"jobs": 2, "rpm": 4}))).lease
    assert stored is not None
    assert stored.held_until == instant(place, 7200)
    # It can be ended for as long as it holds anything.
    assert stored.expires > stored.held_until
    place.wait(leases.adjust(stored.lease_id, {"jobs": 1}))
    for _ in range(3):
        place.clock.seconds += 7000
        extended = place.wait(others.extend(stored.lease_id))
        assert extended.held_until == instant(place, 7200)
        assert extended.expires > extended.held_until
        assert extended.tokens == {"jobs": 1, "rpm": 4}
        assert place.wait(ours.available("u", "r"))["jobs"] == 2
    with pytest.raises(VersionConflict):
        place.wait(leases.extend(stored.lease_id, version=1))
    place.clock.seconds += 7201
    assert place.wait(ours.available("u", "r"))["jobs"] == 3
    place.wait(ours.acquire("u", "r", {"jobs": 3}).__aenter__())
    with pytest.raises(LeaseExpired):
        place.wait(leases.extend(stored.lease_id))
    place.wait(leases.end(stored.lease_id, keep=True))
    with pytest.raises(LeaseExpired):
        place.wait(leases.extend(stored.lease_id))
    assert place.wait(ours.available("u", "r"))["jobs"] == 0


def test_a_stored_lease_without_concurrency_limits_is_kept_for_longer(place: Place) -> None:
    leases = HttpLeases(place.adb, AsyncLimiter(place.adb, ACME, limits=OTHERS))
    stored = place.wait(leases.acquire(AcquireRequest("u", "r", {"rpm": 4}))).lease
    assert stored is not None
    place.clock.seconds += 3000
    extended = place.wait(leases.extend(stored.lease_id))
    assert (extended.held_until, extended.expires) == (None, stored.expires + timedelta(seconds=3000))


def instant(place: Place, seconds: int) -> datetime:
    return datetime.fromtimestamp((now(place) + seconds * SECOND) / SECOND, UTC)


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("kind", ["timeout", "internal_error"])
def test_a_hold_whose_answer_was_lost_counts_once(place: Place, mode: str, applied: bool, kind: str) -> None:
    faults = Faults()
    engine = FaultyEngine(place.watched, faults)
    place.db = Database(engine, place.db.scope)
    place.adb = AsyncDatabase(to_async(engine), place.adb.scope)
    ours = jobs(place, mode)
    hold(ours)
    getattr(faults, kind)("UpdateItem", applied=applied, times=1)
    with ours.acquire("u", "r", {"jobs": 1}):
        assert ours.available("u", "r")["jobs"] == 1
        getattr(faults, kind)("UpdateItem", applied=applied, times=1)
    assert ours.available("u", "r")["jobs"] == 2
    assert holds(place) == 1


def test_the_form_of_a_concurrency_limit() -> None:
    assert Limit.parse(str(JOBS)) == Limit.from_dict(JOBS.as_dict()) == JOBS
    assert parse_limit("jobs=3/concurrency") == parse_limit(format_limit(JOBS)) == JOBS


def test_a_crowd_never_has_more_in_flight_than_the_limit() -> None:
    engine = sqlite.open(sqlite.MEMORY)
    limiters = [Limiter(over(engine, [table]), ACME, limits=[JOBS], remember_rejections=0) for _ in range(4)]
    lock, inside, most, admitted = threading.Lock(), 0, 0, 0

    def work(number: int) -> None:
        nonlocal inside, most, admitted
        for _ in range(25):
            try:
                with limiters[number % 4].acquire("u", "r", {"jobs": 1}):
                    with lock:
                        inside, admitted = inside + 1, admitted + 1
                        most = max(most, inside)
                    with lock:
                        inside -= 1
            except RateLimitExceeded:
                continue

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert 0 < most <= 3
    assert admitted > 8
    assert limiters[0].available("u", "r")["jobs"] == 3
    engine.close()


def test_a_hold_shows_that_a_lost_charge_was_applied_though_its_lane_was_overwritten(place: Place) -> None:
    """Other writers share the lane: without the hold, the charge would be sent again and count twice."""
    ours = Limiter(place.db, ACME, limits=[JOBS])
    with ours.acquire("u", "r", {"jobs": 1}):
        pass
    place.clock.seconds += 1
    lost: list[Any] = []

    def overwrite(request: Any) -> None:
        place.engine.handle(request)
        (item,) = place.raw("Bucket")
        lane = max((name for name in item if name.startswith("~")), key=lambda name: int(item[name]["N"]))
        update = ItemUpdate().set(lane, int(item[lane]["N"]) + 1).build()
        place.engine.handle(UpdateItem(table=place.table, key=request.key, update=update))

    class Losing:
        """An engine that loses the response of one write, before another writer uses its lane."""

        capabilities = place.watched.capabilities

        def handle(self, request: Any, /) -> Any:
            if isinstance(request, UpdateItem) and not lost:
                lost.append(request)
                overwrite(request)
                raise OutcomeUnknown("The response was lost.")
            return place.watched.handle(request)

        def close(self) -> None:
            """Nothing is open."""

    other = Limiter(Database(Losing(), place.db.scope), ACME, limits=[JOBS])
    other.available("u", "r")
    with other.acquire("u", "r", {"jobs": 1}):
        (item,) = place.raw("Bucket")
        assert (item["used_jobs"]["N"], holds(place)) == ("1000", 1)
    assert ours.available("u", "r")["jobs"] == 3
    assert lost


def test_a_large_lease_gets_the_tokens_of_many_that_expired(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[Limit.concurrency("jobs", 50, 60)], remember_rejections=0)
    for _ in range(50):
        ours.acquire("u", "r", {"jobs": 1}).__enter__()
    place.clock.seconds += 61
    with ours.acquire("u", "r", {"jobs": 45}):
        assert ours.available("u", "r")["jobs"] == 5
    assert ours.available("u", "r")["jobs"] == 50


def test_another_kind_ends_every_hold_also_one_with_the_same_sum(place: Place) -> None:
    ours = jobs(place, "sync")
    first = ours.acquire("u", "r", {"jobs": 1}).__enter__()
    other = jobs(place, "sync")
    assert other.available("u", "r")["jobs"] == 2
    first.__exit__(None, None, None)
    second = ours.acquire("u", "r", {"jobs": 1}).__enter__()
    rates = [Limit.per_minute("jobs", 3), Limit.per_minute("rpm", 100)]
    with other.acquire("u", "r", {"jobs": 1}, limits=rates):
        assert holds(place) == 0
    second.__exit__(None, None, None)
    assert hold(ours).limited
    assert ours.available("u", "r")["jobs"] == 2


OTHERS = [Limit.per_minute("rpm", 100)]


def test_holds_outlive_calls_whose_limits_lack_their_limit(place: Place, mode: str) -> None:
    ours, other = jobs(place, mode), jobs(place, mode)
    with ours.acquire("u", "r", {"jobs": 2}) as lease:
        for limits in (OTHERS, [Limit.per_hour("rph", 10), *OTHERS]):
            with other.acquire("u", "r", {"rpm": 1}, limits=limits):
                pass
        assert other.available("u", "r")["jobs"] == 1
        with pytest.raises(RateLimitExceeded):
            hold(other, 2)
        hold(other, 1)
        with other.acquire("u", "r", {"rpm": 1}, limits=OTHERS):
            place.clock.seconds += 45
            lease.extend()
        place.clock.seconds += 45
        # The lease that was not extended has expired.
        assert other.available("u", "r")["jobs"] == 1
    assert ours.available("u", "r")["jobs"] == 3


@pytest.mark.parametrize("fails", [True, False])
def test_a_hold_ends_with_its_lease_while_the_bucket_has_other_limits(
    place: Place, mode: str, fails: bool
) -> None:
    ours, other = jobs(place, mode), jobs(place, mode)
    try:
        with ours.acquire("u", "r", {"jobs": 2, "rpm": 1}):
            hold(other, 1)
            with other.acquire("u", "r", {"rpm": 1}, limits=OTHERS):
                pass
            if fails:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    (item,) = place.raw("Bucket")
    assert (item["used_jobs"]["N"], holds(place)) == ("1000", 1)
    assert other.available("u", "r")["jobs"] == 2


def test_a_limit_that_was_removed_and_set_again_has_its_holds(place: Place, mode: str) -> None:
    ours = either(place, mode, cache_seconds=0, remember_rejections=0)
    ours.set_limits([JOBS, *OTHERS], entity="u", resource="r")
    with ours.acquire("u", "r", {"jobs": 3}):
        ours.set_limits(OTHERS, entity="u", resource="r")
        with ours.acquire("u", "r", {"rpm": 1}):
            pass
        ours.set_limits([JOBS, *OTHERS], entity="u", resource="r")
        with pytest.raises(RateLimitExceeded), ours.acquire("u", "r", {"jobs": 1}):
            pass
    assert ours.available("u", "r")["jobs"] == 3


def test_holds_that_expired_are_gone_with_their_limit(place: Place, mode: str) -> None:
    ours = jobs(place, mode)
    hold(ours, 2)
    place.clock.seconds += 61
    with ours.acquire("u", "r", {"rpm": 1}, limits=OTHERS):
        (item,) = place.raw("Bucket")
    assert holds(place) == 0
    assert not item.keys() & {"past", "used_jobs"}


def test_a_bucket_with_holds_of_a_limit_that_it_lacks_is_not_split(place: Place) -> None:
    place.clock.seconds += 0.5
    ours = Limiter(place.db, ACME, limits=[JOBS, *OTHERS], shard_above=10, remember_rejections=0)
    limits = [Limit.per_second("rps", 10_000)]
    lease = hold(ours, 2)
    for _ in range(40):
        place.clock.seconds += 0.05
        with ours.acquire("u", "r", {"rps": 1}, limits=limits):
            pass
    assert len(place.raw("Bucket")) == 1
    lease.__exit__(None, None, None)
    assert ours.available("u", "r")["jobs"] == 3


def test_a_lost_release_under_other_limits_counts_once(place: Place) -> None:
    faults = Faults()
    engine = FaultyEngine(place.watched, faults)
    place.db = Database(engine, place.db.scope)
    ours = jobs(place, "sync")
    hold(ours, 1)
    with ours.acquire("u", "r", {"jobs": 1}):
        with ours.acquire("u", "r", {"rpm": 1}, limits=OTHERS):
            pass
        faults.timeout("UpdateItem", applied=True, times=1)
    assert ours.available("u", "r")["jobs"] == 2
    assert holds(place) == 1


@pytest.mark.parametrize("number", [150, 320])
def test_more_holds_may_expire_than_one_write_removes(place: Place, number: int) -> None:
    limit = Limit.concurrency("jobs", number, 60)
    ours = Limiter(place.db, ACME, limits=[limit, *OTHERS], remember_rejections=0)
    with_many_holds(place, ours, number)
    with pytest.raises(RateLimitExceeded), ours.acquire("u", "r", {"jobs": 1}):
        pass
    place.clock.seconds += 61
    assert ours.time_until("u", "r", {"jobs": number}) == 0
    with ours.acquire("u", "r", {"jobs": number}):
        assert ours.available("u", "r")["jobs"] == 0
        assert holds(place) <= 100
    assert ours.available("u", "r")["jobs"] == number


@pytest.mark.parametrize("seconds", [0, 61])
def test_a_limit_with_many_holds_changes_its_kind_or_goes(place: Place, seconds: int) -> None:
    number = 620
    limit = Limit.concurrency("jobs", number, 60)
    ours = Limiter(place.db, ACME, limits=[limit, *OTHERS], remember_rejections=0)
    with_many_holds(place, ours, number)
    place.clock.seconds += seconds
    with ours.acquire("u", "r", {"rpm": 1}, limits=OTHERS):
        assert holds(place) == (0 if seconds else number)
    with ours.acquire("u", "r", {"jobs": 1}, limits=[Limit.per_minute("jobs", 3)]):
        assert holds(place) == 0


def with_many_holds(place: Place, ours: Limiter, number: int) -> None:
    """Give a bucket so many leases, as so many processes that die."""
    with ours.acquire("u", "r", {"rpm": 1}):
        pass
    (item,) = place.raw("Bucket")
    key = {name: item[name] for name in ("PK", "SK")}
    value = (now(place) + 60 * SECOND) * 10**16 + 1000
    for first in range(0, number, 50):
        update = ItemUpdate().add("used_jobs", 50_000 if first + 50 <= number else number % 50 * 1000)
        for each in range(first, min(number, first + 50)):
            update.set(f"+jobs:{each:08x}", value)
        place.engine.handle(UpdateItem(table=place.table, key=key, update=update.build()))
    ours.context.writer.cache.clear()
