"""Methods of the async store that read: each runs one flow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from pydantic import BaseModel

from solotable._entities.patterns.query import Query
from solotable._flows.reads import query
from solotable._flows.scope import Unknown
from solotable._store.arguments import (
    Where,
    check_query,
    filtered,
)
from solotable._store.page import Page

from .collections import AsyncCollections
from .gets import AsyncGets

RowT = TypeVar("RowT", bound=BaseModel)


class AsyncReads(AsyncGets, AsyncCollections):
    """The methods that read entities."""

    async def page(
        self,
        pattern: Query[RowT],
        *,
        limit: int = 50,
        cursor: str | None = None,
        where: Where[RowT] = None,
        work: int = query.DEFAULT_WORK,
        unknown: Unknown = "raise",
    ) -> Page[RowT]:
        """Return a page of up to `limit` rows and the cursor of the next page.

        With a filter it reads until the page is full or `work` items were read. An item that no entity
        matches raises UnknownEntity; `unknown="skip"` skips it.
        """
        asked = filtered("page", pattern, where)
        scope = self._scope.reading(unknown)
        return Page.of(
            await self._run(query.page(scope, asked, limit=limit, cursor=cursor, work=work), asked)
        )

    async def all(
        self, pattern: Query[RowT], *, where: Where[RowT] = None, unknown: Unknown = "raise"
    ) -> AsyncIterator[RowT]:
        """Iterate over all rows, page by page as they are needed."""
        scope = self._scope.reading(unknown)
        prepared = query.prepare(scope, filtered("all", pattern, where))
        start = None
        while True:
            some = await self._run(query.read(scope, prepared, start), pattern)
            for row in some.rows:
                yield row
            start = some.last_key
            if start is None:
                return

    async def first(
        self, pattern: Query[RowT], *, where: Where[RowT] = None, unknown: Unknown = "raise"
    ) -> RowT | None:
        """Return the first row, or None."""
        return next(
            iter(
                (await self.page(check_query("first", pattern), limit=1, where=where, unknown=unknown)).items
            ),
            None,
        )

    async def count(
        self, pattern: Query[RowT], *, where: Where[RowT] = None, unknown: Unknown = "raise"
    ) -> int:
        """Return the number of rows; DynamoDB charges for reading them, but does not return them.

        `unknown` matters only in a table that does not require type tags: its items are read and recognised.
        """
        return await self._run(
            query.count(self._scope.reading(unknown), filtered("count", pattern, where)), pattern
        )

    def explain(self, pattern: Query[Any]) -> query.PreparedQuery:
        """Return the request of a query without sending it."""
        return query.prepare(self._scope, check_query("explain", pattern))
