"""The indexer: content from the change feed to a search index, and the rebuild of a lost one.

The index stores the checkpoint of what it has, so a killed indexer continues there and applies each change
once. Two indexers of one index do not harm each other: the index rejects the batch of the slower one, which
then continues from the stored checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from solotable import Changed, Changes, Checkpoint, Database
from solotable.errors import DataError, FeedTrimmed
from solotable.flow import scope_of
from solotable.systems.portal.entities.content import Content, ContentSummary
from solotable.systems.portal.entities.values import STATUSES
from solotable.systems.portal.tables import content_registry

from .port import Deletion, IndexBatch, IndexDamaged, SearchIndex
from .records import Document

_MOST_CHANGES = 500
#: How often an idle indexer stores that it has everything.
_IDLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexResult:
    """What one run did: changes that it applied, and whether it rebuilt the index."""

    changes: int = 0
    rebuilt: bool = False


class Indexer:
    """Keeps one index in step with the content of a database. Use it in one thread."""

    def __init__(self, db: Database, index: SearchIndex) -> None:
        self._db = db
        self._index = index
        self._clock = scope_of(db).clock
        self._feed: Changes[Changed[Content]] | None = None
        #: The checkpoint that the feed and the index agree on, and when the index had everything.
        self._checkpoint: str | None = None
        self._caught_up_at = 0.0

    def run_once(self) -> IndexResult:
        """Apply every change so far; rebuild an index that is new, damaged or too far behind."""
        rebuilt = False
        while True:
            try:
                if self._feed is None:
                    rebuilt = self._open() or rebuilt
                return IndexResult(changes=self._apply(), rebuilt=rebuilt)
            except IndexDamaged:
                self._index.reset()
                self._feed = None
            except FeedTrimmed:
                self._feed = None
                rebuilt = self.rebuild() or rebuilt

    def rebuild(self) -> bool:
        """Replace the index by what the table has; False if another process did it first."""
        # From the earliest change on: a rebuild reads an index of the table, which may be behind it. The
        # search index ignores changes that are older than what it has.
        start = Checkpoint(shards=(), begun=self._clock())
        previous = self._index.status().checkpoint
        self._feed = None
        return self._index.replace(self._documents(), previous=previous, checkpoint=start.render())

    def _open(self) -> bool:
        """Start the feed at the checkpoint of the index; return whether it was rebuilt first."""
        stored = self._index.status().checkpoint
        rebuilt = stored is None and self.rebuild()
        stored = self._index.status().checkpoint
        if stored is None:
            return False  # another process is rebuilding it
        try:
            since = Checkpoint.parse(stored)
        except DataError as error:
            raise IndexDamaged("The search index has an unreadable checkpoint.") from error
        feed = self._db.changes(Content, since=since, table=content_registry, unknown="skip")
        self._feed, self._checkpoint = feed, stored
        return rebuilt

    def _apply(self) -> int:
        """Apply the changes behind the checkpoint, in batches; return how many."""
        count = 0
        while self._feed is not None:
            begun = self._clock()
            changes: list[Document | Deletion] = []
            at_end = True
            for change in self._feed:
                changes.append(_change_of(change))
                if len(changes) == _MOST_CHANGES:
                    at_end = False
                    break
            if not changes and begun - self._caught_up_at < _IDLE_SECONDS:
                return count
            if not self._write(changes, begun if at_end else None):
                self._feed = None  # another indexer was faster: continue from its checkpoint
                return count
            count += len(changes)
            if at_end:
                self._caught_up_at = begun
                return count
        return count

    def _write(self, changes: list[Document | Deletion], caught_up_at: float | None) -> bool:
        assert self._feed is not None
        checkpoint = self._feed.checkpoint.render()
        batch = IndexBatch(
            changes=changes, previous=self._checkpoint, checkpoint=checkpoint, caught_up_at=caught_up_at
        )
        if not self._index.write(batch):
            return False
        self._checkpoint = checkpoint
        return True

    def _documents(self) -> Iterator[Document]:
        """Yield all content, by one query of each status and no scan."""
        for status in STATUSES:
            for summary in self._db.all(Content.with_status(status)):
                yield document_of(summary)


def document_of(content: Content | ContentSummary) -> Document:
    """Return what search knows of content."""
    updated = content.last_updated
    assert isinstance(updated, datetime), "stored content has a time"
    return Document(
        content_id=content.content_id,
        title=content.title,
        summary=content.summary,
        status=content.status,
        owner=content.owner_user_id,
        tags=tuple(content.tags),
        suite=content.product_suite,
        concept=content.product_concept,
        audience=content.audience_role,
        updated=updated,
        version=content.revision,
    )


def _change_of(change: Changed[Content]) -> Document | Deletion:
    if change.after is None:
        removed = change.current
        return Deletion(content_id=removed.content_id, version=removed.revision)
    return document_of(change.after)
