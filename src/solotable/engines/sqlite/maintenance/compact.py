"""Return the free pages of a file to the file system.

SQLite copies the used pages to a temporary file next to the database and back through its log, in one
transaction, so a killed process or a full disk leaves the file unchanged. Readers continue. Writers of all
processes wait; the time depends on the number of used pages, not of free pages.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from solotable.engines.sqlite.counts.recount import recount_table
from solotable.engines.sqlite.engine import SqliteEngine
from solotable.engines.sqlite.tables import catalog
from solotable.errors import EngineError, StorageFull

#: Takes the current step, and the part of it that is done (0 to 1).
Progress = Callable[[str, float], None]

#: Steps of SQLite's virtual machine per copied B-tree entry, and between two calls of the handler.
_STEPS_PER_ENTRY, _STEPS_PER_TICK = 4.3, 1_000
#: The time to wait for readers of the old pages before truncating the file.
_READER_MILLIS = 2_000
_BUSY_MILLIS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """The size of a file with its log before and after a compaction, and the duration."""

    path: str
    bytes_before: int
    bytes_after: int
    seconds: float
    #: Whether readers still need the old pages; the file shrinks at a commit after they end.
    held_by_readers: bool


def compact(path: str, progress: Progress = lambda step, part: None) -> CompactionResult:
    """Compact a database file, and recount its items."""
    if not Path(path).exists():
        raise EngineError(f"{path} does not exist.")
    started = time.monotonic()
    with SqliteEngine(path) as engine:
        # The path may be a link to another folder or disk.
        file = engine.database.path
        before = _bytes(file)
        with engine.database.read() as connection:
            names = catalog.list_names(connection)
            _check_disk_space(connection, file)
        for done, name in enumerate(names):
            progress("count items", done / len(names))
            recount_table(engine, name)
        held = engine.database.run_exclusively(partial(_vacuum, path=file, progress=progress))
        after = _bytes(file)
    return CompactionResult(
        path=path,
        bytes_before=before,
        bytes_after=after,
        seconds=round(time.monotonic() - started, 3),
        held_by_readers=held,
    )


def _vacuum(connection: sqlite3.Connection, path: str, progress: Progress) -> bool:
    """Compact the file; return whether readers prevent its truncation."""
    steps = 0
    # An item is in two B-trees, by row and by key; an index entry is in one.
    entries = connection.execute(
        "SELECT coalesce(sum(items * iif(index_id = 0, 2, 1)), 0) FROM counts"
    ).fetchone()[0]

    def tick() -> int:
        nonlocal steps
        steps += _STEPS_PER_TICK
        progress("copy pages", min(steps / (1 + entries * _STEPS_PER_ENTRY), 1.0))
        return 0

    # The system's folder for temporary files may be too small, or in memory.
    folder = str(Path(path).absolute().parent).replace("'", "''")
    connection.execute(f"PRAGMA temp_store_directory = '{folder}'")
    connection.set_progress_handler(tick, _STEPS_PER_TICK)
    progress("copy pages", 0.0)
    try:
        connection.execute("VACUUM")
    finally:
        connection.set_progress_handler(None, 0)
        connection.execute("PRAGMA temp_store_directory = ''")
    progress("truncate the file", 0.0)
    connection.execute(f"PRAGMA busy_timeout = {_READER_MILLIS}")
    try:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLIS}")
    progress("truncate the file", 1.0)
    return bool(busy)


def _check_disk_space(connection: sqlite3.Connection, path: str) -> None:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    # The pages are written to a temporary file and to the log.
    needed = 2 * (pages - free) * size
    available = shutil.disk_usage(Path(path).absolute().parent).free
    if available < needed:
        raise StorageFull(
            f"Compacting {path} needs about {needed:,} bytes of temporary space, but only {available:,} "
            "bytes are free; nothing was changed."
        )


def _bytes(path: str) -> int:
    return sum(Path(each).stat().st_size for each in (path, f"{path}-wal") if Path(each).exists())
