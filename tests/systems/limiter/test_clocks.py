"""L4: clocks that differ, and clocks that are set, cannot give the tokens of a bucket again and again."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from solotable import Database
from solotable._connect import over
from solotable._flows.retry import Flow, Retries, Sleep
from solotable._protocol.engine import Engine
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import DeleteItem, Scan, UpdateItem
from solotable._store.runner import run as run_flow
from solotable._values import Item
from solotable.engines import sqlite
from solotable.errors import ConditionFailed
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.buckets.acquire import Grant, acquire
from solotable.systems.limiter.buckets.bucket import ShardState
from solotable.systems.limiter.buckets.shards import merge, read_shards, split
from solotable.systems.limiter.buckets.writer import BucketClock
from solotable.systems.limiter.buckets.writes.flat_update import FlatUpdate
from solotable.systems.limiter.table import limiter
from tests.store.opening import Clock
from tests.waiting import holds

from .ground import ACME

#: A bucket of 100, and 100 in a minute.
LIMIT = Limit.per_minute("rpm", 100)
DAY = 86_400.0
SKEWS = [301.0, 302.0, 3600.0, DAY, -301.0, -3600.0, -DAY]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(clock: Clock) -> Iterator[Engine]:
    made = sqlite.open(sqlite.MEMORY, clock=clock)
    yield made
    made.close()


class Machine:
    """A machine with a clock that can be set, and processes on it."""

    def __init__(self, engine: Engine, clock: Clock, skew: float = 0.0) -> None:
        self.engine, self.clock, self.skew = engine, clock, skew
        self.scope = over(engine, [limiter], clock=clock).scope

    def time(self) -> float:
        return self.clock() + self.skew

    def process(self, limit: Limit = LIMIT) -> Limiter:
        scope = replace(self.scope, clock=self.time, retries=Retries(random=random.Random(1).random))
        made = Limiter(
            Database(self.engine, scope), ACME, limits=[limit], remember_rejections=0.0, cache_seconds=DAY
        )
        made.context.writer.clock.steady = self.clock
        return made


def take_all(made: Limiter) -> int:
    """Take tokens one by one until a refusal."""
    taken = 0
    while True:
        try:
            with made.acquire("u", "r", {"rpm": 1}):
                taken += 1
        except RateLimitExceeded:
            return taken


def run(clock: Clock, processes: list[Limiter], seconds: int, at: Callable[[int], object] = id) -> int:
    """Let processes take what they can in turns; return what they took."""
    taken = 0
    for second in range(seconds):
        at(second)
        for made in processes:
            taken += take_all(made)
        clock.seconds += 1
    return taken


@pytest.mark.parametrize("skew", SKEWS)
def test_l4_two_clocks_that_differ_give_a_bucket_more_and_once(
    engine: Engine, clock: Clock, skew: float, caplog: pytest.LogCaptureFixture
) -> None:
    """L4: 301 s ahead admitted 24,040 of 200 calls in a minute."""
    processes = [Machine(engine, clock).process(), Machine(engine, clock, skew).process()]
    with caplog.at_level(logging.WARNING, logger="solotable.limiter"):
        taken = run(clock, processes, 60)
    allowed = 100 + 60 * 100 // 60
    assert taken <= allowed + 100
    warnings = [each for each in caplog.records if "clock is ahead" in each.message]
    # A second later, a write of a clock that is 301 s ahead is 300 s ahead.
    assert len(warnings) == (skew != 301.0)
    # Both take the same time from then on.
    one, other = (made.context.writer.now() for made in processes)
    assert abs(one - other) <= 301_000_000


def test_l4_clocks_within_the_tolerance_are_left_alone(engine: Engine, clock: Clock) -> None:
    processes = [Machine(engine, clock).process(), Machine(engine, clock, 299.0).process()]
    run(clock, processes, 20)
    assert processes[1].context.writer.now() - processes[0].context.writer.now() == 299_000_000


@pytest.mark.parametrize("leap", [3600.0, -3600.0, 301.0, -301.0])
def test_l4_a_machine_whose_clock_leaps_gives_a_bucket_more_and_once(
    engine: Engine, clock: Clock, leap: float
) -> None:
    """L4: the clock of all processes is set, and set right again; each keeps the machine's time."""
    machine = Machine(engine, clock)
    processes = [machine.process() for _ in range(3)]

    def set_clock(second: int) -> None:
        if second in (20, 40):
            machine.skew += leap if second == 20 else -leap

    taken = run(clock, processes, 60, set_clock)
    allowed = 100 + 60 * 100 // 60
    # Forward by an hour fills the bucket; back by an hour keeps it as it is.
    assert allowed - 100 <= taken <= allowed + 100
    for made in processes:
        assert made.context.writer.now() == pytest.approx(clock() * 1_000_000, abs=2)


