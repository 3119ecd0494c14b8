"""A table of DynamoDB-Toolbox: read and written by solotable, then by DynamoDB-Toolbox again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from solotable import Attr, Created, Entity, Index, Key, Table, Updated
from tests.serving import Served

from .foreign import ForeignProgram

shop = Table("Shop", adopt="toolbox", indexes=[Index("GSI1")])


class Stamped(Entity):
    created: Annotated[datetime | None, Created()] = None
    modified: Annotated[datetime | None, Updated()] = None


class Customer(Stamped, table=shop):
    key = Key("CUSTOMER#{customer_id}", "PROFILE")

    customer_id: Annotated[str, Attr(stored=False)]
    email: str
    points: int = 0
    vip: bool | None = None
    labels: set[str] = Field(default_factory=set)
    address: dict[str, str] | None = None
    # DynamoDB-Toolbox's `notes` is not declared: it survives as an unknown attribute.


class Order(Stamped, table=shop):
    key = Key("CUSTOMER#{customer_id}", "ORDER#{order_id}")
    by_status = Key("STATUS#{status}", "{placed_at}#{order_id}", index="GSI1")

    customer_id: Annotated[str, Attr("customerId")]
    order_id: Annotated[str, Attr("orderId")]
    status: Literal["open", "sent"] = "open"
    total: Decimal
    placed_at: Annotated[datetime, Attr("placedAt")]


def test_items_of_dynamodb_toolbox_are_read_and_written_in_both_directions(
    server: Served, foreign: Callable[[str], ForeignProgram]
) -> None:
    program = foreign("toolbox")
    program.run("write")
    with shop.open(server.url) as db:
        zoe = db.require(Customer, customer_id="zoe")
        assert (zoe.customer_id, zoe.points, zoe.labels) == ("zoe", 3, {"a", "b"})
        assert zoe.created is not None
        orders = list(db.all(Order.key.query(customer_id="zoe")))
        assert [order.order_id for order in orders] == ["O-1", "O-2"]
        assert orders[0].placed_at == datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
        profile = Customer.key.query(customer_id="zoe")
        mixed = db.page(Order.key.query(customer_id="zoe") | profile, limit=10)
        assert [type(each) for each in mixed] == [Order, Order, Customer]
        (sent,) = db.all(Order.by_status.query(status="sent"))
        assert sent.total == 7

        db.put(zoe)
        db.update(Order, customer_id="zoe", order_id="O-1", set={"status": "sent"})
        db.update(Customer, customer_id="max", add={"points": 5})
        db.create(Customer(customer_id="ann", email="ann@example.org"))
        placed = datetime(2026, 1, 4, tzinfo=UTC)
        db.create(Order(customer_id="ann", order_id="O-3", total=Decimal(99), placed_at=placed))
    after = {item["PK"]["S"] + item["SK"]["S"]: item for item in program.run("verify")}
    assert "customer_id" not in after["CUSTOMER#annPROFILE"]
    assert after["CUSTOMER#annORDER#O-3"]["GSI1PK"] == {"S": "STATUS#sent"}
    with shop.open(server.url) as db:
        assert db.require(Customer, customer_id="ann").points == 2
        found = db.all(Order.by_status.query(status="sent"))
        assert [order.order_id for order in found] == ["O-1", "O-2", "O-3"]
