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
from solotable.locations import Buckets, locate_buckets

from .engine import SqliteEngine
from .file.connection import LOCK_SECONDS, MEMORY, Durability

__all__ = ["LOCK_SECONDS", "MEMORY", "Durability", "SqliteEngine", "open"]


def open(  # noqa: A001, PLR0913  # callers write sqlite.open(path), and choose each setting by name
    path: str | os.PathLike[str],
    *,
    durability: Durability = "full",
    read_only: bool = False,
    lock_timeout_seconds: float = LOCK_SECONDS,
    clock: Callable[[], float] = time.time,
    error_texts: ErrorTexts = LATEST,
    buckets: str | os.PathLike[str] | Buckets | None = None,
    heat: bool = True,
    maintenance: bool = True,
) -> SqliteEngine:
    """Open a database file, or create it; `":memory:"` opens a database in memory.

    With durability "full", an acknowledged write has been fsynced. With "relaxed", a power cut may lose the
    last writes, each of them whole. A write that waits longer than `lock_timeout_seconds` for another process
    raises FileLocked.

    With `error_texts` "2025", errors have the texts of AWS from before mid-2026, when many of them changed.

    `buckets` is where ExportTableToPointInTime writes and ImportTable reads: a folder with a folder for each
    bucket, or "s3://" for the buckets of S3, through boto3.

    `heat=False` does not count the traffic of partition keys; see `solotable.heat`.

    An engine that opens a file resumes interrupted backfills, copies and repairs. `maintenance=False` leaves
    them to another engine on the file, as the reading processes of `solotable serve --workers` do.
    """
    if isinstance(buckets, str | os.PathLike):
        buckets = locate_buckets(buckets)
    return SqliteEngine(
        os.fspath(path),
        durability=durability,
        read_only=read_only,
        lock_timeout_seconds=lock_timeout_seconds,
        clock=clock,
        error_texts=error_texts,
        buckets=buckets,
        heat=heat,
        maintenance=maintenance,
    )
