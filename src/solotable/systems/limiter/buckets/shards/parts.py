"""Large charges: take parts of several shards, or nothing.

Each part is a charge with its own condition. What one shard did not give is asked of the others, whose
content is read again; if all lack it, every part is given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from solotable.errors import SolotableError
from solotable.flow import Flow
from solotable.systems.limiter.buckets.charge import Charged, ChargeRefused, RulesOutdated, ShardGone
from solotable.systems.limiter.buckets.local_cache import CachedBucket
from solotable.systems.limiter.buckets.writer import BucketWriter
from solotable.systems.limiter.buckets.writes.charge_request import Charge

from .reshard import merge, read_whole, rebalance, repair
from .settle import TakenTokens, charge_one, settle_shard
from .totals import contended_refusal, plan_parts, refusal

#: How often a large charge is planned before it is refused.
_PLANS = 6


def take_parts(
    writer: BucketWriter, bucket: CachedBucket, charge: Charge
) -> Flow[TakenTokens | ChargeRefused | RulesOutdated]:
    """Take a part from as few shards as have enough together, or nothing from any."""
    taken: dict[int, dict[str, int]] = {}
    try:
        failed = yield from _fill(writer, bucket, charge, taken)
    except SolotableError:
        with suppress(SolotableError):
            yield from _give_back(writer, bucket, charge, taken)
        raise
    if failed is None:
        shards = tuple(taken)
        return TakenTokens(bucket, charge, shards, bucket.shards.get(shards[0]) if shards else None)
    yield from _give_back(writer, bucket, charge, taken)
    if isinstance(failed, RulesOutdated):
        return failed
    now = writer.now()
    return refusal(bucket, charge, now) or contended_refusal(bucket, charge, now)


def _fill(
    writer: BucketWriter, bucket: CachedBucket, charge: Charge, taken: dict[int, dict[str, int]]
) -> Flow[RulesOutdated | ShardGone | None]:
    """Take what is missing in `taken`; return why that is not possible."""
    is_read = False
    for _ in range(_PLANS):
        now, left = writer.now(), _left(charge.amounts, taken)
        plan = plan_parts(bucket, charge.rules, left, now)
        if plan is None and not is_read:
            yield from read_whole(writer, bucket)
            is_read = True
        elif plan is None:
            if taken or refusal(bucket, charge, now) is not None:
                break
            # All are full, and lack less than a thousandth each.
            yield from _merge_smallest(writer, bucket)
        else:
            is_read = False
            outcome = yield from _take_planned(writer, bucket, charge, plan, taken)
            if not isinstance(outcome, ShardGone):
                return outcome
    return ShardGone()


def _left(amounts: Mapping[str, int], taken: Mapping[int, Mapping[str, int]]) -> dict[str, int]:
    left = {
        name: amount - sum(parts.get(name, 0) for parts in taken.values()) for name, amount in amounts.items()
    }
    return {name: amount for name, amount in left.items() if amount}


def _take_planned(
    writer: BucketWriter,
    bucket: CachedBucket,
    charge: Charge,
    plan: Mapping[int, Mapping[str, int]],
    taken: dict[int, dict[str, int]],
) -> Flow[RulesOutdated | ShardGone | None]:
    for shard, amounts in plan.items():
        outcome = yield from charge_one(writer, bucket, shard, replace(charge, amounts=amounts))
        if isinstance(outcome, RulesOutdated):
            return outcome
        if not isinstance(outcome, Charged):
            if shard not in bucket.shards:
                yield from repair(writer, bucket, shard)
            return ShardGone()
        given = taken.setdefault(shard, {})
        for name, amount in amounts.items():
            given[name] = given.get(name, 0) + amount
        if outcome.state is not None:
            yield from rebalance(writer, bucket, shard, outcome.state, charge)
    return None


def _give_back(
    writer: BucketWriter, bucket: CachedBucket, charge: Charge, taken: Mapping[int, Mapping[str, int]]
) -> Flow[None]:
    for shard, amounts in taken.items():
        back = {name: -amount for name, amount in amounts.items()}
        yield from settle_shard(writer, TakenTokens(bucket, charge, (shard,)), shard, back)


def _merge_smallest(writer: BucketWriter, bucket: CachedBucket) -> Flow[None]:
    deepest = bucket.depth
    for shard, state in list(bucket.shards.items()):
        if state.level == deepest > 0 and shard.bit_length() == deepest:
            with suppress(SolotableError):
                yield from merge(writer, bucket, shard, state)
