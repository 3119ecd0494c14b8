"""Take tokens from a bucket: choose one of its shards, and another one if it refuses."""

from __future__ import annotations

from solotable.flow import Flow
from solotable.systems.limiter.buckets.bucket import HIGHEST_LEVEL, ShardState
from solotable.systems.limiter.buckets.charge import (
    Charged,
    ChargeRefused,
    FailedWrite,
    RulesOutdated,
    ShardGone,
    cached_refusal,
    charge_shard,
)
from solotable.systems.limiter.buckets.local_cache import CachedBucket, Lane
from solotable.systems.limiter.buckets.writer import BucketWriter
from solotable.systems.limiter.buckets.writes.charge_request import Charge

from .parts import take_parts
from .read import read_shards
from .reshard import finish_splits, has_headroom, rebalance, repair
from .settle import TakenTokens, charge_in_tree
from .totals import contended_refusal, refusal
from .tree import leaves, select

#: Shards that a charge is sent to before it is refused, and how often it may be redirected.
_TRIED_SHARDS = 2
_REDIRECTS = 12


def take(
    writer: BucketWriter, bucket: CachedBucket, charge: Charge, failed: FailedWrite | None = None
) -> Flow[TakenTokens | ChargeRefused | RulesOutdated]:
    """Take tokens from a bucket, whatever shards it has; after a first write to shard 0 that failed."""
    lane = bucket.take_lane(writer.now()) if failed is None else failed.lane
    try:
        return (yield from _take(writer, bucket, charge, lane, failed))
    finally:
        bucket.free_lane(lane)


def _take(
    writer: BucketWriter, bucket: CachedBucket, charge: Charge, lane: Lane, failed: FailedWrite | None
) -> Flow[TakenTokens | ChargeRefused | RulesOutdated]:
    tried: set[int] = set()
    shard = _first(writer, bucket, charge) if failed is None else 0
    for _ in range(_REDIRECTS):
        if failed is not None:
            outcome = yield from charge_shard(writer, bucket, shard, charge, lane, failed)
            failed = None
        elif bucket.depth and not lane.lost and _exceeds_shard(bucket, charge):
            return (yield from take_parts(writer, bucket, charge))
        else:
            send = charge_in_tree if shard else charge_shard
            lane.attempt = 0
            outcome = yield from send(writer, bucket, shard, charge, lane)
        if isinstance(outcome, Charged):
            if outcome.state is not None and (writer.shard_above is not None or outcome.state.split):
                yield from rebalance(
                    writer, bucket, shard, outcome.state, charge, applied=1, failed=lane.attempt
                )
            return TakenTokens(bucket, charge, (shard,), outcome.state)
        if isinstance(outcome, RulesOutdated):
            return outcome
        if isinstance(outcome, ShardGone):
            if shard not in bucket.shards:
                yield from repair(writer, bucket, shard)
            elif bucket.shards[shard].split:
                yield from finish_splits(writer, bucket)
            # The same one or what became of it: a write whose response was lost is known there.
            shard = select(bucket.shards, shard)
            continue
        if lane.attempt and (writer.shard_above is not None or outcome.state.split):
            yield from rebalance(writer, bucket, shard, outcome.state, charge, failed=lane.attempt)
        if bucket.depth == 0:
            return outcome
        if not has_headroom(charge, bucket.depth):
            # All shards together are more likely to have so much than one is.
            return (yield from take_parts(writer, bucket, charge))
        tried.add(shard)
        other = _richest(writer, bucket, charge, tried)
        if other is None or len(tried) > _TRIED_SHARDS:
            break
        if len(tried) == _TRIED_SHARDS:
            if None not in leaves(bucket.shards).values():
                break
            # A process that has just started does not know the others: it reads them before it refuses.
            yield from read_shards(writer, bucket, consistent=True)
            other = _richest(writer, bucket, charge, tried)
            if other is None or _supply(bucket.shards.get(other), charge, writer.now()) < 1:
                break
        shard = other
    now = writer.now()
    return refusal(bucket, charge, now) or contended_refusal(bucket, charge, now)


def _first(writer: BucketWriter, bucket: CachedBucket, charge: Charge) -> int:
    """Return the better of two shards at random, by what is remembered of them."""
    if bucket.depth == 0:
        return 0
    random, shards = writer.scope.retries.random, bucket.shards
    one, other = (select(shards, int(random() * (1 << HIGHEST_LEVEL))) for _ in range(2))
    if one == other:
        return one
    now = writer.now()
    worse = _supply(shards.get(one), charge, now) < _supply(shards.get(other), charge, now)
    return other if worse else one


def _richest(writer: BucketWriter, bucket: CachedBucket, charge: Charge, tried: set[int]) -> int | None:
    """Return the shard of which the most is remembered; None if all are known to lack the charge."""
    now = writer.now()
    others = [
        (_supply(state, charge, now), shard)
        for shard, state in leaves(bucket.shards).items()
        if shard not in tried
        # The half of an unfinished split has no item yet.
        and (state is None or shard in bucket.shards)
        and cached_refusal(writer, bucket, shard, charge, now) is None
    ]
    return max(others)[1] if others else None


def _supply(state: ShardState | None, charge: Charge, now: int) -> float:
    """Return how many times a shard has the charge; one of which nothing is known may be full."""
    if state is None:
        return float("inf")
    meters, used = charge.rules.meters, state.used
    return min(
        (
            meters[name].credits(used[name], now) / cost
            for name, cost in charge.costs(state.level).items()
            if name in used
        ),
        default=0.0,
    )


def _exceeds_shard(bucket: CachedBucket, charge: Charge) -> bool:
    meters = charge.rules.meters
    return any(cost > meters[name].depth for name, cost in charge.costs(bucket.depth).items())
