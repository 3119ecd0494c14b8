"""What a process remembers of buckets, so that one write is enough. It is never required to be right.

A lane is a write slot: one of seventeen attributes of a bucket's item. It holds the number of the last write
in it, which is the writer's time and six digits of the writer. A write that was sent twice, because the first
response was lost, finds its own number and is applied once (C1.5).

A writer keeps to its lane, and requires its own last number in it, so that even a late copy is refused. It
takes a free lane, or one without a write for two minutes. If fifteen writes have a lane, all others share the
sixteenth, where a number may be overwritten before a lost response is noticed. Then the writer takes the side
that admits less: it sends a charge again, and does not give back again. Writes that give back share another
one, whose numbers only rise: a copy of such a write that arrives late would admit more.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from solotable.flow import Item
from solotable.fork_safe import new_lock

from .bucket import LANES, RETURNS_LANE, TOLERATED_SKEW, ShardState

if TYPE_CHECKING:
    from .repeated_charge import RepeatedCharge

#: The digits of a lane's number that tell its writer.
_WRITERS = 10**6
_SHARED_LANE = LANES[-1]
#: A lane without a write for so long has none in flight.
_LANE_MICROSECONDS = 120_000_000


@dataclass(slots=True)
class RateSample:
    """The time and the number of writes from which a shard's write rate is measured."""

    at: int
    writes: int
    level: int
    #: What this process sent since then: writes that were applied, and writes whose condition failed.
    applied: int = 0
    failed: int = 0

    def rate(self, writes: int) -> int:
        """Return the writes of all processes since then, also those that failed.

        The item counts those that were applied. The others are as many for each of them as in this process.
        """
        applied = writes - self.writes
        return applied + self.failed * max(applied, self.applied, 1) // max(self.applied, 1)


class Sighting(NamedTuple):
    """When this process last saw a shard, by its own clock, and `moved` of the item at that time."""

    at: int
    moved: int
    #: How often the machine's clock had been set.
    leaps: int


