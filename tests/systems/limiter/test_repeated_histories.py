"""Random histories with and without calls that repeat: decisions and stored items are the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from decimal import Decimal
from typing import Any

import pytest

from solotable import Database
from solotable.engines import sqlite
from solotable.errors import SolotableError
from solotable.flow import run
from solotable.systems.limiter import (
    EntityDenied,
    Limit,
    Limiter,
    RateLimitExceeded,
    Schedule,
    ScheduleWindow,
)
from solotable.systems.limiter.buckets.bucket import LANES
from solotable.systems.limiter.buckets.repeated_charge import begin
from solotable.systems.limiter.buckets.shards.reshard import split
from solotable.testing.engines.faults import Faults
from solotable.testing.engines.faulty import FaultyEngine
from tests.store.opening import Clock

from .ground import ACME, Place, open_place

RPM, TPM = Limit.per_minute("rpm", 40), Limit.per_minute("tpm", 1000)
LIMITS: list[Any] = [
    [RPM, TPM],
    [Limit.per_minute("rpm", 4), TPM],
    [Limit.per_hour("rpm", 20), Limit.per_minute("tpm", 300, burst=1000)],
    [Limit.fixed_window("rpm", 8, 60), TPM],
    [Limit.calendar("rpm", 15, "day"), Limit.session("tpm", 1000, 600)],
    [Limit.sliding_window("rpm", 8, 60), TPM],
    [Limit.per_minute("rpm", 5, soft=True), TPM],
    [Limit.concurrency("rpm", 5, 60), TPM],
    [Limit.per_minute("rpm", 0), TPM],
    Schedule([RPM, TPM], [ScheduleWindow("00:30-01:30", [Limit.per_minute("rpm", 3), TPM])]),
]
AMOUNTS: list[Any] = [1, 1, 1, 2, 5, 0, 11, 10**30, 1.5, Decimal("0.25"), Decimal(2), True, -1, "1", None]
NAMED = [("rpm", "tpm"), ("rpm",), ("tpm", "rpm"), ("tpm",), ("x",), ()]
JUMPS = [0.001, 0.5, 2.0, 7.0, 20.0, 61.0, 1800.0, 86_400.0, -0.5, -20.0, -400.0]
JUMP_WEIGHTS = [5, 5, 5, 3, 1, 0.5, 0.1, 0.1, 0.5, 0.2, 0.05]
ENTITIES = ["u", "v", "kid", "org"]


class Side:
    """Two processes of one table, with faults; `repeats` is whether their calls may repeat."""

    def __init__(self, place: Place, limits: Any, *, repeats: bool) -> None:
        self.place, self.faults, self.repeats, self.repeated = place, Faults(), repeats, 0
        db = Database(FaultyEngine(place.watched, self.faults), place.db.scope)
        self.soft: list[tuple[str, int | None]] = []
        self.processes = [
            Limiter(db, ACME, limits=limits, cache_seconds=60, shard_above=None, on_soft_limit=self._exceeded)
            for _ in range(2)
        ]
        for number, process in enumerate(self.processes):
            # The lane is random otherwise.
            process.context.writer.cache.first_lane = LANES[number]
        self.engine = db.engine
        operator = self.processes[0]
        operator.create_entity("org")
        operator.create_entity("kid", parent="org", cascade=True)

    def _exceeded(self, statuses: Any) -> None:
        self.soft += [(status.limit.name, status.available) for status in statuses]

    def step(self, number: int, act: str, dice: random.Random) -> Any:
        """Do the same with the same dice, and return what a caller sees."""
        ours = self.processes[number]
        if not self.repeats:
            for process in self.processes:
                for entity in ENTITIES:
                    process.context.writer.cache.bucket(entity, "r").repeated = None
        entity = dice.choices(ENTITIES, (12, 1, 1, 1))[0]
        try:
            return getattr(self, f"_{act}")(ours, entity, dice)
        except RateLimitExceeded as refused:
            return [
                (each.entity, each.limit.name, each.available, each.retry_after_seconds, each.exceeded)
                for each in refused.statuses
            ]
        except (SolotableError, TypeError, AttributeError) as error:
            # The time of a mode in the text is the clock's.
            return type(error), "" if isinstance(error, EntityDenied) else str(error)

    def _acquire(self, ours: Limiter, entity: str, dice: random.Random) -> Any:
        named = dice.choices(NAMED, (30, 4, 1, 1, 1, 1))[0]
        consume = {name: dice.choice(AMOUNTS[:5] if dice.random() < 0.85 else AMOUNTS) for name in named}
        also = {"s": {"rpm": 1}} if dice.random() < 0.05 else None
        fate, fault = dice.random(), dice.random()
        if fault < 0.1:
            declare = self.faults.timeout if fault < 0.07 else self.faults.internal_error
            declare("UpdateItem", applied=fault < 0.05, times=dice.choice((1, 2)))
        if also is None and dice.random() < 0.9:
            self._count(ours, entity, consume)
        with ExitStack() as stack:
            if fate < 0.1:
                stack.enter_context(suppress(ZeroDivisionError))
            lease = stack.enter_context(ours.acquire(entity, "r", consume, also=also))
            seen = [(each.entity, each.limit.name, each.available) for each in lease.statuses]
            if 0.1 < fate < 0.2:
                lease.adjust(rpm=dice.choice((-1, 1, 3)))
            if 0.2 < fate < 0.25:
                self.place.clock.seconds += 0.25
            if fate < 0.1:
                raise ZeroDivisionError
        return seen, dict(lease.consumed), list(self.soft)

    def _count(self, ours: Limiter, entity: str, consume: Any) -> None:
        if self.repeats and (first := begin(ours.context, entity, {"r": consume})) is not None:
            first.bucket.free_lane(first.lane)
            self.repeated += 1

    def _limits(self, ours: Limiter, entity: str, dice: random.Random) -> Any:
        chosen = dice.choice(LIMITS)
        levels: list[Any] = [{"entity": entity, "resource": "r"}, {"entity": entity}, {"resource": "r"}, {}]
        return str(ours.set_limits(chosen, **dice.choice(levels)).limits)

    def _unlimit(self, ours: Limiter, entity: str, dice: random.Random) -> Any:
        ours.delete_limits(**dice.choice(({"entity": entity, "resource": "r"}, {"resource": "r"}, {})))

    def _mode(self, ours: Limiter, entity: str, dice: random.Random) -> Any:
        return ours.set_mode(entity, dice.choice(("deny", "bypass", "shadow", "disabled", None, None))).mode

    def _reset(self, ours: Limiter, entity: str, dice: random.Random) -> Any:
        ours.reset(entity, resource=dice.choice((None, "r")))

    def _top_up(self, ours: Limiter, entity: str, dice: random.Random) -> Any:
        return ours.top_up(entity, "r", {"rpm": dice.choice((1, 4))})

    def _remove(self, ours: Limiter, entity: str, dice: random.Random) -> Any:
        if entity in ("u", "v"):
            ours.delete_entity(entity)

    def _split(self, ours: Limiter, entity: str, dice: random.Random) -> Any:
        writer, state = ours.context.writer, ours.context.writer.cache.bucket(entity, "r").shards.get(0)
        if state is not None and state.level == 0 and state.rules.splits and not state.split:
            run(split(writer, writer.cache.bucket(entity, "r"), 0, state), self.engine)

    def items(self) -> list[Any]:
        """Return the stored buckets, without what is random: lanes and the names of holds."""
        found = [
            sorted((name, str(value)) for name, value in item.items() if name[0] not in "~+")
            for item in self.place.raw("Bucket")
        ]
        return sorted(found)

    def busy(self) -> set[str]:
        """Return the lanes that are in use."""
        caches = [process.context.writer.cache for process in self.processes]
        return set().union(*(cache.bucket(entity, "r")._busy for cache in caches for entity in ENTITIES))


@contextmanager
def _sides(limits: Any) -> Iterator[tuple[Clock, Side, Side]]:
    clock = Clock()
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        sides = []
        for repeats in (True, False):
            engine = sqlite.open(sqlite.MEMORY, clock=clock)
            stack.callback(engine.close)
            place = open_place("engine", engine, clock=clock, runner=runner, prefix="l.")
            stack.callback(place.close)
            sides.append(Side(place, limits, repeats=repeats))
        yield clock, sides[0], sides[1]


ACTS = {
    "acquire": 200,
    "limits": 3,
    "unlimit": 1,
    "mode": 2,
    "reset": 2,
    "top_up": 2,
    "remove": 1,
    "split": 0.2,
}


@pytest.mark.parametrize(
    ("limits", "seed", "least"),
    [(LIMITS[0], 0, 15), (LIMITS[0], 1, 15), (LIMITS[0], 4, 15), (LIMITS[-1], 2, 0)],
    ids=["0", "1", "4", "schedule"],
)
def test_calls_that_repeat_decide_and_store_what_others_do(limits: Any, seed: int, least: int) -> None:
    dice = random.Random(seed)
    with _sides(limits) as (clock, repeating, general):
        for number in range(200):
            clock.seconds += dice.choices(JUMPS, JUMP_WEIGHTS)[0]
            process, act = dice.randrange(2), dice.choices(list(ACTS), list(ACTS.values()))[0]
            drawn, started = dice.random(), clock.seconds
            outcomes = []
            for side in (repeating, general):
                clock.seconds = started
                outcomes.append(side.step(process, act, random.Random(drawn)))
            assert outcomes[0] == outcomes[1], (number, act)
            assert repeating.items() == general.items(), (number, act)
            assert repeating.busy() == general.busy() == set()
        assert repeating.repeated >= least
