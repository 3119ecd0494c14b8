"""How much work SQLite does: the steps of its machine, on every connection of an engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

from solotable.engines.sqlite.file import connection as connections
from solotable.engines.sqlite.file.connection import Connect

ResultT = TypeVar("ResultT")


class Steps:
    """Counts the steps of all connections that `connect` has opened."""

    def __init__(self) -> None:
        self.taken = 0

    @property
    def connect(self) -> Connect:
        def tick() -> int:
            self.taken += 1
            return 0

        def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection = connections.connect(*arguments, **options)
            connection.set_progress_handler(tick, 10)
            return connection

        return connect

    def of(self, work: Callable[[], ResultT]) -> tuple[int, ResultT]:
        """Return how many tens of steps some work takes, and its result."""
        before = self.taken
        result = work()
        return self.taken - before, result
