"""What can be said of a database file: versions, settings, integrity, and what to do about it.

It reads; it repairs nothing.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from solotable.errors import EngineError

from . import catalog, ddl
from .connection import Database

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
    rows = connection.execute("PRAGMA quick_check(20)").fetchall()
    return [f"SQLite: {text}" for (text,) in rows if text != "ok"]


def _items(connection: sqlite3.Connection, found: Checkup) -> None:
    known = catalog.Catalog()
    for name in catalog.names(connection):
        table = known.table(connection, name)
        count = damaged = 0
        for key, crc, raw in connection.execute(f"SELECT key, crc, item FROM {table.items}"):
            count += 1
            damaged += crc32(raw, crc32(key)) != crc
        found.tables[name] = count
        if damaged:
            found.problems.append(f"Table {name}: {damaged} items do not match their checksums.")
        found.problems += _entries(connection, table)


def _entries(connection: sqlite3.Connection, table: catalog.Table) -> Iterator[str]:
    for index in table.indexes:
        (astray,) = connection.execute(
            f"SELECT count(*) FROM x{index.id} WHERE row NOT IN (SELECT id FROM {table.items})"
        ).fetchone()
        if astray:
            yield f"Table {table.name}, index {index.name}: {astray} entries lead to no item."


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
