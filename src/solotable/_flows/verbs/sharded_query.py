"""Read a key that is split into partitions: its shards at once and merged, its buckets in turn.

Rows come in the order of the sort key; those with the same one, shard by shard. So the key of one row
says where all shards are, and a cursor is as small as any other. Each shard is read a little ahead; what
is left of that is kept for the next rows of the same walk and lost with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import Any

from solotable._entities.patterns.query_partitions import QueryPartitions
from solotable._flows.retry import Flow, send_all
from solotable._flows.scope import Scope
from solotable._protocol import requests
from solotable._protocol.replies import Page as Reply
from solotable._protocol.replies import decode_items
from solotable._values import Item
from solotable.errors import CursorRejected

#: How much more than its even share is read of each shard, so that one that has more does not ask twice.
_AHEAD = 1.5
_MOST_TOGETHER = 100


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows, where they ended, and what it took."""

    rows: list[Any]
    #: The key after which to continue; None at the end.
    last_key: Item | None
    scanned: int
    #: The items that the rows were found by, in their order.
    items: Sequence[Item] = ()


@dataclass(frozen=True, slots=True)
class MergedItems:
    """Some items of several partitions in their order, where they ended, and how many were read."""

    items: list[Item]
    #: The key after which to continue; None at the end.
    last_key: Item | None
    scanned: int


