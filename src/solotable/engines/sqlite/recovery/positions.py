"""Positions in the log of changes: from a time or a sequence number to the end of a transaction."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from solotable.engines.sqlite.items.change_rows import COLUMNS, decode_change
from solotable.engines.sqlite.tables import windows
from solotable.engines.sqlite.tables.catalog import Table
from solotable.engines.sqlite.tables.windows import Window
from solotable.errors import RecoveryError

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The end of a transaction: all changes up to `sequence` are before it."""

    sequence: int
    #: The time of the last change before it, or the time that was asked for.
    at_micros: int

    @property
    def at(self) -> datetime:
        return to_datetime(self.at_micros)


def to_datetime(micros: int) -> datetime:
    """Return the time of microseconds since the epoch."""
    return datetime.fromtimestamp(micros // 1_000_000, tz=UTC).replace(microsecond=micros % 1_000_000)


def to_micros(at: datetime) -> int:
    """Return microseconds since the epoch; a time without a zone is in UTC."""
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return int(aware.timestamp()) * 1_000_000 + aware.microsecond


def require_window(connection: sqlite3.Connection, table: Table) -> Window:
    """Return the open window of a table, or raise RecoveryError."""
    window = windows.find(connection, table.definition["TableId"])
    if window is None or not table.recoverable:
        raise RecoveryError(
            f"Continuous backups of table {table.name} are disabled. Enable them with "
            f"'solotable backup enable'; only later states can be restored."
        )
    return window


def latest(connection: sqlite3.Connection, now_micros: int) -> Position:
    """Return the position after the newest change."""
    return Position(
        sequence=windows.newest_sequence(connection),
        at_micros=max(now_micros, windows.newest_micros(connection)),
    )


def at_time(connection: sqlite3.Connection, window: Window, micros: int) -> Position:
    """Return the position after the last change that was made at this time or before."""
    low, high = window.start, windows.newest_sequence(connection)
    while low < high:
        middle = (low + high + 1) // 2
        row = connection.execute(
            f"SELECT {COLUMNS} FROM changes WHERE sequence >= ? AND sequence <= ? ORDER BY sequence LIMIT 1",
            (middle, high),
        ).fetchone()
        change = None if row is None else decode_change(row)
        if change is None or change.at_micros > micros:
            high = middle - 1
        else:
            low = change.sequence
    return Position(sequence=low, at_micros=micros)


def at_sequence(connection: sqlite3.Connection, window: Window, sequence: int) -> Position:
    """Return the position after the transaction of a change."""
    row = connection.execute(
        "SELECT at_micros FROM changes WHERE sequence <= ? AND sequence > ? ORDER BY sequence DESC LIMIT 1",
        (sequence, window.start),
    ).fetchone()
    if row is None:
        return Position(sequence=max(sequence, window.start), at_micros=window.pruned_micros)
    # All changes of a transaction have the same time, and no other transaction has it.
    (end,) = connection.execute(
        "SELECT coalesce(min(sequence) - 1, ?) FROM (SELECT sequence FROM changes WHERE sequence > ? "
        "AND at_micros <> ? ORDER BY sequence LIMIT 1)",
        (windows.newest_sequence(connection), sequence, row[0]),
    ).fetchone()
    return Position(sequence=int(end), at_micros=int(row[0]))


def find_position(
    engine: SqliteEngine,
    connection: sqlite3.Connection,
    table: Table,
    at: datetime | int | None,
) -> Position:
    """Return the position of a time, of a sequence number, or after the newest change."""
    window = require_window(connection, table)
    now = engine.now_micros()
    newest = latest(connection, now)
    if at is None:
        return newest
    if isinstance(at, int):
        if not window.start <= at <= newest.sequence:
            raise RecoveryError(
                f"Table {table.name} can be restored to sequence {window.start} up to {newest.sequence}, "
                f"got {at}."
            )
        return at_sequence(connection, window, at)
    micros = to_micros(at)
    earliest = window.start_micros(now, table.definition["PointInTimeRecovery"]["RecoveryPeriodInDays"])
    if not earliest <= micros <= max(newest.at_micros, earliest):
        raise RecoveryError(
            f"Table {table.name} can be restored to times from {to_datetime(earliest).isoformat()} to "
            f"{newest.at.isoformat()}, got {to_datetime(micros).isoformat()}."
        )
    return at_time(connection, window, micros)
