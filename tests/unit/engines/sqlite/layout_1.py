"""Files of layout 1: its tables as they were, made here by hand, with the rows of an engine."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.tables import catalog, layout

TABLES = """
CREATE TABLE catalog (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL,
    definition TEXT NOT NULL,
    crc INTEGER NOT NULL
);
CREATE TABLE identity (last_index INTEGER NOT NULL);
CREATE TABLE changes (
    sequence INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    at_micros INTEGER NOT NULL,
    by_service INTEGER NOT NULL,
    key BLOB NOT NULL,
    old BLOB,
    new BLOB,
    crc INTEGER NOT NULL
);
CREATE INDEX changes_by_stream ON changes (stream, sequence);
CREATE TABLE streams (
    arn TEXT PRIMARY KEY,
    label TEXT NOT NULL,
    table_name TEXT NOT NULL,
    stream TEXT NOT NULL,
    view TEXT NOT NULL,
    key_schema TEXT NOT NULL,
    crc INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER,
    trimmed INTEGER NOT NULL,
    enabled_micros INTEGER NOT NULL,
    disabled_micros INTEGER
) WITHOUT ROWID;
CREATE TABLE tokens (
    token TEXT PRIMARY KEY,
    fingerprint BLOB NOT NULL,
    until_micros INTEGER NOT NULL
) WITHOUT ROWID;
"""
ITEMS = (
    "CREATE TABLE {} (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, "
    "size INTEGER NOT NULL, crc INTEGER NOT NULL, item BLOB NOT NULL)"
)
ENTRIES = "CREATE TABLE {} (key BLOB PRIMARY KEY, row INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID"


def write(engine: SqliteEngine, path: Path) -> None:
    """Write the tables of an engine into a new file of layout 1."""
    file = sqlite3.connect(path, isolation_level=None)
    file.execute("PRAGMA journal_mode = WAL")
    file.executescript(TABLES)
    file.execute(f"PRAGMA application_id = {layout.APPLICATION_ID}")
    file.execute("PRAGMA user_version = 1")
    with engine.database.snapshot() as connection:
        file.execute(
            "INSERT INTO identity SELECT ?", connection.execute("SELECT last_index FROM identity").fetchone()
        )
        for table_id, name, generation, text in connection.execute(
            "SELECT id, name, generation, definition FROM catalog"
        ).fetchall():
            definition = json.loads(text)
            if "TimeToLive" in definition:
                definition["TimeToLive"] = {"AttributeName": definition["TimeToLive"]["AttributeName"]}
            old = json.dumps(definition)
            file.execute(
                "INSERT INTO catalog VALUES (?, ?, ?, ?, ?)",
                (table_id, name, generation, old, catalog._checksum(name, old)),
            )
            copy(connection, file, f"t{table_id}_{generation}", ITEMS, 5)
            for index in catalog.indexes_of(definition):
                copy(connection, file, f"x{index['Id']}", ENTRIES, 3)
    file.close()


def copy(connection: sqlite3.Connection, file: sqlite3.Connection, name: str, sql: str, columns: int) -> None:
    file.execute(sql.format(name))
    rows = connection.execute(f"SELECT * FROM {name}").fetchall()
    file.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * columns)})", rows)
