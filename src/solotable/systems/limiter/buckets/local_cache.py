"""What a process remembers of buckets, so that one write is enough. It is never required to be right.

A lane is a write slot: an attribute of a bucket's item that belongs to one process. It holds the number of
the last write in it, and every write requires a lower one. So a write that was sent twice, because the first
response was lost, is applied once (C1.5). A process has as many lanes in a bucket as it has concurrent
writes. Numbers are microseconds, so every process sees which lanes are old; the owner knows sooner, because
an answered write is no longer in flight.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from solotable.flow import Item
from solotable.fork_safe import new_lock

from .bucket import LANE, ShardState

_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#: No write is in flight longer than this.
_LANE_MICROSECONDS = 120_000_000
#: An item with more lanes than this loses old ones, at most so many per write.
_TOLERATED_LANES = 4
_MOST_REMOVED = 20


@dataclass(slots=True)
class RateSample:
    """The time and the number of writes from which a shard's write rate is measured."""

    at: int
    writes: int
    level: int


class CachedBucket:
    """One bucket as this process last saw it, and this process's lanes in it."""

    __slots__ = (
        "__weakref__",
        "_busy",
        "_cache",
        "_unsure",
        "depth",
        "entity",
        "keys",
        "read_at",
        "resource",
        "samples",
        "shards",
    )

    def __init__(self, cache: LocalCache, entity: str, resource: str) -> None:
        self._cache = cache
        self.entity = entity
        self.resource = resource
        self.shards: dict[int, ShardState] = {}
        self.keys: dict[int, Item] = {}
        self.samples: dict[int, RateSample] = {}
        #: When this process last read all shards, also if there were none.
        self.read_at = 0
        #: The highest level seen: the number of bits that choose a shard.
        self.depth = 0
        self._busy: set[int] = set()
        #: Lane indexes with an unanswered write, and its number: it may still arrive.
        self._unsure: dict[int, int] = {}

    def store(self, shard: int, state: ShardState) -> None:
        """Remember the state of a shard."""
        before = self.shards.get(shard)
        self.shards[shard] = state
        if before is not None and before.level > state.level:
            self._forget_halves(shard, state.level)
        elif state.level > self.depth:
            self.depth = state.level

    def forget(self, shard: int) -> None:
        """Forget a shard that does not exist, and those that were split from it."""
        self.shards.pop(shard, None)
        self.samples.pop(shard, None)
        self._forget_halves(shard, shard.bit_length())

    def _forget_halves(self, shard: int, level: int) -> None:
        mask = (1 << level) - 1
        for other in [each for each in self.shards if each != shard and each & mask == shard]:
            del self.shards[other]
            self.samples.pop(other, None)
        self.depth = max((state.level for state in self.shards.values()), default=0)

    def take_lane(self, now: int) -> Lane:
        """Take a lane for one write, which may be sent several times; `free_lane` it afterwards."""
        cache = self._cache
        with cache.lock:
            index = 0
            while index in self._busy:
                index += 1
            self._busy.add(index)
            return Lane(self, cache, index, cache.lane_name(index), cache.next_number(now))

    def free_lane(self, lane: Lane) -> None:
        """Make a lane available to the next write."""
        with self._cache.lock:
            if lane.lost or not lane.answered:
                self._unsure[lane.index] = lane.number
            self._busy.discard(lane.index)
            self._busy.difference_update(lane.cleared)

    def claim_idle_lanes(self, lanes: Mapping[str, int], now: int) -> dict[int, str]:
        """Claim this process's idle lanes among these, for removal."""
        cache = self._cache
        found: dict[int, str] = {}
        with cache.lock:
            for name in lanes:
                index = cache.lane_index(name)
                if index is None or index in self._busy:
                    continue
                if self._unsure.get(index, 0) < now - _LANE_MICROSECONDS:
                    found[index] = name
                    self._unsure.pop(index, None)
                if len(found) == _MOST_REMOVED:
                    break
            self._busy.update(found)
        return found


@dataclass(slots=True)
class Lane:
    """A lane that is in use, and the number of the write in it."""

    bucket: CachedBucket
    cache: LocalCache
    index: int
    name: str
    number: int
    #: How often other writers preceded the write.
    attempt: int = 0
    #: Whether the last write in it was answered, and whether any was not.
    answered: bool = True
    lost: bool = False
    #: Other lanes of this process that this write removes; no other write may use them until then.
    cleared: dict[int, str] = field(default_factory=dict)

    def renumber(self, above: int) -> None:
        """Take a number above the one in the item: this process's clock went back."""
        with self.cache.lock:
            self.number = self.cache.next_number(above + 1)

    def stale(self, state: ShardState, now: int) -> list[str]:
        """Return lanes to remove, so that the item stays small."""
        if len(state.lanes) <= _TOLERATED_LANES:
            return []
        if not self.cleared:
            self.cleared = self.bucket.claim_idle_lanes(state.lanes, now)
        live = live_lanes(state.lanes, now)
        found = {name for name in state.lanes if name not in live and name != self.name}
        return sorted(found.union(self.cleared.values()))[:_MOST_REMOVED]


def live_lanes(lanes: Mapping[str, int], now: int) -> dict[str, int]:
    """Return the lanes in which a write may still be in flight."""
    oldest = now - _LANE_MICROSECONDS
    return {name: number for name, number in lanes.items() if number >= oldest}


class LocalCache:
    """The buckets that this process remembers; beyond `max_size` the oldest are evicted."""

    def __init__(self, *, max_size: int = 50_000) -> None:
        self.lock = new_lock()
        self._max_size = max_size
        self._buckets: dict[tuple[str, str], CachedBucket] = {}
        #: Also evicted buckets that a lease still refers to: only they know which lanes are in use.
        self._referenced: WeakValueDictionary[tuple[str, str], CachedBucket] = WeakValueDictionary()
        self._process = 0
        self._lane_names: list[str] = []
        self._number = 0

    def bucket(self, entity: str, resource: str) -> CachedBucket:
        """Return what is remembered of a bucket."""
        found = self._buckets.get((entity, resource))
        if found is None:
            with self.lock:
                found = self._referenced.get((entity, resource)) or CachedBucket(self, entity, resource)
                self._buckets[entity, resource] = self._referenced[entity, resource] = found
                while len(self._buckets) > self._max_size:
                    self._buckets.pop(next(iter(self._buckets)))
        return found

    def clear(self) -> None:
        """Forget every bucket."""
        with self.lock:
            self._buckets.clear()

    def lane_name(self, index: int) -> str:
        """Return the attribute name of one of this process's lanes."""
        if self._process != os.getpid():
            # A forked child has a copy of this cache and must not use its parent's lanes.
            self._process = os.getpid()
            self._writer = "".join(secrets.choice(_LETTERS) for _ in range(6))
            self._lane_names = []
        while index >= len(self._lane_names):
            self._lane_names.append(f"{LANE}{self._writer}{len(self._lane_names)}")
        return self._lane_names[index]

    def lane_index(self, name: str) -> int | None:
        """Return the index of one of this process's lanes, None for another process's."""
        prefix = self._lane_names[0][:-1] if self._lane_names else ""
        return int(name[len(prefix) :]) if prefix and name.startswith(prefix) else None

    def next_number(self, least: int) -> int:
        """Return the number of the next write: above all before, and at least the given one."""
        self._number = max(self._number + 1, least)
        return self._number