def test_l4_a_clock_that_is_set_right_is_used_again(engine: Engine, clock: Clock) -> None:
    """L4: a process that had learned that it is ahead forgets that when its clock is set."""
    ahead = Machine(engine, clock, 3600.0)
    processes = [Machine(engine, clock).process(), ahead.process()]
    run(clock, processes, 5)
    ahead.skew = 0.0
    run(clock, processes, 5)
    assert {made.context.writer.now() for made in processes} == {int(clock() * 1_000_000)}


def test_l4_the_time_of_the_server_counts(engine: Engine, clock: Clock) -> None:
    """L4: a process that is a day ahead, and knows the server's time, changes nothing."""
    made = Machine(engine, clock, DAY).process()
    made.context.writer.clock.server_offset = lambda: -DAY
    taken = run(clock, [Machine(engine, clock).process(), made], 60)
    assert taken == 100 + 59 * 100 // 60


# Several calls of one process at a time -----------------------------------------------------------------

DAILY = Limit.per_day("rpm", 2400)


def take_turns(clock: Clock, *processes: Limiter) -> list[int]:
    """Let each process take what it can, a millisecond after the one before: a refusal is not repeated."""
    taken = []
    for made in processes:
        clock.seconds += 0.001
        taken.append(take_all(made))
    return taken


def begin(made: Limiter, engine: Engine) -> tuple[Flow[Grant], UpdateItem]:
    """Let a process begin a call; return it with its first write, which is not sent yet."""
    flow = acquire(made.context, "u", {"r": {"rpm": 1}})
    request = next(flow)
    while not isinstance(request, UpdateItem):
        request = flow.send(engine.handle(request))
    return flow, request


def fail(flow: Flow[Grant], request: UpdateItem, engine: Engine) -> object:
    """Send a write whose condition fails; return what the flow asks for next."""
    with pytest.raises(ConditionFailed) as failed:
        engine.handle(request)
    return flow.throw(failed.value)


@pytest.mark.parametrize("is_known", [False, True])
def test_l4_calls_wait_for_the_write_that_shows_whose_clock_is_ahead(
    engine: Engine, clock: Clock, is_known: bool
) -> None:
    """L4: a bucket was moved back after a write of a thread that had not read its response."""
    ours, ahead = (Machine(engine, clock, skew).process() for skew in (0.0, 3600.0))
    if is_known:
        # So long ago that the sighting proves nothing.
        with ahead.acquire("u", "r", {"rpm": 1}):
            clock.seconds += 3600
    take_turns(clock, ours)
    flow, request = begin(ahead, engine)
    reply = engine.handle(request)
    assert take_turns(clock, ours) == [99]
    assert take_turns(clock, ahead, ahead) == [0, 0]
    with pytest.raises(StopIteration):
        flow.send(reply)
    now = pytest.approx(clock() * 1_000_000, abs=10_000)
    assert ahead.context.writer.now() == now
    # The time of the late response is not taken for that of a later sighting.
    assert ahead.context.writer.cache.bucket("u", "r").sightings[0].at == now
    assert take_turns(clock, ahead, ours, ahead) == [0, 0, 0]


def test_l4_a_write_that_failed_does_not_stop_other_calls(engine: Engine, clock: Clock) -> None:
    """L4: a process that first meets a bucket which was moved back long ago takes what came in since."""
    run(clock, [Machine(engine, clock, skew).process(DAILY) for skew in (0.0, 3600.0)], 2)
    clock.seconds += 7200
    made = Machine(engine, clock).process(DAILY)
    one, other = begin(made, engine), begin(made, engine)
    assert isinstance(fail(*one, engine), Sleep)
    again = fail(*other, engine)
    assert isinstance(again, UpdateItem)
    with pytest.raises(StopIteration):
        other[0].send(engine.handle(again))
    one[0].close()
    assert take_all(made) == 199


@pytest.mark.parametrize("at", range(1, 7))
def test_l4_a_call_that_begins_before_the_clock_is_corrected_uses_the_corrected_time(
    engine: Engine, clock: Clock, at: int
) -> None:
    """L4: the time was read before another thread corrected it, and the bucket after that."""
    ours, ahead = (Machine(engine, clock, skew).process() for skew in (0.0, 3600.0))
    assert take_turns(clock, ours, ahead, ours) == [100, 100, 0]
    known = ahead.context.writer.cache.bucket("u", "r")
    known.shards = Interrupted(known.shards, at, lambda: take_turns(clock, ahead))
    assert take_turns(clock, ahead, ours) == [0, 0]


class Interrupted(dict[int, ShardState]):
    """The shards that a process remembers; another thread runs before one of the look-ups."""

    def __init__(self, shards: dict[int, ShardState], at: int, run: Callable[[], object]) -> None:
        super().__init__(shards)
        self.left, self.run = at, run

    def get(self, shard: int, default: Any = None) -> Any:
        self.left -= 1
        if self.left == 0:
            assert self.run() == [0]
        return super().get(shard, default)


