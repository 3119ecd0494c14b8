"""The changes after a position, by key: what undoing them gives back.

The state of a table at a position is its current state, except for each item that changed since: that one is
the old image of its first change after the position. This holds at every later moment, so a copy may read the
table in short steps while writers continue.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from solotable._protocol.json_codec import loads
from solotable._values import item_size
from solotable._values.checksum import crc32
from solotable.engines.sqlite.items.change_rows import COLUMNS, decode_change
from solotable.engines.sqlite.items.keys import encode_key
from solotable.engines.sqlite.tables import windows
from solotable.engines.sqlite.tables.catalog import Table
from solotable.errors import Corrupt

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: A row of an item: key, size, checksum, JSON.
ItemRow = tuple[bytes, int, int, bytes]
_CHUNK = 20_000


class UndoIndex:
    """The first change after a position, for each key of one table; in a temporary file."""

    def __init__(self, stream: str, sequence: int) -> None:
        self._stream = stream
        self.sequence = sequence
        self._read_until = sequence
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("CREATE TABLE firsts (key BLOB PRIMARY KEY, sequence INTEGER) WITHOUT ROWID")

    def catch_up(self, connection: sqlite3.Connection, limit: int = -1) -> bool:
        """Read the changes that are new, at most `limit`; return whether that were all of them."""
        newest = windows.newest_sequence(connection)
        # All tables: damage shows in the order of the numbers, or in a checksum.
        rows = connection.execute(
            f"SELECT {COLUMNS} FROM changes WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?",
            (self._read_until, newest, limit),
        )
        count = 0
        self._file.execute("BEGIN")
        try:
            while found := rows.fetchmany(1_000):
                count += len(found)
                self._file.executemany("INSERT OR IGNORE INTO firsts VALUES (?, ?)", self._own(found))
        finally:
            rows.close()
            self._file.execute("COMMIT")
        if count == limit:
            return False
        self._read_until = newest
        return True

    def _own(self, rows: list[tuple[Any, ...]]) -> list[tuple[bytes, int]]:
        """Return the keys and numbers of this table's changes; raise Corrupt if the log is damaged."""
        found: list[tuple[bytes, int]] = []
        last = self._read_until
        for row in rows:
            change = decode_change(row)
            if change.sequence <= last:
                raise Corrupt(f"The log of changes is damaged after change {last}; nothing was restored.")
            last = change.sequence
            if change.stream == self._stream and not change.is_empty:
                found.append((change.key, last))
        self._read_until = last
        return found

    def newer_keys(self, connection: sqlite3.Connection) -> set[bytes]:
        """Return the keys of changes that were not read yet, as an open transaction sees them.

        They are not remembered: the transaction may be rolled back.
        """
        rows = connection.execute(
            "SELECT key FROM changes WHERE sequence > ? AND stream = ?", (self._read_until, self._stream)
        )
        return {key for (key,) in rows}

    def read_all(self, engine: SqliteEngine) -> None:
        """Read all changes so far, in short reads."""
        while True:
            with engine.database.snapshot() as connection:
                if self.catch_up(connection, _CHUNK):
                    return

    def firsts(self, low: bytes, high: bytes, limit: int = -1) -> list[tuple[bytes, int]]:
        """Return the keys in [low, high) that changed, each with its first change, in order."""
        return self._file.execute(
            "SELECT key, sequence FROM firsts WHERE key >= ? AND key < ? ORDER BY key LIMIT ?",
            (low, high, limit),
        ).fetchall()

    def contains(self, key: bytes) -> bool:
        """Say whether a key changed."""
        return self._file.execute("SELECT 1 FROM firsts WHERE key = ?", (key,)).fetchone() is not None

    def count(self) -> int:
        """Return the number of keys that changed."""
        return int(self._file.execute("SELECT count(*) FROM firsts").fetchone()[0])

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()


def check_file(engine: SqliteEngine) -> None:
    """Raise Corrupt if SQLite finds the file damaged.

    Rows have checksums, but a damaged page may also hide rows. A restore would then lack items, or keep items
    that did not exist.
    """
    if engine.database.in_memory:
        return
    with engine.database.read() as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise Corrupt(f"{engine.database.path} is damaged ({verdict}); nothing was restored.")


def read_old_image(connection: sqlite3.Connection, table: Table, key: bytes, sequence: int) -> ItemRow | None:
    """Return the item of a key before a change, or None if there was none."""
    row = connection.execute(f"SELECT {COLUMNS} FROM changes WHERE sequence = ?", (sequence,)).fetchone()
    change = None if row is None else decode_change(row)
    if change is None or change.stream != table.definition["TableId"] or change.key != key:
        raise Corrupt(f"Change {sequence} of table {table.name} is missing; nothing was restored from it.")
    return None if change.old is None else image_row(table, key, change.old)


def image_row(table: Table, key: bytes, raw: bytes) -> ItemRow:
    """Return the row of an image, or raise Corrupt if it is not the item of this key."""
    item = loads(raw)
    if encode_key(table.schema, item) != key:
        raise Corrupt(f"A change of table {table.name} has another key than its item; it was not restored.")
    return key, item_size(item), crc32(raw, crc32(key)), raw
