"""What is inferred from items: types, time formats, templates, and what a put would change."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from solotable._entities.adoption.attribute_types import infer_type
from solotable._entities.adoption.inference import infer_table
from solotable._entities.adoption.key_inference import Notation, find_delimiter, infer_template
from solotable._entities.adoption.models_file import models_file
from solotable._entities.adoption.presets import PRESETS
from solotable._entities.adoption.round_trip import check_items
from solotable._entities.adoption.sample import TableSample
from solotable._entities.codecs.times import time_scalar
from solotable._entities.declare.entity import Entity
from solotable._entities.declare.fields import Iso
from solotable._entities.declare.table import Table
from solotable._entities.keys.key import Key
from solotable._values import Item, dump
from solotable.errors import DeclarationError


@pytest.mark.parametrize(
    ("name", "values", "annotation", "time"),
    [
        ("a", ["x", "y"], "str", None),
        ("a", [1, 2], "int", None),
        ("a", [1, "x"], "Any", None),
        ("a", [True], "bool", None),
        ("a", [{"x": 1}], "dict[str, int]", None),
        ("a", [{"x": 1, "y": "z"}, {}], "dict[str, Any]", None),
        ("a", [["x"], ["y"]], "list[str]", None),
        ("a", [{"x", "y"}], "set[str]", None),
        ("a", ["2026-01-02T03:04:05Z"], "datetime", 'Iso("s")'),
        ("a", ["2026-01-02T03:04:05.678Z"], "datetime", 'Iso("ms")'),
        ("a", ["2026-01-02T03:04:05.678901+00:00"], "datetime", 'Iso("us", offset="+00:00")'),
        ("a", ["2026-01-02T03:04:05.678901+0000"], "datetime", 'Iso("us", offset="+0000")'),
        ("a", ["2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05Z"], "str", None),
        ("a", ["2026-01-02T03:04:05.678", "2026-01-02T03:04:05.678Z"], "str", None),
        ("a", ["2026-01-02T03:04:05+01:00"], "str", None),
        ("a", ["2026-01-02T25:04:05"], "str", None),
        ("a", ["2026-13-02T03:04:05Z"], "str", None),
        ("a", ["2026-01-02"], "date", None),
        ("createdAt", [1_767_225_600], "datetime", 'Epoch("s")'),
        ("createdAt", [1_767_225_600_000], "datetime", 'Epoch("ms")'),
        ("price", [1_767_225_600], "int", None),
        ("ttl", [1_767_225_600], "datetime", 'Epoch("s")'),
    ],
)
def test_a_type_fits_every_value(name: str, values: list[Any], annotation: str, time: str | None) -> None:
    found = infer_type(name, [{name: dump(value)} for value in values])
    assert (found.annotation, found.time) == (annotation, time)
    assert not found.optional


@pytest.mark.parametrize("precision", ["s", "ms", "us"])
@pytest.mark.parametrize("offset", ["Z", "+00:00", "+0000", ""])
def test_every_form_of_iso_is_inferred(precision: Literal["s", "ms", "us"], offset: Any) -> None:
    marker = Iso(precision, offset=offset)
    at = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    moments = [marker.truncate(at), marker.truncate(at + timedelta(seconds=7))]
    stored = [{"at": {"S": time_scalar(marker).encode(each)}} for each in moments]
    written = f'Iso("{precision}")' if offset == "Z" else f'Iso("{precision}", offset="{offset}")'
    assert infer_type("at", stored).time == written


def test_an_attribute_that_is_absent_or_null_is_optional() -> None:
    assert infer_type("a", [{"a": {"S": "x"}}, {}]).optional
    found = infer_type("a", [{"a": {"S": "x"}}, {"a": {"NULL": True}}])
    assert (found.annotation, found.optional, found.nulls) == ("str", True, 1)


def test_the_time_to_live_of_the_table_is_marked() -> None:
    assert infer_type("gone", [{"gone": {"N": "1767225600"}}], ttl=True).time == "TTL()"


@pytest.mark.parametrize(
    ("texts", "delimiter"),
    [
        (["USER#1", "ORDER#2:00"], "#"),
        (["user|1", "user|2#3"], "|"),
        (["user::1"], "::"),
        (["2026-01-01T00:00:00Z"], "#"),
        (["plain"], "#"),
    ],
)
def test_the_delimiter_follows_the_first_word(texts: list[str], delimiter: str) -> None:
    assert find_delimiter(texts) == delimiter


def template(keys: list[str], **attributes: list[Any]) -> str:
    items = [
        {
            "SK": {"S": key},
            "PK": {"S": str(at)},
            **{name: dump(values[at]) for name, values in attributes.items()},
        }
        for at, key in enumerate(keys)
    ]
    found = infer_template("SK", items, Notation(), partition="PK", tag=None, ignored=frozenset({"PK", "SK"}))
    if found.native:
        return "native"
    return "#".join(
        f"{part.literal}{{{part.attribute or part.key_only}{':' if part.spec else ''}{part.spec}}}"
        if part.attribute or part.key_only
        else part.literal
        for part in found.parts
    )


def test_templates_have_literals_fields_formats_and_values_of_the_key_only() -> None:
    assert template(["ORDER#a", "ORDER#b"], id=["a", "b"]) == "ORDER#{id}"
    assert template(["ORDER#0007", "ORDER#0012"], number=[7, 12]) == "ORDER#{number:04d}"
    assert template(["ORDER#7", "ORDER#12"], number=[7, 12]) == "ORDER#{number:d}"
    assert template(["o#id_a#x", "o#id_b#x"], id=["a", "b"]) == "o#id_{id}#x"
    assert template(["ORDER#a", "ORDER#b"]) == "ORDER#{ORDER_id}"
    at = "2026-01-02T03:04:05.678000Z"
    assert template(["AT#2026-01-02T03:04:05.678Z"], at=[at]) == "AT#{at:ms}"
    naive = "2026-01-02T03:04:05.678000"
    assert template(["AT#2026-01-02T03:04:05.678"], at=[naive]) == "AT#{at:ms}"
    assert template(["AT#2026-01-02T03:04:05.678Z"], at=[naive]) == "AT#{AT_id}"
    assert template(["AT#2026-01-02T03:04:05Z"], at=[at]) == "AT#{AT_id}"
    assert template(["profile", "profile"]) == "profile"
    assert template(["PROFILE"]) == "PROFILE"
    assert template(["x1", "y2"]) == "native"
    assert template(["STATUS#open", "STATUS#open"], status=["open", "open"]) == "STATUS#{status}"


def test_a_put_that_would_change_an_item_is_reported() -> None:
    table = Table("Live", tag=None)

    class User(Entity, table=table):
        key = Key("USER#{name}", "PROFILE")
        name: str
        age: int | None = None

    assert User.plan().name == "User"
    key = {"PK": {"S": "USER#ana"}, "SK": {"S": "PROFILE"}}
    good: Item = {**key, "name": {"S": "ana"}, "age": {"N": "7.0"}, "extra": {"L": [{"NULL": True}]}}
    assert check_items(table, [good, {**good, "age": {"NULL": True}}]).unchanged == 2
    bad = check_items(table, [{**good, "age": {"S": "x"}}, {"PK": {"S": "OTHER"}, "SK": {"S": "x"}}])
    assert (bad.unchanged, len(bad.problems), len(bad.unknown)) == (0, 1, 1)
    assert "age" in bad.problems[0]


def test_an_unknown_preset_is_rejected_with_the_names_of_all() -> None:
    with pytest.raises(DeclarationError, match=", ".join(PRESETS)):
        Table("Live", adopt="mongoose")  # type: ignore[arg-type]  # a wrong name


def test_arguments_win_over_a_preset() -> None:
    table = Table("Live", adopt="pynamodb", tag="kind")
    assert (table.tag, table.tag_required) == ("kind", False)
    assert Table("Live", adopt="pynamodb", tag=None).tag is None
    assert Table("Live", adopt="electrodb").tag == "__edb_e__"


def _suggested(names: list[str]) -> str:
    described = {
        "TableName": "Wide",
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
    }
    item: Item = {"PK": {"S": "WIDE"}, **{name: {"S": "x"} for name in names}}
    return models_file(infer_table(TableSample.of(described, None, [item])), frozenset())


def test_names_of_fields_that_clash_are_numbered() -> None:
    found = _suggested(["a-b", "a.b", "a_b", "é", "ü", "class"])
    fields = re.findall(r"(?m)^    (\w+): ", found)
    assert len(fields) == len(set(fields)) == 6
    assert {"a_b", "a_b_", "a_b_3", "class_"} <= set(fields)


def test_the_models_of_an_item_with_many_attributes_take_linear_time() -> None:
    def seconds(count: int) -> float:
        # Names of one Chinese character all become the same identifier.
        names = [f"a{number}" for number in range(count // 2)]
        names += [chr(0x4E00 + number) for number in range(count // 2)]
        begin = time.process_time()
        _suggested(names)
        return time.process_time() - begin

    # Four times the attributes take four times as long, not sixteen times.
    assert min(seconds(2_000) for _ in range(2)) < 10 * min(seconds(500) for _ in range(4))
