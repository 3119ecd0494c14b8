"""Entities from items in wire form and back, and attributes that have the names of aliases."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from solotable import FROM_SCOPE, Attr, Entity, Key, Table, Version
from solotable.errors import DataError, StoredDataError

from .opening import Opening

shop = Table("WireShop", tenant="org")


class Order(Entity, table=shop):
    """An order of a tenant."""

    key = Key("ORG#{org}", "ORDER#{number:06d}")
    org: str = FROM_SCOPE
    number: int
    photo: bytes = b""
    version: Annotated[int, Version()] = 0


class Rush(Order):
    """An order in a hurry."""

    hours: int = 1


class Other(Entity, table=shop):
    """Something else."""

    key = Key("ORG#{org}", "OTHER#{name}")
    org: str = FROM_SCOPE
    name: str


class Line(BaseModel):
    """A nested model with aliases."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)
    unit_price: int


class Basket(Entity, table=Table("Camel"), by_alias=True):
    """An entity whose attributes have the names of its aliases."""

    model_config = ConfigDict(alias_generator=to_camel)
    key = Key("BASKET#{basket_id}", "BASKET")
    basket_id: str
    line_items: tuple[Line, ...] = ()
    first_line: Line | None = None
    short: Annotated[str, Attr("s")] = ""
    named: str = Field(default="", alias="theName")


def test_the_images_of_a_stream_record_are_entities(opening: Opening) -> None:
    db = opening(shop).tenant("acme")
    order = db.create(Rush(number=7, photo=b"\x00\xff", hours=3))
    (item,) = opening.raw(shop)
    image = json.loads(json.dumps(item))
    assert Rush.from_item(image) == order
    assert Order.from_item(image) == order
    assert order.to_item() == item


def test_from_item_rejects_items_of_other_entities() -> None:
    item = Other(org="acme", name="x").to_item()
    with pytest.raises(
        StoredDataError, match=r"Order\.from_item\(\) got the item .*OTHER#x.*, which is Other"
    ):
        Order.from_item(item)
    with pytest.raises(StoredDataError, match="which is no entity of its table"):
        Order.from_item({**item, "_type": {"S": "Robot"}})
    with pytest.raises(StoredDataError, match="number"):
        Order.from_item({**item, "_type": {"S": "Order"}, "number": {"S": "x"}})


def test_from_item_rejects_a_key_that_the_fields_do_not_derive() -> None:
    item = Other(org="acme", name="x y").to_item()
    with pytest.raises(StoredDataError, match="has fields that derive another key"):
        Other.from_item({**item, "SK": {"S": "OTHER#x y"}})
    with pytest.raises(StoredDataError, match="has fields that derive another key"):
        Other.from_item({**item, "PK": {"S": "ORG#victim"}})


def test_unknown_attributes_survive_from_item_and_to_item() -> None:
    item = {**Order(org="acme", number=1).to_item(), "legacy": {"S": "x"}}
    assert Order.from_item(item).to_item() == item


def test_to_item_needs_the_tenant() -> None:
    with pytest.raises(DataError, match=r"Order\.to_item\(\) needs org"):
        Order(number=1).to_item()


def test_by_alias_stores_fields_under_their_aliases(opening: Opening) -> None:
    table = Basket.plan().table
    db = opening(table)
    line = Line(unit_price=3)
    basket = Basket(basket_id="b1", line_items=(line,), first_line=line, short="x", theName="n")
    db.put(basket)
    (item,) = opening.raw(table)
    stored = {"M": {"unitPrice": {"N": "3"}}}
    assert item == {
        "PK": {"S": "BASKET#b1"},
        "SK": {"S": "BASKET"},
        "_type": {"S": "Basket"},
        "basketId": {"S": "b1"},
        "lineItems": {"L": [stored]},
        "firstLine": stored,
        "s": {"S": "x"},
        "theName": {"S": "n"},
    }
    assert db.require(Basket, basket_id="b1") == basket
    db.update(Basket, basket_id="b1", set={"first_line.unit_price": 4, "line_items[0].unit_price": 5})
    found = db.require(Basket, basket_id="b1")
    assert found.first_line is not None
    assert (found.first_line.unit_price, found.line_items[0].unit_price) == (4, 5)
    query = Basket.key.query(basket_id="b1")
    assert db.count(query, where=lambda each: each.line_items[0].unit_price == 5) == 1


def test_without_by_alias_attributes_have_the_names_of_fields() -> None:
    class Plain(Entity, table=Table("Plain")):
        model_config = ConfigDict(alias_generator=to_camel)
        key = Key("PLAIN#{plain_id}", "PLAIN")
        plain_id: str

    assert Plain(plain_id="p").to_item()["plain_id"] == {"S": "p"}


@pytest.mark.parametrize("value", [5, None, "x", [1], {"L": [5]}, {"M": 5}, {"S": "a", "N": "1"}])
def test_a_value_without_a_type_is_rejected(value: Any) -> None:
    item = {**Order(org="acme", number=1).to_item(), "photo": value}
    with pytest.raises(
        DataError, match=r"Order\.from_item\(\) takes an item in wire form.* 'photo' has a value"
    ):
        Order.from_item(item)


def test_what_is_not_an_item_is_rejected() -> None:
    with pytest.raises(DataError, match=r"Order\.from_item\(\) takes an item in wire form, got NoneType"):
        Order.from_item(None)  # type: ignore[arg-type]  # the point of the test
