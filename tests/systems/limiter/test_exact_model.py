"""Random histories of two processes against an exact model: rational numbers, and none of the limiter's code.

`make torture` runs twelve times as many operations.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from solotable._connect import over
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable.engines import sqlite
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.table import limiter
from tests.store.opening import START, Clock
from tests.torture import size

from .ground import ACME

OPERATIONS = 2_500
SEEDS = range(size.amount(4, 96))
MICRO = 1_000_000
#: Entities and their parents, which every call of theirs charges too.
PARENTS = {"org": None, "ann": None, "kid": "org", "ben": "org"}
PERIODS = (1, 7, 60, 3600, 86_400)

Amounts = Mapping[str, Fraction]


@dataclass
class Bucket:
    """The tokens of an entity by limit, as of a time; None: it was never used."""

    limits: Mapping[str, Limit]
    at: int
    tokens: dict[str, Fraction] = field(default_factory=dict)

    def left(self, name: str, now: int, limits: Mapping[str, Limit]) -> Fraction:
        """Return the tokens of a limit, which refills by the limits that the bucket was last written with."""
        if name not in self.tokens:
            return Fraction(limits[name].capacity)
        old, new = self.limits[name], limits[name]
        came = Fraction((now - self.at) * old.refill, old.period_seconds * MICRO)
        left = min(Fraction(old.capacity), self.tokens[name] + came)
        # Other limits keep the tokens up to their capacity, in their own smallest unit.
        unit = 1000 * new.period_seconds * MICRO
        return min(Fraction(new.capacity), Fraction(math.floor(left * unit), unit)) if old != new else left

    def write(self, now: int, limits: Mapping[str, Limit], amounts: Amounts) -> None:
        """Take or give back; also write the limits, if they are others."""
        self.tokens = {name: self.left(name, now, limits) - amounts.get(name, 0) for name in limits}
        self.limits, self.at = limits, now


@dataclass
class Model:
    """All buckets, and the limits that apply."""

    limits: dict[str, dict[str, Limit]]
    buckets: dict[str, Bucket] = field(default_factory=dict)
    consumed: Counter[tuple[str, str]] = field(default_factory=Counter)

    def chain(self, entity: str) -> list[str]:
        parent = PARENTS[entity]
        return [entity] if parent is None else [entity, parent]

    def left(self, entity: str, name: str, now: int) -> Fraction:
        found = self.buckets.get(entity)
        limits = self.limits[entity]
        return Fraction(limits[name].capacity) if found is None else found.left(name, now, limits)

    def wait(self, entity: str, amounts: Amounts, now: int) -> int:
        """Return the microseconds until all buckets of a call have enough."""
        waits = [0]
        for one in self.chain(entity):
            for name, amount in amounts.items():
                limit = self.limits[one][name]
                lacking = amount - self.left(one, name, now)
                waits.append(math.ceil(lacking * limit.period_seconds * MICRO / limit.refill))
        return max(waits)

    def charge(self, entity: str, amounts: Amounts, now: int) -> bool:
        """Take from all buckets of a call or from none; a bucket that refuses has the new limits, too."""
        written: list[str] = []
        for one in self.chain(entity):
            admitted = all(self.left(one, name, now) >= amount for name, amount in amounts.items())
            self.write(one, amounts if admitted else {}, now, keep=not admitted)
            if not admitted:
                for other in written:
                    self.write(other, {name: -amount for name, amount in amounts.items()}, now)
                return False
            written.append(one)
        return True

    def settle(self, entity: str, amounts: Amounts, now: int) -> None:
        for one in self.chain(entity):
            self.write(one, amounts, now)

    def write(self, entity: str, amounts: Amounts, now: int, *, keep: bool = False) -> None:
        if not amounts and not keep:
            return
        limits = self.limits[entity]
        bucket = self.buckets.setdefault(entity, Bucket(limits, now))
        if keep and bucket.limits == limits:
            return
        bucket.write(now, limits, amounts)
        for name in limits:
            bucket.tokens[name] = min(bucket.tokens[name], Fraction(limits[name].capacity))
        for name, amount in amounts.items():
            self.consumed[entity, name] += int(amount * 1000)


class History:
    """One random history; two limiters on one engine, and the model."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.clock = Clock()
        self.micros = int(START) * MICRO
        self.engine = sqlite.open(sqlite.MEMORY, clock=self.clock)
        self.db = over(self.engine, [limiter], clock=self.clock)
        self.ours = [Limiter(self.db, ACME, remember_rejections=0.0) for _ in range(2)]
        self.model = Model({})
        self.counts: Counter[str] = Counter()
        self.ours[0].create_entity("org")
        for entity, parent in PARENTS.items():
            if parent is not None:
                self.ours[0].create_entity(entity, parent=parent, cascade=True)
            self.set_limits(entity)

    @property
    def now(self) -> int:
        """The time as the limiter sees it: a float of seconds is coarser than a microsecond."""
        return int(self.clock() * MICRO)

    def pass_time(self, micros: int) -> None:
        before = self.now
        while self.now - before < micros:
            self.micros += max(1, micros - (self.now - before))
            self.clock.seconds = self.micros / MICRO

    def limit(self, name: str) -> Limit:
        dice = self.dice
        period = dice.choice(PERIODS)
        return Limit.custom(
            name, capacity=dice.randint(20, 5000), refill=dice.randint(1, 5000), period_seconds=period
        )

    def set_limits(self, entity: str) -> None:
        limits = {name: self.limit(name) for name in ("rpm", "tpm")}
        self.ours[0].set_limits(limits.values(), entity=entity)
        for each in self.ours:
            each.invalidate_config_cache()
        self.model.limits[entity] = limits

    def amounts(self, entity: str, most: float = 1.0) -> dict[str, Fraction]:
        dice, found = self.dice, {}
        for name in dice.choice((("rpm",), ("tpm",), ("rpm", "tpm"))):
            capacity = min(self.model.limits[one][name].capacity for one in self.model.chain(entity))
            milli = dice.randint(1, max(1, int(capacity * 1000 * most * dice.choice((0.01, 0.2, 1.0)))))
            found[name] = Fraction(milli, 1000)
        return found

    def step(self) -> None:
        dice = self.dice
        self.pass_time(dice.choice((1, 10, 5_000, 400_000, 3 * MICRO, 40 * MICRO, 900 * MICRO)))
        entity, made = dice.choice(list(PARENTS)), dice.choice(self.ours)
        what = dice.random()
        if what < 0.03:
            self.set_limits(entity)
            self.counts["limits"] += 1
        elif what < 0.13:
            amounts = self.amounts(entity)
            told = made.time_until(entity, "r", floats(amounts))
            assert round(told * MICRO) == self.model.wait(entity, amounts, self.now)
            self.counts["time_until"] += 1
        elif what < 0.2:
            left = {
                name: min(self.model.left(one, name, self.now) for one in self.model.chain(entity))
                for name in ("rpm", "tpm")
            }
            assert made.available(entity, "r") == {name: math.floor(each) for name, each in left.items()}
            self.counts["available"] += 1
        else:
            self.call(made, entity)

    def call(self, made: Limiter, entity: str) -> None:
        """Acquire; in the block consume more, adjust, release or fail."""
        dice, model = self.dice, self.model
        amounts = self.amounts(entity)
        wait = model.wait(entity, amounts, self.now)
        self.counts["acquire"] += 1
        if wait and dice.random() < 0.5 and wait < 10**13:
            self.check_refused(made, entity, amounts, wait)
            self.pass_time(wait - 1)
            if model.wait(entity, amounts, self.now) == 1:
                # A microsecond too early, and then in time.
                self.check_refused(made, entity, amounts, 1)
                self.pass_time(1)
                self.counts["retried"] += 1
            wait = model.wait(entity, amounts, self.now)
        if wait:
            self.check_refused(made, entity, amounts, wait)
            return
        taken: dict[str, Fraction] = dict(amounts)
        pending: dict[str, Fraction] = {}
        try:
            with made.acquire(entity, "r", floats(amounts)) as lease:
                assert model.charge(entity, amounts, self.now)
                self.pass_time(dice.choice((1, 20_000, 2 * MICRO)))
                if dice.random() < 0.2:
                    more = self.amounts(entity, 0.3)
                    admitted = model.charge(entity, more, self.now)
                    self.counts["consume"] += 1
                    if admitted:
                        lease.consume(**floats(more))
                        taken = plus(taken, more)
                    else:
                        with pytest.raises(RateLimitExceeded):
                            lease.consume(**floats(more))
                    self.pass_time(1)
                if dice.random() < 0.3:
                    pending = self.amounts(entity, 2.0)
                    lease.adjust(**floats(pending))
                    self.counts["adjust"] += 1
                if dice.random() < 0.2:
                    back = {
                        name: Fraction(dice.randint(0, int(each * 1000)), 1000)
                        for name, each in taken.items()
                    }
                    lease.release(**floats(back))
                    pending = plus(pending, {name: -each for name, each in back.items()})
                    self.counts["release"] += 1
                if dice.random() < 0.15:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            model.settle(entity, {name: -each for name, each in taken.items() if each}, self.now)
            self.counts["failed"] += 1
        else:
            model.settle(entity, {name: each for name, each in pending.items() if each}, self.now)

    def consumed(self) -> Counter[tuple[str, str]]:
        """Return what the items have counted, in thousandths of a token."""
        found: Counter[tuple[str, str]] = Counter()
        for item in decode_items(self.engine.handle(Scan(table="Limiter")).items or ()):
            for name in ("rpm", "tpm"):
                if f"consumed_{name}" in item:
                    found[item["entity"]["S"], name] = int(item[f"consumed_{name}"]["N"])
        return found

    def check_refused(self, made: Limiter, entity: str, amounts: Amounts, wait: int) -> None:
        with pytest.raises(RateLimitExceeded) as refused, made.acquire(entity, "r", floats(amounts)):
            pass
        assert not self.model.charge(entity, amounts, self.now)
        assert round(refused.value.retry_after_seconds * MICRO) == wait
        self.counts["refused"] += 1
        self.pass_time(1)


def plus(one: Amounts, other: Amounts) -> dict[str, Fraction]:
    none = Fraction(0)
    return {name: one.get(name, none) + other.get(name, none) for name in {**one, **other}}


def floats(amounts: Amounts) -> dict[str, Any]:
    return {name: float(amount) for name, amount in amounts.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_two_processes_do_what_an_exact_model_does(seed: int) -> None:
    history = History(seed)
    while history.counts.total() < OPERATIONS:
        history.step()
    assert history.consumed() == history.model.consumed
    assert min(history.counts.values()) > 0
    history.engine.close()
