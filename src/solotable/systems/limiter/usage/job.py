"""The job that counts usage: from the change feed to the rows, all namespaces at once.

It may be killed at any moment and started again, or run twice at the same time: what is written once is said
in `booking`. The feed's own checkpoints only say where to begin. Nothing here is in the way of an acquire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from solotable._flows.feed.feed import Feed
from solotable._flows.feed.streams import Record
from solotable._flows.retry import Flow, Sleep
from solotable._flows.scope import Scope
from solotable._store import AdminStore, AsyncAdminStore, AsyncDatabase, Database
from solotable._store.runner import arun, run
from solotable.errors import FeedTrimmed
from solotable.systems.limiter.table import limiter

from .deltas import is_consumption
from .ledger import AggregateResult, StreamShard, book

#: Records that are folded together, over pages: the more, the fewer writes of rows.
_MOST_RECORDS = 5_000
_POLL_SECONDS = 1.0

Progress = Callable[[AggregateResult], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _AggregateOptions:
    consumer: str
    follow: bool
    poll_seconds: float
    recover: bool
    progress: Progress | None


def aggregate(
    db: Database | AdminStore,
    *,
    consumer: str = "usage",
    follow: bool = False,
    poll_seconds: float = _POLL_SECONDS,
    recover: bool = False,
    progress: Progress | None = None,
) -> AggregateResult:
    """Count every consumption that was not counted yet, and return how much that was.

    `follow` waits for more. After a FeedTrimmed, `recover` goes on with what the stream still has: what
    it has dropped stays uncounted.
    """
    settings = _AggregateOptions(
        consumer=consumer, follow=follow, poll_seconds=poll_seconds, recover=recover, progress=progress
    )
    return run(_aggregating(db.scope.of_admin(), settings), db.engine)


async def aggregate_async(
    db: AsyncDatabase | AsyncAdminStore,
    *,
    consumer: str = "usage",
    follow: bool = False,
    poll_seconds: float = _POLL_SECONDS,
    recover: bool = False,
    progress: Progress | None = None,
) -> AggregateResult:
    """Count every consumption that was not counted yet; as `aggregate`, awaited."""
    settings = _AggregateOptions(
        consumer=consumer, follow=follow, poll_seconds=poll_seconds, recover=recover, progress=progress
    )
    return await arun(_aggregating(db.scope.of_admin(), settings), db.engine)


def _aggregating(scope: Scope, settings: _AggregateOptions) -> Flow[AggregateResult]:
    feed = Feed(scope, [limiter], _consumptions, consumer=settings.consumer, restart=settings.recover)
    done = AggregateResult()
    while True:
        try:
            at_end, pending = yield from _gathered(feed)
        except FeedTrimmed as lost:
            raise FeedTrimmed(
                f"{lost} The counting of usage goes on with recover=True; the usage between is not known.",
                consumer=lost.consumer,
                since=lost.since,
            ) from lost
        for place, records in pending.items():
            done += yield from book(scope, place, records)
        if pending:
            yield from feed.commit()
            if settings.progress is not None:
                settings.progress(done)
        if at_end and not settings.follow:
            return done
        if at_end:
            yield Sleep(settings.poll_seconds)


def _gathered(feed: Feed[Record]) -> Flow[tuple[bool, dict[StreamShard, list[Record]]]]:
    """Read on; return whether that is all there is now, and the records by their shards."""
    found: dict[str, list[Record]] = {}
    count, at_end = 0, False
    while count < _MOST_RECORDS and not at_end:
        at_end = not (yield from feed.fill())
        while (record := feed.take()) is not None:
            found.setdefault(record.shard, []).append(record)
            count += 1
    streams = {mark.shard: mark.stream for mark in feed.checkpoint.shards}
    return at_end, {StreamShard(streams[shard], shard): records for shard, records in found.items()}


def _consumptions(record: Record) -> Iterator[Record]:
    # What the job itself writes is in the stream too, and must not make it write again.
    if is_consumption(record):
        yield record
