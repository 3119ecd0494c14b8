"""Items as ElectroDB, OneTable, DynamoDB-Toolbox and PynamoDB store them, read and written by presets.

`tests/adoption` has the libraries themselves.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import pytest

from solotable import Attr, Created, Entity, Index, Key, Table, Updated
from solotable._values import Item
from solotable.errors import DataError, UnknownEntity

from .opening import Opening

AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)

library = Table(
    "Library",
    partition="pk",
    sort="sk",
    adopt="electrodb",
    indexes=[Index("gsi1", partition="gsi1pk", sort="gsi1sk")],
)
accounts = Table("Accounts", partition="pk", sort="sk", adopt="onetable")
shop = Table("Shop", adopt="toolbox")
staff = Table("Staff", partition="pk", sort="sk", adopt="pynamodb")


class Book(Entity, table=library, tag="book"):
    key = Key("$library#isbn_{isbn}", "$book_1")
    works = Key("$library#author_{author}", "$works#book_1#title_{title}", index="gsi1")

    isbn: str
    author: str
    title: str


class Invoice(Entity, table=accounts):
    key = Key("account#{account}", "invoice#{number:06d}")

    account: str
    number: int
    due: datetime | None = None
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None


class Customer(Entity, table=shop):
    key = Key("CUSTOMER#{name}", "PROFILE")

    name: Annotated[str, Attr(stored=False)]
    seen: datetime | None = None
    created: Annotated[datetime | None, Created()] = None
    modified: Annotated[datetime | None, Updated()] = None


class Employee(Entity, table=staff):
    key = Key("EMPLOYEE#{email}", "PROFILE")

    email: str
    hired: datetime


BOOK: Item = {
    "pk": {"S": "$library#isbn_978-p"},
    "sk": {"S": "$book_1"},
    "gsi1pk": {"S": "$library#author_jane austen"},
    "gsi1sk": {"S": "$works#book_1#title_persuasion"},
    "isbn": {"S": "978-P"},
    "author": {"S": "Jane Austen"},
    "title": {"S": "Persuasion"},
    "__edb_e__": {"S": "book"},
    "__edb_v__": {"S": "1"},
}
INVOICE: Item = {
    "pk": {"S": "account#A1"},
    "sk": {"S": "invoice#000007"},
    "account": {"S": "A1"},
    "number": {"N": "7"},
    "due": {"N": "1767323045678"},
    "created": {"N": "1767323045678"},
    "updated": {"N": "1767323045678"},
    "_type": {"S": "Invoice"},
}
CUSTOMER: Item = {
    "PK": {"S": "CUSTOMER#zoe"},
    "SK": {"S": "PROFILE"},
    "seen": {"S": "2026-01-02T03:04:05.678Z"},
    "_et": {"S": "Customer"},
    "_ct": {"S": "2026-01-02T03:04:05.678Z"},
    "_md": {"S": "2026-01-02T03:04:05.678Z"},
}
EMPLOYEE: Item = {
    "pk": {"S": "EMPLOYEE#zoe"},
    "sk": {"S": "PROFILE"},
    "email": {"S": "zoe"},
    "hired": {"S": "2026-01-02T03:04:05.678000+0000"},
}


@pytest.mark.parametrize(
    ("table", "entity", "item", "key", "stamped"),
    [
        (library, Book, BOOK, {"isbn": "978-P"}, ()),
        (accounts, Invoice, INVOICE, {"account": "A1", "number": 7}, ("updated",)),
        (shop, Customer, CUSTOMER, {"name": "zoe"}, ("_md",)),
        (staff, Employee, EMPLOYEE, {"email": "zoe"}, ()),
    ],
)
def test_a_put_of_what_was_read_changes_nothing_but_stamps(
    opening: Opening,
    table: Table,
    entity: type[Any],
    item: Item,
    key: dict[str, Any],
    stamped: tuple[str, ...],
) -> None:
    db = opening(table)
    opening.plant(table, {**item, "theirs": {"SS": ["a"]}})
    db.put(db.require(entity, **key))
    (after,) = opening.raw(table)
    expected = {**item, "theirs": {"SS": ["a"]}} | ({"cls": {"S": "Employee"}} if table is staff else {})
    assert after.keys() == expected.keys()
    assert {name: value for name, value in after.items() if name not in stamped} == {
        name: value for name, value in expected.items() if name not in stamped
    }


def test_every_way_to_create_an_item_adds_what_the_library_needs(opening: Opening) -> None:
    db = opening(library)
    db.create(Book(isbn="A", author="Jane", title="T"))
    db.put(Book(isbn="B", author="Jane", title="T"))
    db.upsert(Book, isbn="C", set={"author": "Jane", "title": "T"})
    with db.batch() as batch:
        batch.put(Book(isbn="D", author="Jane", title="T"))
    with db.transaction() as tx:
        tx.put(Book(isbn="E", author="Jane", title="T"))
    items = opening.raw(library)
    assert len(items) == 5
    assert all((item["__edb_e__"], item["__edb_v__"]) == ({"S": "book"}, {"S": "1"}) for item in items)


def test_a_write_keeps_the_model_version_that_is_stored(opening: Opening) -> None:
    db = opening(library)
    opening.plant(library, {**BOOK, "__edb_v__": {"S": "1.2"}})
    db.put(db.require(Book, isbn="978-P"))
    db.upsert(Book, isbn="978-P", set={"author": "Jane", "title": "T"})
    assert opening.only(Book)["__edb_v__"] == {"S": "1.2"}


def test_keys_of_electrodb_have_no_case_and_follow_updates(opening: Opening) -> None:
    db = opening(library)
    opening.plant(library, BOOK)
    db.update(Book, isbn="978-p", set={"title": "Lady Susan"})
    item = opening.only(Book)
    assert (item["isbn"], item["gsi1sk"]) == ({"S": "978-P"}, {"S": "$works#book_1#title_lady susan"})
    assert [book.isbn for book in db.page(Book.works.query(author="JANE AUSTEN"))] == ["978-P"]
    with pytest.raises(DataError, match="#"):
        db.put(Book(isbn="97#8", author="Jane", title="T"))


def test_times_are_stored_as_the_library_stores_them(opening: Opening) -> None:
    db = opening(accounts, shop, staff)
    db.put(Invoice(account="A1", number=7, due=AT))
    db.put(Customer(name="zoe", seen=AT))
    db.put(Employee(email="zoe", hired=AT))
    invoice, customer = opening.only(Invoice), opening.only(Customer)
    assert invoice["due"] == {"N": "1767323045678"}
    assert invoice["created"] == {"N": str(int(opening.clock.seconds * 1000))}
    assert customer["seen"] == {"S": "2026-01-02T03:04:05.678Z"}
    assert (customer["_ct"], customer["_md"]) == ({"S": "2035-01-01T00:00:00.000Z"},) * 2
    assert "name" not in customer
    assert opening.only(Employee)["hired"] == {"S": "2026-01-02T03:04:05.678000+0000"}


def test_a_time_has_the_precision_of_the_library_before_it_is_stored(opening: Opening) -> None:
    db = opening(accounts)
    finer = AT.replace(microsecond=678_901)
    invoice = Invoice(account="A1", number=7, due=finer)
    assert invoice.due == AT
    returned = db.put(invoice)
    assert returned == db.require(Invoice, account="A1", number=7)
    assert db.update(Invoice, account="A1", number=7, set={"due": finer}).due == AT


def test_an_item_without_the_type_of_its_library_is_not_touched(opening: Opening) -> None:
    db = opening(library)
    untyped = {name: value for name, value in BOOK.items() if not name.startswith("__edb")}
    opening.plant(library, untyped)
    with pytest.raises(UnknownEntity):
        db.get(Book, isbn="978-P")
    with pytest.raises(UnknownEntity):
        db.delete(Book, isbn="978-P")
    assert opening.raw(library) == [untyped]


def test_models_of_pynamodb_without_a_discriminator_are_read_and_get_one(opening: Opening) -> None:
    db = opening(staff)
    opening.plant(staff, EMPLOYEE)
    assert db.require(Employee, email="zoe").hired == AT
    db.update(Employee, email="zoe", set={"hired": AT.replace(year=2027)})
    assert db.count(Employee.key.query(email="zoe")) == 1
    db.delete(Employee, email="zoe")
    assert opening.raw(staff) == []
