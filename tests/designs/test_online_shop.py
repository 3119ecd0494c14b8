"""Online shop, of aws-samples/amazon-dynamodb-design-patterns, in its revised form (step 16).

Ids are only in the keys, some only in the keys of an index. `EntityType` is the type attribute.

| # | Access pattern | Key | Requests |
|---|---|---|---|
| 1 | Get a customer | table | GetItem |
| 2 | Get a product | table | GetItem |
| 3 | Get a warehouse | table | GetItem |
| 4 | Inventory of a product in all warehouses | table | Query |
| 5 | All details of an order | table | Query |
| 6 | Products of an order | table | Query |
| 7 | Invoice of an order | table | Query |
| 8 | Shipments of an order | table | Query |
| 9 | Orders of a product in a range of dates | GSI1 | Query |
| 10 | Get an invoice | GSI1 | Query |
| 11 | Payments of an invoice | GSI1 | Query |
| 12 | Details of a shipment | GSI1 | Query |
| 13 | Shipments of a warehouse | GSI2 | Query |
| 14 | Inventory of all products in a warehouse | GSI2 | Query |
| 15 | Invoices of a customer in a range of dates | GSI2 | Query with a filter |
| 16 | Products that a customer ordered in a range of dates | GSI2 | Query with a filter |
| 17 | Both in a range of dates, ordered by date | GSI2 | Query |
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

import pytest
from pydantic import BaseModel

from solotable import Attr, Database, Entity, Index, Iso, Key, KeyFormat, Query, Table, pattern
from tests.store.opening import Opening

from .expectations import at, contents, item, requests

shop = Table(
    "OnlineShop",
    tag="EntityType",
    key_format=KeyFormat(escape=False),
    indexes=[
        Index("GSI1", partition="GSI1-PK", sort="GSI1-SK"),
        Index("GSI2", partition="GSI2-PK", sort="GSI2-SK"),
    ],
)
Id = Annotated[str, Attr(stored=False)]
Moment = Annotated[datetime, Attr("Date"), Iso("s", offset="")]


class Customer(Entity, table=shop, tag="customer"):
    """A customer."""

    key = Key("c#{customer_id}", "c#{customer_id}")
    customer_id: Id
    email: Annotated[str, Attr("Email")]
    name: Annotated[str, Attr("Name")]


class Product(Entity, table=shop, tag="product"):
    """A product."""

    key = Key("p#{product_id}", "p#{product_id}")
    product_id: Id
    price: Annotated[str, Attr("Price")]
    detail: Annotated[dict[str, str], Attr("Detail")]


class Warehouse(Entity, table=shop, tag="warehouse"):
    """A warehouse."""

    key = Key("w#{warehouse_id}", "w#{warehouse_id}")
    warehouse_id: Id
    address: Annotated[dict[str, str], Attr("Address")]


class WarehouseItem(Entity, table=shop, tag="warehouseItem"):
    """A product in a warehouse."""

    key = Key("p#{product_id}", "w#{warehouse_id}")
    by_warehouse = Key("w#{warehouse_id}", "p#{product_id}", index="GSI2")
    product_id: Id
    warehouse_id: Id
    quantity: Annotated[str, Attr("Quantity")]

    @pattern
    @classmethod
    def of_product(cls, product_id: str) -> Query[Self]:
        """The inventory of a product in all warehouses."""
        return cls.key.query(product_id=product_id)

    @pattern
    @classmethod
    def of_warehouse(cls, warehouse_id: str) -> Query[Self]:
        """The inventory of all products in a warehouse."""
        return cls.by_warehouse.query(warehouse_id=warehouse_id)


class Order(Entity, table=shop, tag="order"):
    """An order of a customer."""

    key = Key("o#{order_id}", "c#{customer_id}")
    order_id: Id
    customer_id: Id
    date: Moment


class OrderItem(Entity, table=shop, tag="orderItem"):
    """A product of an order; the customer and the date are only in keys of indexes."""

    key = Key("o#{order_id}", "p#{product_id}")
    by_product = Key("p#{product_id}", "{date}", index="GSI1")
    by_customer = Key("c#{customer_id}", "{date}", index="GSI2")
    order_id: Id
    product_id: Id
    customer_id: str
    date: Moment
    price: Annotated[str, Attr("Price")]
    quantity: Annotated[str, Attr("Quantity")]

    @pattern
    @classmethod
    def of_order(cls, order_id: str) -> Query[Self]:
        """The products of an order."""
        return cls.key.query(order_id=order_id)

    @pattern
    @classmethod
    def of_product(cls, product_id: str, first: datetime, last: datetime) -> Query[Self]:
        """The orders of a product in a range of dates."""
        return cls.by_product.query(product_id=product_id).between(date=(first, last))

    @pattern
    @classmethod
    def of_customer(cls, customer_id: str, first: datetime, last: datetime) -> Query[Self]:
        """What a customer ordered in a range of dates."""
        return cls.by_customer.query(customer_id=customer_id).between(date=(first, last))


class Payment(BaseModel):
    """A payment of an invoice."""

    type: Annotated[str, Attr("Type")]
    amount: Annotated[int, Attr("Amount")]


class InvoiceDetail(BaseModel):
    """The details of an invoice."""

    payments: Annotated[list[Payment], Attr("Payments")]


class Invoice(Entity, table=shop, tag="invoice"):
    """The invoice of an order; the customer is only in a key of an index."""

    key = Key("o#{order_id}", "i#{invoice_id}")
    by_id = Key("i#{invoice_id}", "i#{invoice_id}", index="GSI1")
    by_customer = Key("c#{customer_id}", "{date}", index="GSI2")
    order_id: Id
    invoice_id: Id
    customer_id: str
    amount: Annotated[str, Attr("Amount")]
    date: Moment
    detail: Annotated[InvoiceDetail, Attr("Detail")]

    @pattern
    @classmethod
    def of_order(cls, order_id: str) -> Query[Self]:
        """The invoice of an order."""
        return cls.key.query(order_id=order_id)

    @pattern
    @classmethod
    def with_id(cls, invoice_id: str) -> Query[Self]:
        """An invoice and its payments."""
        return cls.by_id.query(invoice_id=invoice_id)

    @pattern
    @classmethod
    def of_customer(cls, customer_id: str, first: datetime, last: datetime) -> Query[Self]:
        """The invoices of a customer in a range of dates."""
        return cls.by_customer.query(customer_id=customer_id).between(date=(first, last))

    @pattern
    @classmethod
    def with_products(cls, customer_id: str, first: datetime, last: datetime) -> Query[Invoice | OrderItem]:
        """The invoices and ordered products of a customer in a range of dates, by date."""
        both = cls.by_customer.query(customer_id=customer_id) | OrderItem.by_customer.query(
            customer_id=customer_id
        )
        return both.between(date=(first, last))


class Shipment(Entity, table=shop, tag="shipment"):
    """A shipment of an order; the warehouse is only in a key of an index."""

    key = Key("o#{order_id}", "sh#{shipment_id}")
    by_id = Key("sh#{shipment_id}", "sh#{shipment_id}", index="GSI1")
    by_warehouse = Key("w#{warehouse_id}", "sh#{shipment_id}", index="GSI2")
    order_id: Id
    shipment_id: Id
    warehouse_id: str
    address: Annotated[dict[str, str], Attr("Address")]
    type: Annotated[str, Attr("Type")]
    date: Moment

    @pattern
    @classmethod
    def of_order(cls, order_id: str) -> Query[Self]:
        """The shipments of an order."""
        return cls.key.query(order_id=order_id)

    @pattern
    @classmethod
    def of_warehouse(cls, warehouse_id: str) -> Query[Self]:
        """The shipments of a warehouse."""
        return cls.by_warehouse.query(warehouse_id=warehouse_id)


class ShipmentItem(Entity, table=shop, tag="shipmentItem"):
    """A product of a shipment; both are only in a key of an index."""

    key = Key("o#{order_id}", "shp#{shipment_item_id}")
    by_shipment = Key("sh#{shipment_id}", "p#{product_id}", index="GSI1")
    order_id: Id
    shipment_item_id: Id
    shipment_id: str
    product_id: str
    quantity: Annotated[str, Attr("Quantity")]


def _item(kind: str, partition: str, sort: str, *index_keys: str | None, **more: Any) -> dict[str, Any]:
    names = ("GSI1-PK", "GSI1-SK", "GSI2-PK", "GSI2-SK")
    keys = {name: value for name, value in zip(names, index_keys, strict=False) if value is not None}
    return item(PK=partition, SK=sort, EntityType=kind, **keys, **more)


_DAY = "2020-06-21T"
_PAYMENTS = {"Payments": [{"Type": "GiftCard", "Amount": 100}, {"Type": "MasterCard", "Amount": 300}]}
_ADDRESS = {"Country": "Sweden", "City": "Goteborg"}
_O = "o#12345"
#: The published items, without some details.
PUBLISHED = [
    _item("customer", "c#12345", "c#12345", Email="samaneh@example.com", Name="Samaneh"),
    _item("customer", "c#23456", "c#23456", Email="kathleen@example.com", Name="Kathleen"),
    _item("product", "p#12345", "p#12345", Price="100", Detail={"Name": "Options Open"}),
    _item("product", "p#99887", "p#99887", Price="40", Detail={"Name": "The Book"}),
    _item("warehouse", "w#12345", "w#12345", Address=_ADDRESS),
    _item("warehouse", "w#12376", "w#12376", Address=_ADDRESS),
    _item("warehouseItem", "p#12345", "w#12345", None, None, "w#12345", "p#12345", Quantity="50"),
    _item("warehouseItem", "p#99887", "w#12345", None, None, "w#12345", "p#99887", Quantity="4"),
    _item("warehouseItem", "p#99887", "w#12376", Quantity="4"),
    _item("order", _O, "c#12345", Date=f"{_DAY}19:10:00"),
    _item(
        "orderItem",
        _O,
        "p#12345",
        "p#12345",
        f"{_DAY}19:18:00",
        "c#12345",
        f"{_DAY}19:18:00",
        Price="100",
        Quantity="2",
    ),
    _item(
        "orderItem",
        _O,
        "p#99887",
        "p#99887",
        f"{_DAY}19:20:00",
        "c#12345",
        f"{_DAY}19:20:00",
        Price="40",
        Quantity="5",
    ),
    _item(
        "invoice",
        _O,
        "i#55443",
        "i#55443",
        "i#55443",
        "c#12345",
        f"{_DAY}19:19:00",
        Detail=_PAYMENTS,
        Amount="400",
        Date=f"{_DAY}19:19:00",
    ),
    *(
        _item(
            "shipment",
            _O,
            shipment,
            shipment,
            shipment,
            warehouse,
            shipment,
            Address=_ADDRESS,
            Type="Express",
            Date=f"2020-06-22T{hour}:20:00",
        )
        for shipment, warehouse, hour in (("sh#88899", "w#12376", "08"), ("sh#98765", "w#12345", "10"))
    ),
    _item("shipmentItem", _O, "shp#55555", "sh#98765", "p#12345", Quantity="2"),
    _item("shipmentItem", _O, "shp#12345", "sh#98765", "p#99887", Quantity="3"),
    _item("shipmentItem", _O, "shp#54321", "sh#88899", "p#99887", Quantity="2"),
]


@pytest.fixture
def db(opening: Opening) -> Database:
    """The published items, and an order and an invoice of the next month and of another customer."""
    store = opening(shop)
    for each in PUBLISHED:
        opening.plant(shop, each)
    for order_id, customer_id in (("2", "12345"), ("3", "23456")):
        common: dict[str, Any] = {
            "order_id": order_id,
            "customer_id": customer_id,
            "date": at("2020-07-01T00:00:00"),
        }
        store.put(OrderItem(product_id="12345", price="1", quantity="1", **common))
        store.put(Invoice(invoice_id=order_id, amount="1", detail=InvoiceDetail(payments=[]), **common))
    return store


JUNE = (at("2020-06-01"), at("2020-06-30T23:59:59"))


def test_shop_01_a_customer(db: Database, opening: Opening) -> None:
    with requests(opening, "GetItem"):
        assert db.require(Customer, customer_id="12345").name == "Samaneh"
    assert db.get(Customer, customer_id="1234") is None


def test_shop_02_a_product(db: Database, opening: Opening) -> None:
    with requests(opening, "GetItem"):
        assert db.require(Product, product_id="99887").detail == {"Name": "The Book"}
    assert db.get(Product, product_id="9988") is None


def test_shop_03_a_warehouse(db: Database, opening: Opening) -> None:
    with requests(opening, "GetItem"):
        assert db.require(Warehouse, warehouse_id="12345").address == _ADDRESS


def test_shop_04_inventory_of_a_product_in_all_warehouses(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(WarehouseItem.of_product("99887"))
    assert [(each.warehouse_id, each.quantity) for each in found] == [("12345", "4"), ("12376", "4")]


def test_shop_05_all_details_of_an_order(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        order, products, invoices, shipments, shipped = db.collection(
            Order, OrderItem, Invoice, Shipment, ShipmentItem, order_id="12345"
        )
    assert order is not None
    assert (order.customer_id, order.date) == ("12345", at(f"{_DAY}19:10:00"))
    assert [each.product_id for each in products] == ["12345", "99887"]
    assert [each.invoice_id for each in invoices] == ["55443"]
    assert [each.shipment_id for each in shipments] == ["88899", "98765"]
    assert [(each.shipment_id, each.product_id) for each in shipped] == [
        ("98765", "99887"),
        ("88899", "99887"),
        ("98765", "12345"),
    ]


def test_shop_06_products_of_an_order(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(OrderItem.of_order("12345"))
    assert [(each.product_id, each.customer_id, each.quantity) for each in found] == [
        ("12345", "12345", "2"),
        ("99887", "12345", "5"),
    ]


def test_shop_07_invoice_of_an_order(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        (invoice,) = db.page(Invoice.of_order("12345"))
    assert (invoice.invoice_id, invoice.amount) == ("55443", "400")


def test_shop_08_shipments_of_an_order(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Shipment.of_order("12345"))
    assert [(each.shipment_id, each.warehouse_id) for each in found] == [
        ("88899", "12376"),
        ("98765", "12345"),
    ]
    assert found.scanned == 2  # "shp#..." is beside the range


def test_shop_09_orders_of_a_product_in_a_range_of_dates(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(OrderItem.of_product("12345", *JUNE))
    assert [(each.order_id, each.date) for each in found] == [("12345", at(f"{_DAY}19:18:00"))]
    assert db.count(OrderItem.of_product("12345", JUNE[0], at("2020-07-01"))) == 3


def test_shop_10_an_invoice(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        invoice = db.first(Invoice.with_id("55443"))
    assert invoice is not None
    assert (invoice.order_id, invoice.customer_id) == ("12345", "12345")
    assert db.first(Invoice.with_id("5544")) is None


def test_shop_11_payments_of_an_invoice(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        invoice = db.first(Invoice.with_id("55443"))
    assert invoice is not None
    assert [(each.type, each.amount) for each in invoice.detail.payments] == [
        ("GiftCard", 100),
        ("MasterCard", 300),
    ]


def test_shop_12_details_of_a_shipment(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        shipment, items = db.collection(Shipment.by_id, ShipmentItem.by_shipment, shipment_id="98765")
    assert shipment is not None
    assert shipment.date == at("2020-06-22T10:20:00")
    assert [(each.product_id, each.quantity) for each in items] == [("12345", "2"), ("99887", "3")]


def test_shop_13_shipments_of_a_warehouse(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Shipment.of_warehouse("12345"))
    assert [each.shipment_id for each in found] == ["98765"]


def test_shop_14_inventory_of_a_warehouse(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(WarehouseItem.of_warehouse("12345"))
    assert [(each.product_id, each.quantity) for each in found] == [("12345", "50"), ("99887", "4")]


def test_shop_15_invoices_of_a_customer_in_a_range_of_dates(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Invoice.of_customer("12345", *JUNE))
    assert [each.invoice_id for each in found] == ["55443"]


def test_shop_16_products_of_a_customer_in_a_range_of_dates(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(OrderItem.of_customer("12345", *JUNE))
    assert [each.product_id for each in found] == ["12345", "99887"]


def test_shop_17_activity_of_a_customer_by_date(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Invoice.with_products("12345", *JUNE))
    assert [type(each) for each in found] == [OrderItem, Invoice, OrderItem]
    assert [each.date for each in found] == [at(f"{_DAY}19:{minute}:00") for minute in (18, 19, 20)]
    newest = db.first(Invoice.with_products("12345", *JUNE).descending())
    assert isinstance(newest, OrderItem)


def test_shop_keeps_the_published_items(opening: Opening) -> None:
    db = opening(shop)
    for each in PUBLISHED:
        opening.plant(shop, each)
    before = contents(opening, shop)
    for entity in (Customer, Product, Warehouse, Order):
        for found in list(db.admin().scan(entity, budget=100)):
            db.put(found)
    assert contents(opening, shop) == before
    # Fields that only the key of an index has are stored on their own from the first write on.
    for shipment in list(db.all(Shipment.of_order("12345"))):
        db.put(shipment)
        db.update(shipment, set={"type": "Post"})
    assert [each.shipment_id for each in db.all(Shipment.of_warehouse("12376"))] == ["88899"]
