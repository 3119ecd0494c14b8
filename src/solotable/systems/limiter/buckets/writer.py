"""What every charge needs: the table, the time, and what this process remembers of buckets.

Where there is a server, its time counts. Without one, a process whose clock is more than TOLERATED_SKEW ahead
finds that other processes move its buckets back. It then takes their time as its own: otherwise each would
find the bucket full in turns, without end.

A bucket shows when it was moved back. If this process has seen it before that, and its own clock was later
then, its clock is ahead. Every item that is read is compared with the sighting before it, so the clock is
corrected before a write can use what the item shows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from solotable.flow import Item, Scope, key_of
from solotable.fork_safe import new_lock
from solotable.systems.limiter.admin.limits import MICROSECONDS
from solotable.systems.limiter.table import limiter

from .bucket import TOLERATED_SKEW, Bucket, ShardState, decode_state
from .local_cache import CachedBucket, LocalCache, Sighting

log = logging.getLogger("solotable.limiter")
#: A machine's clock that moved by more than this against its steady clock was set.
_LEAP_SECONDS = 1.0


class BucketClock:
    """The time in microseconds, with what this process has learned about its own clock."""

    __slots__ = ("_ahead", "_clock", "_drift", "_lock", "leaps", "server_offset", "steady")

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        server_offset: Callable[[], float] | None = None,
        steady: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        #: The seconds by which the server's clock is ahead.
        self.server_offset = server_offset
        #: Never goes back. A clock that a program hands in has none.
        self.steady = time.monotonic if steady is None and clock is time.time else steady
        self._drift: float | None = None
        self._lock = new_lock()
        self._ahead = 0
        #: How often the machine's clock was set: what was learned before is void.
        self.leaps = 0

    def now(self) -> int:
        """Return the time in microseconds."""
        seconds = self._clock()
        if self.steady is not None:
            drift = seconds - self.steady()
            if self._drift is None or abs(drift - self._drift) > _LEAP_SECONDS:
                self.leaps += self._drift is not None
                self._drift, self._ahead = drift, 0
        if self.server_offset is not None:
            seconds += self.server_offset()
        return int(seconds * MICROSECONDS) - self._ahead

    def past(self, then: int) -> int:
        """Return a time that this process noted, or the present if its clock was moved back since."""
        return min(then, self.now()) if self._ahead else then

    def move_back(self, seen: int, moved: int) -> None:
        """Take the time of a process that moved a bucket back after this process has seen it."""
        # Several threads may find out at once; the first one corrects the clock.
        with self._lock:
            if seen <= moved + TOLERATED_SKEW or self.now() < seen:
                # Another process is ahead, or this machine's clock went back too.
                return
            self._ahead += seen - moved
        log.warning(
            "This process's clock is ahead of another's: it read a bucket at %s, and the other moved it "
            "back to %s later. The limiter uses the earlier time from now on. Synchronise the clocks by NTP.",
            datetime.fromtimestamp(seen / MICROSECONDS, UTC).isoformat(),
            datetime.fromtimestamp(moved / MICROSECONDS, UTC).isoformat(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWriter:
    """What every charge needs: the scope, and what this process remembers of buckets."""

    scope: Scope
    cache: LocalCache
    clock: BucketClock
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
        return self.clock.now()

    def observe(
        self, bucket: CachedBucket, shard: int, item: Item, now: int, *, written: bool = False
    ) -> ShardState:
        """Decode a shard's item as of now; find out whether it was moved back since this process saw it.

        `written`: the item is the response to a write of this process, which may come late.
        """
        state, before = decode_state(item, now), bucket.sightings.get(shard)
        clock = self.clock
        if before is not None and before.moved != state.moved and before.leaps == clock.leaps:
            if before.moved < state.moved:
                clock.move_back(before.at, state.moved)
            elif written:
                # `moved` only rises: another thread has seen how the bucket was moved back after this write.
                clock.move_back(now, before.moved)
        bucket.sightings[shard] = Sighting(clock.past(now), state.moved, clock.leaps)
        return state

    def key(self, bucket: CachedBucket, shard: int) -> Item:
        """Return the key of a shard's item."""
        found = bucket.keys.get(shard)
        if found is None:
            found = bucket.keys[shard] = key_of(
                self.scope, Bucket, entity=bucket.entity, resource=bucket.resource, shard=shard
            )
        return found
