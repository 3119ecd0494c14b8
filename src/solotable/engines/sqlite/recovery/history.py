"""The versions of an item, and the replay of all changes backwards, which verifies a restore.

The replay does not use `undo`: it undoes one change after the other, and checks each new image on the way.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from solotable._protocol.json_codec import loads
from solotable._values import Item
from solotable.engines.sqlite.items.change_rows import (
    BY_SERVICE,
    COLUMNS,
    Change,
    decode_change,
    image_checksum,
)
from solotable.engines.sqlite.items.keys import BEYOND, check_key, encode_index_key, encode_key, has_index_key
from solotable.engines.sqlite.items.storage import find, read_chunks
from solotable.engines.sqlite.tables import windows
from solotable.engines.sqlite.tables.catalog import Index, Table
from solotable.engines.sqlite.tables.definitions import read_table
from solotable.errors import Corrupt, RecoveryError

from .positions import require_window

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """An item after a change; `item` is None if the change removed it."""

    sequence: int
    at_micros: int
    by_service: bool
    item: Item | None


def read_history(engine: SqliteEngine, name: str, key: Item) -> list[Version]:
    """Return the versions of an item in the window, oldest first; the first may be older than the window."""
    with engine.database.snapshot() as connection:
        table = read_table(connection, name)
        window = require_window(connection, table)
        check_key(table, key)
        raw_key = encode_key(table.schema, key)
        rows = connection.execute(
            f"SELECT {COLUMNS} FROM changes WHERE sequence > ? AND stream = ? AND key = ? ORDER BY sequence",
            (window.start, window.stream, raw_key),
        ).fetchall()
        stored = find(connection, table, raw_key)
    after = None if stored is None else stored.raw
    versions: list[Version] = []
    for row in reversed(rows):
        change = decode_change(row)
        _check_chain(table, change, None if after is None else image_checksum(raw_key, after))
        versions.append(_version(change.sequence, change.at_micros, change.flags, after))
        after = change.old
    if after is not None:
        versions.append(_version(window.start, window.start_micros(0, 0), 0, after))
    return versions[::-1]


def _version(sequence: int, at_micros: int, flags: int, raw: bytes | None) -> Version:
    return Version(
        sequence=sequence,
        at_micros=at_micros,
        by_service=bool(flags & BY_SERVICE),
        item=None if raw is None else loads(raw),
    )


def _check_chain(table: Table, change: Change, digest: int | None) -> None:
    """Raise Corrupt if a change did not lead to the image that the next one has."""
    if not change.leads_to(digest):
        raise Corrupt(
            f"Change {change.sequence} of table {table.name} does not lead to the next state of its item."
        )


class Replay:
    """The items at a position as checksums, found by undoing every change one by one."""

    def __init__(self, engine: SqliteEngine, name: str, sequence: int) -> None:
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._file.execute("CREATE TABLE state (key BLOB PRIMARY KEY, crc INTEGER) WITHOUT ROWID")
        self.changes = 0
        with engine.database.snapshot() as connection:
            table = read_table(connection, name)
            if sequence < require_window(connection, table).start:
                raise RecoveryError(f"The window of table {name} does not reach back to this state any more.")
            self._file.execute("BEGIN")
            self._load(connection, table)
            self._undo(connection, table, sequence)
            self._file.execute("COMMIT")

    def _load(self, connection: sqlite3.Connection, table: Table) -> None:
        rows = connection.execute(f"SELECT key, item FROM {table.items}")
        while found := rows.fetchmany(1_000):
            self._file.executemany(
                "INSERT INTO state VALUES (?, ?)", [(key, image_checksum(key, raw)) for key, raw in found]
            )

    def _undo(self, connection: sqlite3.Connection, table: Table, sequence: int) -> None:
        before = windows.newest_sequence(connection) + 1
        while True:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM changes "
                "WHERE sequence > ? AND sequence < ? AND stream = ? ORDER BY sequence DESC LIMIT 1000",
                (sequence, before, table.definition["TableId"]),
            ).fetchall()
            if not rows:
                return
            for row in rows:
                change = decode_change(row)
                if not change.is_empty:
                    self._undo_one(table, change)
            before = rows[-1][0]

    def _undo_one(self, table: Table, change: Change) -> None:
        self.changes += 1
        row = self._file.execute("SELECT crc FROM state WHERE key = ?", (change.key,)).fetchone()
        _check_chain(table, change, None if row is None else row[0])
        if change.old is None:
            self._file.execute("DELETE FROM state WHERE key = ?", (change.key,))
        else:
            self._file.execute(
                "INSERT OR REPLACE INTO state VALUES (?, ?)",
                (change.key, image_checksum(change.key, change.old)),
            )

    def differences(self, engine: SqliteEngine, name: str) -> int:
        """Count the items of a table that differ from the state: missing, additional, or other."""
        with engine.database.snapshot() as connection:
            table = read_table(connection, name)
            rows = connection.execute(f"SELECT key, item FROM {table.items}")
            wrong = seen = 0
            for key, raw in rows:
                found = self._file.execute("SELECT crc FROM state WHERE key = ?", (key,)).fetchone()
                seen += found is not None
                wrong += found is None or found[0] != image_checksum(key, raw)
        return wrong + self.items - seen

    @property
    def items(self) -> int:
        """The number of items at the position."""
        return int(self._file.execute("SELECT count(*) FROM state").fetchone()[0])

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()


def count_wrong_entries(connection: sqlite3.Connection, table: Table, index: Index) -> int:
    """Read a table through an index, and count what does not match the items."""
    expected = sum(
        has_index_key(index, loads(raw)) for (raw,) in connection.execute(f"SELECT item FROM {table.items}")
    )
    wrong = found = 0
    for rows in read_chunks(connection, table, index, low=b"", high=BEYOND):
        for _, raw, _, entry, key, _ in cast(list[tuple[int, bytes, int, bytes, bytes, int]], rows):
            found += 1
            item = loads(raw)
            stored = find(connection, table, key)
            is_right = (
                stored is not None
                and stored.item == item
                and encode_key(table.schema, item) == key
                and encode_index_key(index, item, key) == entry
            )
            wrong += not is_right
    return wrong + abs(expected - found)
