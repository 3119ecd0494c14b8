"""Stream bucket changes to dashboards: one reader of the change feed for all subscribers.

Reading begins with the first subscriber and ends with the last. Each gets the changes of one namespace. A
subscriber that is too slow is disconnected, and so are all when the feed fails: a dashboard connects again
and asks for the current state. Nothing is stored for it in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass

from solotable import AsyncDatabase, Changed
from solotable.errors import SolotableError
from solotable.systems.limiter.admin.limits import MICROSECONDS, MILLI, in_tokens
from solotable.systems.limiter.buckets.bucket import Bucket
from solotable.systems.limiter.meters.rules import rules_from

log = logging.getLogger("solotable.limiter")

#: Events, or None at the end.
Queue = asyncio.Queue["str | None"]
_MOST_WAITING = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """How often a stream sends a heartbeat, and when it ends."""

    heartbeat_seconds: float = 15.0
    most_seconds: float = 600.0


class BucketFeed:
    """Reads the changes of buckets while there are subscribers."""

    def __init__(self, db: AsyncDatabase, *, poll_seconds: float = 0.5) -> None:
        self._db = db
        self._poll_seconds = poll_seconds
        self._queues: dict[str, set[Queue]] = {}
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def subscribe(self, namespace: str) -> AsyncIterator[Queue]:
        """Provide a queue for every change of the namespace from now on."""
        queue: Queue = asyncio.Queue(_MOST_WAITING)
        async with self._lock:
            if self._task is None or self._task.done():
                changes = self._db.changes(Bucket, since="latest", unknown="skip")
                async for _ in changes:
                    pass  # skips to the end
                self._task = asyncio.create_task(self._read(changes))
                self._task.add_done_callback(self._stopped)
            self._queues.setdefault(namespace, set()).add(queue)
        try:
            yield queue
        finally:
            # All subscribers of the namespace may have been disconnected before.
            subscribers = self._queues.get(namespace, set())
            subscribers.discard(queue)
            if not subscribers:
                self._queues.pop(namespace, None)
            if not self._queues:
                self._stop()

    def close(self) -> None:
        """Stop reading, and disconnect all subscribers."""
        self._stop()
        self._disconnect_all()

    def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def _read(self, changes: AsyncIterable[Changed[Bucket]]) -> None:
        while True:
            async for change in changes:
                self._publish(change)
            await asyncio.sleep(self._poll_seconds)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            log.error("the changes of buckets cannot be read", exc_info=task.exception())
            self._disconnect_all()

    def _publish(self, change: Changed[Bucket]) -> None:
        subscribers = self._queues.get(change.tenant or "")
        if not subscribers or change.after is None:
            return
        try:
            event = encode_event(change.after, change.sequence)
        except SolotableError as error:
            log.warning("A change of a bucket was left out: %s", error)
            return
        for queue in list(subscribers):
            if queue.full():
                subscribers.discard(queue)
                _end(queue)
            else:
                queue.put_nowait(event)

    def _disconnect_all(self) -> None:
        for queues in self._queues.values():
            for queue in queues:
                _end(queue)


def _end(queue: Queue) -> None:
    """Put the end into a queue; the events in a full one are dropped."""
    if queue.full():
        while not queue.empty():
            queue.get_nowait()
    queue.put_nowait(None)


def encode_event(bucket: Bucket, sequence: str) -> str:
    """Return a bucket as a server-sent event; a shard as if all shards were like it."""
    limits = []
    for name, meter in rules_from(bucket.rules, bucket.revision).meters.items():
        used, consumed = bucket.used(meter), bucket.amount(meter.consumed)
        if used is not None:
            limits.append(
                {
                    "limit": name,
                    "capacity": meter.limit.capacity,
                    "available": meter.tokens(used, bucket.at) // MILLI,
                    "consumed": in_tokens(consumed or 0),
                }
            )
    data = {
        "entity": bucket.entity,
        "resource": bucket.resource,
        "shard": bucket.shard,
        "at": bucket.at / MICROSECONDS,
        "limits": limits,
    }
    return f"event: bucket\nid: {sequence}\ndata: {json.dumps(data)}\n\n"


async def stream_events(feed: BucketFeed, namespace: str, settings: StreamSettings) -> AsyncIterator[str]:
    """Yield the events of a namespace until it is time to connect again."""
    end = time.monotonic() + settings.most_seconds
    async with feed.subscribe(namespace) as queue:
        yield "retry: 2000\n\n"
        while (left := end - time.monotonic()) > 0:
            try:
                event = await asyncio.wait_for(queue.get(), min(settings.heartbeat_seconds, left))
            except TimeoutError:
                if left > settings.heartbeat_seconds:
                    yield ": alive\n\n"
                continue
            if event is None:
                return
            yield event
