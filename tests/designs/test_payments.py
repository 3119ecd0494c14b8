"""Recurring payments, of aws-samples/aws-dynamodb-examples: subscriptions and receipts of accounts.

Items have no type attribute; the two indexes have native keys and project some attributes.

| # | Access pattern | Key | Requests |
|---|---|---|---|
| 1 | All subscriptions of an account | table | Query |
| 2 | All receipts of an account | table | Query |
| 3 | Get a subscription | table | GetItem |
| 4 | Create a subscription | table | PutItem |
| 5 | Create a receipt | table | PutItem |
| 6 | Update a subscription | table | UpdateItem |
| 7 | Reminders that are due on a day | GSI-1 | Query |
| 8 | Payments that are due on a day | GSI-2 | Query |
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Self

import pytest
from pydantic import BaseModel

from solotable import TTL, Attr, Database, Entity, Index, Iso, Key, KeyFormat, Query, Table, pattern
from solotable.errors import AlreadyExists
from tests.store.opening import Opening

from .expectations import at, item, requests

payments = Table(
    "ReoccuringPayments",
    tag=None,
    key_format=KeyFormat(escape=False),
    ttl="TTL",
    indexes=[
        Index(
            "GSI-1",
            partition="NextReminderDate",
            sort="LastReminderDate",
            projection=["SKU", "Email", "NextPaymentDate"],
        ),
        Index(
            "GSI-2",
            partition="NextPaymentDate",
            sort="LastPaymentDate",
            projection=["Email", "PaymentDay", "PaymentAmount", "SKU", "PaymentDetails"],
        ),
    ],
)


class Reminder(BaseModel):
    """What a reminder needs; the first index has all of it."""

    account_id: str
    sku: str
    email: str
    next_payment_date: date


class DuePayment(BaseModel):
    """What a payment needs; the second index has all of it."""

    account_id: str
    sku: str
    email: str
    payment_day: str
    payment_amount: str
    payment_details: dict[str, str]


class Subscription(Entity, table=payments):
    """A subscription of an account."""

    key = Key("ACC#{account_id}", "SUB#{subscription_id}#SKU#{sku}")
    by_reminder = Key(("next_reminder_date",), ("last_reminder_date",), index="GSI-1")
    by_payment = Key(("next_payment_date",), ("last_payment_date",), index="GSI-2")
    account_id: Annotated[str, Attr(stored=False)]
    subscription_id: Annotated[str, Attr(stored=False)]
    sku: Annotated[str, Attr("SKU")]
    email: Annotated[str, Attr("Email")]
    payment_day: Annotated[str, Attr("PaymentDay")]
    payment_amount: Annotated[str, Attr("PaymentAmount")]
    payment_details: Annotated[dict[str, str], Attr("PaymentDetails")]
    next_payment_date: Annotated[date, Attr("NextPaymentDate")]
    last_payment_date: Annotated[datetime | None, Attr("LastPaymentDate"), Iso("ms")] = None
    next_reminder_date: Annotated[date, Attr("NextReminderDate")]
    last_reminder_date: Annotated[datetime | None, Attr("LastReminderDate"), Iso("ms")] = None
    created_date: Annotated[datetime, Attr("CreatedDate"), Iso("ms")]

    @pattern
    @classmethod
    def of_account(cls, account_id: str) -> Query[Self]:
        """The subscriptions of an account."""
        return cls.key.query(account_id=account_id)

    @pattern
    @classmethod
    def due_reminders(cls, day: date) -> Query[Reminder]:
        """The reminders of a day."""
        return cls.by_reminder.query(next_reminder_date=day).select(Reminder)

    @pattern
    @classmethod
    def due_payments(cls, day: date) -> Query[DuePayment]:
        """The payments of a day."""
        return cls.by_payment.query(next_payment_date=day).select(DuePayment)


class Receipt(Entity, table=payments):
    """A payment that was processed."""

    key = Key("ACC#{account_id}", "REC#{processed_date}#SKU#{sku}")
    account_id: Annotated[str, Attr(stored=False)]
    processed_date: Annotated[datetime, Attr("ProcessedDate"), Iso("ms")]
    sku: Annotated[str, Attr("SKU")]
    email: Annotated[str, Attr("Email")]
    processed_amount: Annotated[str, Attr("ProcessedAmount")]
    expires: Annotated[datetime | None, Attr("TTL"), TTL()] = None

    @pattern
    @classmethod
    def of_account(cls, account_id: str) -> Query[Self]:
        """The receipts of an account, oldest first."""
        return cls.key.query(account_id=account_id)


#: A published item.
SUBSCRIPTION = item(
    PK="ACC#123",
    SK="SUB#123#SKU#999",
    Email="s@s.com",
    PaymentDay="28",
    PaymentAmount="12.99",
    LastPaymentDate="2023-05-18T14:15:39.247Z",
    NextPaymentDate="2023-06-28",
    LastReminderDate="2023-05-21T14:15:39.247Z",
    NextReminderDate="2023-06-21",
    SKU="999",
    PaymentDetails={"default-card": "1234123412341234", "default-address": "12 Bridge Street"},
    CreatedDate="2023-05-18T09:41:25.856Z",
)


@pytest.fixture
def db(opening: Opening) -> Database:
    """The published subscription, another of the account, one of another account, and two receipts."""
    store = opening(payments)
    opening.plant(payments, SUBSCRIPTION)
    first = store.require(Subscription, account_id="123", subscription_id="123", sku="999")
    later = {"next_payment_date": date(2023, 6, 29), "next_reminder_date": date(2023, 6, 22)}
    store.create(first.model_copy(update={"subscription_id": "124", "sku": "998", **later}))
    store.create(first.model_copy(update={"account_id": "1234", "email": "t@t.com"}))
    for day in ("29", "28"):
        store.create(_receipt(f"2023-05-{day}T14:15:39.247"))
    return store


def _receipt(processed: str) -> Receipt:
    return Receipt(
        account_id="123", processed_date=at(processed), sku="999", email="s@s.com", processed_amount="12.99"
    )


def test_payments_1_subscriptions_of_an_account(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Subscription.of_account("123"))
    assert [each.subscription_id for each in found] == ["123", "124"]
    assert all(type(each) is Subscription for each in found)


def test_payments_2_receipts_of_an_account(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Receipt.of_account("123"))
    assert [each.processed_date.day for each in found] == [28, 29]
    assert db.count(Receipt.of_account("1234")) == 0


def test_payments_3_get_a_subscription(db: Database, opening: Opening) -> None:
    with requests(opening, "GetItem"):
        found = db.require(Subscription, account_id="123", subscription_id="123", sku="999")
    assert found.last_payment_date == at("2023-05-18T14:15:39.247")
    assert db.get(Subscription, account_id="123", subscription_id="123", sku="99") is None
    db.put(found)
    assert SUBSCRIPTION in opening.raw(payments)


def test_payments_4_create_a_subscription(db: Database, opening: Opening) -> None:
    found = db.require(Subscription, account_id="123", subscription_id="123", sku="999")
    with requests(opening, "PutItem"):
        db.create(found.model_copy(update={"subscription_id": "125"}))
    with pytest.raises(AlreadyExists):
        db.create(found)


def test_payments_5_create_a_receipt(db: Database, opening: Opening) -> None:
    with requests(opening, "PutItem"):
        db.create(_receipt("2023-06-28T14:15:39.247"))
    assert "REC#2023-06-28T14:15:39.247Z#SKU#999" in [each["SK"]["S"] for each in opening.raw(payments)]


def test_payments_6_update_a_subscription(db: Database, opening: Opening) -> None:
    with requests(opening, "UpdateItem"):
        db.update(
            Subscription,
            account_id="123",
            subscription_id="123",
            sku="999",
            set={
                "last_reminder_date": at("2023-06-21T08:00:00"),
                "next_reminder_date": date(2023, 7, 21),
            },
        )
    assert [each.account_id for each in db.all(Subscription.due_reminders(date(2023, 6, 21)))] == ["1234"]
    assert [each.account_id for each in db.all(Subscription.due_reminders(date(2023, 7, 21)))] == ["123"]


def test_payments_7_reminders_that_are_due_on_a_day(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Subscription.due_reminders(date(2023, 6, 21)))
    assert sorted((each.account_id, each.email) for each in found) == [
        ("123", "s@s.com"),
        ("1234", "t@t.com"),
    ]
    assert db.count(Subscription.due_reminders(date(2023, 6, 22))) == 1


def test_payments_8_payments_that_are_due_on_a_day(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Subscription.due_payments(date(2023, 6, 28)))
    assert sorted((each.account_id, each.payment_amount) for each in found) == [
        ("123", "12.99"),
        ("1234", "12.99"),
    ]
    assert db.count(Subscription.due_payments(date(2023, 6, 27))) == 0
