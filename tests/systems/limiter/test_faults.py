"""What goes wrong: lost answers, a table that is down or slow, clocks, cancellation. Each is defined."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from solotable import AsyncDatabase, Database
from solotable._connect import to_async
from solotable._protocol.engine import Capabilities
from solotable._protocol.requests import Request, UpdateItem
from solotable._store.runner import Threaded
from solotable.systems.limiter import AsyncLimiter, Limit, Limiter, LimiterUnavailable, RateLimitExceeded
from solotable.systems.limiter.buckets.local_cache import LocalCache
from solotable.testing.engines.faults import Faults
from solotable.testing.engines.faulty import FaultyEngine
from tests.waiting import HANG_SECONDS, wait_until_async

from .either import either
from .ground import ACME, Place

RPM = Limit.per_minute("rpm", 10)
MANY = Limit.per_second("rpm", 1_000_000)


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def ours(place: Place, mode: str, faults: Faults) -> Any:
    """A limiter that knows its settings, over an engine that goes wrong."""
    engine = FaultyEngine(place.watched, faults)
    place.db = Database(engine, place.db.scope)
    place.adb = AsyncDatabase(to_async(engine), place.adb.scope)
    made = either(place, mode, limits=[RPM])
    made.available("u", "r")
    return made


def consumed(place: Place) -> int:
    return sum(int(item.get("consumed_rpm", {"N": "0"})["N"]) for item in place.raw("Bucket")) // 1000


# A lost answer -----------------------------------------------------------------------------


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("kind", ["timeout", "internal_error"])
@pytest.mark.parametrize("first", [True, False])
def test_c1_5_a_write_whose_answer_was_lost_counts_once(
    place: Place, ours: Any, faults: Faults, applied: bool, kind: str, first: bool
) -> None:
    if not first:
        with ours.acquire("u", "r", {"rpm": 1}):
            pass
    fault = getattr(faults, kind)("UpdateItem", applied=applied, times=2)
    with ours.acquire("u", "r", {"rpm": 3}) as lease:
        lease.adjust(rpm=1)
        fault = getattr(faults, kind)("UpdateItem", applied=applied, times=1)
    assert fault.fired == 1
    expected = 4 if first else 5
    assert consumed(place) == expected
    assert ours.available("u", "r") == {"rpm": 10 - expected}


def test_c1_5_a_write_that_arrives_again_much_later_is_refused(place: Place, ours: Any) -> None:
    for _ in range(3):
        with ours.acquire("u", "r", {"rpm": 1}):
            pass
    for request in place.journal.requests("UpdateItem"):
        with pytest.raises(Exception, match="conditional request failed"):
            place.engine.handle(request)
    assert consumed(place) == 3


def test_c1_5_lost_answers_among_many_writers_lose_and_double_nothing(place: Place, faults: Faults) -> None:
    engine = FaultyEngine(place.engine, faults)
    db = Database(engine, place.db.scope)
    made = [Limiter(db, ACME, limits=[MANY], shard_above=None) for _ in range(2)]
    for each in made:
        # A process that does not know the item may take another's lane.
        with each.acquire("u", "r", {"rpm": 1}):
            pass
    faults.timeout("UpdateItem", applied=True, probability=0.2, seed=1)
    faults.internal_error("UpdateItem", applied=False, probability=0.1, seed=2)
    admitted = [1, 1]

    def work(number: int) -> None:
        for _ in range(25):
            try:
                with made[number % 2].acquire("u", "r", {"rpm": 1}):
                    admitted.append(1)
            except LimiterUnavailable:
                # Five faults in a row: whether it counted is not known.
                admitted.append(0)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    faults.clear()
    assert sum(admitted) <= consumed(place) <= len(admitted)
    assert len(admitted) - sum(admitted) < 10


def test_a_fork_is_another_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = LocalCache()
    mine = cache.next_number(1) % 10**6
    assert cache.next_number(2) % 10**6 == mine
    monkeypatch.setattr("os.getpid", lambda: 4711)
    theirs = cache.next_number(3) % 10**6
    assert theirs != mine
    assert cache.next_number(4) % 10**6 == theirs


# A table that is down, slow, throttled -----------------------------------------------------


@pytest.mark.parametrize("kind", ["unreachable", "throttle"])
def test_a_table_that_cannot_be_asked_blocks_or_allows(
    place: Place, ours: Any, faults: Faults, kind: str
) -> None:
    getattr(faults, kind)("UpdateItem", times=1000)
    with pytest.raises(LimiterUnavailable, match="is unavailable"), ours.acquire("u", "r", {"rpm": 1}):
        pytest.fail("the block must not be entered")
    with ours.acquire("u", "r", {"rpm": 1}, on_unavailable="allow") as lease:
        assert not lease.limited
        lease.adjust(rpm=5)
        lease.consume(rpm=1)
    assert lease.statuses == []
    faults.clear()
    assert consumed(place) == 0


def test_who_may_go_on_without_a_table_that_just_did_not_answer_does_so_at_once(
    place: Place, ours: Any, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, tried = 0.0, 0
    monkeypatch.setattr(ours.context.circuit_breaker, "_clock", lambda: now)
    matching = faults.matching

    def counted(request: Request[Any]) -> Any:
        nonlocal tried
        tried += 1
        return matching(request)

    monkeypatch.setattr(faults, "matching", counted)
    faults.unreachable("UpdateItem", times=1000)
    for seconds, goes_on in ((0.0, False), (0.5, True), (0.99, True), (1.01, False)):
        now, tried = seconds, 0
        with ours.acquire("u", "r", {"rpm": 1}, on_unavailable="allow") as lease:
            assert not lease.limited
        assert (tried == 0) is goes_on
    # Who must not go on without it asks each time, and who is answered tells all others.
    with pytest.raises(LimiterUnavailable), ours.acquire("u", "r", {"rpm": 1}):
        pass
    assert tried > 8
    faults.clear()
    with ours.acquire("u", "r", {"rpm": 1}):
        pass
    with ours.acquire("u", "r", {"rpm": 1}, on_unavailable="allow") as lease:
        assert lease.limited


def test_throttling_that_passes_is_not_noticed(place: Place, ours: Any, faults: Faults) -> None:
    faults.throttle("UpdateItem", times=2)
    with ours.acquire("u", "r", {"rpm": 1}):
        pass
    assert consumed(place) == 1


def test_c1_14_on_unavailable_covers_what_is_written_at_the_end(
    place: Place, ours: Any, faults: Faults
) -> None:
    with pytest.raises(LimiterUnavailable), ours.acquire("u", "r", {"rpm": 1}) as lease:  # noqa: PT012 - the block is the test
        lease.adjust(rpm=1)
        faults.unreachable("UpdateItem", times=1000)
    faults.clear()
    with ours.acquire("u", "r", {"rpm": 1}):
        pass
    with ours.acquire("u", "r", {"rpm": 1}, on_unavailable="allow") as lease:
        assert lease.limited
        lease.adjust(rpm=1)
        faults.unreachable("UpdateItem", times=1000)
    faults.clear()
    with pytest.raises(ZeroDivisionError) as raised, ours.acquire("u", "r", {"rpm": 1}):  # noqa: PT012 - the block is the test
        faults.unreachable("UpdateItem", times=1000)
        raise ZeroDivisionError
    assert "could not take back" in raised.value.__notes__[0]


def test_a_parent_that_cannot_be_asked_leaves_the_child_as_it_was(
    place: Place, ours: Any, faults: Faults
) -> None:
    ours.create_entity("org")
    ours.create_entity("kid", parent="org", cascade=True)
    ours.available("kid", "r")
    faults.unreachable("UpdateItem", after=1, times=5)
    with pytest.raises(LimiterUnavailable), ours.acquire("kid", "r", {"rpm": 1}):
        pass
    faults.clear()
    assert consumed(place) == 0
    assert ours.available("kid", "r") == {"rpm": 10}


def test_settings_that_cannot_be_read_are_unavailable_too(place: Place, ours: Any, faults: Faults) -> None:
    ours.set_limits([RPM], on_unavailable="allow")
    ours.available("u", "r")
    place.clock.seconds += 120
    faults.unreachable(times=1000)
    # The system said to allow, and that is cached_refusal while it cannot be asked.
    with ours.acquire("u", "r", {"rpm": 1}) as lease:
        assert not lease.limited
    with pytest.raises(LimiterUnavailable), ours.acquire("u", "r", {"rpm": 1}, on_unavailable="block"):
        pass
    assert ours.ping() is False


def test_is_available_ends_in_time_though_the_table_does_not_answer(place: Place, mode: str) -> None:
    released = threading.Event()

    class Slow(FaultyEngine):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(handle_together=self.handle_together)

        def handle(self, request: Request[Any], /) -> Any:
            released.wait(HANG_SECONDS)
            return super().handle(request)

    engine = Slow(place.engine, Faults())
    with ThreadPoolExecutor(1) as pool:
        place.db = Database(engine, place.db.scope)
        adb = AsyncDatabase(Threaded(engine, pool), place.adb.scope)
        if mode == "sync":
            answer = Limiter(place.db, ACME).ping(timeout=0.05)
        else:
            answer = place.wait(AsyncLimiter(adb, ACME).ping(timeout=0.05))
        released.set()
    assert answer is False


# Clocks ------------------------------------------------------------------------------------


def test_a_clock_that_goes_back_a_little_gives_less_and_breaks_nothing(place: Place, ours: Any) -> None:
    with ours.acquire("u", "r", {"rpm": 5}):
        pass
    place.clock.seconds -= 12
    assert ours.available("u", "r") == {"rpm": 3}
    with ours.acquire("u", "r", {"rpm": 3}):
        pass
    with pytest.raises(RateLimitExceeded), ours.acquire("u", "r", {"rpm": 1}):
        pass
    place.clock.seconds += 12
    assert ours.available("u", "r") == {"rpm": 2}


def test_a_clock_that_was_far_ahead_locks_no_caller_out(place: Place, ours: Any, mode: str) -> None:
    place.clock.seconds += 365 * 86_400
    with ours.acquire("u", "r", {"rpm": 4}):
        pass
    place.clock.seconds -= 365 * 86_400
    for made in (ours, either(place, mode, limits=[RPM])):
        with made.acquire("u", "r", {"rpm": 3}):
            pass
    assert ours.available("u", "r") == {"rpm": 0}
    with pytest.raises(RateLimitExceeded) as refused, ours.acquire("u", "r", {"rpm": 2}):
        pass
    assert refused.value.retry_after_seconds == pytest.approx(12)
    place.clock.seconds += 12
    with ours.acquire("u", "r", {"rpm": 2}):
        pass


def test_a_clock_that_was_far_ahead_of_an_empty_bucket(place: Place, ours: Any) -> None:
    place.clock.seconds += 86_400
    with ours.acquire("u", "r", {"rpm": 10}):
        pass
    place.clock.seconds -= 86_400
    with pytest.raises(RateLimitExceeded) as refused, ours.acquire("u", "r", {"rpm": 1}):
        pass
    assert refused.value.retry_after_seconds == pytest.approx(6)
    place.clock.seconds += 6
    with ours.acquire("u", "r", {"rpm": 1}):
        pass
    assert consumed(place) == 11


# Cancellation ------------------------------------------------------------------------------


async def _until_consumed(place: Place) -> None:
    await wait_until_async(lambda: consumed(place))


class Gate(FaultyEngine):
    """Holds updates up until it is opened, as a network would."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(handle_together=self.handle_together)

    def __init__(self, engine: Any) -> None:
        super().__init__(engine, Faults())
        self.opened = threading.Event()
        self.reached = threading.Event()

    def handle(self, request: Request[Any], /) -> Any:
        if isinstance(request, UpdateItem) and not self.opened.is_set():
            self.reached.set()
            assert self.opened.wait(HANG_SECONDS)
        return super().handle(request)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("where", ["enter", "body", "exit"])
