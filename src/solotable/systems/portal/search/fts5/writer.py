"""Writes to an FTS5 index, inside the caller's transaction: documents, deletions, the checkpoint."""

from __future__ import annotations

import json
import secrets
import sqlite3
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from solotable.systems.portal.search.port import Deletion
from solotable.systems.portal.search.records import Document, printable

#: Between the tags of a document: a separator for the tokenizer.
_TAG_SEPARATOR = "\n"
#: The writes whose states and removals a file keeps. A process that is further behind loads its sets again.
_KEPT_CHANGES = 1_000


class Writer:
    """The writes of one transaction, with one number for all of them."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        (last,) = database.execute("SELECT change FROM position").fetchone()
        self._change: int = last + 1

    def apply(self, change: Document | Deletion) -> None:
        """Store or delete one document, unless the index has a newer version of it."""
        found = self._database.execute(
            "SELECT id, version FROM entry WHERE content_id = ?", (change.content_id,)
        ).fetchone()
        if found is not None and found[1] > change.version:
            return
        if found is not None:
            self._remove(found[0])
        if isinstance(change, Document):
            self._insert(change, None if found is None else found[0])

    def clear(self) -> None:
        """Remove all documents."""
        self._database.execute("INSERT INTO words (words) VALUES ('delete-all')")
        for table in ("document", "entry", "tag", "removal", "history"):
            self._database.execute(f"DELETE FROM {table}")

    def move_checkpoint(self, checkpoint: str, caught_up_at: float | None, *, has_changes: bool) -> None:
        """Store the checkpoint, and the time up to which the index has all changes if it is known."""
        self._database.execute(
            "UPDATE position SET checkpoint = ?, caught_up_at = coalesce(?, caught_up_at)",
            (checkpoint, caught_up_at),
        )
        if has_changes:
            self._change_state()

    def _change_state(self) -> None:
        state = secrets.token_bytes(16)
        self._database.execute("UPDATE position SET change = ?, state = ?", (self._change, state))
        self._database.execute("INSERT INTO history VALUES (?, ?)", (self._change, state))
        oldest = self._change - _KEPT_CHANGES
        self._database.execute("DELETE FROM history WHERE change <= ?", (oldest,))
        self._database.execute("DELETE FROM removal WHERE changed <= ?", (oldest,))

    def _remove(self, row: int) -> None:
        # FTS5 with external content removes words by their old text.
        self._database.execute(
            "INSERT INTO words (words, rowid, title, tags, summary) "
            "SELECT 'delete', id, title, tags, summary FROM document WHERE id = ?",
            (row,),
        )
        for table in ("document", "entry", "tag"):
            self._database.execute(f"DELETE FROM {table} WHERE id = ?", (row,))
        self._database.execute("INSERT OR IGNORE INTO removal VALUES (?, ?)", (self._change, row))

    def _insert(self, given: Document, row: int | None) -> None:
        # Control characters mark matches in hits.
        document = replace(given, title=printable(given.title), summary=printable(given.summary))
        updated = round(document.updated.timestamp() * 1_000_000)
        facets = (document.status, document.suite, document.concept, document.audience)
        entry = self._database.execute(
            "INSERT INTO entry (id, content_id, owner, status, suite, concept, audience, updated, version, "
            "changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (row, document.content_id, document.owner, *facets, updated, document.version, self._change),
        )
        self._database.executemany(
            "INSERT OR IGNORE INTO tag (tag, id) VALUES (?, ?)",
            [(tag, entry.lastrowid) for tag in document.tags],
        )
        texts = (entry.lastrowid, document.title, _TAG_SEPARATOR.join(document.tags), document.summary)
        self._database.execute(
            "INSERT INTO document (id, title, tags, summary, fields) VALUES (?, ?, ?, ?, ?)",
            (*texts, _dump(document)),
        )
        self._database.execute("INSERT INTO words (rowid, title, tags, summary) VALUES (?, ?, ?, ?)", texts)


def load_document(fields: str) -> Document:
    """Return the document of its stored fields."""
    values: dict[str, Any] = json.loads(fields)
    updated = datetime.fromisoformat(values["updated"])
    return Document(**{**values, "tags": tuple(values["tags"]), "updated": updated})


def _dump(document: Document) -> str:
    values = {**asdict(document), "updated": document.updated.isoformat()}
    return json.dumps(values, ensure_ascii=False)
