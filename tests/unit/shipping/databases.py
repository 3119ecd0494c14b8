"""A small database to ship, and its items."""

from __future__ import annotations

from typing import Any

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from tests.conformance.tables import table


def new_database(path: str) -> None:
    """Create a database with an empty table."""
    with sqlite.open(path, durability="relaxed") as engine:
        engine.call("CreateTable", table("Shop", "id:S"))


def put(engine: SqliteEngine, number: int, size: int = 10) -> None:
    """Put an item."""
    item = {"id": {"S": str(number)}, "x": {"S": "x" * size}}
    engine.call("PutItem", {"TableName": "Shop", "Item": item})


def items(engine: SqliteEngine) -> list[str]:
    """Return all items, as text."""
    found: list[Any] = []
    start: dict[str, Any] = {}
    while True:
        page = engine.call("Scan", {"TableName": "Shop", **start})
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return sorted(map(str, found))
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
