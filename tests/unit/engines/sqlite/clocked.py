"""An engine on a clock that tests set, and short words for what they ask of it."""

from __future__ import annotations

from typing import Any

from solotable._protocol.error_texts import LATEST, ErrorTexts
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from tests.conformance.tables import table

Json = dict[str, Any]

START = 1_800_000_000.0
HOUR = 3600.0
DAY = 24 * HOUR


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = START

    def __call__(self) -> float:
        return self.seconds

    def move(self, seconds: float) -> None:
        self.seconds += seconds


def opened(
    path: object = ":memory:", clock: Clock | None = None, error_texts: ErrorTexts = LATEST
) -> SqliteEngine:
    return sqlite.open(str(path), durability="relaxed", clock=clock or Clock(), error_texts=error_texts)


def create(engine: SqliteEngine, **more: Any) -> Json:
    description: Json = engine.call("CreateTable", table("Things", "pk:S", **more))["TableDescription"]
    return description


def put(engine: SqliteEngine, key: str, **attributes: Json) -> None:
    engine.call("PutItem", {"TableName": "Things", "Item": {"pk": {"S": key}, **attributes}})


def keys(engine: SqliteEngine, **members: Any) -> list[str]:
    """The keys of all items, or of all in an index."""
    found: list[str] = []
    start: Json = {}
    while True:
        page = engine.call("Scan", {"TableName": "Things", **members, **start})
        found += [item["pk"]["S"] for item in page["Items"]]
        if "LastEvaluatedKey" not in page:
            return sorted(found)
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def described(engine: SqliteEngine) -> Json:
    description: Json = engine.call("DescribeTable", {"TableName": "Things"})["Table"]
    return description
