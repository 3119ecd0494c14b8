"""Checkpoints of consumers: how far each shard of a stream was read, stored in the table.

A checkpoint never moves back. Of two workers of one consumer, the one that is behind gets the checkpoint
of the other. Sequence numbers differ in length, so an attribute of fixed width stores their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from solotable._entities.declare.table import Table
from solotable._expressions.ast import Attr, Compare, Const, Exists, Not, Or
from solotable._flows.internal_items import internal_key, internal_partition, partition_terms
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._protocol.json_codec import dumps, loads
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import DeleteItem, PutItem, Query
from solotable._values import Item
from solotable.errors import ConditionFailed, DataError

TAG = "_checkpoint"
#: DynamoDB: a sequence number has up to 40 digits.
_DIGITS = 40
_START = "START"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCheckpoint:
    """How far one shard was read: through `sequence`, and through everything before the moment `seen`."""

    stream: str
    shard: str
    #: None: nothing was read yet.
    sequence: str | None
    seen: float
    done: bool = False

    def is_behind(self, other: ShardCheckpoint) -> bool:
        """Whether another mark of the same shard is further."""
        return sequence_order(self.sequence) < sequence_order(other.sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A place in a change feed: the marks of its shards, and what was left out at its start."""

    shards: tuple[ShardCheckpoint, ...]
    #: When the feed was begun, and from which moment on it has changes; None: from the earliest on.
    begun: float
    since: float | None = None

    def render(self) -> str:
        """Return the checkpoint as text, to be kept anywhere."""
        marks = [[mark.stream, mark.shard, mark.sequence, mark.seen, mark.done] for mark in self.shards]
        return dumps([self.begun, self.since, marks]).decode()

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Read what `render` gave."""
        try:
            begun, since, marks = loads(text.encode())
            found = [
                ShardCheckpoint(stream=stream, shard=shard, sequence=sequence, seen=seen, done=done)
                for stream, shard, sequence, seen, done in marks
            ]
        except (ValueError, TypeError) as error:
            raise DataError(f"{text!r} is not a checkpoint of a change feed.") from error
        return cls(shards=tuple(found), begun=begun, since=since)


def sequence_order(sequence: str | None) -> int:
    """Return a sequence number as an int that sorts by order; None comes first."""
    return -1 if sequence is None else int(sequence)


def load_checkpoint(scope: Scope, table: Table, consumer: str) -> Flow[Checkpoint | None]:
    """Return the checkpoint of a consumer; None for one that never began."""
    begun: Item | None = None
    marks: list[ShardCheckpoint] = []
    start = None
    key = partition_terms(table, internal_partition("CHECKPOINT", consumer))
    while True:
        request = Query(table=scope.table(table), key=key, start=start, consistent=True)
        reply = yield from send(request, scope.retries)
        for item in decode_items(reply.items or ()):
            if item["shard"]["S"] == _START:
                begun = item
            else:
                marks.append(_mark(item))
        start = reply.last_key
        if not start:
            break
    if begun is not None:
        since = float(begun["since"]["N"])
        return Checkpoint(shards=tuple(marks), begun=float(begun["seen"]["N"]), since=since)
    return Checkpoint(shards=tuple(marks), begun=min(mark.seen for mark in marks)) if marks else None


def begin(scope: Scope, table: Table, consumer: str, *, since: float) -> Flow[Checkpoint]:
    """Store when a consumer began and from when on it reads; the first worker decides."""
    item = {**_item(table, consumer, _START, seen=scope.clock()), "since": {"N": repr(since)}}
    absent = Not(Exists((table.partition.name,)))
    try:
        yield from send(PutItem(table=scope.table(table), item=item, condition=absent), scope.retries)
    except ConditionFailed:
        there = yield from load_checkpoint(scope, table, consumer)
        if there is not None:
            return there
    return Checkpoint(shards=(), begun=float(item["seen"]["N"]), since=since)


def save(scope: Scope, table: Table, consumer: str, mark: ShardCheckpoint) -> Flow[ShardCheckpoint]:
    """Write a mark unless a further one is there; return the one that is there now."""
    item = _item(table, consumer, mark.shard, seen=mark.seen)
    item |= {"stream": {"S": mark.stream}, "done": {"BOOL": mark.done}}
    order = {"S": str(sequence_order(mark.sequence) + 1).zfill(_DIGITS + 1)}
    item["order"] = order
    if mark.sequence is not None:
        item["sequence"] = {"S": mark.sequence}
    behind = Or((Not(Exists((table.partition.name,))), Compare("<=", Attr(("order",)), Const(order))))
    request = PutItem(table=scope.table(table), item=item, condition=behind, returns_on_failure=True)
    try:
        yield from send(request, scope.retries)
    except ConditionFailed as refused:
        return mark if refused.item is None else _mark(refused.item)
    return mark


def forget(scope: Scope, table: Table, consumer: str, shards: Iterable[str] | None = None) -> Flow[None]:
    """Remove a consumer's marks of these shards, or all that is kept of it."""
    if shards is None:
        there = yield from load_checkpoint(scope, table, consumer)
        shards = [] if there is None else [_START, *(mark.shard for mark in there.shards)]
    for shard in shards:
        key = _key(table, consumer, shard)
        yield from send(DeleteItem(table=scope.table(table), key=key), scope.retries)


def _key(table: Table, consumer: str, shard: str) -> Item:
    return internal_key(table, internal_partition("CHECKPOINT", consumer), shard)


def _item(table: Table, consumer: str, shard: str, *, seen: float) -> Item:
    return {
        **_key(table, consumer, shard),
        table.tag: {"S": TAG},
        "shard": {"S": shard},
        "seen": {"N": repr(round(seen, 3))},
    }


def _mark(item: dict[str, Any]) -> ShardCheckpoint:
    return ShardCheckpoint(
        stream=item["stream"]["S"],
        shard=item["shard"]["S"],
        sequence=item.get("sequence", {}).get("S"),
        seen=float(item["seen"]["N"]),
        done=item["done"]["BOOL"],
    )
