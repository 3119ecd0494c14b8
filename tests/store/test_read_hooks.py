"""Hooks after reads: for which verbs they run, what they may change, and what has none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel, PrivateAttr

from solotable import Database, Entity, Index, Key, Table, flow, hook
from solotable.errors import DataError, DeclarationError

from .opening import Opening

shop = Table("ReadShop", indexes=[Index("GSI1", projection="KEYS_ONLY")])
read: list[str] = []


class Order(Entity, table=shop):
    key = Key("USER#{user}", "ORDER#{order_id}")
    by_state = Key("STATE#{state}", "ORDER#{order_id}", index="GSI1")
    user: str
    order_id: str
    state: str = "open"
    _label: str = PrivateAttr("")

    @hook("after_read")
    def _note(self) -> None:
        read.append(self.order_id)
        self._label = f"{self.user}/{self.order_id}"
        if self.order_id == "secret":
            raise PermissionError("not yours")


class Customer(Entity, table=shop):
    key = Key("USER#{user}", "CUSTOMER")
    user: str
    name: str = ""


class Summary(BaseModel):
    order_id: str


@pytest.fixture(autouse=True)
def _clear() -> Iterator[None]:
    read.clear()
    yield
    read.clear()


@pytest.fixture
def db(opening: Opening) -> Database:
    store = opening(shop)
    for number in range(4):
        store.put(Order(user="u", order_id=str(number), state="open" if number else "paid"))
    store.put(Customer(user="u"))
    assert read == []
    return store


def test_every_verb_that_returns_entities_calls_the_hooks_once_for_each(db: Database) -> None:
    def took() -> list[str]:
        found = list(read)
        read.clear()
        return found

    order = db.get(Order, user="u", order_id="1")
    assert order is not None
    assert order._label == "u/1"
    db.require(Order, user="u", order_id="2")
    assert db.get(Order, user="u", order_id="9") is None
    assert took() == ["1", "2"]
    db.get_many(Order, [{"user": "u", "order_id": each} for each in ("3", "9", "1")])
    assert took() == ["3", "1"]
    db.get_many(Order.key(user="u", order_id="3"), Customer.key(user="u"))
    db.transact_get(Order.key(user="u", order_id="2"), Customer.key(user="u"))
    assert took() == ["3", "2"]
    query = Order.key.query(user="u")
    page = db.page(query, limit=2)
    assert [each._label for each in page] == ["u/0", "u/1"]
    back = db.page(query, limit=1, cursor=db.page(query, limit=2, cursor=page.cursor).previous)
    assert [each.order_id for each in back] == ["1"]
    assert took() == ["0", "1", "2", "3", "1"]
    assert len(list(db.all(query))) == 4
    db.first(query.descending())
    assert took() == ["0", "1", "2", "3", "3"]
    assert [each._label for each in db.page(Order.by_state.query(state="paid"))] == ["u/0"], "fetched whole"
    db.page(query | Customer.key.query(user="u"), limit=2)
    assert took() == ["0", "0"], "the customer, which has no hooks, is first"
    db.collection(Customer, Order, user="u")
    list(db.admin().scan(Order, budget=100))
    assert sorted(took()) == ["0", "0", "1", "1", "2", "2", "3", "3"]


def test_rows_that_a_page_drops_or_reads_ahead_have_no_hooks(db: Database) -> None:
    db.page(Order.key.query(user="u"), limit=1, where=lambda order: order.state == "open")
    assert read == ["1"]


def test_what_returns_no_entity_that_was_read_calls_no_hook(db: Database) -> None:
    query = Order.key.query(user="u")
    assert db.count(query) == 4
    assert [row.order_id for row in db.page(query.select(Summary), limit=2)] == ["0", "1"]
    db.update(Order, user="u", order_id="1", set={"state": "paid"})
    db.modify(Order, lambda order: order.model_copy(update={"state": "sent"}), user="u", order_id="1")
    db.delete(Order, user="u", order_id="0")
    assert db.delete_partition(query).total == 3
    assert read == []


def test_an_error_of_a_hook_reaches_the_caller(db: Database) -> None:
    db.put(Order(user="u", order_id="secret"))
    with pytest.raises(PermissionError, match="not yours"):
        db.get(Order, user="u", order_id="secret")
    with pytest.raises(PermissionError, match="not yours"):
        db.page(Order.key.query(user="u"))


def test_an_entity_with_hooks_after_reads_only_can_be_written_in_a_batch(db: Database) -> None:
    with db.batch() as batch:
        batch.put(Order(user="u", order_id="7"))
    assert db.get(Order, user="u", order_id="7") is not None


def test_a_hook_may_return_another_entity_of_its_class_and_nothing_else(opening: Opening) -> None:
    table = Table("Masks")

    class Secret(Entity, table=table):
        key = Key("SECRET#{name}", "SECRET")
        name: str
        text: str = ""

        @hook("after_read")
        def _mask(self) -> Any:
            return 7 if self.name == "wrong" else self.model_copy(update={"text": "***"})

    db = opening(table)
    for name in ("a", "wrong"):
        db.put(Secret(name=name, text="x"))
    assert db.require(Secret, name="a").text == "***"
    assert db.page(Secret.key.query(name="a")).items[0].text == "***"
    with pytest.raises(
        DataError, match=r"Secret\._mask: a hook after a read returns a Secret or None, got int"
    ):
        db.get(Secret, name="wrong")


def test_reads_of_a_base_class_call_the_hooks_of_each_class(opening: Opening) -> None:
    table = Table("Parties")

    class Party(Entity, table=table, abstract=True):
        key = Key("PARTIES", "PARTY#{name}")
        name: str

    class Person(Party):
        @hook("after_read")
        def _note(self) -> None:
            read.append(self.name)

    class Company(Party):
        vat: str = ""

    db = opening(table)
    db.put(Person(name="ana"))
    db.put(Company(name="acme"))
    assert len(db.page(Party.key.query())) == 2
    assert db.get(Party, name="ana") is not None
    assert db.get(Party, name="acme") is not None
    assert read == ["ana", "ana"]


@pytest.mark.in_process
def test_flows_call_hooks_after_reads(opening: Opening) -> None:
    beside = opening.beside(shop)
    scope = flow.scope_of(beside)
    beside.put(Order(user="f", order_id="1"))
    flow.run(flow.get(scope, Order, user="f", order_id="1"), beside)
    flow.run(flow.query(scope, Order.key.query(user="f")), beside)
    flow.run(flow.page(scope, Order.key.query(user="f")), beside)
    assert read == ["1", "1", "1"]


@pytest.mark.in_process
def test_an_async_hook_after_reads_needs_an_async_store(opening: Opening) -> None:
    table = Table("Mails")

    class Mail(Entity, table=table):
        key = Key("MAIL#{mail_id}", "MAIL")
        mail_id: str

        @hook("after_read")
        async def _note(self) -> None:
            await asyncio.sleep(0)
            read.append(self.mail_id)

    with table.open("sqlite://") as db:
        db.put(Mail(mail_id="a"))
        reads: list[Callable[[], object]] = [
            lambda: db.get(Mail, mail_id="missing"),
            lambda: db.get_many(Mail, []),
            lambda: db.transact_get(Mail.key(mail_id="a")),
            lambda: db.page(Mail.key.query(mail_id="missing")),
            lambda: list(db.all(Mail.key.query(mail_id="missing"))),
            lambda: list(db.admin().scan(Mail, budget=10)),
        ]
        for call in reads:
            with pytest.raises(DeclarationError, match=r"Mail\._note is an async hook"):
                call()
    assert read == []

    async def main() -> None:
        async with table.open_async("sqlite://") as opened:
            await opened.put(Mail(mail_id="a"))
            await opened.get(Mail, mail_id="a")
            await opened.page(Mail.key.query(mail_id="a"))
            assert [each.mail_id async for each in opened.all(Mail.key.query(mail_id="a"))] == ["a"]

    asyncio.run(main())
    assert read == ["a", "a", "a"]
