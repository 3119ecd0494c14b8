"""Remove changes that neither a stream nor the window of continuous backups needs.

A window is as long as the table's recovery period. A limit of its bytes may shorten it. The transaction that
removes changes also moves the start of the window, so the start is true at every moment. A copy that undoes
changes keeps them until it is complete.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from solotable.engines.sqlite.items import streams
from solotable.engines.sqlite.items.change_rows import COVERED, STREAMED_SQL, change_checksum
from solotable.engines.sqlite.tables import windows
from solotable.engines.sqlite.tables.catalog import Definition
from solotable.engines.sqlite.tables.windows import DAY_MICROS, Window

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: The most changes that one transaction removes.
BATCH = 1_000
#: The bytes of a change besides its images and key.
_OVERHEAD = 64
#: What an engine has measured of each window.
_sizes: WeakKeyDictionary[SqliteEngine, dict[str, _LogSize]] = WeakKeyDictionary()
_SIZE = f"coalesce(length(old), 0) + coalesce(length(new), 0) + length(key) + {_OVERHEAD}"


@dataclass(slots=True)
class _LogSize:
    """The bytes of a window's changes from one sequence number to another."""

    after: int
    until: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Step:
    """The changes that a transaction removes: up to `last`, which was made at `at_micros`."""

    last: int
    at_micros: int
    more: bool


def prune(engine: SqliteEngine, definitions: Iterable[Definition]) -> None:
    """Remove the changes that are too old, or too many bytes, for every table."""
    settings = {
        one["TableId"]: one["PointInTimeRecovery"] for one in definitions if "PointInTimeRecovery" in one
    }
    copies = [one["Copy"] for one in definitions if one.get("Copy", {}).get("Sequence") is not None]
    with engine.database.read() as connection:
        found = windows.list_windows(connection)
    for window in found:
        pinned = [copy["Sequence"] for copy in copies if copy["Stream"] == window.stream]
        _prune_window(engine, window, settings.get(window.stream, {}), min(pinned, default=None))
    _trim_streams(engine, {window.stream for window in found if window.last is None})


def log_bytes(engine: SqliteEngine, window: Window) -> int:
    """Return the bytes of a window's changes; reads those that are new since the last call."""
    sizes = _sizes.setdefault(engine, {})
    known = sizes.get(window.stream)
    if known is None or known.after != window.start:
        # This engine has not measured the window, or another one has pruned it.
        known = sizes[window.stream] = _LogSize(window.start, window.start, 0)
    with engine.database.snapshot() as connection:
        newest = windows.newest_sequence(connection)
        known.bytes += _measure(connection, window.stream, known.until, newest)
    known.until = newest
    return known.bytes


def _measure(connection: sqlite3.Connection, stream: str, after: int, until: int) -> int:
    (size,) = connection.execute(
        f"SELECT coalesce(sum({_SIZE}), 0) FROM changes WHERE stream = ? AND sequence > ? AND sequence <= ?",
        (stream, after, until),
    ).fetchone()
    return int(size)


def _prune_window(engine: SqliteEngine, window: Window, setting: Definition, pinned: int | None) -> None:
    oldest = 0
    excess = 0
    if window.last is None:
        oldest = engine.now_micros() - setting.get("RecoveryPeriodInDays", 0) * DAY_MICROS
        if "MaxBytes" in setting:
            excess = log_bytes(engine, window) - setting["MaxBytes"]
    while True:
        with engine.database.read() as connection:
            step, removed = _next_step(connection, window, oldest, excess, pinned)
        excess -= removed
        if step is not None:
            window = _remove(engine, window, step)
            known = _sizes.get(engine, {}).get(window.stream)
            if known is not None:
                known.bytes, known.after = known.bytes - removed, window.start
        if step is None or not step.more:
            break
    if window.last is not None and window.pruned >= window.last:
        engine.database.write(lambda connection: windows.remove(connection, window))


