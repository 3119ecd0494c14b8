"""Pages and collections as callers get them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, TypeVarTuple

from pydantic import BaseModel

from solotable._flows.consumption import Consumed
from solotable._flows.reads.query import FilledPage

RowT = TypeVar("RowT", bound=BaseModel)
GroupTs = TypeVarTuple("GroupTs")


@dataclass(frozen=True, slots=True)
class Page(Generic[RowT]):
    """A page of rows, and the signed cursors of the pages around it.

    `cursor` reads the rows after the last row of this page; it is None when the page ends the range.
    `previous` reads the rows before its first row, in the same order; it is None on a page that was read
    without a cursor, or that a `previous` cursor read and that starts the range.
    """

    items: list[RowT]
    cursor: str | None
    #: How many items were read for the page, those that a filter dropped included.
    scanned: int
    #: How many items no entity matches; only with `unknown="skip"`.
    skipped: int = 0
    previous: str | None = None
    #: What the requests of the page consumed; None unless the store has an observer, or in `db.consumed()`.
    consumed: Consumed | None = field(default=None, compare=False)

    @classmethod
    def of(cls, filled: FilledPage) -> Page[RowT]:
        """Return a page of what a flow found."""
        return cls(
            filled.rows, filled.cursor, filled.scanned, filled.skipped, filled.previous, filled.consumed
        )

    def __iter__(self) -> Iterator[RowT]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Collection(tuple[*GroupTs], Generic[*GroupTs]):
    """The entities of one partition by class, as a tuple: `survey, sections = db.collection(...)`.

    `cursor`, `previous`, `scanned`, `skipped` and `consumed` are those of a `Page`.
    """

    cursor: str | None
    previous: str | None
    scanned: int
    skipped: int
    consumed: Consumed | None

    @classmethod
    def of(cls, groups: tuple[Any, ...], filled: FilledPage) -> Collection[*tuple[Any, ...]]:
        """Return a collection of what a flow found."""
        found: Any = tuple.__new__(cls, groups)
        found.cursor, found.previous = filled.cursor, filled.previous
        found.scanned, found.skipped, found.consumed = filled.scanned, filled.skipped, filled.consumed
        return found  # type: ignore[no-any-return]
