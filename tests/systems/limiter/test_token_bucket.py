"""The arithmetic against an exact rational model, over years of simulated time, through the real write."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solotable import Database
from solotable._connect import over
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable._values import Item
from solotable.engines import sqlite
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.admin.limits import LONGEST_PERIOD_SECONDS, MOST_TOKENS, limits_of
from solotable.systems.limiter.meters.rules import rules_from, rules_of
from solotable.systems.limiter.meters.token_bucket import TokenBucket
from solotable.systems.limiter.table import limiter
from tests.store.opening import START, Clock

SECOND = 1_000_000
DAY = 86_400


@dataclass
class Model:
    """A token bucket as a textbook has it, in fractions: nothing is ever rounded."""

    limit: Limit
    at: int
    tokens: Fraction = field(init=False)
    consumed: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self.tokens = Fraction(self.limit.capacity)

    def refilled(self, now: int) -> Fraction:
        came = Fraction((now - self.at) * self.limit.refill, self.limit.period_seconds * SECOND)
        return min(Fraction(self.limit.capacity), self.tokens + came)

    def take(self, now: int, amount: Fraction, *, admit: bool) -> bool:
        there = self.refilled(now)
        if admit and there < amount:
            return False
        self.tokens, self.at = min(Fraction(self.limit.capacity), there - amount), now
        self.consumed += amount
        return True


LIMITS = st.builds(
    lambda refill, period, burst: Limit.custom("x", capacity=burst, refill=refill, period_seconds=period),
    st.integers(1, 10**7),
    st.sampled_from([1, 7, 60, 3600, DAY, 30 * DAY]),
    st.integers(1, 10**7),
)
#: How long nothing happens: from a microsecond to years.
PAUSES = st.one_of(st.integers(0, 50), st.integers(0, SECOND), st.integers(0, 400 * DAY * SECOND))
STEPS = st.lists(
    st.tuples(
        PAUSES, st.sampled_from(["acquire", "adjust", "fail"]), st.integers(1, 1000), st.integers(0, 999)
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(LIMITS, STEPS)
def test_the_bucket_does_what_an_exact_model_does(
    limit: Limit, steps: list[tuple[int, str, int, int]]
) -> None:
    clock = Clock()
    now = int(START) * SECOND
    engine = sqlite.open(sqlite.MEMORY, clock=clock)
    db = over(engine, [limiter], clock=clock)
    ours = Limiter(db, "acme", limits=[limit], remember_rejections=0.0)
    # What the limiter makes of the clock is what the model is told.
    model = Model(limit, int(clock() * SECOND))
    for pause, verb, part, milli in steps:
        now += pause
        clock.seconds = now / SECOND
        seen = int(clock() * SECOND)
        amount = Fraction(limit.capacity * part // 1000) + Fraction(milli, 1000)
        if amount > limit.capacity:
            amount = Fraction(limit.capacity)
        asked = float(amount)
        if Fraction(str(asked)) != amount:
            continue
        if verb == "acquire":
            try:
                with ours.acquire("u", "r", {"x": asked}):
                    admitted = True
            except RateLimitExceeded as refused:
                admitted = False
                missing = amount - model.refilled(seen)
                wait = missing * limit.period_seconds / limit.refill
                # A float of centuries is coarser than a microsecond.
                coarse = Fraction(math.ulp(refused.retry_after_seconds))
                assert abs(Fraction(refused.retry_after_seconds) - wait) <= Fraction(2, SECOND) + coarse
            assert admitted is model.take(seen, amount, admit=True)
        elif verb == "adjust":
            with ours.acquire("u", "r", {}) as lease:
                lease.adjust(x=asked)
            model.take(seen, amount, admit=False)
        elif model.refilled(seen) >= amount:
            with pytest.raises(ZeroDivisionError), ours.acquire("u", "r", {"x": asked}):
                raise ZeroDivisionError
        left = ours.available("u", "r")["x"]
        assert left == model.refilled(seen) // 1
    found = [item for item in _items(db) if "consumed_x" in item]
    total = Fraction(int(found[0]["consumed_x"]["N"]), 1000) if found else Fraction(0)
    assert total == model.consumed
    engine.close()


def _items(db: Database) -> list[Item]:
    return decode_items(db.engine.handle(Scan(table="Limiter")).items or ())


def test_c1_8_no_remainder_is_lost_however_often_a_slow_limit_is_written() -> None:
    """100 a day, written each 500 ms for a day: 100 tokens come, not 0."""
    token_bucket = TokenBucket.of(Limit.per_day("x", 100))
    now = int(START) * SECOND
    used = token_bucket.full(now) + token_bucket.cost(100_000)
    assert token_bucket.tokens(used, now) == 0
    taken = 0
    for _ in range(DAY * 2):
        now += SECOND // 2
        while token_bucket.tokens(used, now) >= 1000:
            used += token_bucket.cost(1000)
            taken += 1
        # A write that takes nothing moves nothing.
        assert token_bucket.convert(used, now, token_bucket, now) >= used
    assert taken == 100


def test_every_number_fits_into_the_38_digits_of_dynamodb() -> None:
    token_bucket = TokenBucket.of(
        Limit.custom("x", capacity=MOST_TOKENS, refill=MOST_TOKENS, period_seconds=LONGEST_PERIOD_SECONDS)
    )
    in_the_year_9999 = 253_402_300_799 * SECOND
    for level in range(7):
        largest = in_the_year_9999 * token_bucket.rate + token_bucket.cost(MOST_TOKENS * 1000, level)
        assert len(str(largest)) <= 38
        assert len(str(token_bucket.full(0))) - 1 <= 38


@given(st.integers(0, 10**17), st.integers(0, 6), LIMITS)
def test_shards_have_what_the_whole_has(used_part: int, level: int, limit: Limit) -> None:
    token_bucket = TokenBucket.of(limit)
    now = int(START) * SECOND
    used = token_bucket.full(now) + used_part % (token_bucket.depth + 1)
    whole = token_bucket.credits(used, now)
    # A shard's part, by what it can hand out, times the number of shards is never more than the whole.
    part = whole // (token_bucket.price << level) * token_bucket.price
    assert part << level <= whole


def test_rules_are_read_back_from_what_is_stored() -> None:
    limits = limits_of([Limit.per_minute("tpm", 100, burst=500), Limit.per_second("rpm", 3)])
    rules = rules_of(limits, 17)
    assert rules.text == "rpm=3/1;tpm=100/60+500"
    assert rules_from(rules.text, 17) == rules
