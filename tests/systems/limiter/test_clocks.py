"""L4: clocks that differ, and clocks that are set, cannot give the tokens of a bucket again and again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from solotable import Database
from solotable._connect import over
from solotable._protocol.engine import Engine
from solotable.engines import sqlite
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.table import limiter
from tests.store.opening import Clock

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

    def process(self) -> Limiter:
        scope = replace(self.scope, clock=self.time)
        made = Limiter(Database(self.engine, scope), ACME, limits=[LIMIT], remember_rejections=0.0)
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
