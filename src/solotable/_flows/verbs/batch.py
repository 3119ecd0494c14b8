"""Batches of writes: in chunks, what comes back unprocessed sent again. No conditions, no order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.transactions.write import Write
from solotable._protocol.replies import BatchWrote
from solotable._protocol.requests import BatchDelete, BatchPut, BatchWriteItem, DeleteItem, PutItem
from solotable._values import Item
from solotable._values.limits import MOST_BATCH_WRITES
from solotable.errors import BatchIncomplete

_ROUNDS = 10
_LARGEST_CHUNK = 15_000_000


@dataclass(frozen=True, slots=True)
class _Entry:
    table: str
    identity: str
    request: BatchPut | BatchDelete
    write: Write


def write_batch(scope: Scope, writes: Sequence[Write]) -> Flow[int]:
    """Write all, and return how many items that were; of several writes to one item the last counts."""
    entries = list({entry.identity: entry for entry in map(_entry, writes)}.values())
    for start in range(0, len(entries), MOST_BATCH_WRITES):
        left = entries[start : start + MOST_BATCH_WRITES]
        for attempt in range(_ROUNDS):
            if attempt:
                yield scope.retries.wait(attempt)
            reply: BatchWrote = yield from send(_request(left), scope.retries)
            left = _unprocessed(left, reply)
            if not left:
                break
        else:
            rest = [entry.write for entry in (*left, *entries[start + MOST_BATCH_WRITES :])]
            raise BatchIncomplete(
                f"{len(rest)} of {len(entries)} writes are not done: {left[0].write.title} and others "
                f"came back unprocessed {_ROUNDS} times; the table is throttled: write the leftovers later.",
                leftovers=[write.mine if write.mine is not None else write.key for write in rest],
            )
    return len(entries)


def _entry(write: Write) -> _Entry:
    identity = _identity(write.action.table, write.key)
    if isinstance(write.action, PutItem):
        return _Entry(write.action.table, identity, BatchPut(item=write.action.item), write)
    assert isinstance(write.action, DeleteItem)
    return _Entry(write.action.table, identity, BatchDelete(key=write.action.key), write)


def _request(entries: Sequence[_Entry]) -> BatchWriteItem:
    tables: dict[str, list[BatchPut | BatchDelete]] = {}
    for entry in entries:
        tables.setdefault(entry.table, []).append(entry.request)
    return BatchWriteItem(tables=tuple((name, tuple(requests)) for name, requests in tables.items()))


def _unprocessed(entries: Sequence[_Entry], reply: BatchWrote) -> list[_Entry]:
    if not reply.unprocessed:
        return []
    left: set[str] = set()
    by_table: dict[str, tuple[str, ...]] = {entry.table: entry.write.plan.primary.names for entry in entries}
    for table, requests in reply.unprocessed.items():
        for request in requests:
            holder: dict[str, Any] = (
                request.get("PutRequest", {}).get("Item") or request["DeleteRequest"]["Key"]
            )
            left.add(_identity(table, {name: holder[name] for name in by_table[table]}))
    return [entry for entry in entries if entry.identity in left]


def _identity(table: str, key: Item) -> str:
    return repr((table, sorted(key.items())))
