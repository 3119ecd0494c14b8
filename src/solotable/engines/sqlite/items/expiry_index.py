"""The expiry index: the items of a table with time to live, by the second they expire.

A write updates it in its own transaction, as it does any index. The index finds candidates: a sweep checks
the item before it removes it.
"""

from __future__ import annotations

import sqlite3
from decimal import ROUND_FLOOR, Decimal

from solotable._values import Item
from solotable.engines.sqlite.tables.catalog import ExpiryIndex

# DynamoDB: an item that should have expired over five years ago is left alone.
OLDEST_SECONDS = 5 * 365 * 86_400
#: SQLite's integers end at 2**63; larger numbers are stored as this one.
_LARGEST = 1 << 62

#: A second, and the row of an item that expires in it.
Entry = tuple[int, int]


def is_expired(item: Item, attribute: str, now_seconds: float) -> bool:
    """Say whether the attribute is a time in seconds in the past, but not over five years ago."""
    number = item.get(attribute, {}).get("N")
    if number is None:
        return False
    expires = Decimal(number)
    return Decimal(now_seconds) - OLDEST_SECONDS <= expires < Decimal(now_seconds)


def expiry_second(item: Item | None, attribute: str) -> int | None:
    """Return the second in which an item expires; None if it does not expire."""
    number = None if item is None else item.get(attribute, {}).get("N")
    if number is None:
        return None
    if number.isdigit() and len(number) < 18:
        return int(number)
    second = int(Decimal(number).to_integral_value(ROUND_FLOOR))
    return max(-_LARGEST, min(second, _LARGEST))


def move_entry(
    connection: sqlite3.Connection, expiry: ExpiryIndex, row: int, old: Item | None, new: Item | None
) -> None:
    """Move an item's entry from the old item's second to the new one's."""
    if old is not None and new is not None and old.get(expiry.attribute) == new.get(expiry.attribute):
        return
    before, after = expiry_second(old, expiry.attribute), expiry_second(new, expiry.attribute)
    if before == after:
        return
    if before is not None:
        connection.execute(f"DELETE FROM e{expiry.id} WHERE second = ? AND row = ?", (before, row))
    if after is not None:
        add_entries(connection, expiry, [(after, row)])


def add_entries(connection: sqlite3.Connection, expiry: ExpiryIndex, entries: list[Entry]) -> None:
    """Add entries; ignore those that exist."""
    connection.executemany(f"INSERT OR IGNORE INTO e{expiry.id} VALUES (?, ?)", entries)


def find_due(
    connection: sqlite3.Connection, expiry: ExpiryIndex, *, after: Entry, now_seconds: float, limit: int
) -> list[Entry]:
    """Return the next entries, after `after`, of items that may have expired."""
    rows = connection.execute(due_sql(expiry), (*after, int(now_seconds), limit))
    # A damaged page may give entries out of order or of another type. A sweep must end all the same.
    return [
        (second, row)
        for second, row in rows
        if second.__class__ is int and row.__class__ is int and (second, row) > after
    ]


def due_sql(expiry: ExpiryIndex) -> str:
    """Return the statement of `find_due`; a test explains its plan."""
    return (
        f"SELECT second, row FROM e{expiry.id} WHERE (second, row) > (?, ?) AND second <= ? "
        "ORDER BY second, row LIMIT ?"
    )


def oldest_entry(now_seconds: float) -> Entry:
    """Return the entry after which entries are young enough to expire."""
    return int(now_seconds - OLDEST_SECONDS) - 1, 0
