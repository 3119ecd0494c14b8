"""A small shop on PynamoDB: orders with an index by customer, versions, conditions and transactions."""

from __future__ import annotations

from pynamodb.attributes import (
    JSONAttribute,
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)
from pynamodb.connection import Connection
from pynamodb.exceptions import DoesNotExist, PutError, TransactWriteError, UpdateError
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex, KeysOnlyProjection, LocalSecondaryIndex
from pynamodb.models import Model
from pynamodb.pagination import ResultIterator
from pynamodb.transactions import TransactGet, TransactWrite


class OrdersByCustomer(GlobalSecondaryIndex["Order"]):  # type: ignore[no-untyped-call]  # PynamoDB's
    class Meta:
        index_name = "by_customer"
        projection = AllProjection()

    customer = UnicodeAttribute(hash_key=True)
    placed_on = UnicodeAttribute(range_key=True)


class OrdersByTotal(LocalSecondaryIndex["Order"]):  # type: ignore[no-untyped-call]  # PynamoDB's
    class Meta:
        index_name = "by_total"
        projection = KeysOnlyProjection()

    shop = UnicodeAttribute(hash_key=True)
    total = NumberAttribute(range_key=True)


class Order(Model):
    class Meta:
        table_name = "orders"
        region = "eu-west-1"
        billing_mode = "PAY_PER_REQUEST"

    shop = UnicodeAttribute(hash_key=True)
    number = NumberAttribute(range_key=True)
    customer = UnicodeAttribute()
    placed_on = UnicodeAttribute()
    placed_at = UTCDateTimeAttribute(null=True)
    total = NumberAttribute(default=0)
    status = UnicodeAttribute(default="open")
    labels = UnicodeSetAttribute(null=True)
    lines: ListAttribute[str] = ListAttribute(default=list)
    extra = JSONAttribute(null=True)
    version = VersionAttribute()
    by_customer = OrdersByCustomer()
    by_total = OrdersByTotal()


class Account(Model):
    class Meta:
        table_name = "accounts"
        region = "eu-west-1"
        read_capacity_units = 5
        write_capacity_units = 5

    name = UnicodeAttribute(hash_key=True)
    balance = NumberAttribute(default=0)


def main() -> list[str]:
    """Play a day in the shop; return what happened."""
    log: list[str] = []
    for model in (Order, Account):
        if not model.exists():
            model.create_table(wait=True)
    write_orders(log)
    compete_for_an_order(log)
    read_orders(log)
    move_money(log)
    Order.delete_table()
    log.append(f"orders table exists: {Order.exists()}")
    return log


def write_orders(log: list[str]) -> None:
    with Order.batch_write() as batch:
        for number in range(1, 31):
            batch.save(
                Order(
                    "north",
                    number,
                    customer="ana" if number % 3 else "ben",
                    placed_on=f"2026-01-{number:02}",
                    total=number * 10,
                    labels={"new", f"n{number % 2}"},
                    extra={"gift": number % 2 == 0},
                )
            )
    log.append(f"{Order.count('north')} orders")
    try:
        Order("north", 1, customer="eve", placed_on="2026-02-01").save(Order.shop.does_not_exist())
    except PutError as refused:
        log.append(f"second order 1: {refused.cause_response_code}")


def compete_for_an_order(log: list[str]) -> None:
    mine, yours = Order.get("north", 7), Order.get("north", 7)
    mine.update(actions=[Order.status.set("packed"), Order.lines.set(Order.lines.append(["pen"]))])
    log.append(f"order 7 is {mine.status}, version {mine.version}, lines {list(mine.lines)}")
    try:
        yours.update(actions=[Order.status.set("lost")])
    except UpdateError as refused:
        log.append(f"stale update: {refused.cause_response_code}")
    mine.update(
        actions=[Order.total.add(5), Order.labels.delete({"new"})],
        condition=(Order.status == "packed") & Order.labels.contains("new"),
    )
    log.append(f"order 7 costs {mine.total:g}, labels {sorted(mine.labels)}")
    try:
        Order.get("north", 99)
    except DoesNotExist:
        log.append("order 99 does not exist")


def read_orders(log: list[str]) -> None:
    newest: ResultIterator[Order] = Order.by_customer.query(
        "ben", Order.placed_on.between("2026-01-10", "2026-01-31"), scan_index_forward=False, limit=3
    )
    log.append(f"ben's newest: {[int(order.number) for order in newest]}")
    dear = Order.by_total.query("north", Order.total >= 280)
    log.append(f"dear orders: {[int(order.number) for order in dear]}")
    pages = Order.query("north", page_size=7, filter_condition=Order.labels.contains("n0"))
    log.append(f"even orders over several pages: {sum(1 for _ in pages)}")
    found = Order.batch_get([("north", number) for number in (1, 2, 99)])
    log.append(f"batch got: {sorted(int(order.number) for order in found)}")
    gifts = Order.scan(Order.status == "packed", attributes_to_get=["number", "status"])
    log.append(f"packed: {[(int(order.number), order.status) for order in gifts]}")


def move_money(log: list[str]) -> None:
    Account("ana", balance=100).save()
    Account("shop", balance=0).save()
    connection = Connection(region="eu-west-1")
    order = Order.get("north", 7)

    def pay(amount: int) -> None:
        with TransactWrite(connection=connection, client_request_token=f"pay-{amount}") as transaction:
            transaction.update(
                Account("ana"), actions=[Account.balance.add(-amount)], condition=Account.balance >= amount
            )
            transaction.update(Account("shop"), actions=[Account.balance.add(amount)])
            transaction.condition_check(Order, "north", 7, condition=Order.status == order.status)

    pay(75)
    pay(75)  # the same token: done once
    try:
        pay(80)
    except TransactWriteError as refused:
        reasons = [reason.code if reason else None for reason in refused.cancellation_reasons]
        log.append(f"payment of 80: {reasons}")
    with TransactGet(connection=connection) as transaction:
        ana = transaction.get(Account, "ana")
        shop = transaction.get(Account, "shop")
    log.append(f"balances: ana {ana.get().balance:g}, shop {shop.get().balance:g}")


if __name__ == "__main__":
    print("\n".join(main()))  # noqa: T201  # a program prints
