"""Hot buckets: choose the shard of a charge, split shards and merge them.

A shard is split when it is written more often than a DynamoDB partition allows, and merged with its other
half after it was quiet for long. Its number is the low `level` bits of a random number, so the shards of a
bucket may have different levels and every random number still selects one shard.

The bound: all shards together never have more tokens than the bucket, at any time. A new half starts with
what its other half has or less, both under one condition in one transaction; merged halves get the mean.
The cost: a shard may refuse although others have tokens. A charge tries three shards before it is refused,
and one that needs more than a shard's part takes a part from every shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from solotable.errors import BatchIncomplete, SolotableError
from solotable.flow import Flow, Item, encode_value, get_items
from solotable.flow.conditions import Condition, all_of, at_most, equals, missing
from solotable.flow.requests import DeleteItem, PutItem, TransactWriteItems, UpdateItem
from solotable.systems.limiter.admin.limits import MICROSECONDS
from solotable.systems.limiter.errors import LimiterUnavailable
from solotable.systems.limiter.meters.rules import Rules
from solotable.systems.limiter.table import limiter

from .bucket import HIGHEST_LEVEL, Bucket, ShardState, decode_state
from .charge import (
    Charged,
    ChargeRefused,
    Outcome,
    RulesOutdated,
    ShardGone,
    charge_shard,
)
from .charge_request import Charge
from .flat_update import FlatUpdate
from .local_cache import CachedBucket, Lane, RateSample, live_lanes
from .writer import BucketWriter

#: Shards that a charge tries before it is refused, and how often it may be redirected.
_TRIED_SHARDS = 3
_REDIRECTS = 12
#: A shard is split only if a half holds so many times what is charged at once.
_SPLIT_HEADROOM = 8
#: How long writes are counted before a split, and before a merge.
_SPLIT_MICROSECONDS = MICROSECONDS
_MERGE_MICROSECONDS = 10 * MICROSECONDS
#: A shard is merged when it is written this many times less often than what splits it.
_MERGE_FACTOR = 8
#: A new half starts with this fraction of a bucket less, for charges during the split.
_SPLIT_SLACK = 16


@dataclass(frozen=True, slots=True)
class TakenTokens:
    """What was charged, and from which shards: it is given back to the same ones (C1.14)."""

    bucket: CachedBucket
    charge: Charge
    shards: tuple[int, ...]
    state: ShardState | None = None
    #: By limit, the period that it was charged in; None: that of `state`.
    periods: Mapping[str, int] | None = None

    def periods_under(self, rules: Rules) -> Mapping[str, int]:
        """Return the periods that limits of these rules still have."""
        own = self.charge.rules.meters
        return {
            name: period
            for name, period in self.charged_periods.items()
            if name in rules.meters and name in own and own[name].limit.same_periods(rules.meters[name].limit)
        }

    @property
    def charged_periods(self) -> Mapping[str, int]:
        """The periods that it was charged in."""
        state = self.state
        if self.periods is not None or state is None:
            return self.periods or {}
        return {name: meter.period(state.used[name], state.at) for name, meter in state.rules.meters.items()}


def take(
    writer: BucketWriter, bucket: CachedBucket, charge: Charge
) -> Flow[TakenTokens | ChargeRefused | RulesOutdated]:
    """Take tokens from a bucket, whatever shards it has."""
    lane = bucket.take_lane(writer.now())
    try:
        return (yield from _take(writer, bucket, charge, lane))
    finally:
        bucket.free_lane(lane)


def charge_one(writer: BucketWriter, bucket: CachedBucket, shard: int, charge: Charge) -> Flow[Outcome]:
    """Charge one shard and no other."""
    lane = bucket.take_lane(writer.now())
    try:
        return (yield from charge_shard(writer, bucket, shard, charge, lane))
    finally:
        bucket.free_lane(lane)


def _take(
    writer: BucketWriter, bucket: CachedBucket, charge: Charge, lane: Lane
) -> Flow[TakenTokens | ChargeRefused | RulesOutdated]:
    selector = int(writer.scope.retries.random() * (1 << HIGHEST_LEVEL)) if bucket.depth else 0
    refused: dict[int, ChargeRefused] = {}
    for _ in range(_REDIRECTS):
        if bucket.depth and _exceeds_shard(bucket, charge):
            return (yield from _take_from_all(writer, bucket, charge))
        shard = selector & ((1 << bucket.depth) - 1)
        outcome = yield from charge_shard(writer, bucket, shard, charge, lane)
        if isinstance(outcome, Charged):
            if outcome.state is not None and writer.shard_above is not None:
                yield from _rebalance(writer, bucket, shard, outcome.state, charge)
            return TakenTokens(bucket, charge, (shard,), outcome.state)
        if isinstance(outcome, RulesOutdated):
            return outcome
        if isinstance(outcome, ShardGone):
            if shard not in bucket.shards:
                bucket.depth = max(0, shard.bit_length() - 1)
            continue
        refused[shard] = outcome
        if bucket.depth == 0:
            return outcome
        if not _has_headroom(charge, bucket.depth):
            # All shards together are more likely to have so much than one is.
            return (yield from _take_from_all(writer, bucket, charge))
        if len(refused) >= min(_TRIED_SHARDS, 1 << bucket.depth):
            return min(refused.values(), key=lambda one: one.longest_wait)
        selector = _another_shard(selector, refused, bucket.depth)
    raise _resharding_error(bucket)


def settle(writer: BucketWriter, taken: TakenTokens, amounts: Mapping[str, int]) -> Flow[None]:
    """Take more, into debt if necessary, or give back, in the shards that were charged."""
    if len(taken.shards) == 1:
        return (yield from _settle_shard(writer, taken, taken.shards[0], amounts))
    # What was taken from all shards is settled with those that exist now.
    shards = (yield from _all_shards(writer, taken.bucket)) or {0: 0}
    for index, (shard, level) in enumerate(shards.items()):
        yield from _settle_shard(writer, taken, shard, amounts, part=level, counts=index == 0)


def _settle_shard(
    writer: BucketWriter,
    taken: TakenTokens,
    shard: int,
    amounts: Mapping[str, int],
    *,
    part: int = 0,
    counts: bool = True,
) -> Flow[None]:
    """Settle with one shard, or with the one that it was merged with."""
    bucket = taken.bucket
    lane = bucket.take_lane(writer.now())
    is_current = False
    try:
        for _ in range(_REDIRECTS):
            state = bucket.shards.get(shard)
            rules = taken.charge.rules if state is None else state.rules
            if state is not None and not amounts.keys() <= rules.meters.keys():
                if not is_current:
                    # Another process may have changed the limits: the item itself shows which it has.
                    bucket.forget(shard)
                    bucket.shards |= yield from _read(writer, bucket, (shard,), consistent=True)
                    is_current = True
                    continue
                if taken.charge.rules.revision > state.revision:
                    rules = taken.charge.rules
            # A limit that was removed in between needs no settlement.
            left = {name: amount for name, amount in amounts.items() if name in rules.meters}
            if not left:
                return
            periods = taken.periods_under(rules)
            charge = Charge(rules, left, admit=False, part=part, counts=counts, periods=periods)
            outcome = yield from charge_shard(writer, bucket, shard, charge, lane)
            if isinstance(outcome, ShardGone):
                shard, is_current = _without_highest_bit(shard), False
            elif isinstance(outcome, RulesOutdated):
                is_current = True
            else:
                return
    finally:
        bucket.free_lane(lane)


def _without_highest_bit(shard: int) -> int:
    """Return the shard that another one is merged into, together with its tokens."""
    return shard & ((1 << max(0, shard.bit_length() - 1)) - 1)


def surviving_shard(shard: int, existing: Iterable[int]) -> int:
    """Return a shard, or the one that it was merged into."""
    while shard and shard not in existing:
        shard = _without_highest_bit(shard)
    return shard


def _exceeds_shard(bucket: CachedBucket, charge: Charge) -> bool:
    meters = charge.rules.meters
    return any(cost > meters[name].depth for name, cost in charge.costs(bucket.depth).items())


def _has_headroom(charge: Charge, level: int) -> bool:
    meters = charge.rules.meters
    return all(cost * _SPLIT_HEADROOM <= meters[name].depth for name, cost in charge.costs(level).items())


def _take_from_all(
    writer: BucketWriter, bucket: CachedBucket, charge: Charge
) -> Flow[TakenTokens | ChargeRefused | RulesOutdated]:
    """Take a part from every shard, or from none."""
    for attempt in range(_REDIRECTS):
        if attempt:
            yield writer.scope.retries.wait(attempt)
        shards = yield from _all_shards(writer, bucket)
        outcome = yield from _take_parts(writer, bucket, charge, shards)
        if not isinstance(outcome, ShardGone):
            return outcome
    raise _resharding_error(bucket)


def _take_parts(
    writer: BucketWriter, bucket: CachedBucket, charge: Charge, shards: Mapping[int, int]
) -> Flow[TakenTokens | ChargeRefused | RulesOutdated | ShardGone]:
    """Take from these shards, while they have these levels: then all is taken, and no more."""
    parts = {
        shard: replace(charge, part=level, counts=index == 0)
        for index, (shard, level) in enumerate(shards.items())
    }
    done: list[int] = []
    failed: ChargeRefused | RulesOutdated | ShardGone = ShardGone()
    try:
        for shard, part in parts.items():
            outcome = yield from charge_one(writer, bucket, shard, part)
            if not isinstance(outcome, Charged):
                failed = outcome
                break
            done.append(shard)
    except SolotableError:
        with suppress(SolotableError):
            yield from _give_parts_back(writer, bucket, parts, done)
        raise
    if parts and len(done) == len(parts):
        return TakenTokens(bucket, charge, tuple(shards), bucket.shards.get(done[0]))
    yield from _give_parts_back(writer, bucket, parts, done)
    if isinstance(failed, ChargeRefused):
        # The charge has to wait for the slowest shard.
        existing = [(bucket.shards[shard], part) for shard, part in parts.items() if shard in bucket.shards]
        others = [
            ChargeRefused(state, part, failed.now)
            for state, part in existing
            if state.text == charge.rules.text
        ]
        return max([failed, *others], key=lambda one: one.longest_wait)
    return failed


def _give_parts_back(
    writer: BucketWriter, bucket: CachedBucket, parts: Mapping[int, Charge], done: Iterable[int]
) -> Flow[None]:
    for shard in done:
        part = parts[shard]
        amounts = {name: -amount for name, amount in part.amounts.items()}
        taken = TakenTokens(bucket, part, (shard,))
        yield from _settle_shard(writer, taken, shard, amounts, part=part.part, counts=part.counts)


def _all_shards(writer: BucketWriter, bucket: CachedBucket) -> Flow[dict[int, int]]:
    """Return all shards of a bucket with their levels; none if they changed during the read."""
    yield from read_shards(writer, bucket, consistent=True)
    found = {shard: bucket.shards[shard].level for shard in sorted(bucket.shards)} or {0: 0}
    return found if sum(1 << HIGHEST_LEVEL >> level for level in found.values()) == 1 << HIGHEST_LEVEL else {}


def _resharding_error(bucket: CachedBucket) -> LimiterUnavailable:
    return LimiterUnavailable(
        f"The bucket of {bucket.entity!r} for {bucket.resource!r} is being sharded; try again."
    )


def _another_shard(selector: int, refused: Mapping[int, ChargeRefused], depth: int) -> int:
    mask = (1 << depth) - 1
    return next(other for step in range(1, mask + 2) if (other := (selector + step) & mask) not in refused)


def read_shards(writer: BucketWriter, bucket: CachedBucket, *, consistent: bool = False) -> Flow[None]:
    """Read every shard of a bucket; most have one, which costs one read of one item."""
    found: dict[int, ShardState] = {}
    depth = deepest = 0
    while True:
        numbers = [each for each in range(1 << depth) if depth == 0 or each >= 1 << deepest]
        found |= yield from _read(writer, bucket, numbers, consistent=consistent)
        deepest, depth = depth, max((state.level for state in found.values()), default=0)
        if depth <= deepest:
            break
    bucket.shards = found
    bucket.depth = depth


def _read(
    writer: BucketWriter, bucket: CachedBucket, shards: Iterable[int], *, consistent: bool
) -> Flow[dict[int, ShardState]]:
    keys = {shard: writer.key(bucket, shard) for shard in shards}
    try:
        items = yield from get_items(writer.scope, limiter, list(keys.values()), consistent=consistent)
    except BatchIncomplete as error:
        raise LimiterUnavailable(
            f"The bucket of {bucket.entity!r} could not be read: the table is throttled."
        ) from error
    now = writer.now()
    return {
        shard: decode_state(item, now) for shard, item in zip(keys, items, strict=True) if item is not None
    }


def _rebalance(
    writer: BucketWriter, bucket: CachedBucket, shard: int, state: ShardState, charge: Charge
) -> Flow[None]:
    """Split a shard that is written too often, merge one that is written seldom."""
    sample = bucket.samples.get(shard)
    if sample is None or state.writes < sample.writes:
        bucket.samples[shard] = RateSample(state.seen, state.writes)
        return
    passed = state.seen - sample.at
    if passed < _SPLIT_MICROSECONDS or writer.shard_above is None:
        return
    written = (state.writes - sample.writes) * MICROSECONDS
    try:
        if written > writer.shard_above * passed:
            bucket.samples[shard] = RateSample(state.seen, state.writes)
            may_split = state.level < writer.highest_level and charge.rules.splits
            if may_split and _has_headroom(charge, state.level + 1):
                yield from split(writer, bucket, shard, state)
        elif passed >= (_MERGE_MICROSECONDS if state.level else _SPLIT_MICROSECONDS):
            bucket.samples[shard] = RateSample(state.seen, state.writes)
            if state.level and written * _MERGE_FACTOR < writer.shard_above * passed:
                yield from merge(writer, bucket, shard, state)
    except SolotableError:
        # Another process was first, or the table is busy. The charge is done; a later one tries again.
        bucket.forget(shard)


def split(writer: BucketWriter, bucket: CachedBucket, shard: int, state: ShardState) -> Flow[None]:
    """Make two shards of one, in one transaction."""
    rules, now, level = state.rules, writer.now(), state.level + 1
    half = shard | 1 << state.level
    used = {
        name: max(state.used[name], meter.full(now)) + meter.depth // _SPLIT_SLACK
        for name, meter in rules.meters.items()
    }
    past = {f"used_{name}": amount for name, amount in state.used.items() if name not in used}
    terms = [equals("level", state.level), equals("rules", state.text)]
    terms += [equals(name, amount) for name, amount in past.items()]
    terms += [at_most(f"used_{name}", amount) for name, amount in used.items()]
    update = FlatUpdate().set("level", level).set("at", now).add("writes", 1).remove("expires")
    content: dict[str, str | int] = {
        limiter.internal_tag: Bucket.plan().tag,
        "namespace": writer.scope.tenant or "",
        "entity": bucket.entity,
        "resource": bucket.resource,
        "shard": half,
        "level": level,
        "rules": state.text,
        "revision": state.revision,
        "at": now,
        "writes": 0,
        **{f"used_{name}": amount for name, amount in used.items()},
        **past,
        **({"past": state.past} if past else {}),
    }
    item: Item = {
        **writer.key(bucket, half),
        **{name: encode_value(value) for name, value in content.items()},
    }
    yield TransactWriteItems(
        actions=(
            UpdateItem(
                table=writer.table,
                key=writer.key(bucket, shard),
                update=update.build(),
                condition=all_of(*terms),
            ),
            PutItem(table=writer.table, item=item, condition=missing(limiter.partition.name)),
        )
    )
    bucket.store(shard, replace(state, level=level))
    bucket.store(half, decode_state(item, now))


def merge(writer: BucketWriter, bucket: CachedBucket, shard: int, state: ShardState) -> Flow[None]:
    """Make one shard of two halves, in one transaction, if neither was written since it was read."""
    top = 1 << (state.level - 1)
    pair = yield from _read(writer, bucket, (shard & ~top, shard | top), consistent=True)
    low, high = pair.get(shard & ~top), pair.get(shard | top)
    if low is None or high is None or not low.level == high.level == state.level or low.text != high.text:
        return
    rules, now, level = low.rules, writer.now(), low.level - 1
    if low.is_ahead(now) or high.is_ahead(now):
        return
    update = FlatUpdate().set("level", level).set("at", now).add("writes", 1)
    # Former limits that only the other half has are dropped with it.
    used = {name: max(amount, high.used.get(name, amount)) for name, amount in low.used.items()}
    for name, meter in rules.meters.items():
        full = meter.full(now)
        used[name] = -(-(max(low.used[name], full) + max(high.used[name], full)) // 2)
    # A writer that got no response from the half that goes asks the one that stays.
    live = live_lanes(high.lanes, now)
    lanes = {name: number for name, number in live.items() if number > low.lanes.get(name, 0)}
    for name, value in {**{f"used_{name}": amount for name, amount in used.items()}, **lanes}.items():
        update.set(name, value)
    merged = replace(low, level=level, used=used, seen=now, lanes={**low.lanes, **lanes})
    if level == 0:
        update.set("expires", merged.expires(now, used))
    yield TransactWriteItems(
        actions=(
            UpdateItem(
                table=writer.table,
                key=writer.key(bucket, shard & ~top),
                update=update.build(),
                condition=_is_unchanged(low),
            ),
            DeleteItem(
                table=writer.table, key=writer.key(bucket, shard | top), condition=_is_unchanged(high)
            ),
        )
    )
    bucket.forget(shard | top)
    bucket.store(shard & ~top, merged)
    bucket.depth = max((each.level for each in bucket.shards.values()), default=0)


def _is_unchanged(state: ShardState) -> Condition:
    used = (equals(f"used_{name}", amount) for name, amount in state.used.items())
    return all_of(equals("level", state.level), equals("rules", state.text), *used)
