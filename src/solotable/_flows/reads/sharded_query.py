"""Read a key that is split into partitions: merge its shards, and read its buckets in turn.

Rows are ordered by the sort key; rows with equal sort keys are ordered by shard. So the key of one row
determines the position in all shards, and a cursor holds one key. Each shard is read a little ahead; the
rest is buffered for the next rows of the same read.
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

#: How much more than an even share is read of each shard, so that an uneven one needs no second request.
_AHEAD = 1.5
_MOST_TOGETHER = 100


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch of rows, the key of its end, and the number of items read."""

    rows: list[Any]
    #: The key after which to continue; None at the end.
    last_key: Item | None
    scanned: int
    #: The items that the query returned for the rows, in the same order.
    items: Sequence[Item] = ()
    #: The number of items that no entity matches, which were skipped.
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class MergedItems:
    """A batch of items of several partitions in order, the key of its end, and the number of items read."""

    items: list[Item]
    #: The key after which to continue; None at the end.
    last_key: Item | None
    scanned: int


class _Descending(str):
    """A string that sorts in descending order."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


@dataclass(slots=True)
class _PartitionReader:
    """One partition: its next request, its position, and the items read ahead."""

    number: int
    request: requests.Query
    #: The key of the last item that was read; None before the first request.
    reached: Item | None = None
    is_done: bool = False
    ahead: deque[tuple[str, Item]] = field(default_factory=deque)

    @property
    def needs_read(self) -> bool:
        return not self.ahead and not self.is_done


class ShardedRead:
    """The partitions of a query and their positions, from which the next call continues."""

    def __init__(
        self,
        partitions: QueryPartitions,
        request: requests.Query,
        key_names: Sequence[str],
        *,
        is_reversed: bool = False,
    ) -> None:
        self.partitions = partitions
        #: Whether rows with equal sort keys are ordered by shard from the last to the first.
        self._is_reversed = is_reversed
        self._request = request
        self._key_names = key_names
        self._buckets = partitions.buckets if request.forward else partitions.buckets[::-1]
        self._at = 0
        self._position: Item | None = None
        self._open = self._open_bucket(0)

    def reversed(self) -> ShardedRead:
        """Return a read of the same rows in the opposite order, from its start."""
        request = replace(self._request, forward=not self._request.forward)
        return ShardedRead(self.partitions, request, self._key_names, is_reversed=not self._is_reversed)

    @property
    def to_read(self) -> list[_PartitionReader]:
        """The readers whose buffer is empty although their partition may have more items."""
        return [reader for reader in self._open if reader.needs_read]

    @property
    def is_exhausted(self) -> bool:
        """Whether every item of the open bucket was returned."""
        return all(reader.is_done and not reader.ahead for reader in self._open)

    def requests(self) -> list[requests.Query]:
        """Return the first request of every partition."""
        readers = (reader for number in range(len(self._buckets)) for reader in self._open_bucket(number))
        return [reader.request for reader in readers]

    def seek(self, start: Item | None) -> None:
        """Continue after a row; keep the buffered items if they follow that row."""
        if start == self._position:
            return
        assert start is not None
        text = str(start[self.partitions.partition]["S"])
        found = [(at, texts.index(text)) for at, texts in enumerate(self._buckets) if text in texts]
        if not found:
            raise CursorRejected(
                "Invalid cursor: its bucket or shard is no longer part of the query; start without a cursor."
            )
        self._at, number = found[0]
        self._position = start
        self._open = self._open_bucket(self._at)
        self._open[number].request = replace(self._open[number].request, start=start)
        sort = "" if self.partitions.sort is None else str(start[self.partitions.sort]["S"])
        for reader in self._open:
            if reader.number == number:
                continue
            # Equal sort keys are ordered by shard: those of earlier shards were already returned.
            including = self._rank(reader) > self._rank(self._open[number])
            within = self.partitions.range_from(sort, forward=self._request.forward, including=including)
            if within is None:
                reader.is_done = True
            else:
                key = self.partitions.terms(self._buckets[self._at][reader.number], within)
                reader.request = replace(reader.request, key=key)

    def add_reply(self, reader: _PartitionReader, reply: Reply) -> None:
        """Buffer the items of a reply."""
        reader.ahead.extend((self._sort_of(item), item) for item in decode_items(reply.items or ()))
        reader.reached = reply.last_key or None
        reader.is_done = reader.reached is None
        reader.request = replace(reader.request, start=reader.reached)

    def pop_merged(self, most: int | None) -> list[Item]:
        """Return the items that are certain to be next in order, and move the position."""
        found: list[Item] = []
        heads = [self._head(reader) for reader in self._open if reader.ahead or not reader.is_done]
        heapify(heads)
        while heads and (most is None or len(found) < most):
            reader = self._open[abs(heads[0][2])]
            if not reader.ahead:
                # The next rows of this partition may precede the buffered rows of the others.
                self._position = reader.reached or self._position
                return found
            heappop(heads)
            found.append(reader.ahead.popleft()[1])
            if reader.ahead or not reader.is_done:
                heappush(heads, self._head(reader))
        if found:
            self._position = {name: found[-1][name] for name in self._key_names}
        return found

    def open_next_bucket(self) -> bool:
        """Open the next bucket; return False if the open one is the last."""
        self._at += 1
        if self._at >= len(self._buckets):
            return False
        self._open = self._open_bucket(self._at)
        return True

    @property
    def position(self) -> Item | None:
        """The key after which the read continues."""
        return self._position

    @property
    def is_last(self) -> bool:
        """Whether the open bucket is the last one."""
        return self._at + 1 >= len(self._buckets)

    def _open_bucket(self, at: int) -> list[_PartitionReader]:
        texts = self._buckets[at] if at < len(self._buckets) else ()
        return [
            _PartitionReader(number, replace(self._request, key=self.partitions.terms(text)))
            for number, text in enumerate(texts)
        ]

    def _head(self, reader: _PartitionReader) -> tuple[bool, str, int]:
        if reader.ahead:
            text = reader.ahead[0][0]
        elif reader.reached is not None:
            text = self._sort_of(reader.reached)
        else:
            return False, "", self._rank(reader)
        return True, text if self._request.forward else _Descending(text), self._rank(reader)

    def _rank(self, reader: _PartitionReader) -> int:
        """Return the position of a shard among equal sort keys; its absolute value is its number."""
        return -reader.number if self._is_reversed else reader.number

    def _sort_of(self, item: Item) -> str:
        return "" if self.partitions.sort is None else str(item[self.partitions.sort]["S"])


def read_merged(
    scope: Scope, sharded_read: ShardedRead, start: Item | None, limit: int | None
) -> Flow[MergedItems]:
    """Return the next items in order: up to `limit`, or as many as the first replies determine.

    The result is empty only at the end, or after `limit` items were read that the filter excludes.
    """
    sharded_read.seek(start)
    scanned = 0
    found = sharded_read.pop_merged(limit)
    while not found:
        # The end of a bucket has no row to mark the position, so read on to the next row.
        if sharded_read.is_exhausted:
            if not sharded_read.open_next_bucket():
                return MergedItems([], None, scanned)
        elif limit is not None and scanned >= limit:
            return MergedItems([], sharded_read.position, scanned)
        to_read = sharded_read.to_read
        share = None if limit is None else min(limit, int(limit * _AHEAD / len(to_read)) + 1)
        reads = [replace(reader.request, limit=share) for reader in to_read]
        replies: list[Reply] = yield from send_all(reads, scope.retries)
        for reader, reply in zip(to_read, replies, strict=True):
            scanned += reply.scanned
            sharded_read.add_reply(reader, reply)
        found = sharded_read.pop_merged(limit)
    at_end = sharded_read.is_exhausted and sharded_read.is_last
    return MergedItems(found, None if at_end else sharded_read.position, scanned)


def count_rows(scope: Scope, counts: Sequence[requests.Query]) -> Flow[int]:
    """Return the sum of COUNT requests, each continued to the end of its partition."""
    total = 0
    left = list(counts)
    while left:
        chunk, left = left[:_MOST_TOGETHER], left[_MOST_TOGETHER:]
        replies: list[Reply] = yield from send_all(chunk, scope.retries)
        for request, reply in zip(chunk, replies, strict=True):
            total += reply.count
            if reply.last_key:
                left.append(replace(request, start=reply.last_key))
    return total
