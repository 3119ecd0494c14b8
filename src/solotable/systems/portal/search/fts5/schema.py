"""The tables of the FTS5 index, and the version that says whether a file has them."""

from __future__ import annotations

import sqlite3

#: Raise it with every change of the schema, of the tokenizer or of what is stored.
SCHEMA_VERSION = 2
#: "stsx": so that another program's file is never taken for an index, and never removed.
APPLICATION_ID = 0x73747378

# `entry` is narrow, because searches read many of them; `document` is read for the hits of one page only.
# `changed` numbers the writes, so that a process can bring what it remembers up to date (see `facets`). Each
# write also has a random state. What a process remembers of a file that was deleted, or replaced by an older
# copy, has a state that the new file does not have.
_SCHEMA = """
CREATE TABLE document (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    tags TEXT NOT NULL,
    summary TEXT NOT NULL,
    fields TEXT NOT NULL
);
CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    content_id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    status TEXT NOT NULL,
    suite TEXT,
    concept TEXT,
    audience TEXT,
    updated INTEGER NOT NULL,
    version INTEGER NOT NULL,
    changed INTEGER NOT NULL
);
CREATE INDEX entry_by_update ON entry (updated DESC, content_id);
CREATE INDEX entry_by_owner ON entry (owner);
CREATE INDEX entry_by_change ON entry (changed);
CREATE TABLE tag (tag TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (tag, id)) WITHOUT ROWID;
CREATE INDEX tag_by_entry ON tag (id, tag);
CREATE TABLE removal (changed INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (changed, id)) WITHOUT ROWID;
CREATE TABLE position (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    checkpoint TEXT,
    caught_up_at REAL,
    change INTEGER NOT NULL,
    state BLOB NOT NULL
);
INSERT INTO position VALUES (1, NULL, NULL, 0, randomblob(16));
CREATE TABLE history (change INTEGER PRIMARY KEY, state BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (
    title, tags, summary,
    content = 'document', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 2", prefix = '2 3 4'
);
"""


def has_fts5() -> bool:
    """Return whether the linked SQLite has FTS5."""
    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE VIRTUAL TABLE probe USING fts5 (text)")
    except sqlite3.OperationalError:
        return False
    finally:
        database.close()
    return True


def create(database: sqlite3.Connection) -> None:
    """Create the tables in an empty file, and mark the file as an index."""
    database.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION};")
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute("COMMIT")


def version_of(database: sqlite3.Connection) -> tuple[int, int]:
    """Return the application id and the schema version of a file; zeros for an empty one."""
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return application, version
