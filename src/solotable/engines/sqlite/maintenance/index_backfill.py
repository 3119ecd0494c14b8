"""Backfill a global index or an expiry index that is added to an existing table.

Writes update the index as soon as it is defined. The backfill adds the older items in short transactions, so
that writers do not wait long (`pacing`). It skips items without a valid index key. An interrupted backfill
starts again from the beginning: adding an entry twice changes nothing, and removing an item removes its
entries.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sqlite3
import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from solotable._protocol.json_codec import dumps, loads
from solotable.engines.sqlite.counts import counts
from solotable.engines.sqlite.file.pacing import BatchPacer
from solotable.engines.sqlite.items import expiry_index
from solotable.engines.sqlite.items.keys import encode_index_key
from solotable.engines.sqlite.items.storage import add_entry, is_row_sound
from solotable.engines.sqlite.tables import catalog
from solotable.engines.sqlite.tables.catalog import ExpiryIndex, Index, Table
from solotable.engines.sqlite.tables.definitions import read_table
from solotable.errors import Corrupt, EngineError, TableNotFound
from solotable.fork_safe import new_lock

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: The largest table, in items, whose index is filled without a thread.
SMALL_TABLE = 1_000
_BATCH_BYTES = 4_000_000

_lock = new_lock()
_running: WeakKeyDictionary[SqliteEngine, dict[int, threading.Thread]] = WeakKeyDictionary()


if hasattr(os, "register_at_fork"):
    # A child has none of the parent's threads.
    os.register_at_fork(after_in_child=_running.clear)


#: A row's id, key, size, checksum and item.
_Row = tuple[int, bytes, int, int, bytes]


@dataclass(frozen=True, slots=True)
class _FillProgress:
    """The last row of a batch, and whether the backfill is done."""

    row: int
    done: bool


def start(engine: SqliteEngine, table_name: str, index_id: int) -> None:
    """Fill a new index: immediately if the table is small, otherwise in a thread."""
    with engine.database.snapshot() as connection:
        items_table = read_table(connection, table_name).items
        (items,) = connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {items_table} LIMIT {SMALL_TABLE + 1})"
        ).fetchone()
    if items <= SMALL_TABLE:
        fill(engine, table_name, index_id)
    else:
        _launch(engine, table_name, index_id)


def resume_all(engine: SqliteEngine) -> None:
    """Resume every backfill that is not done yet."""
    with engine.database.snapshot() as connection:
        names = connection.execute(
            "SELECT name FROM catalog WHERE instr(definition, '\"CREATING\"')"
        ).fetchall()
        tables = [read_table(connection, name) for (name,) in names]
    for table in tables:
        resume(engine, table)


def resume(engine: SqliteEngine, table: Table) -> None:
    """Resume the backfills of a table, unless this engine already runs them."""
    if engine.database.read_only:
        return
    for target in _targets(table):
        if target.status == "CREATING":
            _launch(engine, table.name, target.id)


def wait(engine: SqliteEngine, timeout_seconds: float | None = None) -> None:
    """Wait for the backfills of this engine."""
    with _lock:
        threads = list(_running.get(engine, {}).values())
    for thread in threads:
        thread.join(timeout_seconds)


def fill(engine: SqliteEngine, table_name: str, index_id: int) -> None:
    """Add every item of the table to the index, then make the index ACTIVE."""
    pace = BatchPacer(engine.database)
    row = 0
    while True:
        step = engine.database.write(
            partial(_batch, table_name=table_name, index_id=index_id, after=row, pace=pace)
        )
        if step.done:
            engine.catalog.forget(table_name)
            return
        row = step.row
        pace.yield_to_writers()


def _launch(engine: SqliteEngine, table_name: str, index_id: int) -> None:
    with _lock:
        threads = _running.setdefault(engine, {})
        if index_id in threads:
            return
        thread = threading.Thread(
            target=_run, args=(engine, table_name, index_id), name=f"backfill-x{index_id}", daemon=True
        )
        threads[index_id] = thread
    thread.start()


def _run(engine: SqliteEngine, table_name: str, index_id: int) -> None:
    try:
        # If the engine is closed or the disk is full, the next DescribeTable starts the backfill again.
        with contextlib.suppress(EngineError, TableNotFound):
            fill(engine, table_name, index_id)
    finally:
        with _lock:
            _running.get(engine, {}).pop(index_id, None)


def _targets(table: Table) -> tuple[Index | ExpiryIndex, ...]:
    return table.indexes if table.expiry is None else (*table.indexes, table.expiry)


def _batch(
    connection: sqlite3.Connection, table_name: str, index_id: int, after: int, pace: BatchPacer
) -> _FillProgress:
    table = read_table(connection, table_name)
    target = next((one for one in _targets(table) if one.id == index_id), None)
    if target is None or target.status != "CREATING":
        # Another process dropped the index or finished the backfill.
        return _FillProgress(after, done=True)
    rows, last = _rows(connection, table, target, after, pace.items)
    if isinstance(target, Index):
        _add_entries(connection, table, target, rows)
    else:
        _add_times(connection, target, rows)
    if last is None:
        _activate(connection, table, index_id)
        return _FillProgress(after, done=True)
    pace.adapt(connection)
    return _FillProgress(last, done=False)


def _rows(
    connection: sqlite3.Connection, table: Table, target: Index | ExpiryIndex, after: int, limit: int
) -> tuple[list[_Row], int | None]:
    """Return the next rows that may have an index entry, and the last row seen if more may follow."""
    # SQLite searches the bytes for the expiry attribute, so that items without it are not decoded.
    wanted = b"" if isinstance(target, Index) else dumps(target.attribute) + b':{"N":'
    found = connection.execute(
        f"SELECT id, key, size, crc, CASE WHEN instr(item, ?) THEN item END FROM {table.items} "
        "WHERE id > ? ORDER BY id LIMIT ?",
        (wanted, after, limit),
    )
    rows: list[_Row] = []
    seen = read = 0
    try:
        for row in found:
            seen, after = seen + 1, row[0]
            if row[4] is not None:
                rows.append(row)
                read += len(row[4])
            if read > _BATCH_BYTES:
                return rows, after
    finally:
        found.close()
    return rows, after if seen == limit else None


def _add_entries(connection: sqlite3.Connection, table: Table, index: Index, rows: list[_Row]) -> None:
    items = added = 0
    for row_id, key, size, crc, raw in rows:
        if not is_row_sound(key, size, crc, raw):
            raise Corrupt(
                f"An item of table {table.name} does not match its checksum, so the index cannot be filled."
            )
        item = loads(raw)
        # A write may have added and counted the same entry since the index was defined.
        entry = encode_index_key(index, item, key)
        if entry is not None and add_entry(connection, index, entry, key, row_id):
            items += 1
            added += index.size(item, size)
    counts.add(connection, {(table.id, table.generation, index.id): [items, added]})


def _add_times(connection: sqlite3.Connection, target: ExpiryIndex, rows: list[_Row]) -> None:
    # Skip a damaged item; reading it raises Corrupt.
    times = (
        (expiry_index.expiry_second(loads(raw), target.attribute), row_id)
        for row_id, key, size, crc, raw in rows
        if is_row_sound(key, size, crc, raw)
    )
    expiry_index.add_entries(
        connection, target, [(second, row_id) for second, row_id in times if second is not None]
    )


def _activate(connection: sqlite3.Connection, table: Table, index_id: int) -> None:
    definition = copy.deepcopy(table.definition)
    for entry in definition.get("GlobalSecondaryIndexes", ()):
        if entry["Id"] == index_id:
            entry["IndexStatus"] = "ACTIVE"
            entry.pop("Backfilling", None)
    if definition.get("TimeToLive", {}).get("Id") == index_id:
        del definition["TimeToLive"]["Status"]
    catalog.replace(connection, table, definition)
