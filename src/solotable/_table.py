"""Table: a declared table that opens stores; importing it loads no store and no engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ._entities.declare import table as declared

if TYPE_CHECKING:
    from ._store import AsyncDatabase, Database
    from ._store.observation import Observer


class Table(declared.Table):
    """One DynamoDB table and its entities; `open(url)` returns the store for them.

    See `solotable._entities.declare.table.Table` for the arguments.
    """

    def open(
        self,
        url: str,
        *,
        cursor_secrets: Sequence[bytes] = (),
        clock: Callable[[], float] = time.time,
        session: Any = None,
        observer: Observer | None = None,
    ) -> Database:
        """Open a URL for this table alone; see `connect`."""
        # A declaration needs no store: programs that only declare do not load one.
        from ._connect import connect

        return connect(
            url, self, cursor_secrets=cursor_secrets, clock=clock, session=session, observer=observer
        )

    def open_async(
        self,
        url: str,
        *,
        cursor_secrets: Sequence[bytes] = (),
        clock: Callable[[], float] = time.time,
        session: Any = None,
        observer: Observer | None = None,
    ) -> AsyncDatabase:
        """Open a URL for this table alone, for use with `await`."""
        from ._connect import connect_async

        return connect_async(
            url, self, cursor_secrets=cursor_secrets, clock=clock, session=session, observer=observer
        )
