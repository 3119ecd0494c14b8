"""Time to live of shards: all expire with an idle bucket, none before a shard that was split from it.

A shard that does not exist was full when it expired, so it is full now. That holds only if the shard that it
was split from is still there to say that it was split: without shard 0 a bucket is whole. So a shard is kept
two hours longer for each bit that its number is shorter, and a writer of a shard extends the expiry of those
that it was split from. It does so about once an hour.
"""

from __future__ import annotations

from solotable.errors import ConditionFailed
from solotable.flow import Flow, decode_item
from solotable.flow.conditions import all_of, any_of, at_least, less_than, missing
from solotable.flow.requests import UpdateItem
from solotable.systems.limiter.admin.limits import MICROSECONDS
from solotable.systems.limiter.buckets.bucket import SHARD_GRACE_SECONDS, ShardState
from solotable.systems.limiter.buckets.local_cache import CachedBucket
from solotable.systems.limiter.buckets.writer import BucketWriter
from solotable.systems.limiter.buckets.writes.flat_update import FlatUpdate

from .tree import parent_of

#: How much longer than a shard those that it was split from exist at least.
_MARGIN_SECONDS = SHARD_GRACE_SECONDS // 2


def extend_ancestors(writer: BucketWriter, bucket: CachedBucket, shard: int) -> Flow[bool]:
    """Keep the shards that this one was split from for longer than it; False if one of them is gone."""
    while shard:
        ancestor, state = parent_of(shard), bucket.shards.get(shard)
        known = bucket.shards.get(ancestor)
        until = max(writer.now() // MICROSECONDS, 0 if state is None else state.expires_at)
        if known is None or known.level < shard.bit_length() or known.expires_at < until + _MARGIN_SECONDS:
            known = yield from _extend(writer, bucket, ancestor, shard, until + SHARD_GRACE_SECONDS)
            if known is None or known.level < shard.bit_length():
                return False
        shard = ancestor
    return True


def _extend(
    writer: BucketWriter, bucket: CachedBucket, ancestor: int, shard: int, until: int
) -> Flow[ShardState | None]:
    request = UpdateItem(
        table=writer.table,
        key=writer.key(bucket, ancestor),
        update=FlatUpdate().set("expires", until).build(),
        condition=all_of(
            at_least("level", shard.bit_length()), any_of(missing("expires"), less_than("expires", until))
        ),
        returns="ALL_NEW",
        returns_on_failure=True,
    )
    try:
        item = decode_item((yield request).attributes)
    except ConditionFailed as failed:
        if failed.item is None:
            bucket.forget(ancestor)
            return None
        item = failed.item
    state = writer.observe(bucket, ancestor, item, writer.now())
    bucket.store(ancestor, state)
    return state
