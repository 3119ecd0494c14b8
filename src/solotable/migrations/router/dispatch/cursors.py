"""Cursors of routed pages: each names the side that made it, because the other side cannot read it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solotable._store.page import Page
from solotable.errors import CursorRejected

from .routing import Routing, SideName

_SIDES: dict[str, SideName] = {"old": "source", "new": "target"}
_WORDS = {side: word for word, side in _SIDES.items()}


def side_of(cursor: str | None) -> tuple[SideName | None, str | None]:
    """Return the side that made a cursor, and the cursor as that side knows it.

    A cursor without a side was made before the application used a router, so by the source.
    """
    if cursor is None:
        return None, None
    word, dot, rest = cursor.partition(".")
    if dot and word in _SIDES:
        return _SIDES[word], rest
    return "source", cursor


def check_side(side: SideName | None, routing: Routing, *, consistent: bool) -> None:
    """Raise CursorRejected if the side of a cursor can no longer serve its next page."""
    if side is None:
        return
    if routing.has_ended and side != "target":
        raise CursorRejected(
            "The cursor is of a page of the old tables, and the migration is complete; read from the first "
            "page again."
        )
    if consistent and side != routing.writes:
        raise CursorRejected(
            f"The cursor is of a consistent page that the {side} served, and the writes moved to the "
            f"{routing.writes}; read from the first page again."
        )


def with_side(page: Page[Any], side: SideName) -> Page[Any]:
    """Return a page whose cursors name its side."""
    return replace(page, cursor=_named(page.cursor, side), previous=_named(page.previous, side))


def _named(cursor: str | None, side: SideName) -> str | None:
    return None if cursor is None else f"{_WORDS[side]}.{cursor}"
