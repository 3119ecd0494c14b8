"""BatchGetItem reads several keys with one statement: order, absent keys, large items and damage."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from solotable._protocol.decode.requests import decode_request
from solotable._protocol.engine import TooLong
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import Corrupt

TABLE: dict[str, Any] = {
    "TableName": "Things",
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
}


def item(number: int, size: int = 1) -> dict[str, Any]:
    return {"pk": {"S": f"{number:03d}"}, "text": {"S": "x" * size}}


def fill(engine: SqliteEngine, *items: dict[str, Any]) -> None:
    engine.call("CreateTable", TABLE)
    for each in items:
        engine.call("PutItem", {"TableName": "Things", "Item": each})


def batch_get(engine: SqliteEngine, numbers: list[int]) -> dict[str, Any]:
    keys = [{"pk": item(number)["pk"]} for number in numbers]
    return engine.call("BatchGetItem", {"RequestItems": {"Things": {"Keys": keys}}})


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 100])
@pytest.mark.parametrize("path", [":memory:", "file"])
def test_items_come_in_the_order_of_their_keys_without_absent_ones(
    tmp_path: Path, path: str, count: int
) -> None:
    with sqlite.open(path if path == ":memory:" else str(tmp_path / "batch.db")) as engine:
        fill(engine, *(item(number) for number in range(0, 100, 3)))
        numbers = [*reversed(range(count))]
        found = batch_get(engine, numbers)
        assert found["Responses"]["Things"] == [item(number) for number in numbers if number % 3 == 0]
        assert found["UnprocessedKeys"] == {}


def test_large_items_are_read_a_few_at_a_time() -> None:
    """A reply has 16 MB at most, so a batch of 100 items of 400 KB is not read at once."""
    with sqlite.open(":memory:") as engine:
        fill(engine, *(item(number, 390_000) for number in range(50)))
        counts: list[int] = []
        statements: list[str] = []
        with engine.database.read() as connection:
            connection.set_trace_callback(statements.append)
        found = batch_get(engine, [*range(50)])
        counts = [each.count("(x'") for each in statements if each.startswith("WITH")]
        assert len(found["Responses"]["Things"]) == 43
        assert len(found["UnprocessedKeys"]["Things"]["Keys"]) == 7
        assert counts[0] == 16
        assert set(counts[1:]) == {1}


def test_a_damaged_item_is_not_returned(tmp_path: Path) -> None:
    with sqlite.open(str(tmp_path / "batch.db")) as engine:
        fill(engine, item(1), item(2))
        table = engine.table("Things")
        engine.database.write(
            lambda connection: connection.execute(f"UPDATE {table.items} SET crc = crc + 1 WHERE id = 2")
        )
        assert batch_get(engine, [1])["Responses"]["Things"] == [item(1)]
        with pytest.raises(Corrupt):
            batch_get(engine, [1, 2])


def test_a_row_whose_columns_are_damaged_is_not_taken_for_absent(tmp_path: Path) -> None:
    path = tmp_path / "batch.db"
    with sqlite.open(str(path)) as engine:
        fill(engine, item(1), item(2, 300))
    raw = path.read_bytes()
    # The header of the record: its length, id, key, size (2 bytes), crc (4 bytes), item.
    (start,) = re.finditer(rb"\x07\x00[^\0]\x02\x04[\x80-\xff][\0-\x7f]", raw)
    # A header of length 0 has no columns, so SQLite reads NULL for each.
    path.write_bytes(raw[: start.start()] + b"\0" + raw[start.start() + 1 :])
    with sqlite.open(str(path)) as engine:
        assert batch_get(engine, [1])["Responses"]["Things"] == [item(1)]
        with pytest.raises(Corrupt):
            batch_get(engine, [1, 2])
        with pytest.raises(Corrupt):
            engine.call("GetItem", {"TableName": "Things", "Key": {"pk": item(2)["pk"]}})


def test_the_heat_of_a_batch_that_starts_again_is_counted_once(tmp_path: Path) -> None:
    def pause(_size: int) -> None:
        raise TooLong

    with sqlite.open(str(tmp_path / "batch.db")) as engine:
        fill(engine, *(item(number) for number in range(20)))
        request = decode_request(
            "BatchGetItem", {"RequestItems": {"Things": {"Keys": [{"pk": item(n)["pk"]} for n in range(20)]}}}
        )
        with pytest.raises(TooLong):
            engine.handle_in_slices(request, pause)
        engine.handle(request)
        assert engine.heat is not None
        assert sum(interval.read_units for interval in engine.heat.read().intervals) == 10.0