class CachedBucket:
    """One bucket as this process last saw it, and this process's lanes in it."""

    __slots__ = (
        "__weakref__",
        "_busy",
        "_cache",
        "_lane",
        "depth",
        "entity",
        "keys",
        "numbers",
        "read_at",
        "repeated",
        "resource",
        "samples",
        "shards",
        "sightings",
        "unconfirmed",
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
        #: The number in each lane of a shard after this process's last write in it.
        self.numbers: dict[tuple[int, str], int] = {}
        self.sightings: dict[int, Sighting] = {}
        #: By lane, the time of a write without a response yet, and `moved` that it requires.
        self.unconfirmed: dict[int, tuple[int, int]] = {}
        #: The last acquire, for one that repeats it.
        self.repeated: RepeatedCharge | None = None
        #: The highest level seen: the number of bits that choose a shard.
        self.depth = 0
        #: Lanes with a write in flight, and the last one that was taken.
        self._busy: set[str] = set()
        self._lane = cache.first_lane

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
        self.sightings.pop(shard, None)
        for name in LANES:
            self.numbers.pop((shard, name), None)
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
            lane = Lane(cache, self._lane, cache.next_number(now))
            lanes = next(iter(self.shards.values())).lanes if self.shards else {}
            if lane.shared or lane.name in self._busy or lane.is_foreign(lanes.get(lane.name, 0)):
                self._choose(lane, lanes)
            self._busy.add(lane.name)
            return lane

    def change_lane(self, lane: Lane, state: ShardState) -> None:
        """Give a write another lane: the item shows that a different writer uses this one."""
        with self._cache.lock:
            self._busy.discard(lane.name)
            self._choose(lane, state.lanes)
            self._busy.add(lane.name)
            lane.lost = False

    def _choose(self, lane: Lane, lanes: Mapping[str, int]) -> None:
        """Choose a lane of this process, or one that is free or quiet, or else the shared one."""
        first = LANES.index(self._cache.first_lane)
        quiet = lane.number - _LANE_MICROSECONDS * _WRITERS
        for name in LANES[first:-1] + LANES[:first]:
            written = lanes.get(name, 0)
            if name not in self._busy and (written < quiet or not lane.is_foreign(written)):
                lane.name = name
                break
        else:
            lane.name = _SHARED_LANE
        self._lane = lane.name

    def free_lane(self, lane: Lane) -> None:
        """Make a lane available to the next write."""
        with self._cache.lock:
            self._busy.discard(lane.name)
        self.confirm(lane)

    def send(self, lane: Lane, now: int, moved: int) -> None:
        """Note that a write is sent, as of a time."""
        self.unconfirmed[id(lane)] = now, moved

    def confirm(self, lane: Lane) -> None:
        """Note that the outcome of a write is known."""
        self.unconfirmed.pop(id(lane), None)

    def may_be_ahead(self, lane: Lane | None, moved: int) -> bool:
        """Return whether the outcome of another write may show that this process's clock is ahead.

        It was sent as of a time far after the bucket was moved back. If it was applied before that, the clock
        is ahead; otherwise it fails.
        """
        return any(
            known < moved and then > moved + TOLERATED_SKEW
            for other, (then, known) in list(self.unconfirmed.items())
            if other != id(lane)
        )


@dataclass(slots=True)
class Lane:
    """A lane that is in use, and the number of the write in it."""

    cache: LocalCache
    name: str
    number: int
    #: The number in the item before the write: 0 if it has none, None if the item is unknown.
    before: int | None = None
    #: How often other writers preceded the write.
    attempt: int = 0
    #: Whether the response to any write in it was lost.
    lost: bool = False

    @property
    def shared(self) -> bool:
        """Whether other writers use it too."""
        return self.name in (_SHARED_LANE, RETURNS_LANE)

    def use_for_returns(self) -> None:
        """Use it for a write that gives back: a shared one with numbers that only rise."""
        if self.name == _SHARED_LANE:
            self.name = RETURNS_LANE

    def renumber(self, above: int) -> None:
        """Take a number above the one in the item: this process's clock went back, or is behind."""
        with self.cache.lock:
            self.number = self.cache.next_number(above // _WRITERS + 1)

    def is_foreign(self, written: int) -> bool:
        """Return whether a number is another writer's."""
        return written != 0 and written % _WRITERS != self.number % _WRITERS


class LocalCache:
    """The buckets that this process remembers; beyond `max_size` the oldest are evicted."""

    def __init__(self, *, max_size: int = 50_000) -> None:
        self.lock = new_lock()
        self._max_size = max_size
        self._buckets: dict[tuple[str, str], CachedBucket] = {}
        #: Also evicted buckets that a lease still refers to: only they know which lanes are in use.
        self._referenced: WeakValueDictionary[tuple[str, str], CachedBucket] = WeakValueDictionary()
        self._process = self._writer = self._number = 0
        #: Draws the digits of this writer.
        self.random_below: Callable[[int], int] = secrets.randbelow
        #: Where this process looks for a free lane first: not where others do.
        self.first_lane = secrets.choice(LANES[:-1])

    def find(self, entity: str, resource: str) -> CachedBucket | None:
        """Return what is remembered of a bucket, None if nothing is."""
        return self._buckets.get((entity, resource))

    def bucket(self, entity: str, resource: str) -> CachedBucket:
        """Return what is remembered of a bucket, which is remembered from now on."""
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

    def next_number(self, least: int) -> int:
        """Return the number of the next write: above all before, and at least that of the given time."""
        if self._process != os.getpid():
            # A forked child has a copy of this cache and is another writer.
            self._process = os.getpid()
            self._writer = self.random_below(_WRITERS)
        self._number = max(self._number + 1, least)
        return self._number * _WRITERS + self._writer
