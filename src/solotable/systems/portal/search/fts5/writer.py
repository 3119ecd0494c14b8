"""Writes to an FTS5 index, inside the caller's transaction: documents, deletions, the checkpoint."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from solotable.systems.portal.search.port import Deletion
from solotable.systems.portal.search.records import Document, printable

#: Between the tags of a document: a separator for the tokenizer, and in no tag.
_TAG_SEPARATOR = "\n"


def apply(database: sqlite3.Connection, change: Document | Deletion) -> None:
    """Store or delete one document, unless the index has a newer version of it."""
    found = database.execute(
        "SELECT id, version FROM entry WHERE content_id = ?", (change.content_id,)
    ).fetchone()
    if found is not None and found[1] > change.version:
        return
    if found is not None:
        _remove(database, found[0])
    if isinstance(change, Document):
        _insert(database, change, None if found is None else found[0])


def clear(database: sqlite3.Connection) -> None:
    """Remove all documents."""
    database.execute("INSERT INTO words (words) VALUES ('delete-all')")
    for table in ("document", "entry", "facet_set", "tag_set", "tag"):
        database.execute(f"DELETE FROM {table}")


def move_checkpoint(database: sqlite3.Connection, checkpoint: str, caught_up_at: float | None) -> None:
    """Store the checkpoint, and the time up to which the index has all changes if it is known."""
    database.execute(
        "UPDATE position SET checkpoint = ?, caught_up_at = coalesce(?, caught_up_at), change = change + 1",
        (checkpoint, caught_up_at),
    )


def load_document(fields: str) -> Document:
    """Return the document of its stored fields."""
    values: dict[str, Any] = json.loads(fields)
    updated = datetime.fromisoformat(values.pop("updated"))
    return Document(**{**values, "tags": tuple(values["tags"]), "updated": updated})


def _remove(database: sqlite3.Connection, row: int) -> None:
    # FTS5 with external content removes words by their old text.
    database.execute(
        "INSERT INTO words (words, rowid, title, tags, summary) "
        "SELECT 'delete', id, title, tags, summary FROM document WHERE id = ?",
        (row,),
    )
    database.execute("DELETE FROM document WHERE id = ?", (row,))
    database.execute("DELETE FROM entry WHERE id = ?", (row,))


def _insert(database: sqlite3.Connection, given: Document, row: int | None) -> None:
    # Control characters mark matches in hits.
    document = replace(given, title=printable(given.title), summary=printable(given.summary))
    entry = database.execute(
        "INSERT INTO entry (id, content_id, owner, facet_set, tag_set, updated, version) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            row,
            document.content_id,
            document.owner,
            _facet_set(database, document),
            _tag_set(database, document),
            round(document.updated.timestamp() * 1_000_000),
            document.version,
        ),
    )
    texts = (entry.lastrowid, document.title, _TAG_SEPARATOR.join(document.tags), document.summary)
    database.execute(
        "INSERT INTO document (id, title, tags, summary, fields) VALUES (?, ?, ?, ?, ?)",
        (*texts, _fields(document)),
    )
    database.execute("INSERT INTO words (rowid, title, tags, summary) VALUES (?, ?, ?, ?)", texts)


def _fields(document: Document) -> str:
    values = {**asdict(document), "updated": document.updated.isoformat()}
    return json.dumps(values, ensure_ascii=False)


def _facet_set(database: sqlite3.Connection, document: Document) -> int:
    # An absent value is "", which no filter can ask for and no facet shows.
    values = (document.status, document.suite or "", document.concept or "", document.audience or "")
    database.execute(
        "INSERT INTO facet_set (status, suite, concept, audience) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        values,
    )
    (code,) = database.execute(
        "SELECT code FROM facet_set WHERE status = ? AND suite = ? AND concept = ? AND audience = ?", values
    ).fetchone()
    return int(code)


def _tag_set(database: sqlite3.Connection, document: Document) -> int:
    tags = sorted(set(document.tags))
    text = json.dumps(tags, ensure_ascii=False)
    added = database.execute("INSERT INTO tag_set (tags) VALUES (?) ON CONFLICT DO NOTHING", (text,))
    (code,) = database.execute("SELECT code FROM tag_set WHERE tags = ?", (text,)).fetchone()
    if added.rowcount:
        database.executemany("INSERT INTO tag (tag, tag_set) VALUES (?, ?)", [(tag, code) for tag in tags])
    return int(code)