def _next_step(
    connection: sqlite3.Connection, window: Window, oldest_micros: int, excess: int, pinned: int | None
) -> tuple[_Step | None, int]:
    """Return the next changes to remove, and their bytes."""
    rows = connection.execute(
        f"SELECT sequence, at_micros, stream, {_SIZE} FROM changes WHERE sequence > ? "
        "ORDER BY sequence LIMIT ?",
        (window.pruned, BATCH),
    ).fetchall()
    last = at_micros = removed = 0
    for sequence, at, stream, size in rows:
        if pinned is not None and sequence > pinned:
            break
        if window.last is not None:
            if sequence > window.last:
                break
        elif at >= oldest_micros and excess <= removed:
            break
        last, at_micros = sequence, at
        removed += size if stream == window.stream else 0
    if window.last is not None and not last and pinned is None:
        # The window has no change left.
        return (None if window.pruned >= window.last else _Step(window.last, window.pruned_micros, False)), 0
    if not last:
        return None, 0
    return _Step(last, at_micros, more=len(rows) == BATCH and last == rows[-1][0]), removed


def _remove(engine: SqliteEngine, window: Window, step: _Step) -> Window:
    """Remove changes and move the start of the window, in one transaction."""
    pruned = replace(window, pruned=step.last, pruned_micros=max(step.at_micros, window.pruned_micros))
    # A change that a stream contains stays for a day.
    streamed_micros = engine.now_micros() - streams.RETENTION_MICROS
    condition = "stream = ? AND sequence > ? AND sequence <= ? AND (by_service & 2 OR at_micros < ?)"
    if window.last is not None:
        condition = "stream = ? AND sequence > ? AND sequence <= ? AND by_service & 2 AND ? > 0"
    bounds = (window.stream, window.pruned, step.last, max(1, streamed_micros))

    def run(connection: sqlite3.Connection) -> None:
        _delete(connection, condition, bounds)
        windows.store(connection, pruned)

    engine.database.write(run)
    return pruned


def _delete(connection: sqlite3.Connection, condition: str, bounds: tuple[object, ...]) -> None:
    newest = windows.newest_sequence(connection)
    connection.execute(f"DELETE FROM changes WHERE {condition} AND sequence < ?", (*bounds, newest))
    # Keep the last change without its images: see `windows.newest_sequence`.
    row = connection.execute(
        f"SELECT stream, at_micros, by_service FROM changes WHERE {condition} AND sequence = ?",
        (*bounds, newest),
    ).fetchone()
    if row is not None:
        stream, at_micros, flags = row
        flags |= COVERED
        connection.execute(
            "UPDATE changes SET by_service = ?, key = x'', old = NULL, new = NULL, crc = ? "
            "WHERE sequence = ?",
            (flags, change_checksum(stream, at_micros, flags, b"", None, None), newest),
        )


def _trim_streams(engine: SqliteEngine, recoverable: set[str]) -> None:
    """Remove changes that were in a stream for a day; a window removes those of its table."""
    stream = ""
    while True:
        with engine.database.read() as connection:
            (following,) = connection.execute(
                f"SELECT min(stream) FROM changes WHERE {STREAMED_SQL} AND stream > ?", (stream,)
            ).fetchone()
        if following is None:
            return
        stream = following
        while _trim_stream(
            engine, stream, engine.now_micros() - streams.RETENTION_MICROS, stream in recoverable
        ):
            pass


def _trim_stream(engine: SqliteEngine, stream: str, oldest_micros: int, recoverable: bool) -> bool:
    """Remove a batch of a stream's oldest changes; return whether there may be more."""
    with engine.database.snapshot() as connection:
        window = windows.find(connection, stream) if recoverable else None
        rows = connection.execute(
            "SELECT sequence, at_micros, old IS NULL AND new IS NULL FROM changes "
            f"WHERE stream = ? AND {STREAMED_SQL} AND (? IS NULL OR sequence <= ?) ORDER BY sequence LIMIT ?",
            (stream, *((None, None) if window is None else (1, window.pruned)), BATCH),
        ).fetchall()
        last = windows.newest_sequence(connection)
    old = list(takewhile(lambda row: row[1] < oldest_micros, rows))
    if not old or (len(old) == 1 and old[0][0] == last and old[0][2]):
        return False
    bounds = (stream, old[-1][0])
    engine.database.write(
        lambda connection: _delete(connection, f"stream = ? AND {STREAMED_SQL} AND sequence <= ?", bounds)
    )
    return len(old) == BATCH
