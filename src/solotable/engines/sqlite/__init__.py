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

from solotable._protocol.error_texts import LATEST, ErrorTexts

from .engine import SqliteEngine
from .file.connection import LOCK_SECONDS, MEMORY, Durability

__all__ = ["LOCK_SECONDS", "MEMORY", "Durability", "SqliteEngine", "open"]


def open(  # noqa: A001 - sqlite.open(path) is how it reads; nobody imports it bare
    path: str | os.PathLike[str],
    *,
    durability: Durability = "full",
    read_only: bool = False,
    lock_timeout_seconds: float = LOCK_SECONDS,
    clock: Callable[[], float] = time.time,
    error_texts: ErrorTexts = LATEST,
) -> SqliteEngine:
    """Open a database file, making it if there is none; `":memory:"` keeps nothing.

    With durability "full" an answered write has been fsynced; "relaxed" may lose the last writes at
    a power cut, though never a part of one. A write that waits longer than `lock_timeout_seconds` for
    another process raises FileLocked.

    `error_texts` "2025" words refused requests as AWS did before it changed many texts in mid-2026.
    """
    return SqliteEngine(
        os.fspath(path),
        durability=durability,
        read_only=read_only,
        lock_timeout_seconds=lock_timeout_seconds,
        clock=clock,
        error_texts=error_texts,
    )
