"""A table of DynamoDB OneTable: read and written by solotable, then by OneTable again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from solotable import Attr, Created, Entity, Index, Key, Table, Updated
from tests.serving import Served

from .foreign import ForeignProgram

accounts = Table(
    "Accounts",
    partition="pk",
    sort="sk",
    adopt="onetable",
    indexes=[Index("gs1", partition="gs1pk", sort="gs1sk")],
)


class Stamped(Entity):
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None


class Account(Stamped, table=accounts):
    key = Key("account#{id}", "account#")

    id: str
    name: str
    balance: Decimal = Decimal(0)


class User(Stamped, table=accounts):
    key = Key("account#{account_id}", "user#{id}")
    by_email = Key("user#", "user#{email}", index="gs1")

    account_id: Annotated[str, Attr("accountId")]
    id: str
    email: str
    age: int | None = None
    admin: bool = False
    tags: set[str] = Field(default_factory=set)
    born: datetime | None = None
    address: dict[str, str] | None = None
    # OneTable's `nickname` is not declared: it survives as an unknown attribute.


class Invoice(Stamped, table=accounts):
    key = Key("account#{account_id}", "invoice#{number:06d}")
    by_status = Key("invoice#{status}", "invoice#{account_id}#{number:06d}", index="gs1")

    account_id: Annotated[str, Attr("accountId")]
    number: int
    status: Literal["open", "paid"] = "open"
    total: Decimal


def test_items_of_onetable_are_read_and_written_in_both_directions(
    server: Served, foreign: Callable[[str], ForeignProgram]
) -> None:
    program = foreign("onetable")
    program.run("write")
    with accounts.open(server.url) as db:
        zoe = db.require(User, account_id="A1", id="zoe")
        assert (zoe.email, zoe.age, zoe.tags) == ("Zoe@Example.org", 35, {"a", "b"})
        assert zoe.born == datetime(1990, 5, 4, 3, 2, 1, 250_000, tzinfo=UTC)
        assert zoe.created is not None
        assert db.require(Account, id="A1").balance == Decimal("12.5")
        users = db.all(User.key.query(account_id="A1"))
        assert [user.id for user in users] == ["max", "zoe"]
        invoices = db.all(Invoice.key.query(account_id="A1").since(number=10))
        assert [invoice.number for invoice in invoices] == [12]
        everything = (
            Account.key.query(id="A1") | Invoice.key.query(account_id="A1") | User.key.query(account_id="A1")
        )
        types = [type(each).__name__ for each in db.page(everything, limit=10)]
        assert types == ["Account", "Invoice", "Invoice", "User", "User"]
        (paid,) = db.all(Invoice.by_status.query(status="paid"))
        assert paid.total == 10

        db.put(zoe)
        db.update(User, account_id="A1", id="max", set={"email": "maximilian@example.org"})
        db.update(Invoice, account_id="A1", number=7, set={"status": "paid"})
        db.create(User(account_id="A1", id="ann", email="ann@example.org"))
        db.create(Invoice(account_id="A1", number=100, total=Decimal("5.25")))
    after = {item["pk"]["S"] + item["sk"]["S"]: item for item in program.run("verify")}
    assert after["account#A1user#max"]["nickname"] == {"S": "M"}
    assert after["account#A1user#ann"]["gs1sk"] == {"S": "user#annie@example.org"}
    with accounts.open(server.url) as db:
        (ann,) = db.all(User.by_email.query().starts_with(email="annie"))
        assert ann.unknown_attributes["nickname"] == {"S": "Annie"}
        paid_numbers = [each.number for each in db.all(Invoice.by_status.query(status="paid"))]
        assert paid_numbers == [7, 12, 100]
        assert db.require(Account, id="A1").balance == Decimal("13.5")
