"""Pages of lists: the query parameters, and the response body with the cursor of the next page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel, ConfigDict, Field

import solotable

T = TypeVar("T")
RowT = TypeVar("RowT", bound=BaseModel)

#: The cursor of the longest index key and table key has 10,923 characters in base64.
_LONGEST_CURSOR = 16_384
_CURSOR = "The `next_cursor` of the previous page; leave it out for the first page."


class Page(BaseModel, Generic[T]):
    """Some items of a list, and the cursor of the next page."""

    model_config = ConfigDict(json_schema_extra={"description": "One page of a list."})

    items: list[T]
    next_cursor: Annotated[
        str | None, Field(description="Send it as `cursor` to get the next page; null on the last page.")
    ] = None

    @classmethod
    def of(cls, page: solotable.Page[Any], view: Callable[[Any], T] | None = None) -> Page[T]:
        """Return a store's page as a response body; `view` converts each row."""
        items = page.items if view is None else [view(row) for row in page.items]
        # Rows and views are valid models already.
        return cls.model_construct(items=items, next_cursor=page.cursor)


@dataclass(frozen=True, slots=True)
class PageParams:
    """The requested page: `await store.page(pattern, limit=p.limit, cursor=p.cursor)`."""

    limit: int = 50
    cursor: str | None = None


async def _page_params(
    limit: Annotated[int, Query(ge=1, le=100, description="The largest number of items on the page.")] = 50,
    cursor: Annotated[
        str | None, Query(min_length=1, max_length=_LONGEST_CURSOR, description=_CURSOR)
    ] = None,
) -> PageParams:
    """Return the requested page."""
    return PageParams(limit, cursor)


#: The query parameters `limit` and `cursor`: `paging: Paging` in a route.
Paging = Annotated[PageParams, Depends(_page_params)]
