"""Buckets as they change, for dashboards: one reader of the change feed, however many look on.

Reading begins with the first onlooker and ends with the last. Everybody gets the changes of one namespace.
Who is too slow is sent away instead of being waited for, and so are all when the feed breaks: a dashboard
connects again and asks for what there is now. Nothing is kept for it meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from solotable import AsyncDatabase, Changed
from solotable._store.handles.changes import AsyncChanges
from solotable.errors import SolotableError
from solotable.systems.limiter.admin.limits import MICROSECONDS, MILLI, in_tokens
from solotable.systems.limiter.buckets.bucket import Bucket
from solotable.systems.limiter.buckets.token_bucket import rules_from

log = logging.getLogger("solotable.limiter")

#: An event, or None: it is over.
Queue = asyncio.Queue["str | None"]
_MOST_WAITING = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """How a stream of events is kept alive, and when it ends."""

    heartbeat_seconds: float = 15.0
    most_seconds: float = 600.0


class BucketFeed:
    """Reads the changes of buckets while somebody looks on."""

    def __init__(self, db: AsyncDatabase, *, poll_seconds: float = 0.5) -> None:
        self._db = db
        self._poll_seconds = poll_seconds
        self._queues: dict[str, set[Queue]] = {}
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def looking(self, namespace: str) -> AsyncIterator[Queue]:
        """Give a queue that every change of the namespace from now on goes into."""
        queue: Queue = asyncio.Queue(_MOST_WAITING)
        async with self._lock:
            if self._task is None or self._task.done():
                changes = self._db.changes(Bucket, since="latest", unknown="skip")
                async for _ in changes:
                    pass  # it stands at the end now
                self._task = asyncio.create_task(self._read(changes))
                self._task.add_done_callback(self._ended)
            self._queues.setdefault(namespace, set()).add(queue)
        try:
            yield queue
        finally:
            # It is gone already where all who looked on were too slow, or had left.
            onlookers = self._queues.get(namespace, set())
            onlookers.discard(queue)
            if not onlookers:
                self._queues.pop(namespace, None)
            if not self._queues:
                self._stop()

    def close(self) -> None:
        """Stop reading, and send everybody away."""
        self._stop()
        self._dismiss()

    def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def _read(self, changes: AsyncChanges[Changed[Bucket]]) -> None:
        while True:
            async for change in changes:
                self._tell(change)
            await asyncio.sleep(self._poll_seconds)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            log.error("the changes of buckets cannot be read", exc_info=task.exception())
            self._dismiss()

    def _tell(self, change: Changed[Bucket]) -> None:
        onlookers = self._queues.get(change.tenant or "")
        if not onlookers or change.after is None:
            return
        try:
            event = rendered(change.after, change.sequence)
        except SolotableError as error:
            log.warning("A change of a bucket was left out: %s", error)
            return
        for queue in list(onlookers):
            if queue.full():
                onlookers.discard(queue)
                _drained(queue)
                event_or_end: str | None = None
            else:
                event_or_end = event
            queue.put_nowait(event_or_end)

    def _dismiss(self) -> None:
        for queues in self._queues.values():
            for queue in queues:
                if queue.full():
                    _drained(queue)
                queue.put_nowait(None)


def _drained(queue: Queue) -> None:
    while not queue.empty():
        queue.get_nowait()


def rendered(bucket: Bucket, sequence: str) -> str:
    """Return a bucket as a server-sent event; of a sharded one, as if all its shards were like this one."""
    limits = []
    for name, token_bucket in rules_from(bucket.rules, bucket.revision).token_buckets.items():
        used, consumed = bucket.amount(token_bucket.used), bucket.amount(token_bucket.consumed)
        if used is not None:
            limits.append(
                {
                    "limit": name,
                    "capacity": token_bucket.limit.capacity,
                    "available": token_bucket.tokens(used, bucket.at) // MILLI,
                    "consumed": in_tokens(consumed or 0),
                }
            )
    told = {
        "entity": bucket.entity,
        "resource": bucket.resource,
        "shard": bucket.shard,
        "at": bucket.at / MICROSECONDS,
        "limits": limits,
    }
    return f"event: bucket\nid: {sequence}\ndata: {json.dumps(told)}\n\n"


async def events(watch: BucketFeed, namespace: str, settings: StreamSettings) -> AsyncIterator[str]:
    """Give the events of a namespace until it is time to connect again."""
    end = time.monotonic() + settings.most_seconds
    async with watch.looking(namespace) as queue:
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
