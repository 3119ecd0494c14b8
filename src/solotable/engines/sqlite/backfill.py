"""The filling of a global index that was added to a table with items, while the table is in use.

Writes keep the index from the moment it is defined; this adds the items that were there before, in
short transactions so that writers never wait for long. Items that do not fit the index's key are
left out. A filling that was cut short starts anew: adding an entry twice changes nothing, and the
entries of removed items are removed with them.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sqlite3
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from solotable.errors import Corrupt, EngineError, TableNotFound
from solotable.protocol.limits import LONGEST_PARTITION_KEY, LONGEST_SORT_KEY
from solotable.protocol.text import loads
from solotable.values import Item, value_size

from . import catalog
from .catalog import Index, KeyAttribute, Table
from .definitions import stored
from .keys import index_bytes
from .storage import entry_checksum, is_sound

if TYPE_CHECKING:
    from .engine import SqliteEngine

#: A table of more items is filled behind the caller's back.
SMALL_TABLE = 1_000
_BATCH_ITEMS = 500
_BATCH_BYTES = 4_000_000
#: Python's locks are not fair: without a pause a waiting writer might never get its turn.
_PAUSE_SECONDS = 0.002

_lock = threading.Lock()
_running: WeakKeyDictionary[SqliteEngine, dict[int, threading.Thread]] = WeakKeyDictionary()


def _forget_threads() -> None:
    """Start over in a forked child, which has none of the parent's threads."""
    global _lock  # noqa: PLW0603 - a thread that is not in the child may hold the old one
    _lock = threading.Lock()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


@dataclass(frozen=True, slots=True)
class _Step:
    """How far a batch got: the last row it saw, or that there is no more to do."""

    row: int
    done: bool


def start(engine: SqliteEngine, table_name: str, index_id: int) -> None:
    """Fill a new index: at once when the table is small, in a thread when it is not."""
    with engine.database.snapshot() as connection:
        items_table = stored(connection, table_name).items
        (items,) = connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {items_table} LIMIT {SMALL_TABLE + 1})"
        ).fetchone()
    if items <= SMALL_TABLE:
        fill(engine, table_name, index_id)
    else:
        _launch(engine, table_name, index_id)


def resume_all(engine: SqliteEngine) -> None:
    """Go on filling whatever was being filled when the file was last closed."""
    with engine.database.read() as connection:
        names = connection.execute(
            "SELECT name FROM catalog WHERE instr(definition, '\"CREATING\"')"
        ).fetchall()
        tables = [stored(connection, name) for (name,) in names]
    for table in tables:
        resume(engine, table)


def resume(engine: SqliteEngine, table: Table) -> None:
    """Go on filling the table's unfinished indexes, unless this engine is at it already."""
    if engine.database.read_only:
        return
    for index in table.indexes:
        if index.status == "CREATING":
            _launch(engine, table.name, index.id)


def wait(engine: SqliteEngine, timeout_seconds: float | None = None) -> None:
    """Wait for the fillings that this engine has under way."""
    with _lock:
        threads = list(_running.get(engine, {}).values())
    for thread in threads:
        thread.join(timeout_seconds)


def fill(engine: SqliteEngine, table_name: str, index_id: int, *, pause_seconds: float = 0.0) -> None:
    """Add every item of the table to the index, then make the index ACTIVE."""
    row = 0
    while True:
        step = engine.database.write(partial(_batch, table_name=table_name, index_id=index_id, after=row))
        if step.done:
            engine.catalog.forget(table_name)
            return
        row = step.row
        if pause_seconds:
            time.sleep(pause_seconds)


def _launch(engine: SqliteEngine, table_name: str, index_id: int) -> None:
    with _lock:
        mine = _running.setdefault(engine, {})
        if index_id in mine:
            return
        thread = threading.Thread(
            target=_run, args=(engine, table_name, index_id), name=f"backfill-x{index_id}", daemon=True
        )
        mine[index_id] = thread
    thread.start()


def _run(engine: SqliteEngine, table_name: str, index_id: int) -> None:
    try:
        # The engine was closed, or the disk is full: the next DescribeTable starts anew.
        with contextlib.suppress(EngineError, TableNotFound):
            fill(engine, table_name, index_id, pause_seconds=_PAUSE_SECONDS)
    finally:
        with _lock:
            _running.get(engine, {}).pop(index_id, None)


def _batch(connection: sqlite3.Connection, table_name: str, index_id: int, after: int) -> _Step:
    table = stored(connection, table_name)
    index = next((one for one in table.indexes if one.id == index_id), None)
    if index is None or index.status != "CREATING":
        # Somebody else has dropped it, or has finished first.
        return _Step(after, done=True)
    rows = connection.execute(
        f"SELECT id, key, size, crc, item FROM {table.items} WHERE id > ? ORDER BY id", (after,)
    )
    entries: list[tuple[bytes, int, int]] = []
    seen = read = 0
    for row_id, key, size, crc, raw in rows:
        if seen == _BATCH_ITEMS or read > _BATCH_BYTES:
            break
        if not is_sound(key, size, crc, raw):
            raise Corrupt(
                f"An item of table {table_name} does not match its checksum; the index is not filled."
            )
        item = loads(raw)
        if fits(index, item):
            entry = index_bytes(index, item, key) or b""
            entries.append((entry, row_id, entry_checksum(entry, key)))
        seen, read, after = seen + 1, read + len(raw), row_id
    else:
        _add(connection, index_id, entries)
        _activate(connection, table, index_id)
        return _Step(after, done=True)
    rows.close()
    _add(connection, index_id, entries)
    return _Step(after, done=False)


def _add(connection: sqlite3.Connection, index_id: int, entries: list[tuple[bytes, int, int]]) -> None:
    # A write may have added the same entry since the index was defined.
    connection.executemany(f"INSERT OR REPLACE INTO x{index_id} VALUES (?, ?, ?)", entries)


def _activate(connection: sqlite3.Connection, table: Table, index_id: int) -> None:
    definition = copy.deepcopy(table.definition)
    for entry in definition["GlobalSecondaryIndexes"]:
        if entry["Id"] == index_id:
            entry["IndexStatus"] = "ACTIVE"
            entry.pop("Backfilling", None)
    catalog.replace(connection, table, definition)


def fits(index: Index, item: Item) -> bool:
    """Say whether an item has every key attribute of the index, with its type, and none too long."""
    return _fit(index.schema.partition, item, LONGEST_PARTITION_KEY) and _fit(
        index.schema.sort, item, LONGEST_SORT_KEY
    )


def _fit(attributes: tuple[KeyAttribute, ...], item: Item, longest: int) -> bool:
    for attribute in attributes:
        value = item.get(attribute.name)
        if value is None or not value.get(attribute.kind):
            return False
        if attribute.kind != "N" and value_size(value) > longest:
            return False
    return True
