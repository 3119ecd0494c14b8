"""Sizes of background transactions: small while other writers wait, large otherwise."""

from __future__ import annotations

import sqlite3
import time

from .connection import Database

_FEWEST, _MOST = 50, 500
#: In memory, waiting writers cannot be seen, and readers wait too.
_MOST_IN_MEMORY = 100
#: Python's locks are not fair: without a pause, a waiting writer might never get the lock.
_PAUSE_SECONDS = 0.002


class BatchPacer:
    """The number of items in the next transaction; it doubles while no other writer is seen."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._most = _MOST_IN_MEMORY if database.in_memory else _MOST
        self._version: int | None = None
        #: Whether another writer was seen during the last transaction.
        self.is_contended = False
        self.items = _FEWEST

    def adapt(self, connection: sqlite3.Connection) -> None:
        """Adapt the size; call it at the end of a transaction, inside it."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        # Commits of other processes change the version; their waiting writers cannot be seen.
        self.is_contended = bool(self._database.waiting) or self._version not in (None, version)
        self._version = version
        self.items = _FEWEST if self.is_contended else min(2 * self.items, self._most)

    def yield_to_writers(self) -> None:
        """Let other writers commit, between two transactions."""
        time.sleep(_PAUSE_SECONDS)
