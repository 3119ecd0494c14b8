"""The purge queue: entries of deleted items, ordered by the time of their purge.

The digest of an item's key selects one of a few partitions; the sort key begins with the time from which
on the item may be purged. An entry is written and removed in the transaction of its cause, so a purge
needs no checkpoint: the remaining entries are the remaining work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from pydantic import BaseModel, ConfigDict

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.keys.parts.codecs import escape
from solotable._entities.traits.soft_delete import DELETED_AT, HELD, PURGE_AT
from solotable._expressions.ast import Attr, Compare, Const, KeyTerm
from solotable._flows.consumption import measured
from solotable._flows.internal_items import internal_key, internal_partition, partition_terms
from solotable._flows.reads.get import fetch
from solotable._flows.reads.query import FilledPage
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.traits.outbox import read_stamp
from solotable._flows.transactions.write import DerivedWrite
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import DeleteItem, PutItem, Query
from solotable._values import Item
from solotable.errors import DataError, SolotableError

TAG = "_purge"
#: The attribute that holds the entry; one attribute cannot collide with a table's key names.
_TICKET = "_ticket"
SHARDS = 8
#: Epoch seconds are padded to this width, so that their texts sort by time.
_WIDTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """One deleted item that waits for its purge."""

    #: The type tag of the entity, and its primary key.
    entity: str
    key: Item
    deleted_at: str
    purge_at: int
    #: The primary key of the entry itself; None before it is written.
    own_key: Item | None = None

    @property
    def seen(self) -> Item:
        """The attributes that identify the item that the entry was written for."""
        return {DELETED_AT: {"S": self.deleted_at}, PURGE_AT: {"N": str(self.purge_at)}}


class Deleted(BaseModel):
    """A deleted entity that waits for its purge."""

    model_config = ConfigDict(frozen=True)

    entity: str
    key: dict[str, Any]
    deleted_at: datetime
    purge_at: datetime
    #: The reason of its hold; None without a hold.
    held: str | None = None


def digest_of(plan: Plan, key: Item) -> str:
    """Return a digest of an item's key, for records that must not hold the key itself."""
    identity = repr((plan.tag, [sorted(key[name].items()) for name in plan.primary.names]))
    return blake2b(identity.encode(), digest_size=16).hexdigest()


def queue_key(plan: Plan, key: Item, purge_at: int) -> Item:
    """Return the primary key of an item's entry."""
    digest = digest_of(plan, key)
    shard = int(digest[:4], 16) % SHARDS
    return internal_key(plan.table, _partition(shard), f"{purge_at:0{_WIDTH}d}#{escape(plan.tag)}#{digest}")


def queue_put(scope: Scope, plan: Plan, entry: QueueEntry) -> DerivedWrite:
    """Return the put of a queue entry."""
    item: Item = {
        **queue_key(plan, entry.key, entry.purge_at),
        plan.table.internal_tag: {"S": TAG},
        _TICKET: {
            "M": {
                "entity": {"S": plan.tag},
                "key": {"M": entry.key},
                "deleted_at": {"S": entry.deleted_at},
                "purge_at": {"N": str(entry.purge_at)},
            }
        },
    }
    action = PutItem(table=scope.table(plan.table), item=item)
    return DerivedWrite(action=action, title=f"the purge of {plan.name}", explain=_unconditional)


def queue_delete(scope: Scope, plan: Plan, key: Item, purge_at: int) -> DerivedWrite:
    """Return the delete of a queue entry."""
    action = DeleteItem(table=scope.table(plan.table), key=queue_key(plan, key, purge_at))
    return DerivedWrite(action=action, title=f"the purge of {plan.name}", explain=_unconditional)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePart:
    """The next entries of one shard: those due until a time, of one entity or of all."""

    table: Table
    shard: int
    #: The latest purge time in epoch seconds; None: no limit.
    until: int | None = None
    entity: str | None = None
    limit: int | None = None
    #: The sort key after which to continue.
    after: str | None = None


