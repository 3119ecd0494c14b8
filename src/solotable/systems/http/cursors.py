"""Sealed cursors: a client cannot read them, and they work for one user and one list only.

The store signs its cursors and binds them to a query. They show keys to their holder, and two users of one
list could exchange them. So a cursor leaves the app encrypted, with the user and the list as associated data.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from solotable import CursorRejected
from solotable.web import PageParams

from .sealing import Seal


class CursorSeal:
    """Seals cursors for a user and a list."""

    def __init__(self, secrets: Sequence[bytes] = (), *, purpose: bytes = b"cursor") -> None:
        self._seal = Seal(secrets, purpose=purpose)

    def seal(self, cursor: str | None, *, user_id: str, list_name: str) -> str | None:
        """Return the text for the client; None without a next page."""
        return None if cursor is None else self._seal.seal(cursor, user_id, list_name)

    def open(self, sealed: str | None, *, user_id: str, list_name: str) -> str | None:
        """Return the cursor of the store, or raise CursorRejected."""
        if sealed is None:
            return None
        opened = self._seal.open(sealed, user_id, list_name)
        if opened is None:
            raise CursorRejected("The cursor does not belong to this user and this list.")
        return opened


@dataclass(frozen=True, slots=True)
class SealedPaging:
    """The requested page of a list; its cursors are bound to the caller and the list."""

    seal: CursorSeal
    user_id: str
    params: PageParams

    @property
    def limit(self) -> int:
        """The largest number of items on the page."""
        return self.params.limit

    def cursor(self, *list_name: object) -> str | None:
        """Return the store's cursor in the client's one, or raise CursorRejected."""
        return self.seal.open(self.params.cursor, user_id=self.user_id, list_name=_name(list_name))

    def seal_next(self, cursor: str | None, *list_name: object) -> str | None:
        """Return the client's cursor of the next page."""
        return self.seal.seal(cursor, user_id=self.user_id, list_name=_name(list_name))


def _name(parts: tuple[object, ...]) -> str:
    # JSON keeps the parts apart, whatever they contain.
    return json.dumps(parts, default=str)
