"""Streams: which change records each stream contains.

A stream is one shard. It contains the changes between its enabling and its disabling, each for a day. A
disabled stream disappears after a day. This module does not know requests.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b
from typing import Any

from solotable._values.checksum import crc32
from solotable.engines.sqlite.tables.catalog import Definition
from solotable.engines.sqlite.tables.definitions import table_arn
from solotable.engines.sqlite.tables.windows import DAY_MICROS, newest_sequence
from solotable.errors import Corrupt

from .change_rows import BY_SERVICE, COLUMNS, STREAMED_SQL, decode_change

#: How long a stream contains a change.
RETENTION_MICROS = DAY_MICROS
_MEMBERS = (
    "arn, label, table_name, stream, view, key_schema, crc, "
    "first, last, trimmed, enabled_micros, disabled_micros"
)


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A stored stream; `first`, `last` and `trimmed` are sequence numbers of changes."""

    arn: str
    label: str
    table_name: str
    stream: str
    view: str
    key_schema: list[dict[str, str]]
    first: int
    #: None while the stream is enabled.
    last: int | None
    #: The last change that is too old to be read; 0 without one.
    trimmed: int
    enabled_micros: int
    disabled_micros: int | None

    @cached_property
    def shard(self) -> str:
        """The id of the stream's only shard."""
        suffix = blake2b(self.arn.encode(), digest_size=4).hexdigest()
        return f"shardId-{self.enabled_micros // 1000:020d}-{suffix}"

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        return tuple(element["AttributeName"] for element in self.key_schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRecord:
    """One change of an item; `old` and `new` are its JSON, or None without an item."""

    sequence: int
    at_micros: int
    by_service: bool
    old: bytes | None
    new: bytes | None


def enable(connection: sqlite3.Connection, definition: Definition, now_micros: int) -> None:
    """Start a stream on the table of this definition, and store the stream's label in it."""
    name = definition["TableName"]
    millis = now_micros // 1000
    while True:
        moment = datetime.fromtimestamp(millis // 1000, tz=UTC)
        label = f"{moment:%Y-%m-%dT%H:%M:%S}.{millis % 1000:03d}"
        arn = f"{table_arn(name)}/stream/{label}"
        if not connection.execute("SELECT 1 FROM streams WHERE arn = ?", (arn,)).fetchone():
            break
        # Two streams of one table within a millisecond need different labels.
        millis += 1
    definition["LatestStreamLabel"] = label
    texts = (
        arn,
        label,
        name,
        definition["TableId"],
        definition["StreamSpecification"]["StreamViewType"],
        json.dumps(definition["KeySchema"]),
    )
    connection.execute(
        f"INSERT INTO streams ({_MEMBERS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, 0, ?, NULL)",
        (*texts, _checksum(texts), newest_sequence(connection) + 1, millis * 1000),
    )


def disable(connection: sqlite3.Connection, definition: Definition, now_micros: int) -> None:
    """End the stream of the table of this definition."""
    connection.execute(
        "UPDATE streams SET last = ?, disabled_micros = ? WHERE stream = ? AND last IS NULL",
        (newest_sequence(connection), now_micros, definition["TableId"]),
    )


def find(connection: sqlite3.Connection, arn: str, now_micros: int) -> Stream | None:
    """Return the stream of this ARN, unless it was disabled over a day ago."""
    row = connection.execute(f"SELECT {_MEMBERS} FROM streams WHERE arn = ?", (arn,)).fetchone()
    return None if row is None or _forgotten(row[-1], now_micros) else _stream(row)


def list_page(
    connection: sqlite3.Connection, *, table_name: str | None, after: str, limit: int, now_micros: int
) -> list[Stream]:
    """Return streams in the order of their ARNs, after `after`."""
    rows = connection.execute(
        f"SELECT {_MEMBERS} FROM streams WHERE arn > ? AND (? IS NULL OR table_name = ?) "
        "AND (disabled_micros IS NULL OR disabled_micros >= ?) ORDER BY arn LIMIT ?",
        (after, table_name, table_name, now_micros - RETENTION_MICROS, limit),
    )
    return [_stream(row) for row in rows]


def read_records(
    connection: sqlite3.Connection, stream: Stream, start: int, limit: int
) -> Iterator[ChangeRecord]:
    """Yield the stream's changes from a sequence number on, with trimmed ones that are not deleted yet."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM changes "
        f"WHERE stream = ? AND {STREAMED_SQL} AND sequence >= ? AND sequence <= ? ORDER BY sequence LIMIT ?",
        (
            stream.stream,
            max(start, stream.first),
            newest_sequence(connection) if stream.last is None else stream.last,
            limit,
        ),
    )
    for row in rows:
        change = decode_change(row)
        yield ChangeRecord(
            sequence=change.sequence,
            at_micros=change.at_micros,
            by_service=bool(change.flags & BY_SERVICE),
            old=change.old,
            new=change.new,
        )


def find_horizon(connection: sqlite3.Connection, stream: Stream, now_micros: int) -> int:
    """Return the sequence number of the oldest change that may be read, or of the next one."""
    row = connection.execute(
        f"SELECT sequence FROM changes WHERE stream = ? AND {STREAMED_SQL} AND sequence >= ? "
        "AND at_micros >= ? ORDER BY sequence LIMIT 1",
        (stream.stream, max(stream.first, stream.trimmed + 1), now_micros - RETENTION_MICROS),
    ).fetchone()
    end = (newest_sequence(connection) if stream.last is None else stream.last) + 1
    return end if row is None else min(int(row[0]), end)


def is_trimmed(connection: sqlite3.Connection, stream: Stream, start: int, now_micros: int) -> bool:
    """Say whether a change from this sequence number on is too old to be read."""
    if start <= stream.trimmed:
        return True
    first = next(read_records(connection, stream, start, 1), None)
    return first is not None and first.at_micros < now_micros - RETENTION_MICROS


def find_trimmed(connection: sqlite3.Connection, oldest_micros: int) -> list[tuple[int, str]]:
    """Return the last change that is too old and the ARN of each stream that has new ones."""
    found: list[tuple[int, str]] = []
    for row in connection.execute(f"SELECT {_MEMBERS} FROM streams").fetchall():
        stream = _stream(row)
        last = stream.trimmed
        for record in read_records(connection, stream, stream.trimmed + 1, -1):
            if record.at_micros >= oldest_micros:
                break
            last = record.sequence
        if last > stream.trimmed:
            found.append((last, stream.arn))
    return found


def _forgotten(disabled_micros: int | None, now_micros: int) -> bool:
    return disabled_micros is not None and disabled_micros < now_micros - RETENTION_MICROS


def _stream(row: Any) -> Stream:
    *texts, crc, first, last, trimmed, enabled, disabled = row
    if _checksum(texts) != crc:
        raise Corrupt("The description of a stream does not match its checksum.")
    arn, label, table_name, stream, view, key_schema = texts
    return Stream(
        arn=arn,
        label=label,
        table_name=table_name,
        stream=stream,
        view=view,
        key_schema=json.loads(key_schema),
        first=first,
        last=last,
        trimmed=trimmed,
        enabled_micros=enabled,
        disabled_micros=disabled,
    )


def _checksum(texts: Sequence[object]) -> int:
    return crc32(repr(tuple(texts)).encode())
