"""What is not as it was stored is not served: items, index entries, definitions, changes and streams."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.maintenance.checkup import examine
from solotable.errors import Corrupt, EngineError
from tests.conformance.tables import index, table

Json = dict[str, Any]

THINGS = table(
    "Things",
    "pk:S",
    types={"shelf": "S"},
    gsi=[index("by_shelf", "shelf")],
    StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "things.db"
    with sqlite.open(path) as engine:
        engine.call("CreateTable", THINGS)
        for key in "abc":
            put(engine, key)
    return path


def put(engine: SqliteEngine, key: str) -> None:
    item = {"pk": {"S": key}, "shelf": {"S": f"shelf-{key}"}}
    engine.call("PutItem", {"TableName": "Things", "Item": item})


def spoil(path: Path, statement: str) -> None:
    """Change the file behind the engine's back."""
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def shelf(engine: SqliteEngine, key: str) -> list[Json]:
    query = {
        "TableName": "Things",
        "IndexName": "by_shelf",
        "KeyConditionExpression": "shelf = :shelf",
        "ExpressionAttributeValues": {":shelf": {"S": f"shelf-{key}"}},
    }
    items: list[Json] = engine.call("Query", query)["Items"]
    return items


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE x1 SET row = 2 WHERE row = 1",
        "UPDATE x1 SET row = 99 WHERE row = 1",
        "UPDATE x1 SET crc = crc + 1 WHERE row = 1",
        "DELETE FROM t1_1 WHERE id = 1",
        "UPDATE t1_1 SET item = CAST(item AS TEXT) WHERE id = 1",
        "UPDATE t1_1 SET size = 'large' WHERE id = 1",
    ],
)
def test_an_index_entry_that_leads_to_no_item_or_to_another_is_an_error(path: Path, statement: str) -> None:
    spoil(path, statement)
    with sqlite.open(path) as engine:
        with pytest.raises(Corrupt):
            shelf(engine, "a")
        assert shelf(engine, "c")
    assert examine(str(path)).problems != []


def test_an_entry_that_was_moved_elsewhere_in_its_index_is_an_error(path: Path) -> None:
    connection = sqlite3.connect(path)
    keys = dict(connection.execute("SELECT row, key FROM x1").fetchall())
    forged = keys[2][: keys[2].index(b"shelf-b") + 7] + keys[1][keys[1].index(b"shelf-a") + 7 :]
    connection.execute("UPDATE x1 SET key = ? WHERE row = 1", (forged,))
    connection.commit()
    connection.close()
    with sqlite.open(path) as engine, pytest.raises(EngineError):
        shelf(engine, "b")
    assert any("have no entry" in problem for problem in examine(str(path)).problems)


def test_a_changed_definition_is_an_error(path: Path) -> None:
    spoil(path, "UPDATE catalog SET definition = replace(definition, 'shelf', 'shelg')")
    with sqlite.open(path) as engine, pytest.raises(Corrupt, match="definition"):
        shelf(engine, "a")


def test_changed_records_and_streams_are_errors(path: Path) -> None:
    spoil(path, "UPDATE changes SET new = CAST(replace(CAST(new AS TEXT), 'shelf-b', 'shelf-z') AS BLOB)")
    with sqlite.open(path) as engine:
        arn = engine.call("ListStreams", {})["Streams"][0]["StreamArn"]
        shards = engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
        place = {"StreamArn": arn, "ShardId": shards[0]["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = engine.call("GetShardIterator", place)["ShardIterator"]
        with pytest.raises(Corrupt, match="change"):
            engine.call("GetRecords", {"ShardIterator": iterator})
    spoil(path, "UPDATE streams SET key_schema = '[{}]'")
    with sqlite.open(path) as engine, pytest.raises(Corrupt, match="stream"):
        engine.call("DescribeStream", {"StreamArn": arn})


def test_an_error_in_the_middle_of_a_read_leaves_no_old_snapshot_behind(path: Path) -> None:
    spoil(path, "UPDATE t1_1 SET crc = 0 WHERE id = 2")
    with sqlite.open(path) as engine:
        errors: list[Corrupt] = []
        for number in range(5):
            # The error is kept, and with it its frames and what these hold.
            with pytest.raises(Corrupt) as caught:
                engine.call("Scan", {"TableName": "Things"})
            errors.append(caught.value)
            put(engine, f"new-{number}")
            assert shelf(engine, f"new-{number}")
        assert len(errors) == 5


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list open files")
def test_a_file_that_cannot_be_opened_is_not_held_open(path: Path) -> None:
    spoil(path, "UPDATE catalog SET definition = replace(definition, 'ACTIVE', 'CREATING')")
    with pytest.raises(Corrupt):
        sqlite.open(path)
    assert [one for one in Path("/proc/self/fd").iterdir() if "things.db" in str(one.resolve())] == []
