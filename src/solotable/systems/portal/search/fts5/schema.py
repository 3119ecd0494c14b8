"""The tables of the FTS5 index, and the version that says whether a file has them."""

from __future__ import annotations

import sqlite3

#: Raise it with every change of the schema, of the tokenizer or of what is stored.
SCHEMA_VERSION = 1
#: "stsx": so that another program's file is never taken for an index, and never removed.
APPLICATION_ID = 0x73747378
#: How much a match in the title, the tags and the summary counts.
WEIGHTS = (10.0, 4.0, 1.0)

# `entry` is narrow, because a search reads the entry of every match; `document` is read for one page only.
# Facet values that occur together are one `facet_set`, tags that occur together one `tag_set`: a search
# counts numbers and looks up their values at the end.
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
    facet_set INTEGER NOT NULL,
    tag_set INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    version INTEGER NOT NULL
);
CREATE INDEX entry_by_update ON entry (updated DESC, content_id, facet_set, tag_set, owner);
CREATE TABLE facet_set (
    code INTEGER PRIMARY KEY,
    status TEXT NOT NULL,
    suite TEXT NOT NULL,
    concept TEXT NOT NULL,
    audience TEXT NOT NULL,
    UNIQUE (status, suite, concept, audience)
);
CREATE TABLE tag_set (code INTEGER PRIMARY KEY, tags TEXT NOT NULL UNIQUE);
CREATE TABLE tag (tag TEXT NOT NULL, tag_set INTEGER NOT NULL, PRIMARY KEY (tag, tag_set)) WITHOUT ROWID;
CREATE TABLE position (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    checkpoint TEXT,
    caught_up_at REAL,
    change INTEGER NOT NULL
);
INSERT INTO position VALUES (1, NULL, NULL, 0);
CREATE VIRTUAL TABLE words USING fts5 (
    title, tags, summary,
    content = 'document', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 2", prefix = '2 3'
);
"""


def has_fts5() -> bool:
    """Return whether the linked SQLite has FTS5."""
    with sqlite3.connect(":memory:") as database:
        try:
            database.execute("CREATE VIRTUAL TABLE probe USING fts5 (text)")
        except sqlite3.OperationalError:
            return False
        finally:
            database.rollback()
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