def entries_due(scope: Scope, part: QueuePart) -> Flow[tuple[list[QueueEntry], str | None]]:
    """Return the next entries of a shard by purge time, and the sort key after which to continue."""
    table = part.table
    assert table.sort is not None
    low, high = part.after or "0", "9" * _WIDTH if part.until is None else f"{part.until:0{_WIDTH}d}"
    partition = _partition(part.shard)
    # `$` sorts after `#`, so the range includes every entry of the last second.
    within = KeyTerm(table.sort.name, "BETWEEN", ({"S": low}, {"S": high + "$"}))
    start = None if part.after is None else internal_key(table, partition, part.after)
    entity = (
        None if part.entity is None else Compare("=", Attr((_TICKET, "entity")), Const({"S": part.entity}))
    )
    request = Query(
        table=scope.table(table),
        key=(*partition_terms(table, partition), within),
        filter=entity,
        limit=part.limit,
        start=start,
        consistent=True,
    )
    reply = yield from send(request, scope.retries)
    last = None if not reply.last_key else str(reply.last_key[table.sort.name]["S"])
    # An entity of the application may use a partition with the same name.
    found = [item for item in decode_items(reply.items or ()) if item.get(table.internal_tag) == {"S": TAG}]
    names = (table.partition.name, table.sort.name)
    return [_entry(item, {name: item[name] for name in names}) for item in found], last


def count_due(scope: Scope, table: Table, until: int) -> Flow[int]:
    """Return the number of due entries, including held ones."""
    assert table.sort is not None
    total = 0
    for shard in range(SHARDS):
        due = KeyTerm(table.sort.name, "<=", ({"S": f"{until:0{_WIDTH}d}$"},))
        key = (*partition_terms(table, _partition(shard)), due)
        request = Query(table=scope.table(table), key=key, select="COUNT")
        start = None
        while True:
            reply = yield from send(replace(request, start=start), scope.retries)
            total, start = total + reply.count, reply.last_key
            if not start:
                break
    return total


@measured
def page(scope: Scope, plan: Plan, *, limit: int, cursor: str | None) -> Flow[FilledPage]:
    """Return a page of the deleted entities of a class by purge time; each page reads every shard."""
    if not scope.admin:
        raise DataError("deleted() lists the entities of all tenants; use db.admin().deleted(...).")
    if limit < 1:
        raise DataError(f"limit= must be at least 1, got {limit}.")
    table = plan.table
    assert table.sort is not None
    bound_to = repr(("deleted", table.name, plan.tag)).encode()
    after = (
        None if cursor is None else str(scope.cursor_signer.verify(cursor, bound_to)[table.sort.name]["S"])
    )
    found: list[tuple[str, QueueEntry]] = []
    for shard in range(SHARDS):
        position, count = after, 0
        while count < limit:
            part = QueuePart(table=table, shard=shard, entity=plan.tag, limit=limit, after=position)
            entries, position = yield from entries_due(scope, part)
            found += [(sort_of(plan, entry), entry) for entry in entries]
            count += len(entries)
            if position is None:
                break
    found = sorted(((sort, each) for sort, each in found if after is None or sort > after), key=_first)
    chosen = found[:limit]
    rows = yield from _deleted(scope, plan, [entry for _, entry in chosen])
    next_cursor = None
    if len(found) > limit:
        next_cursor = scope.cursor_signer.sign({table.sort.name: {"S": chosen[-1][0]}}, bound_to)
    return FilledPage(rows, next_cursor, len(found))


def deleted_of(plan: Plan, entry: QueueEntry, item: Item | None) -> Deleted:
    """Return the public form of an entry."""
    return Deleted(
        entity=plan.name,
        key=plan.arguments_of(entry.key) or dict(entry.key),
        deleted_at=read_stamp(entry.deleted_at),
        purge_at=datetime.fromtimestamp(entry.purge_at, UTC),
        held=None if item is None else held_by(item),
    )


def held_by(item: Item) -> str | None:
    """Return the reason of an item's hold; None without a hold."""
    return str(item[HELD]["M"]["reason"]["S"]) if HELD in item else None


def sort_of(plan: Plan, entry: QueueEntry) -> str:
    """Return the sort key of an entry."""
    assert plan.table.sort is not None
    return str(queue_key(plan, entry.key, entry.purge_at)[plan.table.sort.name]["S"])


def _deleted(scope: Scope, plan: Plan, found: Sequence[QueueEntry]) -> Flow[list[Deleted]]:
    items = yield from fetch(scope, plan, [entry.key for entry in found], consistent=True)
    return [deleted_of(plan, entry, item) for entry, item in zip(found, items, strict=True)]


def _entry(item: Item, own_key: Item) -> QueueEntry:
    content = item[_TICKET]["M"]
    return QueueEntry(
        entity=content["entity"]["S"],
        key=content["key"]["M"],
        deleted_at=content["deleted_at"]["S"],
        purge_at=int(content["purge_at"]["N"]),
        own_key=own_key,
    )


def _partition(shard: int) -> str:
    return internal_partition("PURGE", str(shard))


def _first(pair: tuple[str, QueueEntry]) -> str:
    return pair[0]


def _unconditional(met: Item | None) -> SolotableError:
    raise AssertionError("a write without a condition cannot fail its condition")
