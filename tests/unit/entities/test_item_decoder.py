"""Stored items read as entities: quickly or plainly they are the same, and rules know what was stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, Field, ValidationInfo

from solotable import ANY, Attr, Entity, Json, Key, Table, Version, is_stored
from solotable._entities.codecs.item_decoder import STORED
from solotable._values import Item
from solotable.errors import DataError

things = Table("Things")
judged: list[tuple[Any, bool]] = []


def judge(value: list[int], info: ValidationInfo) -> list[int]:
    judged.append((value, is_stored(info)))
    if len(value) > 2 and not is_stored(info):
        raise ValueError("has more than two")
    return value


class Thing(Entity, table=things):
    key = Key("THING#{thing_id}", "THING")

    thing_id: str
    kind: Literal["a", "b"] = "a"
    at: datetime | None = None
    tags: set[str] = Field(default_factory=set)
    note: Annotated[str | None, Attr("n")] = None
    tree: Annotated[list[int], AfterValidator(judge), Json()] = Field(default_factory=list)
    version: Annotated[int, Version()] = 0


class Plain(Entity, table=things):
    key = Key("PLAIN#{one}", "PLAIN")

    one: str
    two: int | None = None
    three: str = "3"


FULL: Item = {
    "thing_id": {"S": "t1"},
    "kind": {"S": "b"},
    "at": {"S": "2026-01-02T03:04:05.000000Z"},
    "tags": {"SS": ["x"]},
    "n": {"S": "word"},
    "tree": {"S": "[1,2]"},
    "version": {"N": "3"},
}
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
VALUES: dict[str, Any] = {
    "thing_id": "t1",
    "kind": "b",
    "at": AT,
    "tags": {"x"},
    "note": "word",
    "tree": [1, 2],
    "version": 3,
}
DEFAULTS: dict[str, Any] = {"kind": "a", "at": None, "tags": set(), "note": None, "tree": [], "version": 0}


@pytest.fixture(autouse=True)
def _forget() -> None:
    judged.clear()


@pytest.mark.parametrize("absent", [(), *((name,) for name in FULL if name != "thing_id"), tuple(FULL)[1:]])
def test_what_is_absent_has_its_default(absent: tuple[str, ...]) -> None:
    item = {name: value for name, value in FULL.items() if name not in absent}
    fields = {"note" if name == "n" else name for name in absent}
    wanted = {name: DEFAULTS[name] if name in fields else value for name, value in VALUES.items()}
    for _ in range(2):  # the second time its shape is known
        read = Thing.plan().decode(item)
        assert read.model_dump() == wanted
        assert list(read.__dict__) == list(VALUES)


def test_what_is_set_is_what_was_stored() -> None:
    assert Plain.plan().decode({"one": {"S": "1"}}).model_fields_set == {"one"}
    full = {"one": {"S": "1"}, "two": {"N": "2"}, "three": {"S": "4"}}
    for _ in range(2):
        assert Plain.plan().decode(full).model_dump() == {"one": "1", "two": 2, "three": "4"}


@pytest.mark.parametrize(
    ("wire", "value", "words"),
    [
        ("kind", {"S": "c"}, r"Thing\.kind.*not one of 'a', 'b'"),
        ("kind", {"N": "1"}, r"Thing\.kind"),
        ("at", {"S": "soon"}, r"Thing\.at.*soon"),
        ("version", {"N": "1.5"}, r"Thing\.version.*not a whole number"),
        ("n", {"BOOL": True}, r"Thing\.note"),
        ("tree", {"S": "[1"}, r"Thing\.tree"),
    ],
)
def test_what_cannot_be_read_is_named(wire: str, value: dict[str, Any], words: str) -> None:
    for _ in range(2):
        with pytest.raises(DataError, match=words):
            Thing.plan().decode({**FULL, wire: value})


def test_null_is_none() -> None:
    for _ in range(2):
        read = Thing.plan().decode({**FULL, "at": {"NULL": True}, "n": {"NULL": True}})
        assert read.model_dump() == {**VALUES, "at": None, "note": None}


def test_unknown_attributes_are_kept_in_every_shape() -> None:
    for number in range(100):  # more than are remembered
        more = {f"more_{number}": {"N": str(number)}}
        for _ in range(2):
            read = Thing.plan().decode({**FULL, **more})
            assert read.unknown_attributes == more
            assert read.model_dump() == VALUES
    assert Thing.plan().decode(FULL).unknown_attributes == {}


def test_a_rule_about_json_is_asked_once() -> None:
    Thing.plan().decode(FULL)
    assert judged == [([1, 2], False)]


def test_a_validator_knows_that_a_value_was_stored() -> None:
    long = {**FULL, "tree": {"S": "[1,2,3]"}}
    read = Thing.plan().decode(long, STORED)
    assert read.model_dump() == {**VALUES, "tree": [1, 2, 3]}
    assert judged == [([1, 2, 3], True)]
    with pytest.raises(DataError, match="has more than two"):
        Thing.plan().decode(long)


def test_reading_trusts_what_writing_does_not() -> None:
    with things.open("sqlite://") as db:
        db.put(Thing(thing_id="t1", tree=[1, 2]))
        judged.clear()
        assert db.require(Thing, thing_id="t1").tree == [1, 2]
        assert [stored for _, stored in judged] == [True]
        with pytest.raises(DataError, match="has more than two"):
            db.update(Thing, thing_id="t1", set={"tree": [1, 2, 3]}, version=ANY)
        grown = db.require(Thing, thing_id="t1")
        grown.tree.append(3)
        with pytest.raises(DataError, match="has more than two"):
            db.put(grown)
