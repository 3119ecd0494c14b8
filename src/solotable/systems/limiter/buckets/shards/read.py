"""Read the shards of a bucket. One that does not exist has expired, and counts as full."""

from __future__ import annotations

from collections.abc import Iterable

from solotable.errors import BatchIncomplete
from solotable.flow import Flow, get_items
from solotable.systems.limiter.buckets.bucket import ShardState
from solotable.systems.limiter.buckets.local_cache import CachedBucket
from solotable.systems.limiter.buckets.writer import BucketWriter
from solotable.systems.limiter.errors import LimiterUnavailable
from solotable.systems.limiter.table import limiter

from .tree import leaves, parent_of


def read_shards(writer: BucketWriter, bucket: CachedBucket, *, consistent: bool = False) -> Flow[None]:
    """Read every shard of a bucket; most have one, which costs one read of one item."""
    found: dict[int, ShardState] = {}
    asked: set[int] = set()
    while wanted := [shard for shard, state in leaves(found).items() if state is None and shard not in asked]:
        asked.update(wanted)
        if found:
            # The halves of the halves too, so that a bucket of any size takes about three requests.
            deepest = max(state.level for state in found.values())
            wanted = [shard for shard in range(1 << deepest) if shard not in asked or shard in wanted]
            asked.update(wanted)
        found |= yield from read_some(writer, bucket, wanted, consistent=consistent)
    tree = leaves(found)
    now = writer.now()
    # What is not part of the tree is left over from an earlier one, and expired.
    bucket.shards = {shard: state for shard, state in found.items() if shard in tree}
    for shard in sorted(shard for shard, state in tree.items() if state is None and shard):
        bucket.shards[shard] = full_shard(shard, bucket.shards[parent_of(shard)], now)
    bucket.depth = max((state.level for state in bucket.shards.values()), default=0)
    bucket.read_at = now


def full_shard(shard: int, parent: ShardState, now: int) -> ShardState:
    """Return a shard that has expired: it was full then, and is full now."""
    used = {name: meter.full(now) for name, meter in parent.rules.meters.items()}
    return ShardState(
        level=shard.bit_length(),
        text=parent.text,
        revision=parent.revision,
        used=used,
        at=now,
        writes=0,
        seen=now,
        lanes={},
        shard=shard,
    )


def read_some(
    writer: BucketWriter, bucket: CachedBucket, shards: Iterable[int], *, consistent: bool
) -> Flow[dict[int, ShardState]]:
    """Read these shards, without those that do not exist."""
    keys = {shard: writer.key(bucket, shard) for shard in shards}
    try:
        items = yield from get_items(writer.scope, limiter, list(keys.values()), consistent=consistent)
    except BatchIncomplete as error:
        raise LimiterUnavailable(
            f"The bucket of {bucket.entity!r} could not be read: the table is throttled."
        ) from error
    now = writer.now()
    return {
        shard: writer.observe(bucket, shard, item, now)
        for shard, item in zip(keys, items, strict=True)
        if item is not None
    }
