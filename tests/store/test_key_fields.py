"""Fields that only the primary key contains: read from it, and with stored=False not stored elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Self

import pytest
from pydantic import BaseModel

from solotable import FROM_SCOPE, Attr, Entity, Index, Key, KeyFormat, Query, Table, Version, exists, pattern
from solotable._values import Item
from solotable.errors import DeclarationError, StoredDataError

from .opening import Opening

shop = Table("KeyShop", tag_required=False, tenant="org", indexes=[Index("GSI1")])


class Code(BaseModel):
    """A part of a product."""

    sku: str
    price: int


class Product(Entity, table=shop):
    """A product whose id may be only in its key."""

    key = Key("ORG#{org}", "PRODUCT#{sku}#{made:s}")
    by_price = Key("ORG#{org}#PRICE", "{price:06d}#{sku}", index="GSI1")
    org: str = FROM_SCOPE
    sku: str
    made: datetime
    price: int = 0
    note: str | None = None

    @pattern
    @classmethod
    def cheap(cls) -> Query[Self]:
        """Products by price."""
        return cls.by_price.query()


class Box(Entity, table=shop):
    """A box whose id is only in its key."""

    key = Key("ORG#{org}", "BOX#{box_id}")
    org: Annotated[str, Attr(stored=False)] = FROM_SCOPE
    box_id: Annotated[str, Attr(stored=False)]
    size: int = 0
    version: Annotated[int, Version()] = 0


MADE = datetime(2035, 1, 1, tzinfo=UTC)


def foreign(**more: dict[str, str]) -> Item:
    """Return a product as another program writes it."""
    key = {"PK": {"S": "ORG#acme"}, "SK": {"S": "PRODUCT#a%20b#2035-01-01T00:00:00Z"}}
    return {**key, "price": {"N": "7"}, **more}


def test_fields_are_read_from_the_key_when_their_attributes_are_missing(opening: Opening) -> None:
    db = opening(shop).tenant("acme")
    opening.plant(shop, foreign())
    product = db.require(Product, sku="a b", made=MADE)
    assert product == Product(org="acme", sku="a b", made=MADE, price=7)
    assert list(product.model_dump()) == list(Product.model_fields)
    assert db.count(Product.key.query()) == 1
    assert [row.sku for row in db.page(Product.key.query().select(Code))] == ["a b"]


def test_writes_of_an_item_whose_tenant_is_only_in_the_key(opening: Opening) -> None:
    db = opening(shop).tenant("acme")
    opening.plant(shop, foreign())
    db.update(Product, sku="a b", made=MADE, set={"price": 9})
    assert [each.sku for each in db.all(Product.cheap())] == ["a b"]
    db.put(db.require(Product, sku="a b", made=MADE))
    (item,) = opening.raw(shop)
    assert (item["org"], item["sku"]) == ({"S": "acme"}, {"S": "a b"})
    db.delete(Product, sku="a b", made=MADE)
    assert opening.raw(shop) == []


def test_an_item_that_names_another_tenant_is_not_changed(opening: Opening) -> None:
    db = opening(shop).tenant("acme")
    other = foreign(org={"S": "evil"}, sku={"S": "a b"})
    opening.plant(shop, other)
    attempts: list[Callable[[], object]] = [
        lambda: db.update(Product, sku="a b", made=MADE, set={"price": 9}),
        lambda: db.put(Product(sku="a b", made=MADE)),
        lambda: db.delete(Product, sku="a b", made=MADE),
    ]
    for attempt in attempts:
        with pytest.raises(Exception, match=r"tenant|condition|same key|not found|required"):
            attempt()
    assert opening.raw(shop) == [other]


def test_a_field_with_stored_false_is_only_in_the_key(opening: Opening) -> None:
    db = opening(shop).tenant("acme")
    box = db.create(Box(box_id="b#1", size=3))
    (item,) = opening.raw(shop)
    assert item == {
        "PK": {"S": "ORG#acme"},
        "SK": {"S": "BOX#b%231"},
        "_type": {"S": "Box"},
        "size": {"N": "3"},
        "version": {"N": "1"},
    }
    assert db.require(Box, box_id="b#1") == box
    updated = db.update(box, set={"size": 4})
    assert (updated.box_id, updated.size, updated.org) == ("b#1", 4, "acme")
    db.put(updated.model_copy(update={"size": 5}))
    with db.transaction() as tx:
        tx.update(Box, box_id="b#1", version=3, set={"size": 6})
    assert [(each.box_id, each.size) for each in db.all(Box.key.query())] == [("b#1", 6)]
    db.modify(Box, lambda found: found.model_copy(update={"size": 7}), box_id="b#1")
    db.delete(Box, box_id="b#1", version=5)
    assert opening.raw(shop) == []


def test_the_key_decides_over_a_foreign_attribute_of_the_same_name(opening: Opening) -> None:
    db = opening(shop).tenant("acme")
    key = {"PK": {"S": "ORG#acme"}, "SK": {"S": "BOX#b1"}}
    opening.plant(shop, {**key, "_type": {"S": "Box"}, "box_id": {"S": "other"}, "version": {"N": "1"}})
    box = db.require(Box, box_id="b1")
    assert box.box_id == "b1"
    db.put(box)
    db.update(Box, box_id="b1", version=2, set={"size": 2})
    (item,) = opening.raw(shop)
    assert (item["SK"], item["box_id"], item["size"]) == (key["SK"], {"S": "other"}, {"N": "2"})


def test_another_tenant_does_not_see_fields_that_are_only_in_the_key(opening: Opening) -> None:
    base = opening(shop)
    base.tenant("acme").create(Box(box_id="b1"))
    assert base.tenant("evil").get(Box, box_id="b1") is None
    assert base.tenant("evil").count(Box.key.query()) == 0
    assert [each.org for each in base.admin().scan(Box, budget=10)] == ["acme"]


def test_a_condition_cannot_name_a_field_that_is_only_in_the_key(opening: Opening) -> None:
    db = opening(shop).tenant("acme")
    for where in (lambda box: box.box_id == "b1", lambda box: exists(box.box_id)):
        with pytest.raises(DeclarationError, match=r"Box\.box_id has stored=False: only the key contains it"):
            db.page(Box.key.query(), where=where)


orders = Table(
    "KeyOrders",
    tag=None,
    key_format=KeyFormat(escape=False),
    indexes=[Index("GSI1"), Index("GSI2", partition="order_id", sort="placed", projection=["price"])],
)


class Line(Entity, table=orders):
    """A product of an order; its customer may be only in the key of an index."""

    key = Key("o#{order_id}", "p#{sku}")
    by_customer = Key("c#{customer}", "{sku}", index="GSI1")
    order_id: Annotated[str, Attr(stored=False)]
    sku: Annotated[str, Attr(stored=False)]
    customer: str
    price: int = 0


class Total(Entity, table=orders):
    """The total of an order, in an index that projects a part of it."""

    key = Key("t#{order_id}", "TOTAL")
    by_time = Key(("order_id",), ("placed",), index="GSI2")
    order_id: str
    placed: str
    price: int = 0
    note: str = ""


def test_a_required_field_is_read_from_the_key_of_an_index(opening: Opening) -> None:
    db = opening(orders)
    stored: Item = {"PK": {"S": "o#1"}, "SK": {"S": "p#a b"}}
    index: Item = {"GSI1PK": {"S": "c#Zoe"}, "GSI1SK": {"S": "a b"}}
    opening.plant(orders, {**stored, **index})
    assert db.require(Line, order_id="1", sku="a b").customer == "Zoe"
    (line,) = db.all(Line.by_customer.query(customer="Zoe"))
    db.update(line, set={"price": 3})
    assert opening.raw(orders) == [{**stored, **index, "price": {"N": "3"}}]
    db.update(Line, order_id="1", sku="a b", set={"customer": "Ana"})
    assert [each.price for each in db.all(Line.by_customer.query(customer="Ana"))] == [3]
    assert db.count(Line.by_customer.query(customer="Zoe")) == 0
    opening.plant(orders, stored)
    with pytest.raises(StoredDataError, match="customer"):
        db.get(Line, order_id="1", sku="a b")


def test_a_field_that_is_not_stored_may_have_the_name_of_an_index_key(opening: Opening) -> None:
    db = opening(orders)
    item: Item = {"PK": {"S": "o#1"}, "SK": {"S": "p#a"}, "customer": {"S": "Zoe"}, "price": {"N": "0"}}
    # Written by a release that puts lines into the second index too.
    item |= {"GSI1PK": {"S": "c#Zoe"}, "GSI1SK": {"S": "a"}, "order_id": {"S": "1"}, "placed": {"S": "x"}}
    opening.plant(orders, item)
    db.put(db.require(Line, order_id="1", sku="a"))
    assert opening.raw(orders) == [item]


def test_an_index_without_tags_is_viewed_in_one_request(opening: Opening) -> None:
    class Price(BaseModel):
        order_id: str
        price: int

    db = opening(orders)
    db.put(Total(order_id="1", placed="2035", price=4))
    opening.spy.sent.clear()
    assert list(db.page(Total.by_time.query(order_id="1").select(Price))) == [Price(order_id="1", price=4)]
    assert len(opening.spy.sent) == 1


def test_a_missing_field_that_the_key_does_not_contain_is_an_error(opening: Opening) -> None:
    db = opening(shop).tenant("acme")
    item = {"PK": {"S": "ORG#acme"}, "SK": {"S": "BOX#b1"}, "size": {"S": "x"}}
    opening.plant(shop, item)
    with pytest.raises(StoredDataError, match="size"):
        db.get(Box, box_id="b1")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (Key("A#{other}"), "a template of the primary key does not contain its whole value"),
        (Key("A#{name}", format=KeyFormat(case="lower")), "folds its case"),
    ],
)
def test_a_field_that_is_not_stored_must_be_in_the_key(key: Key, message: str) -> None:
    table = Table("Bad", sort=None)
    with pytest.raises(DeclarationError, match=message):
        type(
            "Bad",
            (Entity,),
            {
                "__module__": __name__,
                "__annotations__": {"name": Annotated[str, Attr(stored=False)], "other": str},
                "key": key,
            },
            table=table,
        )


def test_attr_needs_a_name_or_stored_false() -> None:
    with pytest.raises(DeclarationError, match="has no effect"):
        Attr()
    with pytest.raises(DeclarationError, match="remove the name"):
        Attr("n", stored=False)
