"""Batches of puts and deletes without conditions or order. Unprocessed requests are sent again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from solotable._entities.declare.table import Table
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.transactions.write import Write
from solotable._protocol.replies import BatchWrote
from solotable._protocol.requests import BatchDelete, BatchPut, BatchWriteItem, DeleteItem, PutItem
from solotable._values import Item
from solotable._values.limits import MOST_BATCH_WRITES
from solotable.errors import BatchIncomplete

_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class _Entry:
    table: str
    key: Item
    request: BatchPut | BatchDelete
    #: The name of the write in error messages, and the caller's entity or key if it stays unprocessed.
    title: str
    leftover: Any

    @property
    def identity(self) -> str:
        return _identity(self.table, self.key)


def write_batch(scope: Scope, writes: Sequence[Write]) -> Flow[int]:
    """Send all writes and return the number of items; the last of several writes to one item wins."""
    if any(write.plan.blobs is not None for write in writes):
        from solotable._flows.transactions.blobs import save_blobs

        yield from save_blobs(writes)
    return (yield from _write(scope, map(_entry, writes)))


def delete_items(scope: Scope, table: Table, keys: Iterable[Item]) -> Flow[int]:
    """Delete the items with these keys, and return the number of distinct keys."""
    name = scope.table(table)
    entries = (_Entry(name, key, BatchDelete(key=key), f"delete {key}", key) for key in keys)
    return (yield from _write(scope, entries))


def _write(scope: Scope, given: Iterable[_Entry]) -> Flow[int]:
    entries = list({entry.identity: entry for entry in given}.values())
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
            rest = [*left, *entries[start + MOST_BATCH_WRITES :]]
            raise BatchIncomplete(
                f"{len(rest)} of {len(entries)} writes are incomplete: {left[0].title} and others were "
                f"unprocessed after {_ROUNDS} attempts; the table is throttled: write the leftovers later.",
                leftovers=[entry.leftover for entry in rest],
            )
    return len(entries)


def _entry(write: Write) -> _Entry:
    leftover = write.mine if write.mine is not None else write.key
    if isinstance(write.action, PutItem):
        request: BatchPut | BatchDelete = BatchPut(item=write.action.item, size=write.action.size)
    else:
        assert isinstance(write.action, DeleteItem)
        request = BatchDelete(key=write.action.key)
    return _Entry(write.action.table, write.key, request, write.title, leftover)


def _request(entries: Sequence[_Entry]) -> BatchWriteItem:
    tables: dict[str, list[BatchPut | BatchDelete]] = {}
    for entry in entries:
        tables.setdefault(entry.table, []).append(entry.request)
    return BatchWriteItem(tables=tuple((name, tuple(requests)) for name, requests in tables.items()))


def _unprocessed(entries: Sequence[_Entry], reply: BatchWrote) -> list[_Entry]:
    if not reply.unprocessed:
        return []
    left: set[str] = set()
    key_names = {entry.table: entry.key.keys() for entry in entries}
    for table, requests in reply.unprocessed.items():
        for request in requests:
            item: Item = request.get("PutRequest", {}).get("Item") or request["DeleteRequest"]["Key"]
            left.add(_identity(table, {name: item[name] for name in key_names[table]}))
    return [entry for entry in entries if entry.identity in left]


def _identity(table: str, key: Item) -> str:
    return repr((table, sorted(key.items())))