def test_l4_no_write_of_a_process_ahead_is_applied_once_the_bucket_was_moved_back(
    engine: Engine, clock: Clock
) -> None:
    """L4: a bucket that takes longer to fill than the clock is ahead was charged before it was examined."""
    ours, ahead = (Machine(engine, clock, skew).process(DAILY) for skew in (0.0, 3600.0))
    assert take_turns(clock, ours, ahead, ours, ahead, ours) == [2400, 100, 0, 0, 0]


def test_l4_two_moves_at_the_same_time_are_two(engine: Engine, clock: Clock) -> None:
    """L4: the bucket was moved back at the same microsecond as before, so the process did not notice."""
    machine, far = Machine(engine, clock), Machine(engine, clock, 3600.0)
    ahead = far.process()
    taken = [take_all(each) for each in (machine.process(), far.process(), machine.process())]
    assert taken == [100, 100, 0]
    # Each process that is ahead takes one bucket.
    assert [take_all(ahead), take_all(machine.process())] == [100, 0]
    far.skew += 0.001
    assert [take_all(ahead), take_all(machine.process())] == [0, 0]


def bucket_key(shard: int) -> Item:
    return {"PK": {"S": f"{ACME}#BUCKET#u#r#{shard:02d}"}, "SK": {"S": "BUCKET"}}


def reshard(made: Limiter, engine: Engine, change: Callable[..., Flow[None]], shard: int) -> None:
    """Let a process split a shard, or merge it."""
    writer, known = made.context.writer, made.context.writer.cache.bucket("u", "r")
    run_flow(read_shards(writer, known, consistent=True), engine)
    run_flow(change(writer, known, shard, known.shards[shard]), engine)


def test_l4_a_process_ahead_finds_out_by_any_shard(engine: Engine, clock: Clock) -> None:
    """L4: only the last shard that was written told the process; with two, it took a half each time."""
    ours, ahead = (Machine(engine, clock, skew).process() for skew in (0.0, 3600.0))
    assert take_turns(clock, ours) == [100]
    for shard in (0, 0, 1):
        reshard(ours, engine, split, shard)
    assert sum(take_turns(clock, *[ahead, ours] * 6)) == 100


@pytest.mark.parametrize("change", ["split", "merge"])
def test_l4_a_shard_that_was_moved_back_shows_it_in_its_halves_and_in_the_whole(
    engine: Engine, clock: Clock, change: str
) -> None:
    """L4: a split and a merge made an item that did not say that it was moved back."""
    ours, ahead = (Machine(engine, clock, skew).process() for skew in (0.0, 3600.0))
    assert take_turns(clock, ours) == [100]
    if change == "merge":
        reshard(ours, engine, split, 0)
    assert take_turns(clock, ahead, ours) == [100, 0]
    if change == "merge":
        # As if only the other half had been moved back.
        removal = FlatUpdate().remove("moved").build()
        engine.handle(UpdateItem(table="Limiter", key=bucket_key(0), update=removal))
    reshard(ours, engine, *((split, 0) if change == "split" else (merge, 1)))
    items = decode_items(engine.handle(Scan(table="Limiter")).items or ())
    buckets = [item for item in items if "BUCKET" in item["PK"]["S"]]
    assert len(buckets) == 1 + (change == "split")
    assert all("moved" in item for item in buckets)
    assert take_turns(clock, ahead, ours, ahead) == [0, 0, 0]


def test_l4_the_other_half_of_a_bucket_that_a_clock_ahead_wrote_can_be_moved_back(
    engine: Engine, clock: Clock
) -> None:
    """L4: it had the time of the process that made it, so its used credits seemed to be of the present."""
    ours, ahead = (Machine(engine, clock, skew).process() for skew in (0.0, 3600.0))
    with ahead.acquire("u", "r", {"rpm": 1}):
        reshard(ours, engine, split, 0)
    assert take_turns(clock, ours, ahead, ours) == [98, 0, 0]


def test_l4_a_bucket_that_expired_says_nothing_about_the_clock(engine: Engine, clock: Clock) -> None:
    """L4: the bucket that comes after one that was moved back was not moved back."""
    ours, ahead = (Machine(engine, clock, skew).process() for skew in (0.0, 3600.0))
    take_turns(clock, ours, ahead, ours)
    clock.seconds += DAY
    engine.handle(DeleteItem(table="Limiter", key=bucket_key(0)))
    assert take_turns(clock, ours) == [100]
    assert ours.context.writer.now() == int(clock() * 1_000_000)


def test_l4_threads_that_find_out_at_once_correct_the_clock_once() -> None:
    """L4: each moved the clock back, so the process was as far behind, and moved every bucket back."""
    made = BucketClock(lambda: 7200.0)
    others: list[threading.Thread] = []

    class Seen(int):
        """A time; when it is compared with the present, another thread finds out too."""

        def __gt__(self, now: int) -> bool:
            if not others:
                others.append(threading.Thread(target=made.move_back, args=(Seen(self), 3600_000_000)))
                others[0].start()
                holds(others[0].is_alive)
            return int(self) > now

    made.move_back(Seen(7200_000_000), 3600_000_000)
    others[0].join()
    assert made.now() == 3600_000_000
