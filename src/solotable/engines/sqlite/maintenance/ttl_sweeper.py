"""The TTL sweeper: removes expired items and old change records.

A sweep reads the expiry index of each table with time to live, so its cost grows with the expired items. The
transaction that removes an item checks it again, because its expiry time may have changed. The caller decides
when to call `sweep`. `change_pruning` removes the change records.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from solotable.engines.sqlite.file.pacing import BatchPacer
from solotable.engines.sqlite.items import expiry_index, streams
from solotable.engines.sqlite.items.storage import StoredItem, Writer, is_row_sound
from solotable.engines.sqlite.recovery import backups
from solotable.engines.sqlite.tables.catalog import Table
from solotable.engines.sqlite.tables.definitions import read_definitions, read_table
from solotable.errors import TableNotFound

from . import change_pruning, index_backfill

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine


def sweep(engine: SqliteEngine) -> int:
    """Remove expired items, change records and tokens; return the number of items."""
    with engine.database.read() as connection:
        definitions = read_definitions(connection, backups=True)
    index_backfill.resume_all(engine)
    removed = 0
    for name, definition in definitions:
        if definition.get("TimeToLive"):
            removed += _sweep_table(engine, name)
    _advance_streams(engine)
    backups.expire(engine, definitions)
    change_pruning.prune(engine)
    _trim_rest(engine)
    # Without this, other processes would see the last counts of an idle engine only after it closes.
    engine.pending_counts.flush()
    return removed


def _sweep_table(engine: SqliteEngine, name: str) -> int:
    pace = BatchPacer(engine.database)
    now = _now(engine)
    after = expiry_index.oldest_entry(now)
    removed = 0
    while True:
        try:
            with engine.database.snapshot() as connection:
                table = read_table(connection, name)
                entries = _due(connection, table, after, now, pace.items)
            if not entries:
                return removed
            removed += _remove(engine, name, entries, pace)
        except TableNotFound:
            return removed
        after = entries[-1]
        pace.yield_to_writers()


def _due(
    connection: sqlite3.Connection, table: Table, after: expiry_index.Entry, now_seconds: float, limit: int
) -> list[expiry_index.Entry]:
    if table.expiry is None:
        # Time to live was disabled during the sweep.
        return []
    return expiry_index.find_due(connection, table.expiry, after=after, now_seconds=now_seconds, limit=limit)


def _remove(engine: SqliteEngine, name: str, entries: list[expiry_index.Entry], pace: BatchPacer) -> int:
    def action(writer: Writer) -> int:
        table = read_table(writer.connection, name)
        if table.expiry is None:
            return 0
        removed = 0
        for _, row_id in entries:
            found = _find(writer.connection, table, row_id)
            if found is not None and expiry_index.is_expired(
                found[1].item, table.expiry.attribute, _now(engine)
            ):
                writer.remove(table, *found)
                removed += 1
        pace.adapt(writer.connection)
        return removed

    return engine.write(action, by_service=True)


def _find(connection: sqlite3.Connection, table: Table, row_id: int) -> tuple[bytes, StoredItem] | None:
    """Return the item of a row and its key; None if it was removed or is damaged."""
    found = connection.execute(
        f"SELECT key, size, crc, item FROM {table.items} WHERE id = ?", (row_id,)
    ).fetchone()
    # Skip a damaged item; reading it raises Corrupt.
    if found is None or not is_row_sound(*found):
        return None
    key, size, _, raw = found
    return key, StoredItem(row_id, size, raw)


def _now(engine: SqliteEngine) -> float:
    return engine.now_micros() / 1_000_000


def _advance_streams(engine: SqliteEngine) -> None:
    """Store the trim position of each stream; backups may still need the trimmed changes."""
    oldest_micros = engine.now_micros() - streams.RETENTION_MICROS
    with engine.database.snapshot() as connection:
        trimmed = streams.find_trimmed(connection, oldest_micros)
    if trimmed:
        engine.database.write(
            lambda connection: connection.executemany("UPDATE streams SET trimmed = ? WHERE arn = ?", trimmed)
        )


def _trim_rest(engine: SqliteEngine) -> None:
    """Delete streams that were disabled more than a day ago, and expired tokens."""
    now = engine.now_micros()
    statements = (
        ("streams", "disabled_micros < ?", now - streams.RETENTION_MICROS),
        ("tokens", "until_micros < ?", now),
    )
    for table, condition, limit in statements:
        with engine.database.read() as connection:
            found = connection.execute(f"SELECT 1 FROM {table} WHERE {condition}", (limit,)).fetchone()
        if found is not None:
            _delete(engine, f"DELETE FROM {table} WHERE {condition}", limit)


def _delete(engine: SqliteEngine, statement: str, limit: int) -> None:
    engine.database.write(lambda connection: connection.execute(statement, (limit,)))
