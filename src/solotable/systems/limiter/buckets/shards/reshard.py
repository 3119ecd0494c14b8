"""Split a shard in two halves and merge them: no token is lost, and none comes into being.

A half has the same `used` as the whole, and what is taken from it costs twice as much. So a split copies
`used`, whatever it is by then: one update raises the level and copies each `used_<limit>` to `half_<limit>`;
DynamoDB reads both from the item as it was. A transaction then makes the other half from these copies and
removes them. A process that dies between the two leaves the copies, and another finishes the split.

A merge sets `used` to the mean of both halves. It rounds up to a whole credit: a token has a thousand times
as many credits as its period has microseconds.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from solotable.errors import ConditionFailed, SolotableError
from solotable.flow import Flow, Item, decode_item, encode_value
from solotable.flow.conditions import Condition, all_of, any_of, equals, less_than, missing
from solotable.flow.requests import ConditionCheck, DeleteItem, PutItem, TransactWriteItems, UpdateItem
from solotable.systems.limiter.admin.limits import MICROSECONDS
from solotable.systems.limiter.buckets.bucket import Bucket, ShardState
from solotable.systems.limiter.buckets.local_cache import CachedBucket, RateSample
from solotable.systems.limiter.buckets.writer import BucketWriter
from solotable.systems.limiter.buckets.writes.charge_request import Charge
from solotable.systems.limiter.buckets.writes.flat_update import FlatUpdate
from solotable.systems.limiter.meters.meter import Meter
from solotable.systems.limiter.table import limiter

from .read import full_shard, read_shards, read_some
from .tree import new_half, parent_of

#: How long writes are counted before a split, and before a merge.
_SPLIT_MICROSECONDS = MICROSECONDS
_MERGE_MICROSECONDS = 10 * MICROSECONDS
#: A shard is merged when it is written this many times less often than what splits it.
_MERGE_FACTOR = 8
#: A shard is split only if a half holds so many times what is charged at once.
_SPLIT_HEADROOM = 8
#: The process that splits a shard has this time to finish; then others do.
_UNFINISHED_MICROSECONDS = MICROSECONDS


def has_headroom(charge: Charge, level: int) -> bool:
    """Return whether a shard of this level holds a charge many times."""
    meters = charge.rules.meters
    return all(cost * _SPLIT_HEADROOM <= meters[name].depth for name, cost in charge.costs(level).items())


def rebalance(
    writer: BucketWriter,
    bucket: CachedBucket,
    shard: int,
    state: ShardState,
    charge: Charge,
    *,
    applied: int = 0,
    failed: int = 0,
) -> Flow[None]:
    """Split a shard that is written too often, merge one that is written seldom, finish a split.

    `applied` and `failed` are the writes that this process sent. DynamoDB counts a write whose condition
    failed as any other, so a crowd that is mostly refused needs shards too.
    """
    if (sample := bucket.samples.get(shard)) is not None:
        sample.applied += applied
        sample.failed += failed
    try:
        if state.split and abs(writer.now() - state.split) > _UNFINISHED_MICROSECONDS:
            yield from finish_split(writer, bucket, shard, state)
        elif writer.shard_above is not None:
            yield from _rebalance(writer, bucket, shard, state, charge, writer.shard_above)
    except SolotableError:
        # Another process was first, or the table is busy. The charge is done; a later one tries again.
        bucket.samples.pop(shard, None)


def _rebalance(
    writer: BucketWriter,
    bucket: CachedBucket,
    shard: int,
    state: ShardState,
    charge: Charge,
    shard_above: int,
) -> Flow[None]:
    sample = bucket.samples.get(shard)
    if sample is None or state.writes < sample.writes or state.level != sample.level:
        bucket.samples[shard] = RateSample(state.seen, state.writes, state.level)
        return
    passed = state.seen - sample.at
    if passed < _SPLIT_MICROSECONDS:
        return
    written = sample.rate(state.writes) * MICROSECONDS
    if written > shard_above * passed:
        bucket.samples[shard] = RateSample(state.seen, state.writes, state.level)
        may_split = state.level < writer.highest_level and charge.rules.splits and not state.has_hold()
        if may_split and has_headroom(charge, state.level + 1):
            yield from split(writer, bucket, shard, state)
    elif passed >= (_MERGE_MICROSECONDS if state.level else _SPLIT_MICROSECONDS):
        bucket.samples[shard] = RateSample(state.seen, state.writes, state.level)
        if state.level and written * _MERGE_FACTOR < shard_above * passed:
            yield from merge(writer, bucket, shard, state)


def split(writer: BucketWriter, bucket: CachedBucket, shard: int, state: ShardState) -> Flow[None]:
    """Make two shards of one that has this level and these limits, however much was used by then."""
    now, level = writer.now(), state.level + 1
    update = FlatUpdate().set("level", level).set("split", now)
    update.set("expires", replace(state, level=level).expires(now, state.used))
    for name in state.used:
        update.copy(f"half_{name}", f"used_{name}")
    request = UpdateItem(
        table=writer.table,
        key=writer.key(bucket, shard),
        update=update.build(),
        condition=all_of(
            equals("level", state.level),
            equals("rules", state.text),
            # The limits that were removed and are not full yet.
            equals("past", state.past) if state.past else missing("past"),
            missing("split"),
        ),
        returns="ALL_NEW",
        returns_on_failure=True,
    )
    try:
        item = decode_item((yield request).attributes)
    except ConditionFailed as failed:
        if failed.item is not None:
            bucket.store(shard, writer.observe(bucket, shard, failed.item, now))
        return
    begun = writer.observe(bucket, shard, item, now)
    bucket.store(shard, begun)
    yield from finish_split(writer, bucket, shard, begun)


def finish_split(writer: BucketWriter, bucket: CachedBucket, shard: int, state: ShardState) -> Flow[None]:
    """Make the other half of a split, from what the shard says that it has."""
    now, half = writer.now(), new_half(shard, state)
    # `at` stays: it says which time the used credits belong to.
    made = replace(state, shard=half, used=state.half, writes=0, lanes={}, split=0, half={})
    item = _item(writer, bucket, made, now)
    update = FlatUpdate().add("writes", 1).remove("split")
    for name in state.half:
        update.remove(f"half_{name}")
    yield TransactWriteItems(
        actions=(
            UpdateItem(
                table=writer.table,
                key=writer.key(bucket, shard),
                update=update.build(),
                condition=all_of(equals("level", state.level), equals("split", state.split)),
            ),
            PutItem(
                table=writer.table,
                item=item,
                # An expired item is left over from an earlier tree.
                condition=any_of(missing(limiter.partition.name), less_than("expires", now // MICROSECONDS)),
            ),
        )
    )
    bucket.store(shard, replace(state, split=0, half={}))
    bucket.store(half, writer.observe(bucket, half, item, now))


def restore(writer: BucketWriter, bucket: CachedBucket, shard: int) -> Flow[None]:
    """Make a shard again that has expired: full, as long as the one that it was split from says so."""
    now, parent = writer.now(), bucket.shards[parent_of(shard)]
    item = _item(writer, bucket, full_shard(shard, parent, now), now)
    yield TransactWriteItems(
        actions=(
            ConditionCheck(
                table=writer.table,
                key=writer.key(bucket, parent.shard),
                condition=all_of(
                    equals("level", parent.level), equals("rules", parent.text), missing("split")
                ),
            ),
            PutItem(table=writer.table, item=item, condition=missing(limiter.partition.name)),
        )
    )
    bucket.store(shard, writer.observe(bucket, shard, item, now))


def repair(writer: BucketWriter, bucket: CachedBucket, shard: int) -> Flow[None]:
    """Find out what became of a shard that does not exist: merged, not yet made, or expired."""
    yield from read_shards(writer, bucket, consistent=True)
    found = bucket.shards.get(shard)
    with suppress(SolotableError):
        if found is not None and not found.expires_at and not found.writes:
            yield from restore(writer, bucket, shard)
        elif (above := bucket.shards.get(parent_of(shard))) is not None and above.split:
            yield from rebalance(writer, bucket, parent_of(shard), above, Charge(above.rules, {}))


def read_whole(writer: BucketWriter, bucket: CachedBucket) -> Flow[None]:
    """Read every shard consistently, after every split that was begun is finished."""
    yield from read_shards(writer, bucket, consistent=True)
    yield from finish_splits(writer, bucket)


def finish_splits(writer: BucketWriter, bucket: CachedBucket) -> Flow[None]:
    """Finish the splits that are known to be unfinished."""
    for shard, state in list(bucket.shards.items()):
        if state.split:
            with suppress(SolotableError):
                yield from finish_split(writer, bucket, shard, state)
            bucket.shards |= yield from read_some(
                writer, bucket, (shard, new_half(shard, state)), consistent=True
            )


def merge(writer: BucketWriter, bucket: CachedBucket, shard: int, state: ShardState) -> Flow[None]:
    """Make one shard of two halves, in one transaction, if neither was written since it was read."""
    top = 1 << (state.level - 1)
    number, other = shard & ~top, shard | top
    pair = yield from read_some(writer, bucket, (number, other), consistent=True)
    low, now = pair.get(number), writer.now()
    if low is None or low.level != state.level or low.split or low.is_ahead(now):
        return
    high = pair.get(other)
    half = full_shard(other, low, now) if high is None else high
    if half.split or half.text != low.text or half.level != low.level or half.is_ahead(now):
        return
    level = low.level - 1
    # Former limits that only the other half has are dropped with it.
    used = {name: max(amount, half.used.get(name, amount)) for name, amount in low.used.items()}
    for name, meter in low.rules.meters.items():
        used[name] = _mean(meter, low.used[name], half.used[name], now)
    # A writer that got no response from the half that goes asks the one that stays.
    lanes = {name: written for name, written in half.lanes.items() if written > low.lanes.get(name, 0)}
    moved = max(low.moved, half.moved)
    merged = replace(low, level=level, used=used, seen=now, lanes={**low.lanes, **lanes}, moved=moved)
    update = FlatUpdate().set("level", level).set("at", now).add("writes", 1)
    update.set("expires", merged.expires(now, used))
    if moved:
        update.set("moved", moved)
    for name, value in {**{f"used_{name}": amount for name, amount in used.items()}, **lanes}.items():
        update.set(name, value)
    key = writer.key(bucket, other)
    yield TransactWriteItems(
        actions=(
            UpdateItem(
                table=writer.table,
                key=writer.key(bucket, number),
                update=update.build(),
                condition=_is_unchanged(low),
            ),
            ConditionCheck(table=writer.table, key=key, condition=missing(limiter.partition.name))
            if high is None
            else DeleteItem(table=writer.table, key=key, condition=_is_unchanged(high)),
        )
    )
    bucket.forget(other)
    bucket.store(number, merged)


def _mean(meter: Meter, one: int, other: int, now: int) -> int:
    """Return `used` of the whole, from that of two halves."""
    if meter.splits:
        full = meter.full(now)
        return -(-(max(one, full) + max(other, full)) // 2)
    # The shards had another kind of limit when they were split.
    return meter.used_for((meter.credits(one, now) + meter.credits(other, now)) // 2, now)


def _is_unchanged(state: ShardState) -> Condition:
    used = (equals(f"used_{name}", amount) for name, amount in state.used.items())
    return all_of(equals("level", state.level), equals("rules", state.text), missing("split"), *used)


def _item(writer: BucketWriter, bucket: CachedBucket, state: ShardState, now: int) -> Item:
    """Return a new shard's item."""
    content: dict[str, str | int] = {
        limiter.internal_tag: Bucket.plan().tag,
        "namespace": writer.scope.tenant or "",
        "entity": bucket.entity,
        "resource": bucket.resource,
        "shard": state.shard,
        "level": state.level,
        "rules": state.text,
        "revision": state.revision,
        "at": state.at,
        "writes": 0,
        "expires": state.expires(now, state.used),
        **{f"used_{name}": amount for name, amount in state.used.items()},
        **({"past": state.past} if state.past else {}),
        **({"moved": state.moved} if state.moved else {}),
    }
    return {
        **writer.key(bucket, state.shard),
        **{name: encode_value(value) for name, value in content.items()},
    }
