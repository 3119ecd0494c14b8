"""Extend or end the holds of a lease in one write, whatever limits the item has.

A write requires each hold as it was read. So it is applied once, however often it is sent, and needs no lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from solotable.errors import ConditionFailed, ServiceError, TransportError
from solotable.flow import Flow, decode_item
from solotable.flow.conditions import all_of, equals
from solotable.flow.requests import UpdateItem
from solotable.systems.limiter.buckets.bucket import ShardState
from solotable.systems.limiter.buckets.charge import wait_after
from solotable.systems.limiter.buckets.local_cache import CachedBucket
from solotable.systems.limiter.buckets.writer import BucketWriter
from solotable.systems.limiter.buckets.writes.flat_update import FlatUpdate
from solotable.systems.limiter.errors import LimiterUnavailable
from solotable.systems.limiter.meters.concurrency import Concurrency, Hold, holds_of

from .read import read_some

#: Other writers change a hold only by extending it or by ending it.
_ATTEMPTS = 10


def extend_holds(
    writer: BucketWriter, bucket: CachedBucket, shard: int, hold: str, names: Iterable[str]
) -> Flow[int | None]:
    """Hold tokens for their whole time from now; return when the first expires, None if one has ended."""
    expires: list[int] = []

    def extend(update: FlatUpdate, meter: Concurrency, found: Hold) -> None:
        extended = meter.hold(hold, found.amount, writer.now())
        expires.append(extended.expires)
        update.set(*extended)

    done = yield from _change(writer, bucket, shard, hold, set(names), extend)
    return min(expires) if done and expires else None


def end_past_holds(
    writer: BucketWriter, bucket: CachedBucket, shard: int, hold: str, given: Mapping[str, int]
) -> Flow[None]:
    """Free what a lease holds of limits that the item does not have now, and may have again.

    `given` is what the lease gives back by limit. A part of a hold is given back at its end.
    """

    def end(update: FlatUpdate, meter: Concurrency, found: Hold) -> None:
        if given[meter.limit.name] >= found.amount:
            update.add(meter.used, -found.amount).remove(found.attribute)

    yield from _change(writer, bucket, shard, hold, set(given), end)


def _change(
    writer: BucketWriter,
    bucket: CachedBucket,
    shard: int,
    hold: str,
    names: set[str],
    change: Callable[[FlatUpdate, Concurrency, Hold], None],
) -> Flow[bool]:
    """Change the holds of some limits; return False if one of them is gone."""
    started, failures = writer.now(), 0
    for _ in range(_ATTEMPTS):
        if not _found(bucket.shards.get(shard), hold).keys() >= names:
            # What this process remembers may be older than the hold.
            bucket.shards.pop(shard, None)
            bucket.shards |= yield from read_some(writer, bucket, (shard,), consistent=True)
        found = {name: each for name, each in _found(bucket.shards.get(shard), hold).items() if name in names}
        if found.keys() != names:
            return False
        update = FlatUpdate().add("writes", 1)
        for meter, each in found.values():
            change(update, meter, each)
        try:
            reply = yield UpdateItem(
                table=writer.table,
                key=writer.key(bucket, shard),
                update=update.build(),
                condition=all_of(*(equals(*each) for _, each in found.values())),
                returns="ALL_NEW",
                returns_on_failure=True,
            )
        except ConditionFailed:
            bucket.shards.pop(shard, None)
        except (ServiceError, TransportError) as failed:
            failures += 1
            yield from wait_after(writer, bucket, shard, failed, failures, started)
        else:
            bucket.store(shard, writer.observe(bucket, shard, decode_item(reply.attributes), writer.now()))
            return True
    raise LimiterUnavailable(
        f"A lease of {bucket.entity!r} for {bucket.resource!r} changed before each of {_ATTEMPTS} writes; "
        "try again."
    )


def _found(state: ShardState | None, hold: str) -> dict[str, tuple[Concurrency, Hold]]:
    """Return what a lease holds, by limit."""
    found: dict[str, tuple[Concurrency, Hold]] = {}
    if state is None:
        return found
    for name, used in state.used.items():
        meter = state.meter(name)
        if isinstance(meter, Concurrency):
            own = next((each for each in holds_of(used) if each.attribute == meter.attribute(hold)), None)
            if own is not None:
                found[name] = meter, own
    return found
