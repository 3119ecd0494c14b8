"""Remove changes that neither a stream nor the window of continuous backups needs.

A window is as long as the table's recovery period. A limit of its bytes may shorten it. The transaction that
removes changes also moves the start of the window, so the start is true at every moment. The start is the end
of a transaction. A copy that undoes changes keeps them until it is complete.

Other processes prune the same file, and start copies: what a step removes is decided in its transaction.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from solotable.engines.sqlite.items import streams
from solotable.engines.sqlite.items.change_rows import COVERED, STREAMED_SQL, change_checksum
from solotable.engines.sqlite.tables import windows
from solotable.engines.sqlite.tables.catalog import Definition
from solotable.engines.sqlite.tables.definitions import read_definitions
from solotable.engines.sqlite.tables.windows import DAY_MICROS, Window

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: How many changes a transaction removes, and the rest of the last transaction that made them.
BATCH = 1_000
#: The bytes of a change besides its images and key.
_OVERHEAD = 64
#: Larger than every sequence number.
_NO_LIMIT = 2**63 - 1
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
    #: The bytes of the window's changes among them.
    bytes: int = 0
    more: bool = False


def prune(engine: SqliteEngine) -> None:
    """Remove the changes that are too old, or too many bytes, for every table."""
    with engine.database.snapshot() as connection:
        found = windows.list_windows(connection)
        settings = {
            one["TableId"]: one["PointInTimeRecovery"]
            for _, one in read_definitions(connection)
            if "PointInTimeRecovery" in one
        }
    for window in found:
        _prune_window(engine, window, settings.get(window.stream, {}))
    _trim_streams(engine)


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


def _prune_window(engine: SqliteEngine, window: Window, setting: Definition) -> None:
    oldest = 0
    excess = 0
    if window.last is None:
        oldest = engine.now_micros() - setting.get("RecoveryPeriodInDays", 0) * DAY_MICROS
        if "MaxBytes" in setting:
            excess = log_bytes(engine, window) - setting["MaxBytes"]
    while True:
        with engine.database.snapshot() as connection:
            step = _next_step(connection, window, oldest, excess)
        if step is None:
            break
        step = _remove(engine, window, oldest, excess)
        if step is None:
            return
        window = _move_start(window, step)
        excess -= step.bytes
        known = _sizes.get(engine, {}).get(window.stream)
        if known is not None:
            known.bytes, known.after = known.bytes - step.bytes, window.start
        if not step.more:
            break
    if window.last is not None and window.pruned >= window.last:
        engine.database.write(lambda connection: windows.remove(connection, window))


def _next_step(
    connection: sqlite3.Connection, window: Window, oldest_micros: int, excess: int
) -> _Step | None:
    """Return the next changes to remove; they end with a transaction."""
    pinned = _find_pinned(connection, window.stream)
    rows = connection.execute(
        f"SELECT sequence, at_micros, stream, {_SIZE} FROM changes WHERE sequence > ? ORDER BY sequence",
        (window.pruned,),
    )
    last = at_micros = removed = count = 0
    more = False
    for sequence, at, stream, size in rows:
        if pinned is not None and sequence > pinned:
            break
        if window.last is not None and sequence > window.last:
            break
        # All changes of a transaction have the same time.
        if at != at_micros or not count:
            if window.last is None and at >= oldest_micros and excess <= removed:
                break
            more = count >= BATCH
            if more:
                break
        last, at_micros = sequence, at
        removed += size if stream == window.stream else 0
        count += 1
    rows.close()
    if count:
        return _Step(last, at_micros, removed, more)
    if window.last is not None and pinned is None and window.pruned < window.last:
        # The window has no change left.
        return _Step(window.last, window.pruned_micros)
    return None


def _find_pinned(connection: sqlite3.Connection, stream: str) -> int | None:
    """Return the position after which copies of this file need the changes of a table."""
    rows = connection.execute("SELECT definition FROM catalog WHERE instr(definition, '\"Copy\"')")
    copies = [json.loads(definition).get("Copy", {}) for (definition,) in rows.fetchall()]
    return min(
        (
            copy["Sequence"]
            for copy in copies
            if copy.get("Stream") == stream and copy.get("Sequence") is not None and "External" not in copy
        ),
        default=None,
    )


def _remove(engine: SqliteEngine, window: Window, oldest_micros: int, excess: int) -> _Step | None:
    """Remove changes and move the start of the window; do neither if the window is not this one any more."""
    # A change that a stream contains stays for a day.
    streamed_micros = engine.now_micros() - streams.RETENTION_MICROS
    condition = "stream = ? AND sequence > ? AND sequence <= ? AND (by_service & 2 OR at_micros < ?)"
    if window.last is not None:
        condition = "stream = ? AND sequence > ? AND sequence <= ? AND by_service & 2 AND ? > 0"

    def run(connection: sqlite3.Connection) -> _Step | None:
        if window not in windows.list_windows(connection):
            # Another process has pruned or closed it.
            return None
        step = _next_step(connection, window, oldest_micros, excess)
        if step is not None:
            bounds = (window.stream, window.pruned, step.last, max(1, streamed_micros))
            _delete(connection, condition, bounds)
            windows.store(connection, _move_start(window, step))
        return step

    return engine.database.write(run)


def _move_start(window: Window, step: _Step) -> Window:
    return replace(window, pruned=step.last, pruned_micros=max(step.at_micros, window.pruned_micros))


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


def _trim_streams(engine: SqliteEngine) -> None:
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
        while _trim_stream(engine, stream, engine.now_micros() - streams.RETENTION_MICROS):
            pass


def _trim_stream(engine: SqliteEngine, stream: str, oldest_micros: int) -> bool:
    """Remove a batch of a stream's oldest changes; return whether there may be more."""
    with engine.database.snapshot() as connection:
        window, pinned = windows.find(connection, stream), _find_pinned(connection, stream)
        needed = [] if window is None else [window.pruned]
        needed += [] if pinned is None else [pinned]
        rows = connection.execute(
            "SELECT sequence, at_micros, old IS NULL AND new IS NULL FROM changes "
            f"WHERE stream = ? AND {STREAMED_SQL} AND sequence <= ? ORDER BY sequence LIMIT ?",
            (stream, min(needed, default=_NO_LIMIT), BATCH),
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
