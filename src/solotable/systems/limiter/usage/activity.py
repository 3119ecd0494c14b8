"""What happened in buckets lately, from their changes: tokens left, and the rate of consumption."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from solotable import Changed
from solotable.systems.limiter.admin.limits import MICROSECONDS, MILLI
from solotable.systems.limiter.buckets.bucket import Bucket
from solotable.systems.limiter.meters.rules import rules_from

#: The most buckets, and the most changes; the oldest are forgotten.
_MOST_BUCKETS = 10_000
_MOST_CHANGES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketActivity:
    """One limit of a bucket that changed lately."""

    entity: str
    resource: str
    limit: str
    capacity: int
    #: In tokens; below zero in debt.
    available: float
    #: Consumed tokens per second; what was given back counts against it.
    rate: float

    @property
    def left(self) -> float:
        """The part that is left: 1 is full."""
        return self.available / self.capacity

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON has it."""
        return {
            "entity": self.entity,
            "resource": self.resource,
            "limit": self.limit,
            "capacity": self.capacity,
            "available": self.available,
            "rate": self.rate,
        }


class Activity:
    """The last state of buckets, and their consumption in a window of time."""

    def __init__(self, window_seconds: float) -> None:
        self._window = int(window_seconds * MICROSECONDS)
        self._buckets: dict[tuple[str, str], dict[int, Bucket]] = {}
        #: The time of a change, its bucket and limit, and the consumed thousandths of a token.
        self._consumed: deque[tuple[int, tuple[str, str], str, int]] = deque(maxlen=_MOST_CHANGES)

    def add(self, change: Changed[Bucket]) -> None:
        """Note one change."""
        bucket = change.current
        key = (bucket.entity, bucket.resource)
        shards = self._buckets.pop(key, {})
        if change.after is None:
            shards.pop(bucket.shard, None)
        else:
            shards[bucket.shard] = change.after
            self._count(key, change.before, change.after)
        if shards:
            self._buckets[key] = shards  # at the end: the least active is first
        if len(self._buckets) > _MOST_BUCKETS:
            del self._buckets[next(iter(self._buckets))]

    def _count(self, key: tuple[str, str], before: Bucket | None, after: Bucket) -> None:
        for name, meter in rules_from(after.rules, after.revision).meters.items():
            earlier = 0 if before is None else before.amount(meter.consumed) or 0
            delta = (after.amount(meter.consumed) or 0) - earlier
            if delta:
                self._consumed.append((after.at, key, name, delta))

    def rows(self, now: int) -> list[BucketActivity]:
        """Return every limit of the buckets that changed in the window, at a time in microseconds."""
        since = now - self._window
        while self._consumed and self._consumed[0][0] < since:
            self._consumed.popleft()
        totals: dict[tuple[tuple[str, str], str], int] = {}
        for _, key, name, delta in self._consumed:
            totals[key, name] = totals.get((key, name), 0) + delta
        rows = []
        for key, shards in self._buckets.items():
            if max(each.at for each in shards.values()) < since:
                continue
            newest = max(shards.values(), key=lambda each: each.revision)
            for name, meter in rules_from(newest.rules, newest.revision).meters.items():
                rows.append(
                    BucketActivity(
                        entity=key[0],
                        resource=key[1],
                        limit=name,
                        capacity=meter.limit.capacity,
                        available=_available(shards, newest, name, now),
                        rate=totals.get((key, name), 0) / MILLI * MICROSECONDS / self._window,
                    )
                )
        return rows


def _available(shards: dict[int, Bucket], newest: Bucket, name: str, now: int) -> float:
    """Return the tokens of all shards; one that did not change lately counts as full."""
    meter = rules_from(newest.rules, newest.revision).meters[name]
    known = total = 0.0
    for each in shards.values():
        if each.rules == newest.rules:
            used = each.amount(meter.used)
            total += meter.tokens(meter.full(now) if used is None else used, now, each.level) / MILLI
            known += 1 / (1 << each.level)
    return total + max(0.0, 1 - known) * meter.limit.capacity
