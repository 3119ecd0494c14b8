"""A page that SQLite joined is the page that was read row by row: memory and file answer alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solotable._protocol import wire
from solotable._protocol.json_codec import dumps
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from tests.conformance.tables import TABLES

ROWS = 150


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqliteEngine, SqliteEngine]]:
    path: Path = tmp_path_factory.mktemp("joined") / "file.db"
    with sqlite.open(":memory:") as memory, sqlite.open(path, durability="relaxed") as file:
        for engine in (memory, file):
            engine.call("CreateTable", TABLES["Indexed"])
            for number in range(ROWS):
                item = {
                    "pk": {"S": "large" if number % 2 else "p"},
                    "sk": {"S": f"{number:03d}"},
                    "gp": {"S": "g"},
                    "gs": {"N": str(ROWS - number)},
                    "text": {"S": 'é,"}],\u0000' + ("x" * 30_000 if number % 2 else "")},
                }
                engine.call("PutItem", {"TableName": "Indexed", "Item": item})
        yield memory, file


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [None, 1, 34, 35, 36, 63, 64, 65, 75, 76, 128, 150, 1000])
@pytest.mark.parametrize(
    ("index", "condition", "partition"),
    [
        (None, "pk = :p", "p"),
        (None, "pk = :p", "large"),
        (None, "pk = :p", "absent"),
        ("gall", "gp = :p", "g"),
        ("gkeys", "gp = :p", "g"),
    ],
)
def test_pages_are_the_same(
    engines: tuple[SqliteEngine, SqliteEngine],
    index: str | None,
    condition: str,
    partition: str,
    limit: int | None,
    forward: bool,
) -> None:
    request: dict[str, Any] = {
        "TableName": "Indexed",
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {":p": {"S": partition}},
        "ScanIndexForward": forward,
        "ReturnConsumedCapacity": "INDEXES",
    }
    if index is not None:
        request["IndexName"] = index
    if limit is not None:
        request["Limit"] = limit
    for _ in range(20):
        memory, file = (wire.answer(engine, "DynamoDB_20120810.Query", dumps(request)) for engine in engines)
        assert memory == file
        page = engines[0].call("Query", request)
        assert page == engines[1].call("Query", request)
        assert len(page["Items"]) == page["Count"]
        if "LastEvaluatedKey" not in page:
            break
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def test_statements_take_runs_apart(engines: tuple[SqliteEngine, SqliteEngine]) -> None:
    for statement in (
        "SELECT * FROM Indexed WHERE pk = 'p'",
        "SELECT sk FROM Indexed WHERE pk = 'p'",
        "SELECT * FROM Indexed WHERE pk = 'p' AND gs < 20",
    ):
        memory, file = (engine.call("ExecuteStatement", {"Statement": statement}) for engine in engines)
        assert memory == file
        assert len(memory["Items"]) > 5
