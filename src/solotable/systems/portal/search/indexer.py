"""The indexer: content from the change feed to a search index, and the rebuild of a lost one.

The index stores the checkpoint of what it has, so a killed indexer continues there and applies each change
once. Two indexers of one index do not harm each other: the index rejects the batch of the slower one, which
then continues from the stored checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeGuard

from solotable import Checkpoint, Database
from solotable.errors import DataError, FeedTrimmed, StoredDataError
from solotable.flow import Item, Scope, decode_entity, run, scope_of
from solotable.flow.feed import Feed, Record
from solotable.systems.portal.entities.content import Content, ContentReference, ContentSummary
from solotable.systems.portal.entities.values import STATUSES, Status
from solotable.systems.portal.tables import content_registry

from .port import Deletion, IndexBatch, IndexDamaged, SearchIndex
from .records import Document

_MOST_CHANGES = 500
#: How often an idle indexer stores that it has everything.
_IDLE_SECONDS = 1.0
#: An index stores versions as 64-bit integers.
_LARGEST_VERSION = 2**63 - 1
_CONTENT = Content.plan().tag_value
_log = logging.getLogger("solotable.portal")


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
        self._feed: Feed[Document | Deletion] | None = None
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
                result = IndexResult(changes=self._apply(), rebuilt=rebuilt)
                if self._index.prepare() or self._feed is None:
                    return result
                self._feed = None  # the file was removed, and the pool created an empty one
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
        scope = scope_of(self._db)
        self._feed = Feed(scope, [content_registry], partial(changes_of, scope), since=since)
        self._checkpoint = stored
        return rebuilt

    def _apply(self) -> int:
        """Apply the changes behind the checkpoint, in batches; return how many."""
        count = 0
        while self._feed is not None:
            begun = self._clock()
            changes = list(islice(self._changes(self._feed), _MOST_CHANGES))
            at_end = len(changes) < _MOST_CHANGES
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

    def _changes(self, feed: Feed[Document | Deletion]) -> Iterator[Document | Deletion]:
        while run(feed.fill(), self._db):
            while (change := feed.take()) is not None:
                yield change

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
            try:
                for summary in self._db.all(Content.with_status(status), unknown="skip"):
                    yield document_of(summary)
            except DataError:
                # An invalid item ends the query. A document that comes twice is stored once.
                yield from self._valid_documents(status)

    def _valid_documents(self, status: Status) -> Iterator[Document]:
        """Yield the content of a status one by one; log and skip what is invalid."""
        listed = Content.by_status.query(status=status).select(ContentReference)
        for reference in self._db.all(listed, unknown="skip"):
            try:
                content = self._db.get(Content, content_id=reference.content_id)
                document = None if content is None else document_of(content)
            except DataError as error:
                _log.warning("content %r is invalid and is not indexed: %s", reference.content_id, error)
                continue
            if document is not None:
                yield document


def document_of(content: Content | ContentSummary) -> Document:
    """Return what search knows of content; raise StoredDataError for what this library does not write."""
    updated = content.last_updated
    if updated is None or not 0 <= content.revision <= _LARGEST_VERSION:
        raise StoredDataError(f"Content {content.content_id!r} has no last_updated, or a wrong revision.")
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


def changes_of(scope: Scope, record: Record) -> Iterator[Document | Deletion]:
    """Yield the change of a record. Content that is invalid is a deletion, and does not stop the index."""
    if _is_content(record.after):
        try:
            content = decode_entity(scope, Content, record.after)
            if content is not None:
                yield document_of(content)
                return
        except DataError as error:
            name = _content_id(record.after)
            _log.warning("content %r is invalid and leaves the search index: %s", name, error)
    elif not _is_content(record.before):
        return
    images = [each for each in (record.before, record.after) if each is not None]
    yield Deletion(content_id=_content_id(images[0]), version=max(map(_revision, images)))


def _is_content(item: Item | None) -> TypeGuard[Item]:
    return item is not None and item.get(content_registry.internal_tag) == _CONTENT


def _content_id(item: Item) -> str:
    return str(item[content_registry.partition.name]["S"])


def _revision(item: Item) -> int:
    """Return the revision of an item that may be invalid; 0 if it has none."""
    digits = str(item.get("revision", {}).get("N", ""))
    return int(digits) if digits.isdecimal() and int(digits) <= _LARGEST_VERSION else 0
