"""The versions of an item, and the replay of all changes backwards, which verifies a restore.

The replay does not use `undo`: it undoes one change after the other, and checks each new image on the way.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solotable._protocol.json_codec import loads
from solotable._values import Item
from solotable._values.checksum import crc32
from solotable.engines.sqlite.items.keys import check_key, encode_key
from solotable.engines.sqlite.items.storage import check_change, find, image_digest
from solotable.engines.sqlite.tables import windows
from solotable.engines.sqlite.tables.catalog import Table
from solotable.engines.sqlite.tables.definitions import read_table
from solotable.errors import Corrupt

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
            "SELECT sequence, at_micros, by_service, old, new, crc FROM changes "
            "WHERE sequence > ? AND stream = ? AND key = ? ORDER BY sequence",
            (window.start, window.stream, raw_key),
        ).fetchall()
        stored = find(connection, table, raw_key)
    after = None if stored is None else stored.raw
    versions: list[Version] = []
    for sequence, at_micros, by_service, old, new, crc in reversed(rows):
        check_change(old, new, crc)
        _check_new_image(table, sequence, by_service, new, after)
        versions.append(_version(sequence, at_micros, by_service, after))
        after = old
    if after is not None:
        versions.append(_version(window.start, window.start_micros(0, 0), 0, after))
    return versions[::-1]


def _version(sequence: int, at_micros: int, by_service: int, raw: bytes | None) -> Version:
    return Version(
        sequence=sequence,
        at_micros=at_micros,
        by_service=bool(by_service & 1),
        item=None if raw is None else loads(raw),
    )


def _check_new_image(
    table: Table, sequence: int, by_service: int, new: bytes | None, expected: bytes | None
) -> None:
    """Raise Corrupt if a change did not lead to the image that the next one has."""
    if by_service >= 2:
        matches = new == (None if expected is None else image_digest(expected))
    else:
        matches = new == expected
    if not matches:
        raise Corrupt(f"Change {sequence} of table {table.name} does not lead to the next state of its item.")


class Replay:
    """The items at a position as checksums, found by undoing every change one by one."""

    def __init__(self, engine: SqliteEngine, name: str, sequence: int) -> None:
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._file.execute("CREATE TABLE state (key BLOB PRIMARY KEY, crc INTEGER, raw BLOB) WITHOUT ROWID")
        self.changes = 0
        with engine.database.snapshot() as connection:
            table = read_table(connection, name)
            self._file.execute("BEGIN")
            self._load(connection, table)
            self._undo(connection, table, sequence)
            self._file.execute("COMMIT")

    def _load(self, connection: sqlite3.Connection, table: Table) -> None:
        rows = connection.execute(f"SELECT key, item FROM {table.items}")
        while found := rows.fetchmany(1_000):
            # The images of items that do not change are not needed: a checksum is enough.
            self._file.executemany(
                "INSERT INTO state VALUES (?, ?, NULL)", [(key, crc32(raw)) for key, raw in found]
            )

    def _undo(self, connection: sqlite3.Connection, table: Table, sequence: int) -> None:
        before = windows.newest_sequence(connection) + 1
        while True:
            rows = connection.execute(
                "SELECT sequence, by_service, key, old, new, crc FROM changes "
                "WHERE sequence > ? AND sequence < ? AND stream = ? ORDER BY sequence DESC LIMIT 1000",
                (sequence, before, table.definition["TableId"]),
            ).fetchall()
            if not rows:
                return
            for number, by_service, key, old, new, crc in rows:
                check_change(old, new, crc)
                if old is None and new is None:
                    continue
                self._undo_one(table, number, by_service, key, old, new)
            before = rows[-1][0]

    def _undo_one(
        self, table: Table, number: int, by_service: int, key: bytes, old: bytes | None, new: bytes | None
    ) -> None:
        self.changes += 1
        row = self._file.execute("SELECT crc FROM state WHERE key = ?", (key,)).fetchone()
        led_to = None if new is None else int.from_bytes(new, "big") if by_service >= 2 else crc32(new)
        if led_to != (None if row is None else row[0]):
            raise Corrupt(
                f"Change {number} of table {table.name} does not lead to the next state of its item."
            )
        if old is None:
            self._file.execute("DELETE FROM state WHERE key = ?", (key,))
        else:
            self._file.execute("INSERT OR REPLACE INTO state VALUES (?, ?, NULL)", (key, crc32(old)))

    def differences(self, engine: SqliteEngine, name: str) -> int:
        """Count the items of a table that differ from the state: missing, additional, or other."""
        with engine.database.snapshot() as connection:
            table = read_table(connection, name)
            rows = connection.execute(f"SELECT key, item FROM {table.items}")
            wrong = seen = 0
            for key, raw in rows:
                found = self._file.execute("SELECT crc FROM state WHERE key = ?", (key,)).fetchone()
                seen += found is not None
                wrong += found is None or found[0] != crc32(raw)
        return wrong + self.items - seen

    @property
    def items(self) -> int:
        """The number of items at the position."""
        return int(self._file.execute("SELECT count(*) FROM state").fetchone()[0])

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()
