"""Booking: what records add is written once, however often they are delivered and by how many workers.

The rows that some records of one shard add to, and the mark of how far that shard was booked, are one
transaction. It is done only while the mark is before the first of them; so whoever comes late is refused, is
told where the mark stands, and goes on behind it. The marks belong to the rows, not to a consumer: two
consumers of different names do not count twice either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from solotable._expressions.ast import Attr, Compare, Const, Exists, Not, Or
from solotable._flows.feed.checkpoints import sequence_order
from solotable._flows.feed.streams import Record
from solotable._flows.internal_items import internal_key, internal_partition
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._protocol.requests import PutItem, TransactWriteItems, UpdateItem, WriteAction
from solotable._values import Item
from solotable._values.limits import MOST_TRANSACTION_ACTIONS
from solotable.errors import TransactionCancelled
from solotable.systems.limiter.buckets.flat_update import FlatUpdate
from solotable.systems.limiter.table import limiter

from .deltas import EVENTS, Additions, RowKey, additions
from .rows import UsageRow
from .windows import expiry

TAG = "_usage"
#: One action is the mark's.
_MOST_ROWS = MOST_TRANSACTION_ACTIONS - 1
#: DynamoDB: an update has at most 300 operators and 4 KB of text; names of limits are whatever calls gave.
_MOST_ATTRIBUTES = 100
#: DynamoDB: a sequence number has up to 40 digits, which no number holds: it is compare as text.
_DIGITS = 40
#: A mark outlives every record of its shard, which a stream keeps for a day, by far.
_MARK_KEPT_SECONDS = timedelta(days=30).total_seconds()
_ATTEMPTS = 12
_ORDER = "order"


@dataclass(frozen=True, slots=True)
class StreamShard:
    """A shard of a stream; shards of different streams may have the same id."""

    stream: str
    shard: str

    @property
    def key(self) -> Item:
        """The key of the shard's mark."""
        return internal_key(
            limiter, internal_partition("CHECKPOINT", "usage", "BOOKED"), f"{self.stream}#{self.shard}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateResult:
    """How many records were booked, in how many rows and transactions; skipped: they were already."""

    records: int = 0
    skipped: int = 0
    rows: int = 0
    transactions: int = 0

    def __add__(self, other: AggregateResult) -> AggregateResult:
        return AggregateResult(
            records=self.records + other.records,
            skipped=self.skipped + other.skipped,
            rows=self.rows + other.rows,
            transactions=self.transactions + other.transactions,
        )


def book(scope: Scope, place: StreamShard, records: Sequence[Record]) -> Flow[AggregateResult]:
    """Add what records of one shard, in their order, consumed to their rows, each of them once."""
    done = AggregateResult()
    at, attempt = 0, 0
    while at < len(records):
        rows, end = fitting(records, at)
        try:
            yield from _send(scope, place, rows, records[at].sequence, records[end - 1].sequence)
        except TransactionCancelled as refused:
            attempt += 1
            met = _met(refused.reasons)
            if met is None:
                if attempt == _ATTEMPTS or not refused.is_transient:
                    raise
                yield scope.retries.wait(attempt)
                continue
            behind = next((n for n in range(at, len(records)) if _order(records[n].sequence) > met), None)
            end = len(records) if behind is None else behind
            done += AggregateResult(skipped=end - at)
        else:
            done += AggregateResult(records=end - at, rows=len(rows), transactions=1)
        at, attempt = end, 0
    return done


def fitting(records: Sequence[Record], at: int) -> tuple[Additions, int]:
    """Return what as many records as go into one transaction add together, and the place behind them."""
    rows: Additions = {}
    for number in range(at, len(records)):
        parts = additions(records[number])
        fresh = sum(slot not in rows for slot, _ in parts)
        wide = any(len({*rows.get(slot, ()), *amounts}) > _MOST_ATTRIBUTES for slot, amounts in parts)
        if number > at and (len(rows) + fresh > _MOST_ROWS or wide):
            return rows, number
        for slot, amounts in parts:
            into = rows.setdefault(slot, {})
            for name, amount in amounts.items():
                into[name] = into.get(name, 0) + amount
    return rows, len(records)


def _send(scope: Scope, place: StreamShard, rows: Additions, first: str, last: str) -> Flow[None]:
    actions: tuple[WriteAction, ...] = (
        _mark(scope, place, first, last),
        *(_addition(scope, slot, amounts) for slot, amounts in rows.items()),
    )
    # The token is for what may be sent twice within one call; across calls it is the mark that decides.
    request = TransactWriteItems(
        actions=actions,
        token=scope.token(None),
        fingerprint=f"{place.shard} {first} {last}".encode(),
    )
    yield from send(request, scope.retries)


def _mark(scope: Scope, place: StreamShard, first: str, last: str) -> PutItem:
    before = Compare("<", Attr((_ORDER,)), Const({"S": _order(first)}))
    item: Item = {
        **place.key,
        limiter.tag: {"S": TAG},
        _ORDER: {"S": _order(last)},
        "expires": {"N": str(int(scope.clock() + _MARK_KEPT_SECONDS))},
    }
    return PutItem(
        table=scope.table(limiter),
        item=item,
        condition=Or((Not(Exists((limiter.partition.name,))), before)),
        returns_on_failure=True,
    )


def _addition(scope: Scope, slot: RowKey, amounts: dict[str, int]) -> UpdateItem:
    row = UsageRow(**slot._asdict(), expires=expiry(slot.window, slot.start))
    plan = UsageRow.plan()
    item = plan.encode(row.__dict__, {})
    del item[plan.attributes[EVENTS].wire]
    key = {name: item.pop(name) for name in plan.primary.names}
    update = FlatUpdate()
    for name, value in item.items():
        update.first(name, int(value["N"]) if "N" in value else value["S"])
    for name, amount in amounts.items():
        update.add(name, amount)
    return UpdateItem(table=scope.table(limiter), key=key, update=update.update())


def _met(reasons: Sequence[dict[str, Any]]) -> str | None:
    """Return where the mark stands that has refused a transaction; None where something else has."""
    if reasons[0]["Code"] != "ConditionalCheckFailed":
        return None
    order: str = reasons[0]["Item"][_ORDER]["S"]
    return order


def _order(sequence: str) -> str:
    return str(sequence_order(sequence)).zfill(_DIGITS)
