"""Write additions to usage rows once, however often records are delivered and by how many workers.

The rows of some records of one stream shard, and the checkpoint of that shard, are one transaction. Its
condition is that the checkpoint is before the first record. So a late worker fails, learns the checkpoint,
and continues behind it. Checkpoints belong to the rows, not to a consumer: two consumers of different names
do not count twice either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from solotable.errors import SolotableError, TransactionCancelled
from solotable.flow import (
    Flow,
    Item,
    Scope,
    encode_entity,
    internal_key,
    internal_partition,
    is_conflict,
    retry_conflicts,
    send,
)
from solotable.flow.conditions import any_of, less_than, missing
from solotable.flow.feed import Record, sequence_order
from solotable.flow.requests import (
    MOST_TRANSACTION_ACTIONS,
    PutItem,
    TransactWriteItems,
    UpdateItem,
    WriteAction,
)
from solotable.systems.limiter.buckets.writes.flat_update import FlatUpdate
from solotable.systems.limiter.table import limiter

from .deltas import EVENTS, Additions, RowKey, add, additions
from .rows import UsageRow
from .windows import expiry

TAG = "_usage"
#: One action is the checkpoint's.
_MOST_ROWS = MOST_TRANSACTION_ACTIONS - 1
#: DynamoDB: an update has at most 300 operators and 4 KB of text, and callers choose the names of limits.
_MOST_ATTRIBUTES = 100
#: DynamoDB: a sequence number has up to 40 digits, more than a number holds: it is compared as text.
_DIGITS = 40
#: A stream keeps a record for a day; a checkpoint stays far longer.
_CHECKPOINT_SECONDS = timedelta(days=30).total_seconds()
_ORDER = "order"


@dataclass(frozen=True, slots=True)
class StreamShard:
    """A shard of a stream; shards of different streams may have the same id."""

    stream: str
    shard: str

    @property
    def key(self) -> Item:
        """The key of the shard's checkpoint."""
        partition = internal_partition("CHECKPOINT", "usage", "BOOKED")
        return internal_key(limiter, partition, f"{self.stream}#{self.shard}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateResult:
    """How many records were counted, in how many rows and transactions; skipped: counted before."""

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


def write_usage(scope: Scope, shard: StreamShard, records: Sequence[Record]) -> Flow[AggregateResult]:
    """Add what records of one shard, in their order, consumed to their rows, each once."""
    done = AggregateResult()
    at = 0
    while at < len(records):
        rows, end = fill_transaction(records, at)
        first, last = records[at].sequence, records[end - 1].sequence
        try:
            attempt = partial(_send, scope, shard, rows, first, last)
            yield from retry_conflicts(scope, attempt, when=_is_transient)
        except TransactionCancelled as cancelled:
            checkpoint = _checkpoint_of(cancelled.reasons)
            if checkpoint is None:
                raise
            orders = (_order(record.sequence) for record in records[at:])
            end = next((at + n for n, order in enumerate(orders) if order > checkpoint), len(records))
            done += AggregateResult(skipped=end - at)
        else:
            done += AggregateResult(records=end - at, rows=len(rows), transactions=1)
        at = end
    return done


def _is_transient(error: SolotableError) -> bool:
    """Return whether other transactions caused an error, and not the checkpoint."""
    if isinstance(error, TransactionCancelled) and _checkpoint_of(error.reasons) is not None:
        return False
    return is_conflict(error)


def fill_transaction(records: Sequence[Record], at: int) -> tuple[Additions, int]:
    """Return the additions of as many records as fit in one transaction, and the index behind them."""
    rows: Additions = {}
    for number in range(at, len(records)):
        parts = additions(records[number])
        new = sum(row not in rows for row, _ in parts)
        is_wide = any(len({*rows.get(row, ()), *amounts}) > _MOST_ATTRIBUTES for row, amounts in parts)
        if number > at and (len(rows) + new > _MOST_ROWS or is_wide):
            return rows, number
        for row, amounts in parts:
            add(rows, row, amounts)
    return rows, len(records)


def _send(scope: Scope, shard: StreamShard, rows: Additions, first: str, last: str) -> Flow[None]:
    actions: tuple[WriteAction, ...] = (
        _checkpoint(scope, shard, first, last),
        *(_addition(scope, row, amounts) for row, amounts in rows.items()),
    )
    # The token is for a repetition within this call; across calls the checkpoint decides.
    request = TransactWriteItems(
        actions=actions,
        token=scope.token(None),
        fingerprint=f"{shard.shard} {first} {last}".encode(),
    )
    yield from send(scope, request)


def _checkpoint(scope: Scope, shard: StreamShard, first: str, last: str) -> PutItem:
    item: Item = {
        **shard.key,
        limiter.internal_tag: {"S": TAG},
        _ORDER: {"S": _order(last)},
        "expires": {"N": str(int(scope.clock() + _CHECKPOINT_SECONDS))},
    }
    return PutItem(
        table=scope.table(limiter),
        item=item,
        condition=any_of(missing(limiter.partition.name), less_than(_ORDER, _order(first))),
        returns_on_failure=True,
    )


def _addition(scope: Scope, row: RowKey, amounts: dict[str, int]) -> UpdateItem:
    item = encode_entity(scope, UsageRow(**row._asdict(), expires=expiry(row.window, row.start)))
    del item[EVENTS]
    key = {name: item.pop(name) for name in limiter.key_names}
    update = FlatUpdate()
    for name, value in item.items():
        update.set_if_missing(name, int(value["N"]) if "N" in value else value["S"])
    for name, amount in amounts.items():
        update.add(name, amount)
    return UpdateItem(table=scope.table(limiter), key=key, update=update.build())


def _checkpoint_of(reasons: Sequence[dict[str, Any]]) -> str | None:
    """Return the stored checkpoint that cancelled a transaction; None if something else did."""
    if reasons[0]["Code"] != "ConditionalCheckFailed":
        return None
    order: str = reasons[0]["Item"][_ORDER]["S"]
    return order


def _order(sequence: str) -> str:
    return str(sequence_order(sequence)).zfill(_DIGITS)
