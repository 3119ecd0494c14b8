"""Files for analysis: JSON Lines, CSV and Parquet by entity."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet
import pytest

from solotable._protocol.json_codec import dumps
from solotable._values import Item
from solotable.exports.flat_files import FlatFormat, write_flat_files

from .tables import EVERY_TYPE

_ITEMS: list[Item] = [
    {"_type": {"S": "Order"}, "id": {"S": "a,b"}, "price": {"N": "12.5"}, "count": {"N": "3"}},
    {"_type": {"S": "Order"}, "id": {"S": "c"}, "price": {"N": "3"}, "tags": {"SS": ["x", "y"]}},
    {"_type": {"S": "Up/../Down"}, "id": {"N": "1"}},
    EVERY_TYPE,
]


def _write(folder: Path, format_: FlatFormat, items: list[Item] | None = None) -> dict[str, int]:
    rows = [(dumps(item), 0) for item in items or _ITEMS]
    return write_flat_files(rows, folder, format_, tag="_type")


def test_each_entity_has_a_file_and_names_stay_in_the_folder(tmp_path: Path) -> None:
    assert _write(tmp_path, "jsonl") == {"Order.jsonl": 2, "Up____Down.jsonl": 1, "_other.jsonl": 1}
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "Order.jsonl",
        "Up____Down.jsonl",
        "_other.jsonl",
    ]


def test_json_lines_keep_all_digits(tmp_path: Path) -> None:
    _write(tmp_path, "jsonl")
    text = (tmp_path / "_other.jsonl").read_text()
    assert '"number":-12345678901234567890.123456789012345678' in text
    found = json.loads(text)
    assert found["list"] == ["a", {"deep": 1}]
    assert found["bytes"] == "AAEC/w=="
    assert found["none"] is None
    assert found["numbers"] == [1, 2.5]


def test_a_csv_file_has_the_columns_of_all_its_items(tmp_path: Path) -> None:
    _write(tmp_path, "csv")
    with (tmp_path / "Order.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["_type", "count", "id", "price", "tags"]
    assert (rows[0]["id"], rows[0]["price"], rows[0]["tags"]) == ("a,b", "12.5", "")
    assert rows[1]["tags"] == '["x","y"]'


def test_parquet_columns_have_the_types_of_their_values(tmp_path: Path) -> None:
    _write(tmp_path, "parquet")
    table = pyarrow.parquet.read_table(tmp_path / "Order.parquet")
    types = {field.name: str(field.type) for field in table.schema}
    assert types["id"] == "string"
    assert types["count"] == "int64"
    assert types["price"] == "double"
    assert types["tags"].startswith("list<")
    assert table.to_pylist()[0] == {
        "_type": "Order",
        "count": 3,
        "id": "a,b",
        "price": 12.5,
        "tags": None,
    }
    other = pyarrow.parquet.read_table(tmp_path / "_other.parquet").to_pylist()[0]
    assert other["bytes"] == b"\x00\x01\x02\xff"
    assert other["number"] == "-12345678901234567890.123456789012345678"


def test_a_column_of_several_types_is_json(tmp_path: Path) -> None:
    items: list[Item] = [{"x": {"S": "a"}}, {"x": {"N": "1"}}, {"x": {"NULL": True}}]
    _write(tmp_path, "parquet", items)
    table = pyarrow.parquet.read_table(tmp_path / "_other.parquet")
    assert table.to_pydict() == {"x": ['"a"', "1", None]}


@pytest.mark.parametrize("format_", ["jsonl", "csv", "parquet"])
def test_nothing_is_left_if_the_items_cannot_be_read(tmp_path: Path, format_: FlatFormat) -> None:
    def rows() -> object:
        yield dumps(_ITEMS[0]), 0
        raise OSError("the disk failed")

    with pytest.raises(OSError, match="the disk failed"):
        write_flat_files(rows(), tmp_path, format_, tag="_type")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
