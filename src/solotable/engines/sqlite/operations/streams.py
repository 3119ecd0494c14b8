"""ListStreams, DescribeStream, GetShardIterator and GetRecords.

An iterator consists of the ARN, the next sequence number and its creation time. It is valid for fifteen
minutes and is not stored.
"""

from __future__ import annotations

import base64
import re
import sqlite3
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from solotable._protocol.json_codec import dumps, loads
from solotable._values import Item, item_size
from solotable._values.limits import LARGEST_PAGE, MOST_LISTED_STREAMS, MOST_STREAM_RECORDS
from solotable.engines.sqlite.items import streams
from solotable.engines.sqlite.items.streams import ChangeRecord, Stream
from solotable.engines.sqlite.tables.definitions import REGION
from solotable.engines.sqlite.tables.windows import newest_sequence
from solotable.errors import ServiceError, TableNotFound, invalid, invalid_parameter

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_LARGEST_SEQUENCE = 2**63 - 1
_ITERATOR_MICROS = 15 * 60 * 1_000_000
_IS_ARN = re.compile(r"arn:[^:]+:dynamodb:[^:]*:[^:]*:table/[^/]+/stream/.+").fullmatch
_INVALID_ARN = "Invalid StreamArn"
_BY_SERVICE = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardIterator:
    """A shard iterator: the next sequence number of a stream, and the time of its creation."""

    arn: str
    start: int
    at_micros: int

    def render(self) -> str:
        rest = base64.b64encode(dumps([self.start, self.at_micros])).decode()
        return f"{self.arn}|1|{rest}"

    @classmethod
    def parse(cls, text: str) -> ShardIterator:
        try:
            arn, _version, rest = text.split("|")
            start, at_micros = loads(base64.b64decode(rest, validate=True))
        except (ValueError, TypeError):
            raise invalid("Invalid ShardIterator") from None
        # A client can forge an iterator. A number beyond SQLite's integers is forged.
        if type(start) is not int or type(at_micros) is not int or start > _LARGEST_SEQUENCE:
            raise invalid("Invalid ShardIterator")
        return cls(arn=arn, start=start, at_micros=at_micros)


