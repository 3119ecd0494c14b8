"""The purge queue: deleted items that wait for their purge, by the time when it is due.

A entry lies in one of a few partitions, chosen by the digest of its item's key, under the moment from
which on the item may be purged. It is written and removed in the transaction of its cause, so the
entries that are left are the work that is left; no other checkpoint is needed.
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
from solotable._entities.keys.codecs import escape
from solotable._entities.traits.soft_delete import DELETED_AT, HELD, PURGE_AT
from solotable._expressions.ast import Attr, Compare, Const, KeyTerm
from solotable._flows.internal_items import internal_key, internal_partition, partition_terms
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.traits.outbox import read_stamp
from solotable._flows.transactions.write import DerivedWrite
from solotable._flows.verbs.get import fetch
from solotable._flows.verbs.query import FilledPage
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import DeleteItem, PutItem, Query
from solotable._values import Item
from solotable.errors import DataError, SolotableError

TAG = "_purge"
#: The attribute that holds what an entry says, apart from the names of any table's keys.
_TICKET = "_ticket"
SHARDS = 8
#: Wide enough for every moment of this era, so that texts sort as the moments do.
_WIDTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """One deleted item that waits for its purge."""

    #: The type tag of the entity, and its primary key.
    entity: str
    key: Item
    deleted_at: str
    purge_at: int
    #: Where the entry itself was found; None for one that is yet to be written.
    place: Item | None = None

    @property
    def seen(self) -> Item:
        """The attributes that the item has if it is the one that the entry was written for."""
        return {DELETED_AT: {"S": self.deleted_at}, PURGE_AT: {"N": str(self.purge_at)}}


class Deleted(BaseModel):
    """A deleted entity as the list of what waits for the purge has it."""

    model_config = ConfigDict(frozen=True)

    entity: str
    key: dict[str, Any]
    deleted_at: datetime
    purge_at: datetime
    #: Why it must not be purged; None without a hold.
    held: str | None = None


def digest_of(plan: Plan, key: Item) -> str:
    """Return the digest by which an item's key is known where the key itself must not be kept."""
    facts = repr((plan.tag, [sorted(key[name].items()) for name in plan.primary.names]))
    return blake2b(facts.encode(), digest_size=16).hexdigest()


def queue_key(plan: Plan, key: Item, purge_at: int) -> Item:
    """Return where the entry of an item lies."""
    digest = digest_of(plan, key)
    shard = int(digest[:4], 16) % SHARDS
    return internal_key(plan.table, _partition(shard), f"{purge_at:0{_WIDTH}d}#{escape(plan.tag)}#{digest}")


def queue_put(scope: Scope, plan: Plan, entry: QueueEntry) -> DerivedWrite:
    """Return what puts an item on the list."""
    item: Item = {
        **queue_key(plan, entry.key, entry.purge_at),
        plan.table.tag: {"S": TAG},
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
    """Return what takes an item off the list."""
    action = DeleteItem(table=scope.table(plan.table), key=queue_key(plan, key, purge_at))
    return DerivedWrite(action=action, title=f"the purge of {plan.name}", explain=_unconditional)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePart:
    """Which entries of one shard are read next: those due until a moment, of one entity or of all."""

    table: Table
    shard: int
    #: The last moment in epoch seconds; None: however late.
    until: int | None = None
    entity: str | None = None
    limit: int | None = None
    #: The sort key after which to continue.
    after: str | None = None


def entries_due(scope: Scope, part: QueuePart) -> Flow[tuple[list[QueueEntry], str | None]]:
    """Return the next entries of a shard, the first due first, and the sort key after which to continue."""
    table = part.table
    assert table.sort is not None
    low, high = part.after or "0", "9" * _WIDTH if part.until is None else f"{part.until:0{_WIDTH}d}"
    partition = _partition(part.shard)
    # `$` sorts behind `#` and everything that follows it.
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
    ours = {"S": TAG}
    # Nothing keeps an entity of yours from lying in a partition of this name.
    found = [item for item in decode_items(reply.items or ()) if item.get(table.tag) == ours]
    names = (table.partition.name, table.sort.name)
    return [_entry(item, {name: item[name] for name in names}) for item in found], last


def count_due(scope: Scope, table: Table, until: int) -> Flow[int]:
    """Return how many entries are due, held ones among them."""
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


def page(scope: Scope, plan: Plan, *, limit: int, cursor: str | None) -> Flow[FilledPage]:
    """Return what was deleted of an entity, the first due first; every shard is asked for every page."""
    if not scope.admin:
        raise DataError("What waits for the purge is a list of all tenants; use db.admin().deleted(...).")
    if limit < 1:
        raise DataError(f"A page has at least one row; limit={limit} was given.")
    table = plan.table
    assert table.sort is not None
    bound_to = repr(("deleted", table.name, plan.tag)).encode()
    after = None if cursor is None else str(scope.sealer.open(cursor, bound_to)[table.sort.name]["S"])
    found: list[tuple[str, QueueEntry]] = []
    for shard in range(SHARDS):
        place, mine = after, 0
        while mine < limit:
            part = QueuePart(table=table, shard=shard, entity=plan.tag, limit=limit, after=place)
            some, place = yield from entries_due(scope, part)
            found += [(sort_of(plan, entry), entry) for entry in some]
            mine += len(some)
            if place is None:
                break
    found = sorted(((sort, each) for sort, each in found if after is None or sort > after), key=_first)
    chosen = found[:limit]
    rows = yield from _deleted(scope, plan, [entry for _, entry in chosen])
    sealed = None
    if len(found) > limit:
        sealed = scope.sealer.seal({table.sort.name: {"S": chosen[-1][0]}}, bound_to)
    return FilledPage(rows, sealed, len(found))


def deleted_of(plan: Plan, entry: QueueEntry, item: Item | None) -> Deleted:
    """Return an entry as people read it."""
    return Deleted(
        entity=plan.name,
        key=plan.arguments_of(entry.key) or dict(entry.key),
        deleted_at=read_stamp(entry.deleted_at),
        purge_at=datetime.fromtimestamp(entry.purge_at, UTC),
        held=None if item is None else held_by(item),
    )


def held_by(item: Item) -> str | None:
    """Return why an item must not be purged; None without a hold."""
    return str(item[HELD]["M"]["reason"]["S"]) if HELD in item else None


def sort_of(plan: Plan, entry: QueueEntry) -> str:
    """Return the sort key of an entry."""
    assert plan.table.sort is not None
    return str(queue_key(plan, entry.key, entry.purge_at)[plan.table.sort.name]["S"])


def _deleted(scope: Scope, plan: Plan, found: Sequence[QueueEntry]) -> Flow[list[Deleted]]:
    items = yield from fetch(scope, plan, [entry.key for entry in found], consistent=True)
    return [deleted_of(plan, entry, item) for entry, item in zip(found, items, strict=True)]


def _entry(item: Item, place: Item) -> QueueEntry:
    facts = item[_TICKET]["M"]
    return QueueEntry(
        entity=facts["entity"]["S"],
        key=facts["key"]["M"],
        deleted_at=facts["deleted_at"]["S"],
        purge_at=int(facts["purge_at"]["N"]),
        place=place,
    )


def _partition(shard: int) -> str:
    return internal_partition("PURGE", str(shard))


def _first(pair: tuple[str, QueueEntry]) -> str:
    return pair[0]


def _unconditional(met: Item | None) -> SolotableError:
    raise AssertionError("a write without a condition is not refused by one")
