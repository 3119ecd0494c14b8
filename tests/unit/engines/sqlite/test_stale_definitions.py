"""Two engines on one file: one must not reject requests by a definition that the other has changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.maintenance import index_backfill
from solotable.errors import EngineError, ServiceError
from tests.conformance.tables import index, table

Json = dict[str, Any]
Pair = tuple[SqliteEngine, SqliteEngine]

KEY = {"pk": {"S": "p"}}


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[Pair]:
    with sqlite.open(tmp_path / "one.db") as first, sqlite.open(tmp_path / "one.db") as second:
        first.call("CreateTable", table("Things", "pk:S", types={"g": "S"}, gsi=[index("old", "g")]))
        # Both have the definition in memory now.
        for engine in (first, second):
            engine.call("GetItem", {"TableName": "Things", "Key": KEY})
        yield first, second


def update(engine: SqliteEngine, **change: Any) -> None:
    engine.call("UpdateTable", {"TableName": "Things", **change})


def test_a_dropped_index_no_longer_refuses_a_type(engines: Pair) -> None:
    first, second = engines
    update(second, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "old"}}])
    first.call("PutItem", {"TableName": "Things", "Item": {**KEY, "g": {"N": "1"}}})


def test_an_added_index_is_found(engines: Pair) -> None:
    first, second = engines
    update(
        second,
        AttributeDefinitions=[{"AttributeName": "h", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[{"Create": index("new", "h")}],
    )
    query = {
        "TableName": "Things",
        "IndexName": "new",
        "KeyConditionExpression": "h = :h",
        "ExpressionAttributeValues": {":h": {"S": "x"}},
    }
    assert first.call("Query", query)["Count"] == 0


def test_a_deleted_table_is_not_found(engines: Pair) -> None:
    first, second = engines
    second.call("DeleteTable", {"TableName": "Things"})
    with pytest.raises(ServiceError) as refused:
        first.call("PutItem", {"TableName": "Things", "Item": {"other": {"S": "x"}}})
    assert refused.value.code == "ResourceNotFoundException"


def test_a_table_created_again_with_another_key_takes_that_key(engines: Pair) -> None:
    first, second = engines
    second.call("DeleteTable", {"TableName": "Things"})
    second.call("CreateTable", table("Things", "id:N"))
    first.call("PutItem", {"TableName": "Things", "Item": {"id": {"N": "1"}}})
    assert first.call("GetItem", {"TableName": "Things", "Key": {"id": {"N": "1"}}})["Item"]


def test_a_filling_cut_short_goes_on_when_the_file_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "cut.db"
    with sqlite.open(path, durability="relaxed") as engine:
        engine.call("CreateTable", table("Things", "pk:S"))
        for first in range(0, 3_000, 25):
            puts = [
                {"PutRequest": {"Item": {"pk": {"S": str(n)}, "g": {"S": "x"}}}}
                for n in range(first, first + 25)
            ]
            engine.call("BatchWriteItem", {"RequestItems": {"Things": puts}})
        update(
            engine,
            AttributeDefinitions=[{"AttributeName": "g", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[{"Create": index("new", "g")}],
        )
    with sqlite.open(path) as engine:
        index_backfill.wait(engine)
        request = {
            "TableName": "Things",
            "IndexName": "new",
            "KeyConditionExpression": "g = :g",
            "ExpressionAttributeValues": {":g": {"S": "x"}},
            "Select": "COUNT",
        }
        assert engine.call("Query", request)["Count"] == 3_000


@pytest.mark.parametrize("path", ["", "a\0b", "."])
def test_what_cannot_be_a_file_is_refused(path: str) -> None:
    with pytest.raises(EngineError, match="cannot be a database"):
        sqlite.open(path)


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="relaxed"):
        sqlite.open(tmp_path / "a.db", durability="fast")  # type: ignore[arg-type]  # what is tested


def test_idle_readers_are_few(tmp_path: Path) -> None:
    with sqlite.open(tmp_path / "many.db") as engine:
        readers = [engine.database.acquire_reader() for _ in range(30)]
        for reader in readers:
            engine.database.release_reader(reader)
        assert len(engine.database._readers) <= 8
