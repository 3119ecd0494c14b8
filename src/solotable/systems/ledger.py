"""Count records of a stream in rows, each record once, however often it is delivered.

The rows of some records of one stream shard, and the checkpoint of that shard, are one transaction. Its
condition is that the checkpoint is before the first record. So a late worker fails, learns the checkpoint,
and continues behind it. Checkpoints belong to the rows, not to a consumer: two consumers of different names
do not count twice either. The feed's own checkpoints only say where to begin.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Generic, TypedDict, TypeVar

from solotable import Table
from solotable.errors import FeedTrimmed, SolotableError, TransactionCancelled
from solotable.flow import (
    Flow,
    Item,
    Scope,
    Sleep,
    internal_key,
    internal_partition,
    is_conflict,
    retry_conflicts,
    send,
)
from solotable.flow.conditions import any_of, less_than, missing
from solotable.flow.feed import Feed, Record, sequence_order
from solotable.flow.requests import (
    MOST_TRANSACTION_ACTIONS,
    PutItem,
    TransactWriteItems,
    UpdateItem,
    WriteAction,
)

#: Records that are added up together, over pages: the more, the fewer writes of rows.
_MOST_RECORDS = 5_000
#: One action is the checkpoint's.
_MOST_ROWS = MOST_TRANSACTION_ACTIONS - 1
#: DynamoDB: an update has at most 300 operators and 4 KB of text, and callers may choose names.
_MOST_ATTRIBUTES = 100
#: DynamoDB: a sequence number has up to 40 digits, more than a number holds: it is compared as text.
_DIGITS = 40
#: A stream keeps a record for a day; a checkpoint stays far longer.
_CHECKPOINT_SECONDS = timedelta(days=30).total_seconds()
_ORDER = "order"

RowT = TypeVar("RowT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class StreamShard:
    """A shard of a stream; shards of different streams may have the same id."""

    stream: str
    shard: str


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


Progress = Callable[[AggregateResult], None]


class AggregateOptions(TypedDict, total=False):
    """The options of a counting job."""

    consumer: str
    follow: bool
    poll_seconds: float
    recover: bool
    progress: Progress | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger(Generic[RowT]):
    """Rows of one table, which has a time to live, that are counted from the stream of that table."""

    table: Table
    #: The name of the checkpoints, of the default consumer and, with a `_`, of the checkpoints' type tag.
    name: str
    #: What one record adds to which rows: numbers by attribute.
    additions: Callable[[Record], Sequence[tuple[RowT, Mapping[str, int]]]]
    #: Whether a record is counted. The stream also has the job's own writes, which must not count.
    is_counted: Callable[[Record], bool]
    #: The update that adds numbers to a row.
    update: Callable[[Scope, RowT, Mapping[str, int]], UpdateItem]

    def fill_transaction(self, records: Sequence[Record], at: int) -> tuple[dict[RowT, dict[str, int]], int]:
        """Return the additions of as many records as fit in one transaction, and the index behind them."""
        rows: dict[RowT, dict[str, int]] = {}
        for number in range(at, len(records)):
            parts = self.additions(records[number])
            new = sum(row not in rows for row, _ in parts)
            is_wide = any(len({*rows.get(row, ()), *amounts}) > _MOST_ATTRIBUTES for row, amounts in parts)
            if number > at and (len(rows) + new > _MOST_ROWS or is_wide):
                return rows, number
            for row, amounts in parts:
                add(rows, row, amounts)
        return rows, len(records)

    def write(self, scope: Scope, shard: StreamShard, records: Sequence[Record]) -> Flow[AggregateResult]:
        """Add what records of one shard, in their order, count to their rows, each once."""
        done = AggregateResult()
        at = 0
        while at < len(records):
            rows, end = self.fill_transaction(records, at)
            first, last = records[at].sequence, records[end - 1].sequence
            try:
                attempt = partial(self._send, scope, shard, rows, first, last)
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

    def aggregate(
        self,
        scope: Scope,
        *,
        consumer: str | None = None,
        follow: bool = False,
        poll_seconds: float = 1.0,
        recover: bool = False,
        progress: Progress | None = None,
    ) -> Flow[AggregateResult]:
        """Count all records that were not counted yet, and return how many there were.

        `follow` waits for more. After a FeedTrimmed, `recover` continues with what the stream still has: what
        it has dropped stays uncounted.
        """
        feed = Feed(scope, [self.table], self._counted, consumer=consumer or self.name, restart=recover)
        done = AggregateResult()
        while True:
            try:
                at_end, pending = yield from _read(feed)
            except FeedTrimmed as lost:
                raise FeedTrimmed(
                    f"{lost} Continue counting with recover=True; the {self.name} in between is not known.",
                    consumer=lost.consumer,
                    since=lost.since,
                ) from lost
            for shard, records in pending.items():
                done += yield from self.write(scope, shard, records)
            if pending:
                yield from feed.commit()
                if progress is not None:
                    progress(done)
            if at_end and not follow:
                return done
            if at_end:
                yield Sleep(poll_seconds)

    def _counted(self, record: Record) -> Sequence[Record]:
        return (record,) if self.is_counted(record) else ()

    def _send(
        self, scope: Scope, shard: StreamShard, rows: dict[RowT, dict[str, int]], first: str, last: str
    ) -> Flow[None]:
        actions: tuple[WriteAction, ...] = (
            self._checkpoint(scope, shard, first, last),
            *(self.update(scope, row, amounts) for row, amounts in rows.items()),
        )
        # The token is for a repetition within this call; across calls the checkpoint decides.
        request = TransactWriteItems(
            actions=actions,
            token=scope.token(None),
            fingerprint=f"{shard.shard} {first} {last}".encode(),
        )
        yield from send(scope, request)

    def _checkpoint(self, scope: Scope, shard: StreamShard, first: str, last: str) -> PutItem:
        assert self.table.ttl is not None
        partition = internal_partition("CHECKPOINT", self.name, "BOOKED")
        item: Item = {
            **internal_key(self.table, partition, f"{shard.stream}#{shard.shard}"),
            self.table.internal_tag: {"S": f"_{self.name}"},
            _ORDER: {"S": _order(last)},
            self.table.ttl: {"N": str(int(scope.clock() + _CHECKPOINT_SECONDS))},
        }
        return PutItem(
            table=scope.table(self.table),
            item=item,
            condition=any_of(missing(self.table.partition.name), less_than(_ORDER, _order(first))),
            returns_on_failure=True,
        )


def add(total: dict[RowT, dict[str, int]], row: RowT, amounts: Mapping[str, int]) -> None:
    """Add amounts to the additions of a row. Zeros stay: so rows do not depend on what was added together."""
    sums = total.setdefault(row, {})
    for name, amount in amounts.items():
        sums[name] = sums.get(name, 0) + amount


def _read(feed: Feed[Record]) -> Flow[tuple[bool, dict[StreamShard, list[Record]]]]:
    """Read the next records; return whether these are all for now, and the records by shard."""
    found: dict[str, list[Record]] = {}
    count, at_end = 0, False
    while count < _MOST_RECORDS and not at_end:
        at_end = not (yield from feed.fill())
        while (record := feed.take()) is not None:
            found.setdefault(record.shard, []).append(record)
            count += 1
    streams = {each.shard: each.stream for each in feed.checkpoint.shards}
    return at_end, {StreamShard(streams[shard], shard): records for shard, records in found.items()}


def _is_transient(error: SolotableError) -> bool:
    """Return whether other transactions caused an error, and not the checkpoint."""
    if isinstance(error, TransactionCancelled) and _checkpoint_of(error.reasons) is not None:
        return False
    return is_conflict(error)


def _checkpoint_of(reasons: Sequence[dict[str, Any]]) -> str | None:
    """Return the stored checkpoint that cancelled a transaction; None if something else did."""
    if reasons[0]["Code"] != "ConditionalCheckFailed":
        return None
    order: str = reasons[0]["Item"][_ORDER]["S"]
    return order


def _order(sequence: str) -> str:
    return str(sequence_order(sequence)).zfill(_DIGITS)
