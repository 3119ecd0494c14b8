"""Counters on parents, and sharded counters.

A counter changes only by ADD, under the condition that its parent exists. So it needs no lock and never
creates a parent. A put of a parent keeps its stored counters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from hashlib import blake2b
from typing import Any
from zlib import crc32

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.keys.parts.codecs import escape
from solotable._entities.traits.counters import Counted
from solotable._expressions.ast import Add, Assign, Const, Update
from solotable._flows.reads.get import not_found
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.transactions.write import Change, DerivedWrite
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import BatchGetItem, TableKeys, TransactWriteItems, UpdateItem
from solotable._values import Item, dump, load
from solotable.errors import DataError, NotFound, SolotableError, TransactionCancelled

#: The type tag of the shards of a counter.
TAG = "_counter"
_COUNT = "count"
_MOST_SHARDS = 100


def shares(scope: Scope, trait: Counted, change: Change) -> Iterator[DerivedWrite]:
    """Yield the additions to the parent of a changed child, or to both parents if the child moves."""
    totals: dict[str, tuple[dict[str, Any], Decimal]] = {}
    counted_in: str | None = None
    for state, sign in ((change.before, -1), (change.after, 1)):
        share = trait.share(None if state is None else state.entity)
        if share is not None:
            key, amount = share
            identity = repr(sorted(key.items()))
            if sign > 0:
                counted_in = identity
            totals[identity] = key, totals.get(identity, (key, Decimal(0)))[1] + sign * amount
    for identity, (key, amount) in totals.items():
        if amount:
            addition = _addition(scope, trait, change.plan, key, amount)
            yield replace(addition, needs=identity == counted_in)


def _addition(
    scope: Scope, trait: Counted, child: Plan, key: Mapping[str, Any], amount: Decimal
) -> DerivedWrite:
    parent = trait.of
    path = (parent.attributes[trait.field].wire,)

    def explain(_found: Item | None) -> SolotableError:
        missing = not_found(parent, key)
        return NotFound(
            f"{missing} Its field {trait.field} counts {child.name}; create it before its {child.name}, and "
            f"delete it after them."
        )

    action = UpdateItem(
        table=scope.table(parent.table),
        key=parent.key_from(scope.bind(parent, key)),
        update=Update((Add(path, dump(amount)),), creates=True),
        condition=scope.present(parent),
        returns_on_failure=True,
    )
    return DerivedWrite(
        action=action,
        title=f"the counter {parent.name}.{trait.field}",
        explain=explain,
        adds=True,
        table=parent.table,
    )


def add_to_shards(
    scope: Scope, table: Table, name: str, amount: int, shards: int, token: str | None
) -> Flow[None]:
    """Add to the shard that the token selects; a repetition with the same token has no effect."""
    _check_shards(shards)
    own = scope.token(token, "counter", table.name, name)
    key = _shard(scope, table, name, crc32(own.encode()) % shards)
    action = UpdateItem(
        table=scope.table(table),
        key=key,
        update=Update(
            (Assign((table.internal_tag,), Const({"S": TAG})), Add((_COUNT,), dump(amount))), creates=True
        ),
    )
    fingerprint = blake2b(repr(action).encode(), digest_size=16).digest()
    sent = TransactWriteItems(actions=(action,), token=own, fingerprint=fingerprint)
    attempt = 0
    while True:
        try:
            yield from send(sent, scope.retries)
        except TransactionCancelled as error:
            # DynamoDB cancels one of two concurrent transactions on the same item.
            attempt += 1
            if attempt >= scope.retries.attempts or not error.is_transient:
                raise
        else:
            return
        yield scope.retries.wait(attempt)


def total(scope: Scope, table: Table, name: str, shards: int) -> Flow[int]:
    """Return the sum of a counter's shards."""
    _check_shards(shards)
    keys = tuple(_shard(scope, table, name, shard) for shard in range(shards))
    physical = scope.table(table)
    found = 0
    left: tuple[Item, ...] = keys
    for attempt in range(scope.retries.attempts):
        part = TableKeys(table=physical, keys=left, consistent=True, wire={"ConsistentRead": True})
        reply = yield from send(BatchGetItem(tables=(part,)), scope.retries)
        found += sum(int(load(item[_COUNT])) for item in decode_items(reply.responses.get(physical, ())))
        left = tuple(reply.unprocessed.get(physical, {}).get("Keys", ()))
        if not left:
            return found
        yield scope.retries.wait(attempt + 1)
    raise DataError(f"Cannot read the shards of counter {name!r}: the table is throttled; try again later.")


def _check_shards(shards: int) -> None:
    if not 0 < shards <= _MOST_SHARDS:
        raise DataError(f"A counter takes 1 to {_MOST_SHARDS} shards, got {shards}.")


def _shard(scope: Scope, table: Table, name: str, shard: int) -> Item:
    if table.tenant is not None and scope.tenant is None and not scope.admin:
        raise DataError(f"A counter of table {table.name!r} belongs to a tenant; use db.tenant(...).")
    tenant = [] if scope.tenant is None else [escape(scope.tenant)]
    text = "#".join(("COUNTER", *tenant, escape(name), f"{shard:03d}"))
    key: Item = {table.partition.name: {"S": text}}
    if table.sort is not None:
        key[table.sort.name] = {"S": "COUNTER"}
    return key
