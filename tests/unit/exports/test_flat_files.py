"""Files for analysis: JSON Lines, CSV and Parquet by entity."""

from __future__ import annotations

import csv
import json
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from solotable import Entity, Key, Table
from solotable._protocol.json_codec import dumps
from solotable._values import Item
from solotable.errors import DataError
from solotable.exports.exporting import open_snapshot
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


def test_entities_with_one_file_name_are_not_mixed(tmp_path: Path) -> None:
    items: list[Item] = [{"_type": {"S": name}, "id": {"S": "1"}} for name in ("A/B", "A_B", "C")]
    with pytest.raises(DataError, match=r"The entities 'A/B', 'A_B' have one file name"):
        _write(tmp_path, "jsonl", items)
    assert not list(tmp_path.glob("*.jsonl"))


def test_s2_18_a_changed_site_config_is_one_line_of_a_diff(tmp_path: Path) -> None:
    """A config is JSON, in an order that does not depend on how it was written."""
    app = Table("App")

    class Site(Entity, table=app):
        key = Key("SITE#{site_id}", "CONFIG")
        site_id: str
        config: dict[str, Any]

    theme = {"theme": {"colour": "blue", "fonts": ["Inter"]}, "plugins": {"search": True, "forum": False}}
    with app.open("sqlite://") as db:
        texts = []
        for number, colour in enumerate(("blue", "blue", "green")):
            names = sorted(theme, reverse=bool(number))
            config = {name: theme[name] for name in names} | {"theme": {"fonts": ["Inter"], "colour": colour}}
            for site in ("a", "b"):
                changed = config if site == "b" else theme
                db.put(Site(site_id=site, config=changed))
            with open_snapshot(db.engine, "App") as snapshot:
                write_flat_files(snapshot.items, tmp_path, "jsonl", tag="_type")
            texts.append((tmp_path / "Site.jsonl").read_text().splitlines())
    assert texts[0] == texts[1]
    changes = [line for line in unified_diff(texts[1], texts[2], lineterm="", n=0) if line[1:2] == "{"]
    assert [line[0] for line in changes] == ["-", "+"]
    assert json.loads(changes[1][1:])["config"]["theme"] == {"colour": "green", "fonts": ["Inter"]}


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
