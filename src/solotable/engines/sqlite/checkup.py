"""What can be said of a database file: versions, settings, integrity, and what to do about it.

It reads; it repairs nothing.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from solotable.errors import EngineError
from solotable.protocol.text import loads
from solotable.values import Item

from . import catalog, ddl
from .backfill import fits
from .connection import Database
from .keys import index_bytes
from .storage import is_sound, leads

#: The WAL-reset fault was mended in these versions.
_MENDED = ((3, 44, 6), (3, 50, 7), (3, 51, 3))


@dataclass(slots=True)
class Checkup:
    """The findings on one file; `problems` is empty when it is sound."""

    path: str
    sqlite: str = sqlite3.sqlite_version
    layout: int = 0
    settings: dict[str, str | int] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)


def wal_reset_is_mended(version: tuple[int, ...]) -> bool:
    """Say whether this SQLite cannot lose commits to a concurrent checkpoint."""
    if version >= _MENDED[-1]:
        return True
    return any(version[:2] == mended[:2] and version >= mended for mended in _MENDED)


def examine(path: str) -> Checkup:
    """Look a file over; what cannot be read becomes a problem, not an error."""
    found = Checkup(path)
    if not Path(path).exists():
        found.problems.append("There is no such file.")
        return found
    try:
        database = Database(path, read_only=True)
    except EngineError as error:
        found.problems.append(str(error))
        return found
    try:
        with database.read() as connection:
            _settings(connection, found)
            found.problems += _integrity(connection)
            _items(connection, found)
    except EngineError as error:
        found.problems.append(str(error))
    finally:
        database.close()
    found.advice += _advice(found)
    return found


def _settings(connection: sqlite3.Connection, found: Checkup) -> None:
    def pragma(name: str) -> str | int:
        value: str | int = connection.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    found.layout = int(pragma("user_version"))
    found.settings = {
        "journal_mode": pragma("journal_mode"),
        "page_size": pragma("page_size"),
        "page_count": pragma("page_count"),
        "free_pages": pragma("freelist_count"),
        "wal_bytes": _size(f"{found.path}-wal"),
    }


def _size(path: str) -> int:
    return Path(path).stat().st_size if Path(path).exists() else 0


def _integrity(connection: sqlite3.Connection) -> list[str]:
    # Not quick_check: only this one finds keys that have lost their item, or items their key.
    rows = connection.execute("PRAGMA integrity_check(20)").fetchall()
    return [f"SQLite: {text}" for (text,) in rows if text != "ok"]


def _items(connection: sqlite3.Connection, found: Checkup) -> None:
    known = catalog.Catalog()
    for name in catalog.names(connection):
        table = known.table(connection, name)
        active = [index for index in table.indexes if index.status == "ACTIVE"]
        missing = dict.fromkeys((index.name for index in active), 0)
        damaged = count = 0
        for key, size, crc, raw in connection.execute(f"SELECT key, size, crc, item FROM {table.items}"):
            count += 1
            if not is_sound(key, size, crc, raw):
                damaged += 1
                continue
            for index in active:
                missing[index.name] += not _is_listed(connection, index, loads(raw), key)
        found.tables[name] = count
        if damaged:
            found.problems.append(f"Table {name}: {damaged} items do not match their checksums.")
        found.problems += [
            f"Table {name}, index {index}: {items} items have no entry."
            for index, items in missing.items()
            if items
        ]
        found.problems += _entries(connection, table)


def _is_listed(connection: sqlite3.Connection, index: catalog.Index, item: Item, key: bytes) -> bool:
    if not fits(index, item):
        return True
    entry = index_bytes(index, item, key)
    row = connection.execute(f"SELECT crc FROM x{index.id} WHERE key = ?", (entry,)).fetchone()
    return row is not None and entry is not None and leads(entry, key, row[0])


def _entries(connection: sqlite3.Connection, table: catalog.Table) -> Iterator[str]:
    for index in table.indexes:
        rows = connection.execute(
            f"SELECT x.key, x.crc, i.key FROM x{index.id} AS x LEFT JOIN {table.items} AS i ON i.id = x.row"
        )
        astray = sum(not leads(entry, key, crc) for entry, crc, key in rows)
        if astray:
            yield f"Table {table.name}, index {index.name}: {astray} entries do not lead to their item."


def _advice(found: Checkup) -> Iterator[str]:
    if not wal_reset_is_mended(sqlite3.sqlite_version_info):
        yield (
            f"SQLite {found.sqlite} can lose commits when connections commit and checkpoint at once. "
            "solotable keeps that out by its lock; let no other program write to the file."
        )
    if found.layout and found.layout < ddl.VERSION:
        yield "The file has an older layout; it is brought up to date when it is next written to."
    if os.name == "posix" and Path(found.path).exists() and Path(found.path).stat().st_mode & 0o077:
        yield f"Others on this machine can read the file: chmod 600 {found.path}"
    if int(found.settings.get("wal_bytes", 0)) > 256 * 2**20:
        yield "The write-ahead log is large: a reader has held its snapshot for long."
    if any("checksums" in problem or "SQLite" in problem for problem in found.problems):
        yield "Restore a backup. Copy the file, its -wal and its -shm away first."
