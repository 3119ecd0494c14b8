"""The job that counts usage: from the stream to the rows, all namespaces at once.

It may be killed at any time and started again, or run twice at the same time: `ledger` counts each record
once. The feed's own checkpoints only say where to begin. No acquire waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypedDict, Unpack

from solotable import AdminStore, AsyncAdminStore, AsyncDatabase, Database
from solotable.errors import FeedTrimmed
from solotable.flow import Flow, Scope, Sleep, arun, run, scope_of
from solotable.flow.feed import Feed, Record
from solotable.systems.limiter.table import limiter

from .deltas import is_consumption
from .ledger import AggregateResult, StreamShard, write_usage

#: Records that are added up together, over pages: the more, the fewer writes of rows.
_MOST_RECORDS = 5_000

Progress = Callable[[AggregateResult], None]


class AggregateOptions(TypedDict, total=False):
    """The options of `aggregate`."""

    consumer: str
    follow: bool
    poll_seconds: float
    recover: bool
    progress: Progress | None


def aggregate(db: Database | AdminStore, **options: Unpack[AggregateOptions]) -> AggregateResult:
    """Count all consumption that was not counted yet, and return how much that was.

    `follow` waits for more. After a FeedTrimmed, `recover` continues with what the stream still has: what
    it has dropped stays uncounted.
    """
    return run(_aggregate(scope_of(db).of_admin(), **options), db)


async def aggregate_async(
    db: AsyncDatabase | AsyncAdminStore, **options: Unpack[AggregateOptions]
) -> AggregateResult:
    """Count all consumption that was not counted yet; `aggregate` for asyncio."""
    return await arun(_aggregate(scope_of(db).of_admin(), **options), db)


def _aggregate(
    scope: Scope,
    *,
    consumer: str = "usage",
    follow: bool = False,
    poll_seconds: float = 1.0,
    recover: bool = False,
    progress: Progress | None = None,
) -> Flow[AggregateResult]:
    feed = Feed(scope, [limiter], _consumptions, consumer=consumer, restart=recover)
    done = AggregateResult()
    while True:
        try:
            at_end, pending = yield from _read(feed)
        except FeedTrimmed as lost:
            raise FeedTrimmed(
                f"{lost} Continue counting with recover=True; the usage in between is not known.",
                consumer=lost.consumer,
                since=lost.since,
            ) from lost
        for shard, records in pending.items():
            done += yield from write_usage(scope, shard, records)
        if pending:
            yield from feed.commit()
            if progress is not None:
                progress(done)
        if at_end and not follow:
            return done
        if at_end:
            yield Sleep(poll_seconds)


def _read(feed: Feed[Record]) -> Flow[tuple[bool, dict[StreamShard, list[Record]]]]:
    """Read the next records; return whether these are all for now, and the records by shard."""
    found: dict[str, list[Record]] = {}
    count, at_end = 0, False
    while count < _MOST_RECORDS and not at_end:
        at_end = not (yield from feed.fill())
        while (record := feed.take()) is not None:
            found.setdefault(record.shard, []).append(record)
            count += 1
    streams = {each.shard: each.stream for each in feed.checkpoint.shards}
    return at_end, {StreamShard(streams[shard], shard): records for shard, records in found.items()}


def _consumptions(record: Record) -> Iterator[Record]:
    # The stream also has what the job itself writes, which must not make it write again.
    if is_consumption(record):
        yield record
