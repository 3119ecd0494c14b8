"""L3: a split and a merge of shards conserve every token, whatever happens between their steps."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from solotable import Database
from solotable._flows.retry import Retries
from solotable._protocol.requests import TransactWriteItems, UpdateItem
from solotable._store.runner import run
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.admin.limits import MICROSECONDS
from solotable.systems.limiter.buckets.bucket import decode_state
from solotable.systems.limiter.buckets.shards import merge, read_shards, split
from solotable.systems.limiter.buckets.shards.tree import leaves
from solotable.testing.engines.faults import Faults
from solotable.testing.engines.faulty import FaultyEngine

from .ground import ACME, Place

#: A tenth of a token comes in per second, and each call asks for one: what is missing was lost.
QUOTA = Limit.per_day("rpm", 8640)


def made(place: Place, engine: Any = None, **options: Any) -> Limiter:
    given: dict[str, Any] = {"limits": [QUOTA], "shard_above": None, "remember_rejections": 0.0} | options
    scope = replace(place.db.scope, retries=Retries(random=random.Random(1).random))
    return Limiter(Database(engine or place.watched, scope), ACME, **given)


def spend(ours: Limiter, amount: float = 1) -> None:
    with ours.acquire("u", "r", {"rpm": amount}):
        pass


def states(place: Place) -> dict[int, Any]:
    now = int(place.clock() * MICROSECONDS)
    return {int(item["shard"]["N"]): decode_state(item, now) for item in place.raw("Bucket")}


def tokens(place: Place) -> Fraction:
    """Return what the bucket has, in tokens."""
    now = int(place.clock() * MICROSECONDS)
    total = Fraction(0)
    for state in leaves(states(place)).values():
        assert state is not None
        meter = state.rules.meters["rpm"]
        total += Fraction(meter.credits(state.used["rpm"], now), 1000 * meter.price << state.level)
    return total


def split_shard(place: Place, ours: Limiter, shard: int = 0) -> None:
    writer = ours.context.writer
    known = writer.cache.bucket("u", "r")
    run(read_shards(writer, known, consistent=True), place.watched)
    run(split(writer, known, shard, known.shards[shard]), place.watched)


def merge_shard(place: Place, ours: Limiter, shard: int) -> None:
    writer = ours.context.writer
    known = writer.cache.bucket("u", "r")
    run(read_shards(writer, known, consistent=True), place.watched)
    run(merge(writer, known, shard, known.shards[shard]), place.watched)


def test_l3_a_crowd_gets_all_that_the_bucket_has(place: Place) -> None:
    """L3: a day's limit under a crowd lost a tenth of its tokens to new halves."""
    ours = made(place, shard_above=10, most_shards=8, limits=[Limit.per_day("rpm", 400)])
    begun, admitted = place.clock(), 0
    for _ in range(700):
        place.clock.seconds += 0.02
        try:
            spend(ours)
        except RateLimitExceeded:
            continue
        admitted += 1
    assert len(states(place)) > 1
    came_in = Fraction(place.clock() - begun) * 400 / 86_400
    # The rest is less than a token in each shard.
    assert 400 - len(states(place)) < admitted <= 400 + came_in
    assert abs(tokens(place) + admitted - 400 - came_in) < Fraction(1, 1000)


def test_l3_a_split_takes_what_was_used_by_then(place: Place) -> None:
    """L3: writes of others between the decision and the split are counted, without a slack."""
    ours, other = made(place), made(place)
    spend(ours, 40)
    place.watched.slip_in(UpdateItem, lambda: spend(other, 100))
    split_shard(place, ours)
    assert {shard: state.level for shard, state in states(place).items()} == {0: 1, 1: 1}
    assert tokens(place) == 8640 - 140


def test_l3_halves_are_merged_to_their_mean(place: Place) -> None:
    ours = made(place)
    spend(ours, 1000)
    split_shard(place, ours)
    split_shard(place, ours, 1)
    for amount in (7, 1.001, 300, 0.007):
        spend(ours, amount)
    before = tokens(place)
    merge_shard(place, ours, 3)
    merge_shard(place, ours, 1)
    assert {shard: state.level for shard, state in states(place).items()} == {0: 0}
    credit = Fraction(1, 1000 * QUOTA.period_seconds * MICROSECONDS)
    assert 0 <= before - tokens(place) <= 2 * credit


