"""The compiled encoder of an entity stores what the codecs of its fields and keys return, and counts it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from solotable import Attr, Compressed, Entity, Index, Json, Key, Table, Version
from solotable._values import Item, item_size
from solotable.errors import DataError

things = Table("Things", indexes=[Index("GSI1"), Index("GSI2")])
people = Table("People", indexes=[Index("ByOwner", partition="owner", sort="rank:N")])


class Colour(StrEnum):
    RED = "red"


class Thing(Entity, table=things):
    key = Key("THING#{thing_id}", "AT#{rank:06d}#{colour}")
    by_owner = Key("OWNER#{owner}", "{rank:06d}", index="GSI1")
    by_note = Key("NOTE#{note}", "THING#{thing_id}", index="GSI2")

    thing_id: str
    rank: int
    colour: Colour = Colour.RED
    owner: str | None = None
    note: Annotated[str | None, Attr("n")] = None
    size: int | None = 7
    price: Decimal = Decimal(1)
    ratio: float = 0.5
    sold: bool = False
    at: datetime | None = None
    tags: set[str] = Field(default_factory=set)
    numbers: frozenset[int] = frozenset()
    raw: bytes = b""
    nested: list[dict[str, Any]] = Field(default_factory=list)
    tree: Annotated[list[int], Json()] = Field(default_factory=list)
    packed: Annotated[str, Compressed()] = ""
    version: Annotated[int, Version()] = 0


class Plain(Entity, table=people):
    """A key of plain attributes, which are fields at the same time."""

    key = Key("PLAIN#{one}", "PLAIN")
    by_owner = Key(("owner",), ("rank",), index="ByOwner")

    one: str
    owner: str
    rank: int


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6) | st.sampled_from(
    ["a#b", "%", "x" * 300]
)
wholes = st.integers(-(10**40), 10**40).filter(lambda number: len(str(abs(number)).rstrip("0")) <= 38)
entities = st.builds(
    Thing,
    thing_id=texts,
    rank=st.integers(0, 999_999),
    owner=st.none() | texts,
    note=st.none() | texts,
    size=st.none() | wholes,
    price=st.decimals(-1000, 1000, places=2),
    ratio=st.floats(-10, 10).filter(lambda number: number == 0 or abs(number) > 1e-9),
    sold=st.booleans(),
    at=st.none() | st.just(datetime(2026, 1, 2, tzinfo=UTC)),
    tags=st.sets(texts, max_size=3),
    numbers=st.frozensets(st.integers(-99, 99), max_size=3),
    raw=st.binary(max_size=4),
    nested=st.lists(st.dictionaries(texts, st.none() | texts | st.booleans(), max_size=2), max_size=2),
    tree=st.lists(st.integers(0, 9), max_size=3),
    packed=texts,
) | st.builds(Plain, one=texts, owner=texts, rank=st.integers(0, 99))


def _encoded_slowly(entity: Entity) -> Item:
    plan, values = entity.plan(), entity.__dict__
    item: Item = dict(plan.identity)
    for name, attribute in plan.attributes.items():
        value = attribute.encode(values[name])
        if value is not None:
            item[attribute.wire] = value
    item |= plan.key_of(values)
    for path in plan.indexes:
        item |= path.encode(values) or {}
    return item


@given(entities)
@settings(max_examples=50, deadline=None)
def test_an_item_is_what_the_codecs_return(entity: Entity) -> None:
    try:
        wanted = _encoded_slowly(entity)
    except DataError as error:
        with pytest.raises(DataError, match=r"PK|SK|bytes") as raised:
            entity.plan().encode_sized(entity.__dict__)
        assert str(raised.value) == str(error)
        return
    item, size = entity.plan().encode_sized(entity.__dict__)
    assert list(item.items()) == list(wanted.items())
    assert size == item_size(item)


def test_unknown_attributes_are_counted() -> None:
    thing = Thing(thing_id="t", rank=1)
    item, size = thing.plan().encode_sized(thing.__dict__, {"colour_of_door": {"S": "grün"}})
    assert item["colour_of_door"] == {"S": "grün"}
    assert size == item_size(item)


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("thing_id", "\ud800", "Thing.thing_id"),
        ("thing_id", 3, "Thing.thing_id"),
        ("size", True, "Thing.size"),
        ("size", 10**39 + 1, "Thing.size"),
        ("sold", 1, "Thing.sold"),
        ("tags", "text", "Thing.tags"),
        ("rank", 10**7, "Thing.rank"),
        ("rank", -1, "Thing.rank"),
    ],
)
def test_an_error_names_the_field(field: str, value: Any, named: str) -> None:
    thing = Thing(thing_id="t", rank=1)
    with pytest.raises(DataError) as raised:
        thing.plan().encode({**thing.__dict__, field: value})
    assert str(raised.value).startswith(named)
    assert raised.value.__cause__ is not raised.value


def test_a_key_needs_its_parts() -> None:
    thing = Thing(thing_id="t", rank=1)
    with pytest.raises(DataError, match="Thing"):
        thing.plan().encode({**thing.__dict__, "thing_id": None})


def test_a_value_that_nests_too_deep_is_rejected() -> None:
    value: Any = []
    for _ in range(20):
        value = [{"a": value}]
    with pytest.raises(DataError, match=r"Thing\.nested has lists and maps more than"):
        Thing.plan().encode({**Thing(thing_id="t", rank=1).__dict__, "nested": value})
