"""Every read by key is a search in a SQLite index, whatever the condition; none scans the table."""

from __future__ import annotations

from typing import Any

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.items.storage import rows_sql
from tests.conformance.tables import TABLES

_SUBQUERY = (
    "CO-ROUTINE (subquery-1)",
    "SCAN (subquery-1)",
    "CO-ROUTINE x",
    "SCAN x",
    "SCALAR SUBQUERY 1",
    "SCALAR SUBQUERY 2",
)


def plans(engine: SqliteEngine, operation: str, request: dict[str, Any]) -> list[str]:
    """Return the plan of every statement that the request runs: how it reads tables."""
    statements: list[str] = []
    with engine.database.read() as connection:
        connection.set_trace_callback(statements.append)
    engine.call(operation, request)
    with engine.database.read() as connection:
        connection.set_trace_callback(None)
        return [
            row[3]
            for statement in statements
            if statement.lstrip().upper().startswith(("SELECT", "WITH", "UPDATE", "DELETE"))
            for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
            # A subquery is checked by its own steps.
            if row[3] not in _SUBQUERY
        ]


@pytest.fixture
def engine() -> Any:
    with sqlite.open(":memory:") as engine:
        engine.call("CreateTable", TABLES["Indexed"])
        for number in range(20):
            item = {
                "pk": {"S": "p"},
                "sk": {"S": str(number)},
                "gp": {"S": "g"},
                "gs": {"N": str(number)},
                "ls": {"S": "l"},
            }
            engine.call("PutItem", {"TableName": "Indexed", "Item": item})
        yield engine


@pytest.mark.parametrize(
    ("index", "condition"),
    [
        (None, "pk = :p"),
        (None, "pk = :p AND sk BETWEEN :a AND :b"),
        (None, "pk = :p AND begins_with(sk, :a)"),
        ("gall", "gp = :p"),
        ("gall", "gp = :p AND gs > :n"),
        ("gkeys", "gp = :p"),
        ("lall", "pk = :p AND ls <= :a"),
        ("linc", "pk = :p AND ls = :a"),
    ],
)
@pytest.mark.parametrize("forward", [True, False])
def test_a_query_searches_an_index(
    engine: SqliteEngine, index: str | None, condition: str, forward: bool
) -> None:
    values = {":p": {"S": "p"}, ":a": {"S": "1"}, ":b": {"S": "2"}, ":n": {"N": "3"}}
    request: dict[str, Any] = {
        "TableName": "Indexed",
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {name: value for name, value in values.items() if name in condition},
        "ScanIndexForward": forward,
    }
    if index:
        request["IndexName"] = index
    found = plans(engine, "Query", request)
    assert found
    assert all(step.startswith("SEARCH") for step in found), found
    assert not any("TEMP B-TREE" in step for step in found), found


@pytest.mark.parametrize("operation", ["GetItem", "DeleteItem", "UpdateItem"])
def test_one_item_is_found_by_its_key(engine: SqliteEngine, operation: str) -> None:
    found = plans(engine, operation, {"TableName": "Indexed", "Key": {"pk": {"S": "p"}, "sk": {"S": "1"}}})
    assert found
    assert all(step.startswith("SEARCH") for step in found), found


def test_a_batch_looks_up_each_key(engine: SqliteEngine) -> None:
    keys = [{"pk": {"S": "p"}, "sk": {"S": str(number)}} for number in range(3)]
    found = plans(engine, "BatchGetItem", {"RequestItems": {"Indexed": {"Keys": keys}}})
    assert [step for step in found if "USING INDEX" in step]
    assert not any(step.startswith("SCAN i") for step in found), found


def test_a_segment_of_a_scan_reads_only_its_range(engine: SqliteEngine) -> None:
    found = plans(engine, "Scan", {"TableName": "Indexed", "Segment": 1, "TotalSegments": 4})
    assert all(step.startswith("SEARCH") for step in found), found


def test_the_plan_test_can_fail(engine: SqliteEngine) -> None:
    table = engine.table("Indexed")
    ordered = rows_sql(table, None, forward=True)
    unordered = ordered.replace("key >= ? AND key < ?", "size >= ? AND size < ?")
    with engine.database.read() as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {unordered}", (0, 1, 1)).fetchall()
    assert not all(row[3].startswith("SEARCH") for row in rows)
