"""Any order of the steps of several processes, with lost answers, late writes and clocks that differ."""

from __future__ import annotations

import pytest

from solotable.systems.limiter import Limit, RateLimitExceeded
from solotable.systems.limiter.admin.limits import MILLI
from solotable.systems.limiter.usage import aggregate

from .interleaving import Running, World

LIMIT = Limit.per_minute("rpm", 600)


def lived(
    world: World,
    *,
    steps: int = 220,
    back: bool = True,
    adjusts: bool = False,
    forgets: bool = False,
    crashes: bool = False,
) -> None:
    """Let a world go on for some time, and come to rest."""
    dice = world.dice
    for _ in range(steps):
        what = dice.random()
        if what < 0.25 and len(world.running) < 6:
            world.acquire(dice.choice([1, 1, 5, 20, 60, 200, 500]))
        elif what < 0.33 and back:
            world.give_back()
        elif what < 0.38 and adjusts:
            world.adjust(dice.randint(-20, 300))
        elif what < 0.44:
            world.clock.seconds += dice.choice([0.0001, 0.05, 1.1, 5.0, 11.0])
        elif what < 0.45 and forgets:
            world.forget()
        elif what < 0.48 and crashes:
            world.crash()
        else:
            world.step()
    world.finish()


def expected(one: Running) -> int | None:
    """Return how many thousandths a flow must have used up; None: it may have, its answers were lost."""
    if one.error is None:
        return one.amount * MILLI
    if isinstance(one.error, RateLimitExceeded) and not one.faulty:
        return 0
    return None


def judge_balances(world: World, *, exact: bool) -> None:
    for one in world.ended:
        least = expected(one)
        if least is None:
            # Not known to have been done: never fewer used up than by one that gives back.
            least = min(0, one.amount * MILLI)
        elif exact:
            assert one.balance.counted == least, one
        assert one.balance.used >= least - one.balance.leeway, one
    total = sum(one.balance.counted for one in world.ended)
    aggregate(world.db)
    summary = world.clients[0].usage_summary(entity="u", window="month").limits
    assert (summary["rpm"].total_millitokens if summary else 0) == total


@pytest.mark.parametrize("seed", range(12))
def test_granted_tokens_are_consumed_and_none_are_created(seed: int) -> None:
    world = World(seed, limit=LIMIT, shard_above=2, most_shards=8)
    lived(world)
    judge_balances(world, exact=True)
    assert any(one.error is None for one in world.ended)


@pytest.mark.parametrize("seed", range(12))
def test_nor_with_lost_answers_late_writes_and_lost_memory(seed: int) -> None:
    world = World(seed, limit=LIMIT, shard_above=2, most_shards=8, faults=0.15)
    lived(world, forgets=True, adjusts=True)
    judge_balances(world, exact=False)


@pytest.mark.parametrize("seed", range(12))
def test_nor_with_clocks_that_differ_beyond_what_they_do(seed: int) -> None:
    world = World(seed, limit=LIMIT, shard_above=2, most_shards=8, faults=0.1, skew=3.0)
    lived(world, adjusts=True)
    judge_balances(world, exact=False)


# 45: a write that gives back in the shared lane arrives twice, and another one in between.
@pytest.mark.parametrize("seed", [*range(16), 45])
def test_l3_nor_with_processes_that_die_between_two_steps(seed: int) -> None:
    """L3: no split and no merge loses a token, also if another process has to finish it."""
    world = World(seed, limit=LIMIT, shard_above=1, most_shards=8, clients=4, faults=0.05)
    lived(world, steps=400, crashes=True, forgets=True)
    judge_balances(world, exact=False)
