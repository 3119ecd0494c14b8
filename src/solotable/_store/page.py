"""Pages as callers get them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from solotable._flows.reads.query import FilledPage

RowT = TypeVar("RowT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Page(Generic[RowT]):
    """A page of rows, and the signed cursor of the next page; None at the end."""

    items: list[RowT]
    cursor: str | None
    #: How many items were read for the page, those that a filter dropped included.
    scanned: int
    #: How many items no entity matches; only with `unknown="skip"`.
    skipped: int = 0

    @classmethod
    def of(cls, filled: FilledPage) -> Page[RowT]:
        """Return a page of what a flow found."""
        return cls(filled.rows, filled.cursor, filled.scanned, filled.skipped)

    def __iter__(self) -> Iterator[RowT]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)
