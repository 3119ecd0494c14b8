"""Search for the routes: awaited, with signed cursors that are bound to their query and caller."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from solotable import AsyncDatabase
from solotable.flow import scope_of

from .port import SearchIndex
from .records import Hit, IndexStatus, SearchQuery

_POSITION = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """One page of hits, the counts of all visible matches by facet, and the cursor of the next page."""

    hits: tuple[Hit, ...]
    total: int
    facets: Mapping[str, Mapping[str, int]]
    #: None on the last page. A page before it is never empty (C3.6).
    cursor: str | None = None


class Search:
    """An index with the cursors of a database."""

    def __init__(self, db: AsyncDatabase, index: SearchIndex) -> None:
        self._signer = scope_of(db).cursor_signer
        self._index = index

    async def page(self, query: SearchQuery, *, cursor: str | None = None, limit: int = 20) -> SearchPage:
        """Return one page; raise CursorRejected for a cursor of another query or caller (C3.1)."""
        bound_to = _fingerprint(query)
        after = None
        if cursor is not None:
            after = tuple(json.loads(self._signer.verify(cursor, bound_to)[_POSITION]["S"]))
        found = await asyncio.to_thread(self._index.search, query, after=after, limit=limit)
        following = None
        if found.next is not None:
            following = self._signer.sign({_POSITION: {"S": json.dumps(found.next)}}, bound_to)
        return SearchPage(hits=found.hits, total=found.total, facets=found.facets, cursor=following)

    async def status(self) -> IndexStatus:
        """Return how far the index is."""
        return await asyncio.to_thread(self._index.status)


def _fingerprint(query: SearchQuery) -> bytes:
    """Return what a cursor is bound to: the text, the filters and what the caller may see."""
    parts = {**asdict(query), "visible": [sorted(query.visible.statuses), query.visible.owner]}
    return b"portal search " + json.dumps(parts, sort_keys=True).encode()