def test_c1_14_a_cancelled_call_gives_its_tokens_back(place: Place, where: str, again: bool) -> None:
    gate = Gate(place.engine)
    taken = 5 if where == "exit" else 0

    async def call(limiter: AsyncLimiter) -> None:
        async with limiter.acquire("u", "r", {"rpm": 4}) as lease:
            if where == "exit":
                lease.adjust(rpm=1)
                gate.opened.clear()
                return
            await asyncio.Event().wait()

    async def scenario(pool: ThreadPoolExecutor) -> dict[str, int]:
        limiter = AsyncLimiter(AsyncDatabase(Threaded(gate, pool), place.adb.scope), ACME, limits=[RPM])
        await limiter.available("u", "r")
        if where != "enter":
            gate.opened.set()
        task = asyncio.create_task(call(limiter))
        if where == "body":
            await _until_consumed(place)
        else:
            assert await asyncio.to_thread(gate.reached.wait, HANG_SECONDS)
        task.cancel()
        await asyncio.sleep(0)
        if again:
            task.cancel()
            await asyncio.sleep(0)
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        # What is given back is written after the call has ended.
        left: dict[str, int] = {}

        async def given_back() -> bool:
            left.update(await limiter.available("u", "r"))
            return left == {"rpm": 10 - taken}

        await wait_until_async(given_back, seen=lambda: left)
        return left

    with ThreadPoolExecutor(4) as pool:
        left = place.wait(scenario(pool))
    # At its end a block was left well: what it took stays taken, and what it adjusted is written.
    assert left == {"rpm": 10 - taken}


def test_a_limiter_that_is_cancelled_in_process_gives_back(place: Place) -> None:
    async def scenario() -> dict[str, int]:
        limiter = AsyncLimiter(place.adb, ACME, limits=[RPM])

        async def call() -> None:
            async with limiter.acquire("u", "r", {"rpm": 4}):
                await asyncio.Event().wait()

        task = asyncio.create_task(call())
        await _until_consumed(place)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await limiter.available("u", "r")

    assert place.wait(scenario()) == {"rpm": 10}
