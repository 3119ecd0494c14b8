"""The port of search: what the portal needs of a full-text index. It is blocking; `service` awaits it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from solotable.errors import SolotableError

from .records import Document, FoundPage, IndexStatus, Position, SearchQuery


class SearchUnavailable(SolotableError):
    """The index cannot answer now: it is damaged, missing or unreachable. The table is not affected."""


class IndexDamaged(SearchUnavailable):
    """The index must be rebuilt from the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A document that was deleted, and its last version."""

    content_id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBatch:
    """Changes in the order of the feed, and the checkpoints before and after them."""

    changes: Sequence[Document | Deletion]
    previous: str | None
    checkpoint: str
    #: The time up to which the index has all changes; None if more changes wait.
    caught_up_at: float | None = None


class SearchIndex(Protocol):
    """An index of documents with the checkpoint of the feed that it follows."""

    def write(self, batch: IndexBatch) -> bool:
        """Apply changes and move the checkpoint; return False, and move nothing, if it is not `previous`."""

    def replace(self, documents: Iterable[Document], *, previous: str | None, checkpoint: str) -> bool:
        """Replace all documents. Searches see the old ones until it is done; False as `write` returns it."""

    def search(self, query: SearchQuery, *, after: Position | None = None, limit: int = 20) -> FoundPage:
        """Return the best visible matches behind a position; without a text, the newest first."""

    def status(self) -> IndexStatus:
        """Return how far the index is; raise IndexDamaged if it must be rebuilt."""

    def prepare(self) -> bool:
        """Load what searches keep in memory, outside of requests; return False if the index is not built."""

    def reset(self) -> None:
        """Remove everything, whatever state it is in."""

    def close(self) -> None:
        """Release connections."""
