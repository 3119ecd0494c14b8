"""What every charge needs: the table, the time, and what this process remembers of buckets."""

from __future__ import annotations

from dataclasses import dataclass, field

from solotable.flow import Item, Scope, key_of
from solotable.systems.limiter.admin.limits import MICROSECONDS
from solotable.systems.limiter.table import limiter

from .bucket import Bucket
from .local_cache import CachedBucket, LocalCache


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWriter:
    """What every charge needs: the scope, and what this process remembers of buckets."""

    scope: Scope
    cache: LocalCache
    #: The microseconds for which a refusal is repeated without a request.
    refusal_microseconds: int
    #: Writes per second above which a shard is split; None: never.
    shard_above: int | None
    #: How many times a bucket may be split.
    highest_level: int
    table: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", self.scope.table(limiter))

    def now(self) -> int:
        """Return the time in microseconds."""
        return int(self.scope.clock() * MICROSECONDS)

    def key(self, bucket: CachedBucket, shard: int) -> Item:
        """Return the key of a shard's item."""
        found = bucket.keys.get(shard)
        if found is None:
            found = bucket.keys[shard] = key_of(
                self.scope, Bucket, entity=bucket.entity, resource=bucket.resource, shard=shard
            )
        return found
