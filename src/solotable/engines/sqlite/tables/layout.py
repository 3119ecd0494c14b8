"""The SQLite tables of a file, and the version of their layout.

`catalog` has one row for each DynamoDB table. `t<id>_<generation>` has its items, and `x<id>` the entries of
an index. Their keys are bytes in DynamoDB's sort order. Every change of a table's definition renames the
items' table to the next generation. A process with the old definition then finds no such table, reads the
catalog again and retries, so no write uses a stale definition.

`changes` has the old and new image of every change, for tables with a stream or continuous backups. The
transaction of the item writes it, so a table can be restored to any of its transactions. `streams` has the
range of changes of each stream, also after its table is deleted.

`counts` has the number of items and bytes of each table and index, so that DescribeTable reads no items; each
writer adds its deltas about once a second (`pending_counts`). `sessions` has the writers that have not closed
the file. `e<id>` lists the items of a table with time to live by expiry second. Layout 1 lacks these three.

`recovery` has the window of each table with continuous backups: which changes can be undone. A backup is a
table whose name in the catalog is the backup's ARN. Layout 2 lacks both.

`transfers` has the exports to and imports from buckets, as JSON. Layout 3 lacks it. `upgrade` adds what a
file lacks.

Items, index entries, definitions, changes and streams have checksums, because SQLite's pages have none.
"""

from __future__ import annotations

import sqlite3

from solotable.errors import NotOurFile

APPLICATION_ID = 0x501074B1
VERSION = 4
PAGE_BYTES = 4096

_LAYOUT = """
CREATE TABLE catalog (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL,
    definition TEXT NOT NULL,
    crc INTEGER NOT NULL
);
CREATE TABLE identity (
    last_index INTEGER NOT NULL
);
INSERT INTO identity VALUES (0);
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
#: `index_id` is 0 for the table itself. `since` is the generation of the last recount; older deltas do not
#: count. `folds` is the number of times that a session added its deltas.
_LAYOUT_2 = """
CREATE TABLE counts (
    table_id INTEGER NOT NULL,
    index_id INTEGER NOT NULL,
    since INTEGER NOT NULL,
    items INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (table_id, index_id)
) WITHOUT ROWID;
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    folds INTEGER NOT NULL
) WITHOUT ROWID;
"""
#: Only changes that a stream may have are in the index: each entry costs a write one more page.
#: `items/change_rows` has the flags of `by_service`.
#:
#: `recovery`: `first` is the newest change when the window was opened, `pruned` the last that was pruned, and
#: `last` the last change of a closed window.
_LAYOUT_3 = """
CREATE INDEX changes_by_stream ON changes (stream, sequence) WHERE (by_service & 2) = 0;
CREATE TABLE recovery (
    stream TEXT NOT NULL,
    first INTEGER NOT NULL,
    since_micros INTEGER NOT NULL,
    pruned INTEGER NOT NULL,
    pruned_micros INTEGER NOT NULL,
    last INTEGER,
    crc INTEGER NOT NULL,
    PRIMARY KEY (stream, first)
) WITHOUT ROWID;
"""
_LAYOUT_4 = """
CREATE TABLE transfers (
    arn TEXT PRIMARY KEY,
    record TEXT NOT NULL,
    crc INTEGER NOT NULL
) WITHOUT ROWID;
"""


def is_ours(connection: sqlite3.Connection, path: str) -> bool:
    """Return whether the file has this layout; False for an empty file, NotOurFile for another program's."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    version = layout_of(connection)
    if application == APPLICATION_ID:
        if version > VERSION:
            raise NotOurFile(
                f"{path} was written by a newer solotable (layout {version}; this version knows {VERSION}); "
                "upgrade solotable to open it."
            )
        return True
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application or version or objects:
        raise NotOurFile(f"{path} is a SQLite database of another program; nothing was changed.")
    return False


def layout_of(connection: sqlite3.Connection) -> int:
    """Return the version of the file's layout."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def create(connection: sqlite3.Connection) -> None:
    """Create the layout in an empty file; of several concurrent processes, only one creates it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            _execute(connection, _LAYOUT)
            create_counts(connection)
            create_recovery(connection)
            create_transfers(connection)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def create_counts(connection: sqlite3.Connection) -> None:
    """Create the tables that are new in layout 2."""
    _execute(connection, _LAYOUT_2)


def create_recovery(connection: sqlite3.Connection) -> None:
    """Create the table and the index that are new in layout 3."""
    connection.execute("DROP INDEX IF EXISTS changes_by_stream")
    _execute(connection, _LAYOUT_3)


def create_transfers(connection: sqlite3.Connection) -> None:
    """Create the table that is new in layout 4."""
    _execute(connection, _LAYOUT_4)


def _execute(connection: sqlite3.Connection, script: str) -> None:
    # executescript() would commit the open transaction.
    for statement in script.split(";\n"):
        if statement.strip():
            connection.execute(statement.strip())


def items_table(table_id: int, generation: int) -> str:
    """Return the name of the SQLite table with a DynamoDB table's items."""
    return f"t{table_id}_{generation}"


def create_items(connection: sqlite3.Connection, name: str) -> None:
    """Create the SQLite table for a DynamoDB table's items."""
    # A separate row id keeps index entries small and the B-tree of items wide.
    connection.execute(
        f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, "
        "size INTEGER NOT NULL, crc INTEGER NOT NULL, item BLOB NOT NULL)"
    )


def create_index(connection: sqlite3.Connection, index_id: int) -> None:
    """Create the SQLite table of a DynamoDB index: sorted keys, each with the row of its item."""
    connection.execute(
        f"CREATE TABLE x{index_id} (key BLOB PRIMARY KEY, row INTEGER NOT NULL, crc INTEGER NOT NULL) "
        "WITHOUT ROWID"
    )


def drop_index(connection: sqlite3.Connection, index_id: int) -> None:
    """Drop the SQLite table of a DynamoDB index."""
    connection.execute(f"DROP TABLE x{index_id}")


def create_expiry(connection: sqlite3.Connection, expiry_id: int) -> None:
    """Create the SQLite table of an expiry index: sorted seconds, each with the row of an item."""
    # No checksum is needed: the sweeper checks each item before it removes it.
    connection.execute(
        f"CREATE TABLE e{expiry_id} (second INTEGER NOT NULL, row INTEGER NOT NULL, "
        "PRIMARY KEY (second, row)) WITHOUT ROWID"
    )


def drop_expiry(connection: sqlite3.Connection, expiry_id: int) -> None:
    """Drop the SQLite table of a table's expiry index."""
    connection.execute(f"DROP TABLE e{expiry_id}")


def next_index(connection: sqlite3.Connection) -> int:
    """Return a new index id; a file never reuses an id."""
    row = connection.execute(
        "UPDATE identity SET last_index = last_index + 1 RETURNING last_index"
    ).fetchall()
    return int(row[0][0])
