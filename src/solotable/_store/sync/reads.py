"""Methods of the blocking store that read: each runs one flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from solotable._entities.declare.entity import Entity
from solotable._entities.patterns.query import Query
from solotable._flows.reads import get as read
from solotable._flows.reads import query
from solotable._flows.scope import Unknown
from solotable._store.arguments import (
    Where,
    check_class,
    check_query,
    filtered,
)
from solotable._store.page import Page

from .collections import Collections

E = TypeVar("E", bound=Entity)
RowT = TypeVar("RowT", bound=BaseModel)


class Reads(Collections):
    """The methods that read entities."""

    def get(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> E | None:
        """Return the entity with this key, or None."""
        return self._run(read.get(self._scope, check_class("get", entity), key, consistent=consistent))

    def require(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> E:
        """Return the entity with this key, or raise NotFound."""
        return self._run(
            read.require(self._scope, check_class("require", entity), key, consistent=consistent)
        )

    def get_many(
        self, entity: type[E], keys: Sequence[Mapping[str, Any]], *, consistent: bool = False
    ) -> list[E | None]:
        """Return the entities with these keys in the same order; None for missing ones."""
        return self._run(
            read.get_many(self._scope, check_class("get_many", entity), keys, consistent=consistent)
        )

    def page(
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
        return Page.of(self._run(query.page(scope, asked, limit=limit, cursor=cursor, work=work)))

    def all(
        self, pattern: Query[RowT], *, where: Where[RowT] = None, unknown: Unknown = "raise"
    ) -> Iterator[RowT]:
        """Iterate over all rows, page by page as they are needed."""
        scope = self._scope.reading(unknown)
        prepared = query.prepare(scope, filtered("all", pattern, where))
        start = None
        while True:
            some = self._run(query.rows(scope, prepared, start, None))
            yield from some.rows
            start = some.last_key
            if start is None:
                return

    def first(
        self, pattern: Query[RowT], *, where: Where[RowT] = None, unknown: Unknown = "raise"
    ) -> RowT | None:
        """Return the first row, or None."""
        return next(
            iter(self.page(check_query("first", pattern), limit=1, where=where, unknown=unknown).items), None
        )

    def count(self, pattern: Query[RowT], *, where: Where[RowT] = None, unknown: Unknown = "raise") -> int:
        """Return the number of rows; DynamoDB charges for reading them, but does not return them.

        `unknown` matters only in a table that does not require type tags: its items are read and recognised.
        """
        return self._run(query.count(self._scope.reading(unknown), filtered("count", pattern, where)))

    def explain(self, pattern: Query[Any]) -> query.PreparedQuery:
        """Return the request of a query without sending it."""
        return query.prepare(self._scope, check_query("explain", pattern))
