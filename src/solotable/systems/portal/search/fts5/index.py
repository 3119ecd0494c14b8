"""Search beside the embedded engine: SQLite FTS5 in a separate file, or in memory.

The file is derived data. It is created again when it is missing, damaged or of another version, and the
indexer fills it from the table. A file of another program is never removed.

The documents of a batch and its checkpoint are one SQLite transaction, so a change is applied exactly once.
Several processes may search one file and index into it: a batch that does not begin at the stored
checkpoint is rejected.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from solotable.cache import TTLCache
from solotable.fork_safe import new_lock
from solotable.systems.portal.search.port import Deletion, IndexBatch, IndexDamaged, SearchUnavailable
from solotable.systems.portal.search.records import (
    FACETS,
    Document,
    FoundPage,
    Fragment,
    Hit,
    IndexStatus,
    Position,
    SearchQuery,
    check_limit,
    shorten,
)

from .connections import ConnectionPool, is_busy, translate_errors
from .facets import FacetSets, matches_of
from .highlight import Highlighter
from .match import in_title, is_prefix, match_of
from .ranking import Row, newest, ranked
from .writer import Writer, load_document

#: Sets of matches, of 12 KB each among 100,000 documents.
_REMEMBERED = 256
_REMEMBERED_SECONDS = 300.0
#: A search that meets a document which it must not show is repeated once.
_SEARCHES = 2

_log = logging.getLogger("solotable.portal")


class _StaleSets(Exception):
    """The sets led to a document that is missing, or that the caller may not see."""


class Fts5Index:
    """A SearchIndex in a file beside the table's, or in memory without a path."""

    def __init__(self, path: str | Path | None = None) -> None:
        self._pool = ConnectionPool(None if path is None else Path(path))
        self._facets = FacetSets()
        self._updating = new_lock()
        self._remembered: TTLCache[tuple[bytes, str], int] = TTLCache(
            ttl_seconds=_REMEMBERED_SECONDS, max_size=_REMEMBERED
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
        with translate_errors():
            for _ in range(_SEARCHES):
                try:
                    with self._pool.connection() as database:
                        return self._search(database, query, after, limit)
                except _StaleSets as stale:
                    _log.error(
                        "search sets do not match the stored documents (%s); loading them again", stale
                    )
                    self._forget()
        raise SearchUnavailable("The search index does not match its documents; try again in a moment.")

    def prepare(self) -> bool:
        """Bring the facet sets up to date, so that no search loads them; False if the index is not built."""
        with translate_errors(), self._pool.connection() as database, suppress(SearchUnavailable):
            self._begin(database)
            return True
        return False

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
            (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise IndexDamaged(f"The search index is damaged ({found}); the indexer rebuilds it.")
            database.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")

    def reset(self) -> None:
        """Remove the file, whatever state it is in, and create an empty index."""
        with translate_errors():
            self._pool.reset()
        self._forget()

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _search(
        self, database: sqlite3.Connection, query: SearchQuery, after: Position | None, limit: int
    ) -> FoundPage:
        facets = self._begin(database)
        if query.has_text and not query.words:
            return FoundPage(hits=(), total=0, facets={name: {} for name in FACETS})
        visible = facets.visible(database, query)
        match = match_of(query.words) if query.words else None
        if match is None:
            found, rows = visible, newest(database, visible, after, limit + 1)
        else:
            found = self._matches(database, facets.state, match) & visible
            titles = self._matches(database, facets.state, in_title(match)) & found
            rows = ranked(database, match, (titles, found & ~titles), after, limit + 1)
        return FoundPage(
            hits=tuple(_hit(database, row, query) for row in rows[:limit]),
            total=found.bit_count(),
            facets=facets.count(database, found),
            next=rows[limit - 1].position if len(rows) > limit else None,
        )

    def _begin(self, database: sqlite3.Connection) -> FacetSets:
        """Begin a transaction, and return the sets of the state that it sees."""
        database.execute("BEGIN")
        (checkpoint,) = database.execute("SELECT checkpoint FROM position").fetchone()
        if checkpoint is None:
            raise SearchUnavailable("The search index is being built; try again in a moment.")
        facets = self._facets
        if facets.is_current(database):
            return facets
        database.execute("ROLLBACK")
        with self._updating:
            # A new transaction: it sees what the thread before this one has loaded, or something newer.
            database.execute("BEGIN")
            self._facets = self._facets.current(database)
            return self._facets

    def _forget(self) -> None:
        self._facets = FacetSets()
        self._remembered.clear()

    def _matches(self, database: sqlite3.Connection, state: bytes, match: str) -> int:
        """Return the rows that match, remembered until the index changes: for pages, and for common words."""
        return self._remembered.load((state, match), lambda: matches_of(database, match))

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
            writer = Writer(database)
            if from_empty:
                writer.clear()
            has_changes = from_empty
            for change in changes:
                writer.apply(change)
                has_changes = True
            writer.move_checkpoint(checkpoint, caught_up_at, has_changes=has_changes)
            database.execute("COMMIT")
        return True


def _hit(database: sqlite3.Connection, row: Row, query: SearchQuery) -> Hit:
    stored = database.execute("SELECT fields FROM document WHERE id = ?", (row.id,)).fetchone()
    if stored is None:
        raise _StaleSets(f"row {row.id} is missing")
    document = load_document(stored[0])
    # The sets have filtered it already. A defect in them must not show a document to the wrong user.
    if document.status not in query.visible.statuses and document.owner != query.visible.owner:
        raise _StaleSets(f"row {row.id} is not visible")
    if not query.words:
        summary = (Fragment(shorten(document.summary)),) if document.summary else ()
        return Hit(document=document, title=(Fragment(document.title),), summary=summary)
    marker = Highlighter(query.words, last_is_prefix=is_prefix(query.words[-1]))
    return Hit(
        document=document,
        score=row.score,
        title=marker.mark(document.title),
        summary=marker.snippet(document.summary),
    )
