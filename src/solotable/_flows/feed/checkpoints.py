"""Checkpoints of consumers: the position in each shard of a stream, stored in the table.

A checkpoint never moves back: if two workers share a consumer, the slower one continues from the
checkpoint of the faster one. Sequence numbers differ in length, so a padded attribute stores their order.
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
    """The position in one shard: read up to `sequence`, and up to the time `seen`."""

    stream: str
    shard: str
    #: None before the first record.
    sequence: str | None
    seen: float
    done: bool = False

    def is_behind(self, other: ShardCheckpoint) -> bool:
        """Return whether another checkpoint of the same shard is further ahead."""
        return sequence_order(self.sequence) < sequence_order(other.sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A position in a change feed: the checkpoints of its shards, and its start."""

    shards: tuple[ShardCheckpoint, ...]
    #: When the feed began, and the time of its first change; None: from the earliest change on.
    begun: float
    since: float | None = None

    def render(self) -> str:
        """Return the checkpoint as text, for storage outside the table."""
        shards = [[each.stream, each.shard, each.sequence, each.seen, each.done] for each in self.shards]
        return dumps([self.begun, self.since, shards]).decode()

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Parse the text that `render` returned."""
        try:
            begun, since, shards = loads(text.encode())
            found = [
                ShardCheckpoint(stream=stream, shard=shard, sequence=sequence, seen=seen, done=done)
                for stream, shard, sequence, seen, done in shards
            ]
        except (ValueError, TypeError) as error:
            raise DataError(f"Cannot parse {text!r} as a checkpoint; pass the text of render().") from error
        return cls(shards=tuple(found), begun=begun, since=since)


def sequence_order(sequence: str | None) -> int:
    """Return a sequence number as a sortable int; None sorts first."""
    return -1 if sequence is None else int(sequence)


def load_checkpoint(scope: Scope, table: Table, consumer: str) -> Flow[Checkpoint | None]:
    """Return the checkpoint of a consumer; None for a new consumer."""
    begun: Item | None = None
    checkpoints: list[ShardCheckpoint] = []
    start = None
    key = partition_terms(table, internal_partition("CHECKPOINT", consumer))
    while True:
        request = Query(table=scope.table(table), key=key, start=start, consistent=True)
        reply = yield from send(request, scope.retries)
        for item in decode_items(reply.items or ()):
            if item["shard"]["S"] == _START:
                begun = item
            else:
                checkpoints.append(_decode_checkpoint(item))
        start = reply.last_key
        if not start:
            break
    if begun is not None:
        since = float(begun["since"]["N"])
        return Checkpoint(shards=tuple(checkpoints), begun=float(begun["seen"]["N"]), since=since)
    return (
        Checkpoint(shards=tuple(checkpoints), begun=min(checkpoint.seen for checkpoint in checkpoints))
        if checkpoints
        else None
    )


def begin(scope: Scope, table: Table, consumer: str, *, since: float) -> Flow[Checkpoint]:
    """Store the start of a consumer and the time of its first change; the first worker wins."""
    item = {**_item(table, consumer, _START, seen=scope.clock()), "since": {"N": repr(since)}}
    absent = Not(Exists((table.partition.name,)))
    try:
        yield from send(PutItem(table=scope.table(table), item=item, condition=absent), scope.retries)
    except ConditionFailed:
        stored = yield from load_checkpoint(scope, table, consumer)
        if stored is not None:
            return stored
    return Checkpoint(shards=(), begun=float(item["seen"]["N"]), since=since)


def save(scope: Scope, table: Table, consumer: str, checkpoint: ShardCheckpoint) -> Flow[ShardCheckpoint]:
    """Store a checkpoint unless a further one is stored; return the stored one."""
    item = _item(table, consumer, checkpoint.shard, seen=checkpoint.seen)
    item |= {"stream": {"S": checkpoint.stream}, "done": {"BOOL": checkpoint.done}}
    order = {"S": str(sequence_order(checkpoint.sequence) + 1).zfill(_DIGITS + 1)}
    item["order"] = order
    if checkpoint.sequence is not None:
        item["sequence"] = {"S": checkpoint.sequence}
    behind = Or((Not(Exists((table.partition.name,))), Compare("<=", Attr(("order",)), Const(order))))
    request = PutItem(table=scope.table(table), item=item, condition=behind, returns_on_failure=True)
    try:
        yield from send(request, scope.retries)
    except ConditionFailed as error:
        return checkpoint if error.item is None else _decode_checkpoint(error.item)
    return checkpoint


def forget(scope: Scope, table: Table, consumer: str, shards: Iterable[str] | None = None) -> Flow[None]:
    """Remove a consumer's checkpoints of these shards, or everything stored for it."""
    if shards is None:
        stored = yield from load_checkpoint(scope, table, consumer)
        shards = [] if stored is None else [_START, *(each.shard for each in stored.shards)]
    for shard in shards:
        key = _key(table, consumer, shard)
        yield from send(DeleteItem(table=scope.table(table), key=key), scope.retries)


def _key(table: Table, consumer: str, shard: str) -> Item:
    return internal_key(table, internal_partition("CHECKPOINT", consumer), shard)


def _item(table: Table, consumer: str, shard: str, *, seen: float) -> Item:
    return {
        **_key(table, consumer, shard),
        table.internal_tag: {"S": TAG},
        "shard": {"S": shard},
        "seen": {"N": repr(round(seen, 3))},
    }


def _decode_checkpoint(item: dict[str, Any]) -> ShardCheckpoint:
    return ShardCheckpoint(
        stream=item["stream"]["S"],
        shard=item["shard"]["S"],
        sequence=item.get("sequence", {}).get("S"),
        seen=float(item["seen"]["N"]),
        done=item["done"]["BOOL"],
    )
