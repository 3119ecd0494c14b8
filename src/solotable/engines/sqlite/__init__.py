"""The embedded engine: DynamoDB's behaviour on one SQLite file, in process.

>>> engine = open(":memory:")
>>> engine.call("ListTables", {})
{'TableNames': []}
>>> engine.close()
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from .connection import MEMORY, Durability
from .engine import SqliteEngine

__all__ = ["MEMORY", "Durability", "SqliteEngine", "open"]


def open(  # noqa: A001 - sqlite.open(path) is how it reads; nobody imports it bare
    path: str | os.PathLike[str],
    *,
    durability: Durability = "full",
    read_only: bool = False,
    clock: Callable[[], float] = time.time,
) -> SqliteEngine:
    """Open a database file, making it if there is none; `":memory:"` keeps nothing.

    With durability "full" an answered write has been fsynced; "relaxed" may lose the last writes at
    a power cut, though never a part of one.
    """
    return SqliteEngine(os.fspath(path), durability=durability, read_only=read_only, clock=clock)
