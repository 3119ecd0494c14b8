"""Pages of filtered queries that are never empty before the end (C3.6)."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from solotable import AsyncDatabase, Page, Query

RowT = TypeVar("RowT", bound=BaseModel)


async def page_with_rows(
    db: AsyncDatabase, query: Query[RowT], *, limit: int, cursor: str | None, work: int = 10_000
) -> Page[RowT]:
    """Return a page; where a filter drops all of the `work` items that one page may read, read on."""
    page = await db.page(query, limit=limit, cursor=cursor, work=work)
    while not page.items and page.cursor is not None:
        page = await db.page(query, limit=limit, cursor=page.cursor, work=work)
    return page
