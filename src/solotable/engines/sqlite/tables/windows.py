"""Windows of continuous backups: which changes of a table the file has, and can undo.

A window opens when continuous backups are enabled. Pruning moves its start forward. Disabling them closes it,
and the sweeper then removes its changes. This module also says where the newest change is.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import Any

from solotable._values.checksum import crc32
from solotable.errors import Corrupt

from . import layout
from .catalog import Definition

DAY_MICROS = 24 * 3600 * 1_000_000
_MEMBERS = "stream, first, since_micros, pruned, pruned_micros, last"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stored window; `first`, `pruned` and `last` are sequence numbers of changes of the file."""

    #: The id of the table, as in `changes`.
    stream: str
    #: The newest change when the window was opened.
    first: int
    since_micros: int
    #: The last change that was pruned, and its time.
    pruned: int
    pruned_micros: int
    #: The last change of a closed window; None while it is open.
    last: int | None = None

    @property
    def start(self) -> int:
        """The first position to which the table can be restored."""
        return max(self.first, self.pruned)

    def start_micros(self, now_micros: int, days: int) -> int:
        """Return the first time to which the table can be restored."""
        return max(self.since_micros, self.pruned_micros, now_micros - days * DAY_MICROS)


def newest_sequence(connection: sqlite3.Connection) -> int:
    """Return the last sequence number.

    Trimming leaves the last change, so that no number is used twice. AUTOINCREMENT would do the same and cost
    one more page in every write; files of older versions use it.
    """
    (last,) = connection.execute(
        "SELECT max((SELECT coalesce(max(sequence), 0) FROM changes), "
        "(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'changes'))"
    ).fetchone()
    return int(last)


def next_change_micros(connection: sqlite3.Connection, now_micros: int) -> int:
    """Return the time of the next transaction's changes: now, or just after the newest change."""
    newest = newest_micros(connection)
    return now_micros if newest < now_micros else newest + 1


def newest_micros(connection: sqlite3.Connection) -> int:
    """Return the time of the newest change; 0 without one."""
    row = connection.execute("SELECT at_micros FROM changes ORDER BY sequence DESC LIMIT 1").fetchone()
    if row is None:
        return 0
    if row[0].__class__ is not int:
        # A damaged header makes SQLite read another type.
        raise Corrupt("The newest change is damaged; the file cannot record another one.")
    return int(row[0])


def open_window(connection: sqlite3.Connection, stream: str, now_micros: int) -> None:
    """Open the window of a table at the newest change."""
    first, since = newest_sequence(connection), max(now_micros, newest_micros(connection))
    store(
        connection,
        Window(stream=stream, first=first, since_micros=since, pruned=first, pruned_micros=since),
    )


def close_window(connection: sqlite3.Connection, stream: str) -> None:
    """Close the window of a table, if it is open; the sweeper removes its changes."""
    window = find(connection, stream)
    if window is not None:
        store(connection, replace(window, last=newest_sequence(connection)))


def adopt(connection: sqlite3.Connection, definition: Definition) -> None:
    """Open the window of a table of an older layout, from the changes that the file has of it."""
    stream = definition["TableId"]
    since = definition["PointInTimeRecovery"]["SinceMicros"]
    (oldest,) = connection.execute(
        "SELECT min(sequence) FROM changes WHERE stream = ? AND at_micros >= ?", (stream, since)
    ).fetchone()
    first = newest_sequence(connection) if oldest is None else oldest - 1
    store(
        connection, Window(stream=stream, first=first, since_micros=since, pruned=first, pruned_micros=since)
    )


def find(connection: sqlite3.Connection, stream: str) -> Window | None:
    """Return the open window of a table; None without one, and in a file of an older layout."""
    if layout.layout_of(connection) < 3:
        return None
    row = connection.execute(
        f"SELECT {_MEMBERS}, crc FROM recovery WHERE stream = ? AND last IS NULL", (stream,)
    ).fetchone()
    return None if row is None else _window(row)


def list_windows(connection: sqlite3.Connection) -> list[Window]:
    """Return all windows, also closed ones."""
    return [_window(row) for row in connection.execute(f"SELECT {_MEMBERS}, crc FROM recovery").fetchall()]


def store(connection: sqlite3.Connection, window: Window) -> None:
    """Write a window."""
    row = (
        window.stream,
        window.first,
        window.since_micros,
        window.pruned,
        window.pruned_micros,
        window.last,
    )
    connection.execute(
        f"INSERT OR REPLACE INTO recovery ({_MEMBERS}, crc) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*row, _checksum(row)),
    )


def remove(connection: sqlite3.Connection, window: Window) -> None:
    """Remove a closed window."""
    connection.execute("DELETE FROM recovery WHERE stream = ? AND first = ?", (window.stream, window.first))


def _window(row: Any) -> Window:
    *members, crc = row
    if _checksum(tuple(members)) != crc:
        raise Corrupt("The window of a table's continuous backups does not match its checksum.")
    stream, first, since_micros, pruned, pruned_micros, last = members
    return Window(
        stream=stream,
        first=first,
        since_micros=since_micros,
        pruned=pruned,
        pruned_micros=pruned_micros,
        last=last,
    )


def _checksum(members: tuple[Any, ...]) -> int:
    return crc32(repr(members).encode())