def unfinished(place: Place) -> None:
    """Let a process die between the two steps of a split."""
    faults = Faults()
    dying = made(place, FaultyEngine(place.watched, faults))
    spend(dying, 40)
    faults.unreachable("TransactWriteItems", times=99)
    writer = dying.context.writer
    known = writer.cache.bucket("u", "r")
    with pytest.raises(Exception, match=r"."):
        run(split(writer, known, 0, known.shards[0]), FaultyEngine(place.watched, faults))
    assert {shard: state.level for shard, state in states(place).items()} == {0: 1}


def test_l3_an_unfinished_split_is_finished_by_another_process(place: Place) -> None:
    unfinished(place)
    assert tokens(place) == 8640 - 40
    other = made(place)
    assert other.available("u", "r") == {"rpm": 8600}
    for _ in range(8):
        spend(other)
    assert tokens(place) == 8640 - 48
    # The one that split it is given a second.
    assert len(states(place)) == 1
    place.clock.seconds += 2
    spend(other)
    assert len(states(place)) == 2
    assert not any("split" in item or "half_rpm" in item for item in place.raw("Bucket"))
    assert abs(tokens(place) - 8591 - Fraction(2, 10)) < Fraction(1, 100)


def test_l3_a_large_call_needs_an_unfinished_half_at_once(place: Place) -> None:
    unfinished(place)
    spend(made(place), 8000)
    assert tokens(place) == 600
    assert len(states(place)) == 2


@pytest.mark.parametrize("after", [0.0, 5.0])
def test_l3_new_limits_wait_for_an_unfinished_split(place: Place, after: float) -> None:
    """The copies of `used` are counted by the limits of the item."""
    unfinished(place)
    place.clock.seconds += after
    before = tokens(place)
    ours = made(place)
    ours.set_limits([Limit.per_hour("rpm", 8640)], entity="u", resource="r")
    spend(ours)
    assert {item["rules"]["S"] for item in place.raw("Bucket")} == {"rpm=8640/3600"}
    assert abs(tokens(place) - before + 1) < Fraction(1, 1000)


def test_l3_two_processes_split_a_shard_once(place: Place) -> None:
    ours, other = made(place), made(place)
    spend(ours, 100)
    place.watched.slip_in(UpdateItem, lambda: split_shard(place, other))
    split_shard(place, ours)
    assert {shard: state.level for shard, state in states(place).items()} == {0: 1, 1: 1}
    assert tokens(place) == 8540
    place.watched.slip_in(TransactWriteItems, lambda: spend(other, 5))
    split_shard(place, ours, 1)
    assert tokens(place) == 8535


def test_l3_a_stale_writer_does_not_finish_a_later_split(place: Place) -> None:
    """The copies that it saw are not those of the split that is unfinished now."""
    ours, other = made(place), made(place)
    spend(ours, 100)

    def meanwhile() -> None:
        # Another process finishes the split, merges the halves and splits them again, up to its first step.
        place.clock.seconds += 2
        for _ in range(8):
            spend(other, 10)
        merge_shard(place, other, 0)
        spend(other, 200)
        faults = Faults()
        faults.unreachable("TransactWriteItems", times=99)
        writer = other.context.writer
        known = writer.cache.bucket("u", "r")
        with pytest.raises(Exception, match=r"."):
            run(split(writer, known, 0, known.shards[0]), FaultyEngine(place.watched, faults))

    place.watched.slip_in(TransactWriteItems, meanwhile)
    with pytest.raises(Exception, match=r"."):
        split_shard(place, ours)
    assert {shard: state.level for shard, state in states(place).items()} == {0: 1}
    assert abs(tokens(place) - (8640 - 380) - Fraction(2, 10)) < Fraction(1, 100)
