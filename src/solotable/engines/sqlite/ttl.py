"""The sweeper: items whose time has come, and records that nobody may read any more.

Items are looked through in batches by reading alone; each one that has expired is looked at again
inside the transaction that removes it, because it may have been given more time since. The search
reads whole tables: SQLite passes over items without the attribute by their bytes, so only items
that can expire are decoded. Nothing here runs by itself: somebody calls `sweep`.
"""

from __future__ import annotations

import contextlib
import sqlite3
from decimal import Decimal
from itertools import takewhile
from typing import TYPE_CHECKING

from solotable.errors import TableNotFound
from solotable.protocol.text import dumps, loads
from solotable.values import Item

from . import backfill, streams
from .catalog import Table
from .definitions import current, every, stored
from .storage import Writer, change_checksum, is_sound

if TYPE_CHECKING:
    from .engine import SqliteEngine

_READ = 2_000
_REMOVE = 100
_TRIM = 1_000
# DynamoDB: an item that should have expired over five years ago is left alone.
_OLDEST_SECONDS = 5 * 365 * 86_400


def sweep(engine: SqliteEngine) -> int:
    """Remove what has expired, and return how many items that were."""
    with engine.database.read() as connection:
        definitions = every(connection)
    removed = 0
    for name, definition in definitions:
        if definition.get("TimeToLive"):
            removed += _sweep_table(engine, name, definition["TimeToLive"]["AttributeName"])
        if any(entry["IndexStatus"] == "CREATING" for entry in definition.get("GlobalSecondaryIndexes", ())):
            _resume(engine, name)
    recovery_days = {
        definition["TableId"]: definition["PointInTimeRecovery"]["RecoveryPeriodInDays"]
        for _, definition in definitions
        if definition.get("PointInTimeRecovery")
    }
    _advance(engine)
    _trim_changes(engine, recovery_days)
    _trim_rest(engine)
    return removed


def _resume(engine: SqliteEngine, name: str) -> None:
    with contextlib.suppress(TableNotFound):
        backfill.resume(engine, current(engine, name))


def is_expired(item: Item, attribute: str, now_seconds: float) -> bool:
    """Say whether the attribute is a time in seconds that has passed, though not five years ago."""
    number = item.get(attribute, {}).get("N")
    if number is None:
        return False
    expires = Decimal(number)
    return Decimal(now_seconds) - _OLDEST_SECONDS <= expires < Decimal(now_seconds)


def _sweep_table(engine: SqliteEngine, name: str, attribute: str) -> int:
    removed = 0
    position = 0
    while True:
        try:
            with engine.database.snapshot() as connection:
                table = stored(connection, name)
                keys, last = _candidates(connection, table, attribute, position, _now(engine))
            for first in range(0, len(keys), _REMOVE):
                removed += _remove(engine, name, attribute, keys[first : first + _REMOVE])
        except TableNotFound:
            return removed
        if last is None:
            return removed
        position = last


def _candidates(
    connection: sqlite3.Connection, table: Table, attribute: str, after: int, now_seconds: float
) -> tuple[list[bytes], int | None]:
    """Return the keys of expired items among the next rows, and the last of those rows if more follow."""
    rows = connection.execute(
        f"SELECT id, key, size, crc, CASE WHEN instr(item, ?) THEN item END FROM {table.items} "
        "WHERE id > ? ORDER BY id LIMIT ?",
        (dumps(attribute) + b':{"N":', after, _READ),
    )
    expired: list[bytes] = []
    seen = last = 0
    for row_id, key, size, crc, raw in rows:
        seen, last = seen + 1, row_id
        if raw is None or not is_sound(key, size, crc, raw):
            # A damaged item is left to whoever reads it: that tells somebody.
            continue
        if is_expired(loads(raw), attribute, now_seconds):
            expired.append(key)
    return expired, last if seen == _READ else None


def _remove(engine: SqliteEngine, name: str, attribute: str, keys: list[bytes]) -> int:
    def action(writer: Writer) -> int:
        table = stored(writer.connection, name)
        if table.definition.get("TimeToLive") != {"AttributeName": attribute}:
            return 0
        removed = 0
        for key in keys:
            row = writer.find(table, key)
            if row is not None and is_expired(row.item, attribute, _now(engine)):
                writer.remove(table, key, row)
                removed += 1
        return removed

    return engine.write(action, by_service=True)


def _now(engine: SqliteEngine) -> float:
    return engine.now_micros() / 1_000_000


def _advance(engine: SqliteEngine) -> None:
    """Note for each stream which of its changes are too old for it, whoever else still needs them."""
    oldest_micros = engine.now_micros() - streams.KEPT_MICROS
    with engine.database.snapshot() as connection:
        passed = streams.passed(connection, oldest_micros)
    if passed:
        engine.database.write(
            lambda connection: connection.executemany("UPDATE streams SET trimmed = ? WHERE arn = ?", passed)
        )


def _trim_changes(engine: SqliteEngine, recovery_days: dict[str, int]) -> None:
    stream = ""
    while True:
        with engine.database.read() as connection:
            (following,) = connection.execute(
                "SELECT min(stream) FROM changes WHERE stream > ?", (stream,)
            ).fetchone()
        if following is None:
            return
        stream = following
        kept = max(streams.KEPT_MICROS, recovery_days.get(stream, 0) * streams.DAY_MICROS)
        while _trim_stream(engine, stream, engine.now_micros() - kept):
            pass


def _trim_stream(engine: SqliteEngine, stream: str, oldest_micros: int) -> bool:
    """Remove a batch of a stream's oldest changes; say whether there may be more."""
    with engine.database.read() as connection:
        rows = connection.execute(
            "SELECT sequence, at_micros, old IS NULL AND new IS NULL FROM changes "
            "WHERE stream = ? ORDER BY sequence LIMIT ?",
            (stream, _TRIM),
        ).fetchall()
        last = streams.newest(connection)
    old = list(takewhile(lambda row: row[1] < oldest_micros, rows))
    # The last of all stays, without what it was about: see `streams.newest`.
    if not old or (len(old) == 1 and old[0][0] == last and old[0][2]):
        return False

    def trim(connection: sqlite3.Connection) -> None:
        connection.execute(
            "DELETE FROM changes WHERE stream = ? AND sequence <= ? AND sequence < ?",
            (stream, old[-1][0], last),
        )
        connection.execute(
            "UPDATE changes SET key = x'', old = NULL, new = NULL, crc = ? "
            "WHERE stream = ? AND sequence = ? AND sequence <= ?",
            (change_checksum(None, None), stream, last, old[-1][0]),
        )

    engine.database.write(trim)
    return len(old) == _TRIM


def _trim_rest(engine: SqliteEngine) -> None:
    """Forget streams that were disabled over a day ago, and tokens that protect nothing any more."""
    now = engine.now_micros()
    statements = (
        ("streams", "disabled_micros < ?", now - streams.KEPT_MICROS),
        ("tokens", "until_micros < ?", now),
    )
    for table, condition, limit in statements:
        with engine.database.read() as connection:
            found = connection.execute(f"SELECT 1 FROM {table} WHERE {condition}", (limit,)).fetchone()
        if found is not None:
            _delete(engine, f"DELETE FROM {table} WHERE {condition}", limit)


def _delete(engine: SqliteEngine, statement: str, limit: int) -> None:
    engine.database.write(lambda connection: connection.execute(statement, (limit,)))
