"""Copy the items of a table as they were at a position, in short steps.

A step reads a range of keys in one snapshot and writes it in one transaction. Writers continue between and
during the steps: the state at a position does not change. The last key of the target says how far a copy has
come, so an interrupted copy continues there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solotable._protocol.json_codec import loads
from solotable.engines.sqlite.file.pacing import BatchPacer
from solotable.engines.sqlite.items.keys import encode_index_key
from solotable.engines.sqlite.items.storage import Writer, is_row_sound
from solotable.engines.sqlite.tables.catalog import Table
from solotable.engines.sqlite.tables.definitions import read_table
from solotable.errors import Corrupt, RecoveryError, TableNotFound

from .positions import require_window
from .scopes import Scope
from .undo import ItemRow, UndoIndex, check_file, read_old_image

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: The most bytes that a step reads before it writes them.
_STEP_BYTES = 2_000_000
#: The most items of a step while other writers wait, and otherwise.
_SMALL_STEP, _LARGE_STEP = 250, 2_000

#: Takes the items that were copied so far, and the items of the source.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySource:
    """A table, the id that it must still have, and the part of it that is copied."""

    engine: SqliteEngine
    name: str
    table_id: str
    #: Undoes the changes after the position; None copies the table as it is, as a backup never changes.
    undo: UndoIndex | None
    scope: Scope
    #: Whether the file keeps the changes until the copy is complete.
    is_pinned: bool = False


def copy_items(
    source: CopySource, engine: SqliteEngine, target: str, progress: Progress | None = None
) -> int:
    """Copy until the source has no more items; return how many items this call has copied."""
    copied = 0
    pace = BatchPacer(engine.database)
    check_file(source.engine)
    if source.undo is not None:
        source.undo.read_all(source.engine)
    start: bytes | None = _next_key(engine, target)
    while start is not None:
        rows, start = read_step(source, start, _SMALL_STEP if pace.is_contended else _LARGE_STEP)
        if rows:
            copied += _write_step(engine, target, rows, pace)
            if source.engine is engine:
                pace.yield_to_writers()
        if progress is not None:
            progress(copied, _count(source))
    return copied


def read_step(source: CopySource, start: bytes, limit: int) -> tuple[list[ItemRow], bytes | None]:
    """Return the next items of the state, from the key `start` on, and the next start; None at the end."""
    undo, scope = source.undo, source.scope
    with source.engine.database.snapshot() as connection:
        table = _source_table(connection, source)
        low, high = scope.bounds(table.schema)
        start = max(start, low)
        current, end = _current_rows(connection, table, start, high, limit)
        past: dict[bytes, ItemRow | None] = {}
        if undo is not None:
            undo.catch_up(connection)
            changed = undo.firsts(start, end, limit)
            if len(changed) == limit:
                # A range with few items may have many that were removed.
                end = changed[-1][0] + b"\0"
            past = {key: read_old_image(connection, table, key, number) for key, number in changed}
    found = {row[0]: row for row in current if row[0] < end and row[0] not in past}
    found.update((key, row) for key, row in past.items() if row is not None)
    rows = [found[key] for key in sorted(found)]
    if not scope.is_whole:
        rows = [row for row in rows if scope.contains(table.schema, row[0], row[3])]
    return rows, None if end >= high else end


def _source_table(connection: sqlite3.Connection, source: CopySource) -> Table:
    table = read_table(connection, source.name)
    if table.definition["TableId"] != source.table_id:
        raise TableNotFound(f"Table {source.name} was deleted while it was copied.")
    if source.undo is not None and not source.is_pinned:
        window = require_window(connection, table)
        if window.start > source.undo.sequence:
            raise RecoveryError(
                f"The window of table {source.name} does not reach back to this state any more."
            )
    return table


def _current_rows(
    connection: sqlite3.Connection, table: Table, start: bytes, high: bytes, limit: int
) -> tuple[list[ItemRow], bytes]:
    """Return the next rows, and the end of the range that they are complete for."""
    found = connection.execute(
        f"SELECT key, size, crc, item FROM {table.items} WHERE key >= ? AND key < ? ORDER BY key LIMIT ?",
        (start, high, limit),
    )
    rows: list[ItemRow] = []
    size = 0
    try:
        for row in found:
            if not is_row_sound(*row) or row[0] < start:
                raise Corrupt(
                    f"An item of table {table.name} does not match its checksum; it was not copied."
                )
            rows.append(row)
            start = row[0] + b"\0"
            size += len(row[3])
            if size > _STEP_BYTES:
                return rows, start
    finally:
        found.close()
    return rows, start if len(rows) == limit else high


def _write_step(engine: SqliteEngine, target: str, rows: list[ItemRow], pace: BatchPacer) -> int:
    def action(writer: Writer) -> int:
        table = read_table(writer.connection, target)
        if "Copy" not in table.definition:
            # Another process has completed the copy.
            return 0
        pace.adapt(writer.connection)
        if not table.indexes and writer.insert_rows(table, rows):
            return len(rows)
        return sum(_insert(writer, table, row) for row in rows)

    return engine.write(action)


def _insert(writer: Writer, table: Table, row: ItemRow) -> bool:
    """Insert an item that is not there yet, with its index entries."""
    row_id = writer.insert_row(table, *row)
    if row_id is None:
        return False
    if table.indexes:
        item = loads(row[3])
        for index in table.indexes:
            entry = encode_index_key(index, item, row[0])
            if entry is not None:
                writer.insert_entry(table, index, entry, row[0], row_id, index.size(item, row[1]))
    return True


def _next_key(engine: SqliteEngine, target: str) -> bytes:
    """Return the key after the last one that was copied."""
    with engine.database.snapshot() as connection:
        table = read_table(connection, target)
        row = connection.execute(f"SELECT max(key) FROM {table.items}").fetchone()
    return b"" if row[0] is None else row[0] + b"\0"


def _count(source: CopySource) -> int:
    with source.engine.database.read() as connection:
        table = read_table(connection, source.name)
    return source.engine.pending_counts.read(table)[0].items