def list_streams(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """List the streams of one table or of all, those disabled within a day included."""
    limit = members.get("Limit", MOST_LISTED_STREAMS)
    after = members.get("ExclusiveStartStreamArn", "")
    if after and not _IS_ARN(after):
        raise invalid(_INVALID_ARN)
    with engine.database.read() as connection:
        found = streams.list_page(
            connection,
            table_name=members.get("TableName"),
            after=after,
            limit=limit + 1,
            now_micros=engine.now_micros(),
        )
    answer: dict[str, Any] = {
        "Streams": [
            {"StreamArn": stream.arn, "TableName": stream.table_name, "StreamLabel": stream.label}
            for stream in found[:limit]
        ]
    }
    if len(found) > limit:
        answer["LastEvaluatedStreamArn"] = found[limit - 1].arn
    return answer


def describe_stream(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Describe a stream and its shard."""
    with engine.database.read() as connection:
        stream = _find(engine, connection, members["StreamArn"])
    numbers = {"StartingSequenceNumber": _number(stream.first)}
    if stream.last is not None:
        numbers["EndingSequenceNumber"] = _number(max(stream.last, stream.first))
    shards = [{"ShardId": stream.shard, "SequenceNumberRange": numbers}]
    # There is one shard: it has no parent and no other shard follows it.
    if members.get("ExclusiveStartShardId", "") >= stream.shard or "ShardFilter" in members:
        shards = []
    return {
        "StreamDescription": {
            "StreamArn": stream.arn,
            "StreamLabel": stream.label,
            "StreamStatus": "ENABLED" if stream.last is None else "DISABLED",
            "StreamViewType": stream.view,
            "CreationRequestDateTime": stream.enabled_micros / 1_000_000,
            "TableName": stream.table_name,
            "KeySchema": stream.key_schema,
            "Shards": shards,
        }
    }


def get_shard_iterator(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Return an iterator at one of four positions in a shard."""
    kind: str = members["ShardIteratorType"]
    number: str = members.get("SequenceNumber", "")
    by_number = kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")
    if number and not by_number:
        raise invalid_parameter("SequenceNumber should not be passed for this iterator type")
    if by_number and not number.isdecimal():
        raise invalid_parameter("Invalid SequenceNumber")
    now = engine.now_micros()
    with engine.database.snapshot() as connection:
        stream = _find(engine, connection, members["StreamArn"])
        if members["ShardId"] != stream.shard:
            raise TableNotFound(
                f"Requested resource not found: Shard: {members['ShardId']} in Stream: {stream.arn} not found"
            )
        end = newest_sequence(connection) if stream.last is None else stream.last
        if kind == "TRIM_HORIZON":
            start = streams.find_horizon(connection, stream, now)
        elif kind == "LATEST":
            start = end + 1
        else:
            start = int(number) + (kind == "AFTER_SEQUENCE_NUMBER")
            if start < stream.first or start > max(end, stream.first) + 1:
                raise invalid_parameter("Invalid SequenceNumber")
            _check_not_trimmed(connection, stream, int(number), now)
    return {"ShardIterator": ShardIterator(arn=stream.arn, start=start, at_micros=now).render()}


def get_records(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Return the next records, and the iterator after them unless the stream has ended."""
    iterator = ShardIterator.parse(members["ShardIterator"])
    now = engine.now_micros()
    if now - iterator.at_micros > _ITERATOR_MICROS:
        raise ServiceError("ExpiredIteratorException", "Shard iterator has expired")
    answer: list[dict[str, Any]] = []
    size, start = 0, iterator.start
    with engine.database.snapshot() as connection:
        stream = _find(engine, connection, iterator.arn)
        _check_not_trimmed(connection, stream, start, now)
        for change_record in streams.read_records(
            connection, stream, start, members.get("Limit", MOST_STREAM_RECORDS)
        ):
            record = _record(stream, change_record)
            size += record["dynamodb"]["SizeBytes"]
            if answer and size > LARGEST_PAGE:
                break
            answer.append(record)
            start = change_record.sequence + 1
        ended = stream.last is not None and not any(streams.read_records(connection, stream, start, 1))
    reply: dict[str, Any] = {"Records": answer}
    if not ended:
        reply["NextShardIterator"] = ShardIterator(arn=stream.arn, start=start, at_micros=now).render()
    return reply


def _find(engine: SqliteEngine, connection: sqlite3.Connection, arn: str) -> Stream:
    if not _IS_ARN(arn):
        raise invalid(_INVALID_ARN)
    stream = streams.find(connection, arn, engine.now_micros())
    if stream is None:
        raise TableNotFound(f"Requested resource not found: Stream: {arn} not found")
    return stream


def _check_not_trimmed(connection: sqlite3.Connection, stream: Stream, start: int, now_micros: int) -> None:
    if streams.is_trimmed(connection, stream, start, now_micros):
        raise ServiceError(
            "TrimmedDataAccessException",
            "The operation attempted to read past the oldest stream record in a shard",
        )


def _number(sequence: int) -> str:
    return f"{sequence:021d}"


def _record(stream: Stream, change_record: ChangeRecord) -> dict[str, Any]:
    old: Item | None = None if change_record.old is None else loads(change_record.old)
    new: Item | None = None if change_record.new is None else loads(change_record.new)
    item = new if new is not None else old or {}
    change: dict[str, Any] = {
        "ApproximateCreationDateTime": change_record.at_micros // 1_000_000,
        "Keys": {name: item[name] for name in stream.key_names},
    }
    if new is not None and stream.view in ("NEW_IMAGE", "NEW_AND_OLD_IMAGES"):
        change["NewImage"] = new
    if old is not None and stream.view in ("OLD_IMAGE", "NEW_AND_OLD_IMAGES"):
        change["OldImage"] = old
    size = sum(item_size(change[member]) for member in ("Keys", "NewImage", "OldImage") if member in change)
    record: dict[str, Any] = {
        "eventID": blake2b(f"{stream.arn} {change_record.sequence}".encode(), digest_size=16).hexdigest(),
        "eventName": "INSERT" if old is None else "REMOVE" if new is None else "MODIFY",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": REGION,
        "dynamodb": {
            **change,
            "SequenceNumber": _number(change_record.sequence),
            "SizeBytes": size,
            "StreamViewType": stream.view,
        },
    }
    if change_record.by_service:
        record["userIdentity"] = _BY_SERVICE
    return record
