"""What a process remembers of buckets, so that one write is enough: never needed, often right.

A lane is a writer's own attribute in a bucket's item. It holds the number of the writer's last write
there, and every write demands a lower one: a write that was sent twice, because nobody knew whether the
first had arrived, is applied once (C1.5). A process has as many lanes in a bucket as it has writes on the
way to it at once. Numbers are microseconds, so that anyone can see which lanes nobody needs any more; a
process itself knows sooner, as a write that was answered is on its way no more.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from solotable._values import Item
from solotable.fork_safe import new_lock

from .bucket import LANE, ShardState

_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#: After so many microseconds no write is on its way any more; lanes that are older go, some at a time.
_LANE_MICROSECONDS = 120_000_000
_TOLERATED_LANES = 4
_MOST_GONE = 20


@dataclass(slots=True)
class RateSample:
    """A moment to measure the rate of writes from."""

    at: int
    writes: int


class CachedBucket:
    """One bucket as this process knows it."""

    __slots__ = (
        "__weakref__",
        "_busy",
        "_cache",
        "_unsure",
        "anchors",
        "depth",
        "entity",
        "keys",
        "resource",
        "shards",
    )

    def __init__(self, cache: LocalCache, entity: str, resource: str) -> None:
        self._cache = cache
        self.entity = entity
        self.resource = resource
        self.shards: dict[int, ShardState] = {}
        self.keys: dict[int, Item] = {}
        self.anchors: dict[int, RateSample] = {}
        #: The highest level that was seen: which shards to choose among.
        self.depth = 0
        self._busy: set[int] = set()
        #: Places of lanes with a write that was not answered, and its number: it may arrive yet.
        self._unsure: dict[int, int] = {}

    def learn(self, number: int, state: ShardState) -> None:
        """Keep what a shard's item says."""
        self.shards[number] = state
        self.depth = max(self.depth, state.level) if number or state.level else 0

    def forget(self, number: int) -> None:
        """Forget a shard that is not there."""
        self.shards.pop(number, None)
        self.anchors.pop(number, None)

    def lane(self, now: int) -> Lane:
        """Take a lane for one write, however often that is sent; `leave` it afterwards."""
        cache = self._cache
        with cache.lock:
            place = 0
            while place in self._busy:
                place += 1
            self._busy.add(place)
            return Lane(self, cache, place, cache.lane_name(place), cache.number(now))

    def leave(self, lane: Lane) -> None:
        """Let others have a lane."""
        with self._cache.lock:
            if lane.lost or not lane.answered:
                self._unsure[lane.place] = lane.number
            self._busy.discard(lane.place)
            self._busy.difference_update(lane.cleared)

    def clear(self, lanes: Mapping[str, int], most: int, now: int) -> dict[int, str]:
        """Take lanes of ours, of these, that nobody is in and no write is on its way to."""
        cache = self._cache
        found: dict[int, str] = {}
        with cache.lock:
            for name in lanes:
                place = cache.place(name)
                if place is None or place in self._busy:
                    continue
                if self._unsure.get(place, 0) < now - _LANE_MICROSECONDS:
                    found[place] = name
                    self._unsure.pop(place, None)
                if len(found) == most:
                    break
            self._busy.update(found)
        return found


@dataclass(slots=True)
class Lane:
    """A lane that is taken, and the number of the write in it."""

    known: CachedBucket
    cache: LocalCache
    place: int
    name: str
    number: int
    #: Whether the last write in it was answered, and whether any was not.
    answered: bool = True
    lost: bool = False
    #: Other lanes of ours that this write takes away; nobody may use them meanwhile.
    cleared: dict[int, str] = field(default_factory=dict)

    def renumber(self, above: int) -> None:
        """Take a number above the one that was met in our own lane: our clock went back meanwhile."""
        with self.cache.lock:
            self.number = self.cache.number(above + 1)

    def stale(self, state: ShardState | None, now: int) -> list[str]:
        """Return lanes that nobody needs any more, once there are some, so that the item stays small."""
        if state is None or len(state.lanes) <= _TOLERATED_LANES:
            return []
        if not self.cleared:
            self.cleared = self.known.clear(state.lanes, _MOST_GONE, now)
        needed = fresh(state.lanes, now)
        found = {name for name in state.lanes if name not in needed and name != self.name}
        return sorted(found.union(self.cleared.values()))[:_MOST_GONE]


def fresh(lanes: Mapping[str, int], now: int) -> dict[str, int]:
    """Return the lanes in which a write may still be on its way."""
    oldest = now - _LANE_MICROSECONDS
    return {name: number for name, number in lanes.items() if number >= oldest}


class LocalCache:
    """Every bucket that this process knows, up to a bound: the first that were learnt are forgotten first."""

    def __init__(self, *, most: int = 50_000) -> None:
        self.lock = new_lock()
        self._most = most
        self._known: dict[tuple[str, str], CachedBucket] = {}
        #: Also those that were forgotten while a lease had them: which lanes are taken is known there alone.
        self._held: WeakValueDictionary[tuple[str, str], CachedBucket] = WeakValueDictionary()
        self._process = 0
        self._lanes: list[str] = []
        self._number = 0

    def of(self, entity: str, resource: str) -> CachedBucket:
        """Return what is known of a bucket."""
        found = self._known.get((entity, resource))
        if found is None:
            with self.lock:
                found = self._held.get((entity, resource)) or CachedBucket(self, entity, resource)
                self._known[entity, resource] = self._held[entity, resource] = found
                while len(self._known) > self._most:
                    self._known.pop(next(iter(self._known)))
        return found

    def clear(self) -> None:
        """Forget every bucket."""
        with self.lock:
            self._known.clear()

    def lane_name(self, place: int) -> str:
        """Return the attribute of one of this process's lanes."""
        if self._process != os.getpid():
            # A fork has a copy of all this, and must not be taken for its parent.
            self._process = os.getpid()
            self._writer = "".join(secrets.choice(_LETTERS) for _ in range(6))
            self._lanes = []
        while place >= len(self._lanes):
            self._lanes.append(f"{LANE}{self._writer}{len(self._lanes)}")
        return self._lanes[place]

    def place(self, name: str) -> int | None:
        """Return the place of one of this process's lanes; None of others'."""
        ours = self._lanes[0][:-1] if self._lanes else ""
        return int(name[len(ours) :]) if ours and name.startswith(ours) else None

    def number(self, least: int) -> int:
        """Return the number of a write: higher than every one before, and not below the given one."""
        self._number = max(self._number + 1, least)
        return self._number