class _Descending(str):
    """A text that sorts the other way round."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


@dataclass(slots=True)
class _PartitionReader:
    """One partition: what is asked of it, how far it was read, and what was read ahead."""

    number: int
    request: requests.Query
    #: The key of the last item that was read; None before the first request.
    reached: Item | None = None
    is_done: bool = False
    ahead: deque[tuple[str, Item]] = field(default_factory=deque)

    @property
    def is_hungry(self) -> bool:
        return not self.ahead and not self.is_done


class ShardedRead:
    """The partitions of a query and how far they were read, for callers that continue from there."""

    def __init__(self, lanes: QueryPartitions, request: requests.Query, key_names: Sequence[str]) -> None:
        self.lanes = lanes
        self._request = request
        self._key_names = key_names
        self._buckets = lanes.buckets if request.forward else lanes.buckets[::-1]
        self._at = 0
        self._position: Item | None = None
        self._open = self._opened(0)

    @property
    def hungry(self) -> list[_PartitionReader]:
        """The lanes of which nothing is left to merge, though there may be more of them."""
        return [lane for lane in self._open if lane.is_hungry]

    @property
    def is_through(self) -> bool:
        """Whether nothing is left of the bucket that is open."""
        return all(lane.is_done and not lane.ahead for lane in self._open)

    def requests(self) -> list[requests.Query]:
        """Return the first request of every lane."""
        lanes = (lane for number in range(len(self._buckets)) for lane in self._opened(number))
        return [lane.request for lane in lanes]

    def seek(self, start: Item | None) -> None:
        """Continue after a row; what was read ahead is kept if it follows that row."""
        if start == self._position:
            return
        assert start is not None
        text = str(start[self.lanes.partition]["S"])
        found = [(at, texts.index(text)) for at, texts in enumerate(self._buckets) if text in texts]
        if not found:
            raise CursorRejected("This cursor is of a bucket or a shard that the query no longer has.")
        self._at, number = found[0]
        self._position = start
        self._open = self._opened(self._at)
        self._open[number].request = replace(self._open[number].request, start=start)
        sort = "" if self.lanes.sort is None else str(start[self.lanes.sort]["S"])
        for lane in self._open:
            if lane.number == number:
                continue
            # Equal sort keys come shard by shard: those of the earlier shards are behind us.
            including = lane.number > number
            within = self.lanes.range_from(sort, forward=self._request.forward, including=including)
            if within is None:
                lane.is_done = True
            else:
                key = self.lanes.terms(self._buckets[self._at][lane.number], within)
                lane.request = replace(lane.request, key=key)

    def take(self, lane: _PartitionReader, reply: Reply) -> None:
        """Keep what was read of a lane."""
        lane.ahead.extend((self._sort_of(item), item) for item in decode_items(reply.items or ()))
        lane.reached = reply.last_key or None
        lane.is_done = lane.reached is None
        lane.request = replace(lane.request, start=lane.reached)

    def merged(self, most: int | None) -> list[Item]:
        """Return the items that are certain to come next, and note where they end."""
        found: list[Item] = []
        heads = [self._head(lane) for lane in self._open if lane.ahead or not lane.is_done]
        heapify(heads)
        while heads and (most is None or len(found) < most):
            *_, number = heads[0]
            lane = self._open[number]
            if not lane.ahead:
                # It may have rows from here on, which come before those of the others.
                self._position = lane.reached or self._position
                return found
            heappop(heads)
            found.append(lane.ahead.popleft()[1])
            if lane.ahead or not lane.is_done:
                heappush(heads, self._head(lane))
        if found:
            self._position = {name: found[-1][name] for name in self._key_names}
        return found

    def go_on(self) -> bool:
        """Open the next bucket; say whether there is one."""
        self._at += 1
        if self._at >= len(self._buckets):
            return False
        self._open = self._opened(self._at)
        return True

    @property
    def position(self) -> Item | None:
        """The key after which the read continues."""
        return self._position

    @property
    def is_last(self) -> bool:
        """Return whether the open bucket is the last."""
        return self._at + 1 >= len(self._buckets)

    def _opened(self, at: int) -> list[_PartitionReader]:
        texts = self._buckets[at] if at < len(self._buckets) else ()
        return [
            _PartitionReader(number, replace(self._request, key=self.lanes.terms(text)))
            for number, text in enumerate(texts)
        ]

    def _head(self, lane: _PartitionReader) -> tuple[bool, str, int]:
        if lane.ahead:
            text = lane.ahead[0][0]
        elif lane.reached is not None:
            text = self._sort_of(lane.reached)
        else:
            return False, "", lane.number
        return True, text if self._request.forward else _Descending(text), lane.number

    def _sort_of(self, item: Item) -> str:
        return "" if self.lanes.sort is None else str(item[self.lanes.sort]["S"])


def gather(scope: Scope, walk: ShardedRead, start: Item | None, limit: int | None) -> Flow[MergedItems]:
    """Return the next items of a walk: up to `limit`, or as many as the first replies make certain.

    Comes back without items only at the end, or once `limit` items were read in vain.
    """
    walk.seek(start)
    scanned = 0
    found = walk.merged(limit)
    while not found:
        # At the end of a bucket no row marks the position, so the read continues to the next row.
        if walk.is_through:
            if not walk.go_on():
                return MergedItems([], None, scanned)
        elif limit is not None and scanned >= limit:
            return MergedItems([], walk.position, scanned)
        hungry = walk.hungry
        share = None if limit is None else min(limit, int(limit * _AHEAD / len(hungry)) + 1)
        asked = [replace(lane.request, limit=share) for lane in hungry]
        replies: list[Reply] = yield from send_all(asked, scope.retries)
        for lane, reply in zip(hungry, replies, strict=True):
            scanned += reply.scanned
            walk.take(lane, reply)
        found = walk.merged(limit)
    at_end = walk.is_through and walk.is_last
    return MergedItems(found, None if at_end else walk.position, scanned)


def tally(scope: Scope, counting: Sequence[requests.Query]) -> Flow[int]:
    """Return the sum of what requests count, each to its end."""
    total = 0
    left = list(counting)
    while left:
        asked, left = left[:_MOST_TOGETHER], left[_MOST_TOGETHER:]
        replies: list[Reply] = yield from send_all(asked, scope.retries)
        for request, reply in zip(asked, replies, strict=True):
            total += reply.count
            if reply.last_key:
                left.append(replace(request, start=reply.last_key))
    return total
