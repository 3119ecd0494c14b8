"""Check a database file without changing it: version, settings, integrity, and advice."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from solotable._protocol.json_codec import loads
from solotable._values import Item
from solotable.engines.sqlite.counts import counts
from solotable.engines.sqlite.file.connection import Database
from solotable.engines.sqlite.items import expiry_index
from solotable.engines.sqlite.items.keys import encode_index_key
from solotable.engines.sqlite.items.storage import is_entry_sound, is_row_sound
from solotable.engines.sqlite.tables import catalog
from solotable.engines.sqlite.tables import layout as ddl
from solotable.errors import EngineError

#: The versions that fixed the WAL-reset bug, by branch.
_FIXED_VERSIONS = ((3, 44, 6), (3, 50, 7), (3, 51, 3))
#: The fewest free bytes for which `examine` advises `compact`.
_FEWEST_BYTES_TO_COMPACT = 16 * 2**20
#: Items between two reports of progress.
_PROGRESS_ITEMS = 1_000


@dataclass(slots=True)
class Checkup:
    """The findings on one file; `problems` is empty for a healthy file."""

    path: str
    sqlite: str = sqlite3.sqlite_version
    layout: int = 0
    settings: dict[str, str | int] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)


def wal_reset_is_fixed(version: tuple[int, ...]) -> bool:
    """Return whether this SQLite version has the fix for the WAL-reset bug, which can lose commits."""
    if version >= _FIXED_VERSIONS[-1]:
        return True
    return any(version[:2] == fixed[:2] and version >= fixed for fixed in _FIXED_VERSIONS)


def examine(path: str, progress: Callable[[int], None] = lambda items: None) -> Checkup:
    """Check a file; report an unreadable part as a problem instead of raising an error."""
    found = Checkup(path)
    if not Path(path).exists():
        found.problems.append("The file does not exist.")
        return found
    try:
        database = Database(path, read_only=True)
    except EngineError as error:
        found.problems.append(str(error))
        return found
    try:
        with database.snapshot() as connection:
            _settings(connection, found)
            found.problems += _integrity(connection)
            _items(connection, found, progress)
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
    if found.layout > 1:
        (found.settings["open_sessions"],) = connection.execute("SELECT count(*) FROM sessions").fetchone()


def _size(path: str) -> int:
    return Path(path).stat().st_size if Path(path).exists() else 0


def _integrity(connection: sqlite3.Connection) -> list[str]:
    # quick_check would not compare keys with items.
    rows = connection.execute("PRAGMA integrity_check(20)").fetchall()
    return [f"SQLite: {text}" for (text,) in rows if text != "ok"]


def _items(connection: sqlite3.Connection, found: Checkup, progress: Callable[[int], None]) -> None:
    tables = catalog.Catalog()
    for name in catalog.list_names(connection):
        table = tables.table(connection, name)
        active = [index for index in table.indexes if index.status == "ACTIVE"]
        missing = dict.fromkeys((index.name for index in active), 0)
        damaged = count = without_expiry = 0
        rows = connection.execute(f"SELECT id, key, size, crc, item FROM {table.items}")
        for row_id, key, size, crc, raw in rows:
            count += 1
            if count % _PROGRESS_ITEMS == 0:
                progress(sum(found.tables.values()) + count)
            if not is_row_sound(key, size, crc, raw):
                damaged += 1
                continue
            for index in active:
                missing[index.name] += not _has_entry(connection, index, loads(raw), key)
            if table.expiry is not None and table.expiry.status == "ACTIVE":
                without_expiry += not _has_expiry_entry(connection, table.expiry, loads(raw), row_id)
        found.tables[name] = count
        if damaged:
            found.problems.append(f"Table {name}: {damaged} items do not match their checksums.")
        found.problems += [
            f"Table {name}, index {index}: {items} items have no entry."
            for index, items in missing.items()
            if items
        ]
        if without_expiry:
            found.problems.append(f"Table {name}, expiry index: {without_expiry} items have no entry.")
        found.problems += _entries(connection, table)
        found.problems += _times(connection, table)
        if found.layout > 1 and not damaged:
            found.problems += _counts(connection, table, open_sessions=bool(found.settings["open_sessions"]))


def _has_entry(connection: sqlite3.Connection, index: catalog.Index, item: Item, key: bytes) -> bool:
    entry = encode_index_key(index, item, key)
    if entry is None:
        return True
    row = connection.execute(f"SELECT crc FROM x{index.id} WHERE key = ?", (entry,)).fetchone()
    return row is not None and is_entry_sound(entry, key, row[0])


def _entries(connection: sqlite3.Connection, table: catalog.Table) -> Iterator[str]:
    for index in table.indexes:
        rows = connection.execute(
            f"SELECT x.key, x.crc, i.key FROM x{index.id} AS x LEFT JOIN {table.items} AS i ON i.id = x.row"
        )
        wrong = sum(not is_entry_sound(entry, key, crc) for entry, crc, key in rows)
        if wrong:
            yield f"Table {table.name}, index {index.name}: {wrong} entries do not point to their item."


def _has_expiry_entry(
    connection: sqlite3.Connection, index: catalog.ExpiryIndex, item: Item, row_id: int
) -> bool:
    second = expiry_index.expiry_second(item, index.attribute)
    entry = f"SELECT 1 FROM e{index.id} WHERE second = ? AND row = ?"
    return second is None or connection.execute(entry, (second, row_id)).fetchone() is not None


def _times(connection: sqlite3.Connection, table: catalog.Table) -> Iterator[str]:
    if table.expiry is None:
        return
    rows = connection.execute(
        f"SELECT e.second, i.key, i.size, i.crc, i.item FROM e{table.expiry.id} AS e "
        f"LEFT JOIN {table.items} AS i ON i.id = e.row"
    )
    wrong = sum(
        not is_row_sound(*row) or expiry_index.expiry_second(loads(row[-1]), table.expiry.attribute) != second
        for second, *row in rows
    )
    if wrong:
        yield f"Table {table.name}, expiry index: {wrong} entries do not point to an item with that time."


def _counts(connection: sqlite3.Connection, table: catalog.Table, *, open_sessions: bool) -> Iterator[str]:
    if open_sessions:
        # The writes of open sessions in the last second may not be counted yet.
        return
    if counts.read(connection, table) != counts.recount(connection, table):
        yield f"Table {table.name}: counts of items and bytes are wrong; run solotable compact to recount."


def _advice(found: Checkup) -> Iterator[str]:
    if not wal_reset_is_fixed(sqlite3.sqlite_version_info):
        yield (
            f"SQLite {found.sqlite} can lose commits when connections commit and checkpoint at the same "
            f"time. "
            "solotable's lock prevents that; do not let other programs write to the file."
        )
    if found.layout and found.layout < ddl.VERSION:
        yield "The file has an older layout; opening it for writing upgrades it."
    if os.name == "posix" and Path(found.path).exists() and Path(found.path).stat().st_mode & 0o077:
        yield f"Other users of this machine can read the file: chmod 600 {found.path}"
    if int(found.settings.get("wal_bytes", 0)) > 256 * 2**20:
        yield "The write-ahead log is large: a reader has had a snapshot open for a long time."
    free, pages = int(found.settings.get("free_pages", 0)), int(found.settings.get("page_count", 1))
    if free > pages // 2 and free * ddl.PAGE_BYTES > _FEWEST_BYTES_TO_COMPACT:
        yield f"{free * 100 // pages} % of the file is free: run solotable compact {found.path}."
    if any("checksums" in problem or "SQLite" in problem for problem in found.problems):
        yield "Copy the file, its -wal and its -shm to a safe place, then restore a backup."
