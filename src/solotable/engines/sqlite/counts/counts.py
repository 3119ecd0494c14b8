"""Items and bytes of tables and indexes: the stored counts, and a count of every item.

The stored counts lack only what open writers have not added yet: see `pending_counts`.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple

from solotable._protocol.json_codec import loads
from solotable.engines.sqlite.tables import layout
from solotable.engines.sqlite.tables.catalog import Catalog, Index, Table

_CHUNK = 5_000


class Count(NamedTuple):
    """A number of items, and their size in bytes."""

    items: int = 0
    bytes: int = 0


#: Counts by index id; 0 is the table itself.
Counts = dict[int, Count]
#: Whose counts change: table id, generation and index id.
CountOwner = tuple[int, int, int]
#: Changes of items and bytes.
CountDeltas = dict[CountOwner, list[int]]


def read(connection: sqlite3.Connection, table: Table) -> Counts:
    """Return the stored counts of a table and its indexes."""
    if layout.layout_of(connection) == 1:
        # Only a file that is opened read-only still has that layout.
        found = Catalog().load(connection, table.name)
        return {} if found is None or found.id != table.id else recount(connection, found)
    rows = connection.execute("SELECT index_id, items, bytes FROM counts WHERE table_id = ?", (table.id,))
    return {index_id: Count(items, size) for index_id, items, size in rows}


def since(connection: sqlite3.Connection, table: Table) -> dict[int, int]:
    """Return, by index id, the first generation whose deltas are not in the counts yet."""
    return dict(connection.execute("SELECT index_id, since FROM counts WHERE table_id = ?", (table.id,)))


def add(connection: sqlite3.Connection, deltas: CountDeltas) -> None:
    """Add deltas to the stored counts, except those that a recount has counted."""
    connection.executemany(
        "UPDATE counts SET items = items + ?, bytes = bytes + ? "
        "WHERE table_id = ? AND since <= ? AND index_id = ?",
        [(items, size, *owner) for owner, (items, size) in deltas.items() if items or size],
    )


def merge(into: CountDeltas, more: CountDeltas) -> None:
    """Add deltas to others, in place."""
    for owner, (items, size) in more.items():
        so_far = into.get(owner)
        if so_far is None:
            into[owner] = [items, size]
        else:
            so_far[0] += items
            so_far[1] += size


def store(connection: sqlite3.Connection, table: Table, counts: Counts) -> None:
    """Replace the stored counts of a table."""
    connection.executemany(
        "INSERT OR REPLACE INTO counts VALUES (?, ?, ?, ?, ?)",
        [(table.id, index_id, table.generation, *count) for index_id, count in counts.items()],
    )


def recount(connection: sqlite3.Connection, table: Table, pause: Callable[[], None] = lambda: None) -> Counts:
    """Count every item and every index entry in one snapshot; call `pause` between chunks."""
    items = f"SELECT id, size, NULL FROM {table.items} WHERE id > ? ORDER BY id LIMIT {_CHUNK}"
    counted = {0: _count(connection, items, 0, None, pause)}
    for index in table.indexes:
        item = "NULL" if index.projected is None else "i.item"
        entries = (
            f"SELECT x.key, i.size, {item} FROM x{index.id} AS x LEFT JOIN {table.items} AS i "
            f"ON i.id = x.row WHERE x.key > ? ORDER BY x.key LIMIT {_CHUNK}"
        )
        counted[index.id] = _count(connection, entries, b"", index, pause)
    return counted


def _count(
    connection: sqlite3.Connection,
    sql: str,
    after: Any,
    index: Index | None,
    pause: Callable[[], None],
) -> Count:
    items = size = 0
    while rows := connection.execute(sql, (after,)).fetchall():
        items += len(rows)
        # The size of a damaged row is unknown. It must not prevent the file from opening.
        with contextlib.suppress(TypeError, ValueError):
            if index is None or index.projected is None:
                size += sum(whole for _, whole, _ in rows)
            else:
                size += sum(index.size(loads(raw), 0) for _, _, raw in rows)
        last = rows[-1][0]
        if last.__class__ is not after.__class__ or last <= after:
            break
        after = last
        pause()
    return Count(items, size)
