"""The recorded minutes of a database, in a file beside it: `shop.db-heat`.

Heat is not data: its file is written without fsync, and a fault of it ends no request. Each process adds its
minutes; the sums of several processes are one row. Minutes are kept for a day, and sums of hours for a week.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable
from typing import Final

from solotable._protocol.heat import MINUTE, HeatInterval, HeatLog, PartitionTraffic, Traffic
from solotable._values import Item
from solotable.engines.sqlite.file.forks import block_forks

HOUR: Final = 3600
_DAY: Final = 24 * HOUR
#: An hour more of minutes, as an hour is read whole or by its minutes.
_KEPT: Final = {MINUTE: _DAY + HOUR, HOUR: 7 * _DAY}
#: How long to wait for another process that writes its minutes.
_WAIT_SECONDS: Final = 0.2
#: The keys of one interval of a table or index.
_MOST_KEYS: Final = 100

#: A row without a key has the sums of all partitions; `scans` is the key of Scans.
_LAYOUT: Final = """
CREATE TABLE IF NOT EXISTS heat (
    seconds INTEGER NOT NULL,
    start INTEGER NOT NULL,
    table_name TEXT NOT NULL,
    index_name TEXT NOT NULL,
    key TEXT NOT NULL,
    read_units REAL NOT NULL,
    read_peak REAL NOT NULL,
    read_over REAL NOT NULL,
    write_units REAL NOT NULL,
    write_peak REAL NOT NULL,
    write_over REAL NOT NULL,
    error REAL NOT NULL,
    PRIMARY KEY (seconds, start, table_name, index_name, key)
) WITHOUT ROWID
"""
# Two processes may be at their peak in the same second, so the sum of their peaks would be a guess.
_ADD: Final = """
INSERT INTO heat VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    read_units = read_units + excluded.read_units,
    read_peak = max(read_peak, excluded.read_peak),
    read_over = read_over + excluded.read_over,
    write_units = write_units + excluded.write_units,
    write_peak = max(write_peak, excluded.write_peak),
    write_over = write_over + excluded.write_over,
    error = error + excluded.error
"""
_ALL: Final = ""
_SCANS: Final = "scans"

_Row = tuple[int, int, str, str, str, float, float, float, float, float, float, float]


class HeatFile:
    """The file beside a database; it is opened for each use, so that no fork inherits it."""

    def __init__(self, database: str) -> None:
        self.path = f"{database}-heat"

    def exists(self) -> bool:
        """Say whether minutes were recorded."""
        return os.path.exists(self.path)  # noqa: PTH110 - also called at exit

    def add(self, intervals: Iterable[HeatInterval], *, now: float) -> bool:
        """Add intervals, and forget old ones; return False if the file cannot be written."""
        rows = [row for each in intervals for row in _rows(each)]
        try:
            self._write(rows, now)
        except (sqlite3.Error, OSError):
            return False
        return True

    def _write(self, rows: list[_Row], now: float) -> None:
        if not self.exists():
            # With access for its owner only, as the database has.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        with (
            block_forks(),
            contextlib.closing(sqlite3.connect(self.path, timeout=_WAIT_SECONDS)) as connection,
        ):
            connection.isolation_level = None
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_LAYOUT)
            connection.executemany(_ADD, rows)
            connection.executemany(_ADD, _by_hour(rows))
            for seconds, kept in _KEPT.items():
                connection.execute("DELETE FROM heat WHERE seconds = ? AND start < ?", (seconds, now - kept))
            _trim(connection, {row[1] // HOUR * HOUR for row in rows})
            connection.execute("COMMIT")

    def read(self, since: float, *, now: float) -> HeatLog:
        """Return the minutes of the last day and the hours before; an unreadable file has none."""
        if not self.exists():
            return HeatLog()
        try:
            with (
                block_forks(),
                contextlib.closing(sqlite3.connect(self.path, timeout=_WAIT_SECONDS)) as found,
            ):
                rows = found.execute(
                    "SELECT * FROM heat WHERE start + seconds > ?1 AND (seconds = ?2) = (start >= ?3) "
                    "ORDER BY start, table_name, index_name, read_units + write_units DESC",
                    (since, MINUTE, int(now - _DAY) // HOUR * HOUR),
                ).fetchall()
        except sqlite3.Error:
            return HeatLog()
        return HeatLog(intervals=tuple(_intervals(rows)))


def _rows(interval: HeatInterval) -> Iterable[_Row]:
    place = (interval.seconds, interval.start, interval.table, interval.index or "")
    yield (*place, _ALL, interval.read_units, 0.0, 0.0, interval.write_units, 0.0, 0.0, 0.0)
    for each in interval.partitions[:_MOST_KEYS]:
        key = _SCANS if each.key is None else json.dumps(each.key, ensure_ascii=False)
        reads, writes = each.reads, each.writes
        measures = (reads.units, reads.peak, reads.over, writes.units, writes.peak, writes.over, each.error)
        yield (*place, key, *measures)


def _by_hour(rows: Iterable[_Row]) -> list[_Row]:
    return [(HOUR, row[1] // HOUR * HOUR, *row[2:]) for row in rows]


def _trim(connection: sqlite3.Connection, hours: set[int]) -> None:
    """Keep the busiest keys of each hour: many minutes can have many keys."""
    for hour in hours:
        connection.execute(
            "DELETE FROM heat WHERE seconds = ?1 AND start = ?2 AND key <> '' "
            "AND (table_name, index_name, key) NOT IN (SELECT table_name, index_name, key FROM ("
            "SELECT *, row_number() OVER (PARTITION BY table_name, index_name "
            "ORDER BY max(read_peak / 3, write_peak) DESC) AS place "
            "FROM heat WHERE seconds = ?1 AND start = ?2 AND key <> '') WHERE place <= ?3)",
            (HOUR, hour, 10 * _MOST_KEYS),
        )


def _intervals(rows: Iterable[_Row]) -> Iterable[HeatInterval]:
    grouped: dict[tuple[int, int, str, str], list[_Row]] = {}
    for row in rows:
        grouped.setdefault(row[:4], []).append(row)
    for (seconds, start, table, index), found in grouped.items():
        sums = next((row for row in found if row[4] == _ALL), None)
        yield HeatInterval(
            start=start,
            seconds=seconds,
            table=table,
            index=index or None,
            read_units=0.0 if sums is None else sums[5],
            write_units=0.0 if sums is None else sums[8],
            partitions=tuple(_partition(row) for row in found if row[4] != _ALL),
        )


def _partition(row: _Row) -> PartitionTraffic:
    key: Item | None = None if row[4] == _SCANS else json.loads(row[4])
    return PartitionTraffic(
        key=key,
        reads=Traffic(units=row[5], peak=row[6], over=row[7]),
        writes=Traffic(units=row[8], peak=row[9], over=row[10]),
        error=row[11],
    )
