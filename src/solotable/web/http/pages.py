"""Pages of lists: the query parameters, and the body that carries the cursor of the next page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from solotable._store import page as pages

T = TypeVar("T")
RowT = TypeVar("RowT", bound=BaseModel)

#: Room for the cursor of the longest key of an index and its table: 8,323 characters, 10,923 in base64.
_LONGEST_CURSOR = 16_384
_ADVICE = "The `next_cursor` of the page before; leave it out for the first page."


class Page(BaseModel, Generic[T]):
    """Some items, and the cursor of those after them."""

    model_config = ConfigDict(json_schema_extra={"description": "One page of a list."})

    items: list[T]
    next_cursor: Annotated[
        str | None, Field(description="Send it as `cursor` for the next page; null at the end.")
    ] = None

    @classmethod
    def of(cls, page: pages.Page[Any], view: Callable[[Any], T] | None = None) -> Page[T]:
        """Return a store's page as a body, each row through `view` when the body has another model."""
        items = page.items if view is None else [view(row) for row in page.items]
        # The rows were validated when they were read, and views when they were made.
        return cls.model_construct(items=items, next_cursor=page.cursor)


@dataclass(frozen=True, slots=True)
class PageParams:
    """Which page is asked for: `await store.page(pattern, limit=p.limit, cursor=p.cursor)`."""

    limit: int = 50
    cursor: str | None = None


async def page_params(
    limit: Annotated[int, Query(ge=1, le=100, description="How many items a page has at most.")] = 50,
    cursor: Annotated[
        str | None, Query(min_length=1, max_length=_LONGEST_CURSOR, description=_ADVICE)
    ] = None,
) -> PageParams:
    """Return the page that the query parameters ask for."""
    return PageParams(limit, cursor)


#: `paging: Paging` in a route.
Paging = Annotated[PageParams, Depends(page_params)]
