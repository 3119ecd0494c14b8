"""BatchGetItem and BatchWriteItem: many items of many tables in one request.

As on AWS, a batch is not atomic. This engine writes it in one transaction, which callers must not rely on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from solotable._protocol.capacity import CapacityMeter, read_units
from solotable._protocol.replies import BatchGot, BatchWrote, SomeItem
from solotable._protocol.requests import (
    BatchGetItem,
    BatchPut,
    BatchWriteItem,
    DeleteItem,
    PutItem,
    TableKeys,
)
from solotable._values import Item
from solotable._values.limits import LARGEST_BATCH_REPLY
from solotable.engines.sqlite.items.keys import check_and_encode_key, check_key
from solotable.engines.sqlite.items.storage import (
    FIRST_CHUNK,
    StoredItem,
    Writer,
    find_many,
    next_chunk,
)
from solotable.engines.sqlite.items.write_capacity import meter_write
from solotable.engines.sqlite.tables.catalog import Table
from solotable.errors import invalid

from .get_item import check_key_paths, project_stored, record_read
from .writes import ItemWrite, check_item_size, check_write, collection_metrics, prepare, store

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_DUPLICATES = "Provided list of item keys contains duplicates"


def batch_get_item(engine: SqliteEngine, request: BatchGetItem) -> BatchGot:
    """Return the items that exist, up to 16 MB of them; the other keys are unprocessed."""
    plan: list[tuple[TableKeys, Table, list[bytes]]] = []
    for part in request.tables:
        table = engine.table(part.table)
        plan.append((part, table, _encode_distinct_keys(table, part.keys)))
        check_key_paths(table, part.projection or ())
    responses: dict[str, list[SomeItem]] = {}
    unprocessed: dict[str, Any] = {}
    meters: list[CapacityMeter] = []
    read: list[tuple[Table, TableKeys, int, list[int]]] = []
    bytes_left = LARGEST_BATCH_REPLY
    with _open_finder(engine) as find:
        for part, table, keys in plan:
            found = responses.setdefault(part.table, [])
            meter = CapacityMeter(part.table)
            meters.append(meter)
            for start, rows in _read_rows(engine, find, table, keys):
                taken = _take_until_full(rows, bytes_left)
                sizes = [size for size, _ in taken]
                bytes_left -= sum(sizes)
                read.append((table, part, start, sizes))
                # DynamoDB: each item is rounded up separately; a missing one costs the minimum.
                if request.capacity != "NONE":
                    for size in sizes:
                        meter.table(read_units(size, part.consistent))
                if part.projection is None:
                    found += [raw for _, raw in taken if raw]
                else:
                    stored = [StoredItem(0, size, raw) for size, raw in taken if raw]
                    found += [project_stored(engine, each, part.projection) for each in stored]
                if len(taken) < len(rows):
                    left: list[Item] = list(part.keys[start + len(taken) :])
                    unprocessed[part.table] = {**part.wire, "Keys": left}
                    bytes_left = -1
                    break
    # A batch that turns out to be long starts again, so only now is it known to be read once.
    for chunk in read:
        _record_heat(engine, *chunk)
    return BatchGot(responses=responses, unprocessed=unprocessed, capacity=reports(meters, request.capacity))


def _take_until_full(rows: _Rows, bytes_left: int) -> _Rows:
    """Return the items up to the first one that does not fit."""
    if sum([size for size, _ in rows]) <= bytes_left:
        return rows
    for count, (size, _) in enumerate(rows):
        if size > bytes_left:
            return rows[:count]
        bytes_left -= size
    return rows


def _record_heat(engine: SqliteEngine, table: Table, part: TableKeys, start: int, sizes: list[int]) -> None:
    heat = engine.heat
    if heat is None:
        return
    if heat.skip_reads >= len(sizes):
        heat.skip_reads -= len(sizes)
        return
    for position, size in enumerate(sizes, start):
        record_read(engine, table, part.keys[position], read_units(size, part.consistent))


#: The size and the JSON of items; (0, b"") for an absent one.
_Rows = list[tuple[int, bytes]]
#: Finds the items of several keys of a table, in their order.
_Find = Callable[[Table, list[bytes]], _Rows]


@contextmanager
def _open_finder(engine: SqliteEngine) -> Iterator[_Find]:
    """Yield a function that finds rows in one snapshot; a sliced request in memory has no snapshot."""
    if engine.database.in_memory and engine.sliced:
        yield partial(_find_alone, engine)
    else:
        with engine.database.snapshot() as connection:
            yield partial(find_many, connection)


def _find_alone(engine: SqliteEngine, table: Table, keys: list[bytes]) -> _Rows:
    with engine.database.read() as connection:
        return find_many(connection, table, keys)


def _read_rows(
    engine: SqliteEngine, find: _Find, table: Table, keys: list[bytes]
) -> Iterator[tuple[int, _Rows]]:
    """Yield chunks of items, each with the position of its first key; few at first, as they may be large."""
    start, count = 0, FIRST_CHUNK
    while start < len(keys):
        rows = find(table, keys[start : start + count])
        yield start, rows
        start += count
        count = next_chunk(max([raw for _, raw in rows], key=len))
        engine.pause(sum([size for size, _ in rows]))


def _encode_distinct_keys(table: Table, keys: tuple[Item, ...]) -> list[bytes]:
    encoded = [check_and_encode_key(table, key) for key in keys]
    if len(set(encoded)) < len(encoded):
        raise invalid(_DUPLICATES)
    return encoded


def batch_write_item(engine: SqliteEngine, request: BatchWriteItem) -> BatchWrote:
    """Put and delete up to 25 items; an invalid one rejects the whole batch."""
    actions: list[tuple[Table, bytes, PutItem | DeleteItem]] = []
    seen: set[tuple[str, bytes]] = set()
    for name, entries in request.tables:
        table = engine.table(name)
        for entry in entries:
            action: PutItem | DeleteItem
            if isinstance(entry, BatchPut):
                action = PutItem(table=name, item=entry.item, size=entry.size)
            else:
                action = DeleteItem(table=name, key=entry.key)
            key = _prepare(table, action)
            if (name, key) in seen:
                raise invalid(_DUPLICATES)
            seen.add((name, key))
            actions.append((table, key, action))

    def run(writer: Writer) -> BatchWrote:
        writes = [
            check_write(writer, table, key, action, check_item_size(action)) for table, key, action in actions
        ]
        for one, (_, _, action) in zip(writes, actions, strict=True):
            store(writer, one, action)
        names = [action.table for _, _, action in actions]
        return BatchWrote(
            capacity=_write_reports(writes, names, request),
            collections=collect_metrics(writer, writes, names) if request.collection == "SIZE" else None,
        )

    return engine.write(run)


def _prepare(table: Table, action: PutItem | DeleteItem) -> bytes:
    check_item_size(action)
    if isinstance(action, PutItem):
        # DynamoDB: a batch reports a missing or mistyped key of an item like a wrong key.
        check_key(table, {name: action.item[name] for name in table.schema.names if name in action.item})
    return prepare(table, action)


def _write_reports(
    writes: list[ItemWrite], names: list[str], request: BatchWriteItem
) -> list[dict[str, Any]] | None:
    if request.capacity == "NONE":
        return None
    meters: dict[str, CapacityMeter] = {}
    for one, name in zip(writes, names, strict=True):
        meter = meters.setdefault(name, CapacityMeter(name))
        meter_write(meter, one.table, one.old, one.new, one.size)
    return reports(list(meters.values()), request.capacity)


def reports(meters: list[CapacityMeter], kind: Any, transactional: Any = None) -> list[dict[str, Any]] | None:
    """Return the ConsumedCapacity of several tables, or None if the request does not ask for it."""
    if kind == "NONE":
        return None
    found = (meter.report(kind, transactional) for meter in meters)
    return [report for report in found if report is not None]


def collect_metrics(
    writer: Writer, writes: list[ItemWrite], names: list[str]
) -> dict[str, list[dict[str, Any]]] | None:
    """Return the metrics of every item collection that was written, by table name or ARN."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one, name in zip(writes, names, strict=True):
        metrics = collection_metrics(writer, one)
        if metrics is not None and metrics not in found.setdefault(name, []):
            found[name].append(metrics)
    return found or None
