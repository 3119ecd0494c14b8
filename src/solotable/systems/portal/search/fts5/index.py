"""Search beside the embedded engine: SQLite FTS5 in a separate file, or in memory.

The file is derived data. It is created again when it is missing, damaged or of another version, and the
indexer fills it from the table. A file of another program is never removed.

The documents of a batch and its checkpoint are one SQLite transaction, so a change is applied exactly once.
Several processes may search one file and index into it: a batch that does not begin at the stored
checkpoint is rejected.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solotable.cache import TTLCache
from solotable.systems.portal.search.port import Deletion, IndexBatch, IndexDamaged, SearchUnavailable
from solotable.systems.portal.search.records import (
    FACETS,
    MATCH_BEGINS,
    MATCH_ENDS,
    Document,
    FoundPage,
    Fragment,
    Hit,
    IndexStatus,
    Position,
    SearchQuery,
    check_limit,
    fragments,
    shorten,
    top_values,
)

from . import match as statements
from .connections import ConnectionPool, is_busy, translate_errors
from .match import Filter, Statement
from .writer import apply, clear, load_document, move_checkpoint

#: The words of a summary around its matches.
_SNIPPET_WORDS = 32
#: The two groups of a text's matches: all words in the title, and the others.
_IN_TITLE, _NOT_IN_TITLE = 0, 1
Counts = tuple[int, dict[str, dict[str, int]]]


class Fts5Index:
    """A SearchIndex in a file beside the table's, or in memory without a path."""

    def __init__(self, path: str | Path | None = None) -> None:
        self._pool = ConnectionPool(None if path is None else Path(path))
        # Keys have the number of the last change, so an entry is never older than the index.
        self._counts: TTLCache[tuple[int, str | None, Filter], Counts] = TTLCache(
            ttl_seconds=60, max_size=256
        )

    def write(self, batch: IndexBatch) -> bool:
        """Apply changes and move the checkpoint in one transaction; False if it is not `previous`."""
        return self._commit(
            batch.changes, batch.previous, batch.checkpoint, batch.caught_up_at, from_empty=False
        )

    def replace(self, documents: Iterable[Document], *, previous: str | None, checkpoint: str) -> bool:
        """Replace all documents in one transaction; searches see the old ones until it commits."""
        return self._commit(documents, previous, checkpoint, None, from_empty=True)

    def search(self, query: SearchQuery, *, after: Position | None = None, limit: int = 20) -> FoundPage:
        """Return the best visible matches behind a position; without a text, the newest first."""
        check_limit(limit)
        with translate_errors(), self._pool.connection() as database:
            database.execute("BEGIN")
            checkpoint, change = database.execute("SELECT checkpoint, change FROM position").fetchone()
            if checkpoint is None:
                raise SearchUnavailable("The search index is being built; try again in a moment.")
            if query.has_text and not query.words:
                return FoundPage(hits=(), total=0, facets={name: {} for name in FACETS})
            where = statements.filter_of(query)
            match = statements.match_of(query.words) if query.words else None
            total, facets = self._counts.load((change, match, where), lambda: _count(database, match, where))
            if match is None:
                rows = _newest(database, where, after, limit + 1)
            else:
                rows = _ranked(database, match, where, after, limit + 1)
            hits = tuple(_hit(database, row, match) for row in rows[:limit])
        return FoundPage(
            hits=hits,
            total=total,
            facets=facets,
            next=rows[limit - 1].position if len(rows) > limit else None,
        )

    def status(self) -> IndexStatus:
        """Return how far the index is; raise IndexDamaged if it must be rebuilt."""
        with translate_errors(), self._pool.connection() as database:
            row = database.execute(
                "SELECT checkpoint, caught_up_at, (SELECT count(*) FROM entry) FROM position"
            ).fetchone()
        return IndexStatus(checkpoint=row[0], caught_up_at=row[1], documents=row[2])

    def check(self) -> None:
        """Raise IndexDamaged if the file, or the words of a document, are damaged. It reads everything."""
        with translate_errors(), self._pool.connection() as database:
            database.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
            (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise IndexDamaged(f"The search index is damaged ({found}); the indexer rebuilds it.")

    def reset(self) -> None:
        """Remove the file, whatever state it is in, and create an empty index."""
        with translate_errors():
            self._pool.reset()

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _commit(
        self,
        changes: Iterable[Document | Deletion],
        previous: str | None,
        checkpoint: str,
        caught_up_at: float | None,
        *,
        from_empty: bool,
    ) -> bool:
        with translate_errors(), self._pool.connection() as database:
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if is_busy(error):
                    return False  # another process writes for seconds: it rebuilds the index
                raise
            (stored,) = database.execute("SELECT checkpoint FROM position").fetchone()
            if stored != previous:
                return False
            if from_empty:
                clear(database)
            for change in changes:
                apply(database, change)
            move_checkpoint(database, checkpoint, caught_up_at)
            database.execute("COMMIT")
        return True


@dataclass(frozen=True, slots=True)
class _Row:
    """A match: its document's row, its score and the position behind it."""

    id: int
    score: float
    position: Position


def _count(database: sqlite3.Connection, match: str | None, where: Filter) -> Counts:
    """Return the number of visible matches, and of each value of each facet."""
    facets: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    total = 0
    for kind, code, count in _execute(database, statements.facets_statement(match, where)):
        if kind == 0:
            total += count
            values = database.execute(
                "SELECT status, suite, concept, audience FROM facet_set WHERE code = ?", (code,)
            ).fetchone()
            for name, value in zip(("status", "suite", "concept", "audience"), values, strict=True):
                if value:
                    facets[name][value] += count
        else:
            (tags,) = database.execute("SELECT tags FROM tag_set WHERE code = ?", (code,)).fetchone()
            for tag in json.loads(tags):
                facets["tags"][tag] += count
    return total, {name: top_values(counts) for name, counts in facets.items()}


def _newest(database: sqlite3.Connection, where: Filter, after: Position | None, limit: int) -> list[_Row]:
    rows = _execute(database, statements.newest_statement(where, after, limit))
    return [_Row(row, 0.0, (updated, content_id)) for row, updated, content_id in rows]


def _ranked(
    database: sqlite3.Connection, match: str, where: Filter, after: Position | None, limit: int
) -> list[_Row]:
    """Return matches, those with all words in the title first."""
    groups = {_IN_TITLE: statements.in_title(match), _NOT_IN_TITLE: statements.not_in_title(match)}
    rows: list[_Row] = []
    for group, expression in groups.items():
        if after is not None and group < int(after[0]):
            continue
        behind = after[1:] if after is not None and group == after[0] else None
        statement = statements.ranked_statement(expression, where, behind, limit - len(rows))
        # bm25 of SQLite is better the lower it is.
        rows += [
            _Row(row, -score, (group, score, content_id))
            for row, score, content_id in _execute(database, statement)
        ]
        if len(rows) == limit:
            break
    return rows


def _hit(database: sqlite3.Connection, row: _Row, match: str | None) -> Hit:
    (fields,) = database.execute("SELECT fields FROM document WHERE id = ?", (row.id,)).fetchone()
    document = load_document(fields)
    if match is None:
        title, summary = (Fragment(document.title),), (Fragment(shorten(document.summary)),)
        return Hit(document=document, title=title, summary=summary if document.summary else ())
    marked_title, marked_summary = database.execute(
        f"SELECT highlight(words, 0, ?1, ?2), snippet(words, 2, ?1, ?2, ?3, {_SNIPPET_WORDS}) "
        "FROM words WHERE words MATCH ?4 AND rowid = ?5",
        (MATCH_BEGINS, MATCH_ENDS, "\N{HORIZONTAL ELLIPSIS}", match, row.id),
    ).fetchone()
    return Hit(
        document=document,
        score=row.score,
        title=fragments(marked_title),
        summary=fragments(marked_summary),
    )


def _execute(database: sqlite3.Connection, statement: Statement) -> list[Any]:
    return database.execute(statement.sql, statement.parameters).fetchall()
