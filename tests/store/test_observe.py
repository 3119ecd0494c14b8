"""Observers, and the capacity that the calls of a block consume (requirement S4.43)."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Self

import pytest

from solotable import Database, Entity, Index, Key, Query, Table, connect, connect_async, flow, pattern
from solotable._protocol.requests import GetItem, PutItem, Request
from solotable._protocol.requests import Query as DynamoQuery
from solotable.errors import AlreadyExists, DeclarationError, Throttled
from solotable.observe import Consumed, Observation, combine
from solotable.testing import assert_cost

from .opening import Opening

shop = Table("Shop", indexes=[Index("GSI1")])
SECRET_VALUE = "a value that no observer may see"


class Order(Entity, table=shop):
    key = Key("USER#{user}", "ORDER#{order_id}")
    by_state = Key("STATE#{state}", "ORDER#{order_id}", index="GSI1")
    user: str
    order_id: str
    state: str = "open"
    text: str = ""

    @pattern
    @classmethod
    def in_state(cls, state: str) -> Query[Self]:
        """The orders in a state."""
        return cls.by_state.query(state=state)


busy = Table("Busy", indexes=[Index("GSI1", projection="KEYS_ONLY")])


class Reading(Entity, table=busy):
    key = Key("DEVICE#{device}", "AT#{at:03d}")
    by_kind = Key("KIND#{kind}", "AT#{at:03d}", index="GSI1", shards=3)
    device: str
    at: int
    kind: str = "x"


def throttle_once(opening: Opening, kind: type[Request[Any]]) -> None:
    def throttled() -> None:
        raise Throttled("ThrottlingException", "slow down")

    opening.spy.once(kind, throttled)


def test_an_observer_sees_every_request_with_its_names_duration_and_cost(opening: Opening) -> None:
    """S4.43: duration, success and failure per operation."""
    seen: list[Observation] = []
    db = opening(shop, observer=seen.append)
    db.create(Order(user=SECRET_VALUE, order_id="o", text=SECRET_VALUE))
    with pytest.raises(AlreadyExists):
        db.create(Order(user=SECRET_VALUE, order_id="o"))
    db.get(Order, user=SECRET_VALUE, order_id="o")
    db.page(Order.in_state("open"))
    db.update(Order, user=SECRET_VALUE, order_id="o", set={"state": "paid"})
    with db.transaction() as tx:
        tx.delete(Order, user=SECRET_VALUE, order_id="o")
    table = opening.prefix + "Shop"
    found = [(each.operation, each.entity, each.pattern, each.index, each.error, each.items) for each in seen]
    assert found == [
        ("PutItem", "Order", None, None, None, 1),
        ("PutItem", "Order", None, None, "ConditionFailed", 0),
        ("GetItem", "Order", None, None, None, 1),
        ("Query", "Order", "Order.in_state", "GSI1", None, 1),
        ("UpdateItem", "Order", None, None, None, 1),
        ("TransactWriteItems", None, None, None, None, 1),
    ]
    assert all(each.tables == (table,) and each.attempt == 1 and each.seconds > 0 for each in seen)
    put, _, get, query, update, transaction = (each.consumed for each in seen)
    assert (put.rcu, put.wcu) == (0, 2)
    assert put.indexes[f"{table}/GSI1"].wcu == 1
    assert (get.rcu, get.wcu) == (0.5, 0)
    assert (query.rcu, query.tables[table].rcu, query.indexes[f"{table}/GSI1"].rcu) == (0.5, 0.5, 0.5)
    assert update.wcu == 3
    assert transaction.wcu >= 2
    assert SECRET_VALUE not in repr(seen)


def test_a_retry_has_the_number_of_its_attempt(opening: Opening) -> None:
    seen: list[Observation] = []
    db = opening(shop, observer=seen.append)
    throttle_once(opening, GetItem)
    assert db.get(Order, user="u", order_id="o") is None
    assert db.get(Order, user="u", order_id="o") is None
    assert [(each.attempt, each.error, each.items) for each in seen] == [
        (1, "Throttled", 0),
        (2, None, 0),
        (1, None, 0),
    ]


def test_an_observer_that_fails_does_not_fail_the_request(
    opening: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Observation) -> None:
        raise RuntimeError("no disk")

    db = opening(shop, observer=broken)
    with caplog.at_level(logging.ERROR):
        assert db.put(Order(user="u", order_id="o")).order_id == "o"
    assert db.get(Order, user="u", order_id="o") is not None
    assert "The observer of a store raised an error." in caplog.text


async def _async_observer(observation: Observation) -> None: ...


class _AsyncObserver:
    async def __call__(self, observation: Observation) -> None: ...


@pytest.mark.parametrize("wrong", ["x", _async_observer, _AsyncObserver()])
def test_an_observer_that_cannot_be_called_is_rejected_when_the_store_opens(wrong: Any) -> None:
    for accept in (
        lambda: shop.open("sqlite://", observer=wrong),
        lambda: shop.open_async("sqlite://", observer=wrong),
        lambda: combine(wrong),
    ):
        with pytest.raises(
            DeclarationError, match=r"observer= takes a (plain )?function.*, got (str|an async)"
        ):
            accept()


def test_without_an_observer_no_capacity_is_asked_for(opening: Opening) -> None:
    db = opening(shop)
    db.put(Order(user="u", order_id="o"))
    db.get(Order, user="u", order_id="o")
    assert {request.capacity for request in opening.spy.of(PutItem) + opening.spy.of(GetItem)} == {"NONE"}
    with db.consumed():
        db.get(Order, user="u", order_id="o")
    assert opening.spy.of(GetItem)[-1].capacity == "INDEXES"


def test_a_block_sums_what_its_calls_consume(opening: Opening) -> None:
    db = opening(shop)
    db.put(Order(user="u", order_id="o"))
    with db.consumed() as outer:
        db.put(Order(user="u", order_id="p"))
        with db.consumed() as inner:
            db.get(Order, user="u", order_id="o")
            list(db.all(Order.in_state("open")))
        with db.batch() as batch:
            batch.put(Order(user="u", order_id="q"))
    db.get(Order, user="u", order_id="o")
    table = opening.prefix + "Shop"
    assert (inner.rcu, inner.wcu, inner.requests) == (1, 0, 2)
    assert (outer.rcu, outer.wcu, outer.requests) == (1, 4, 4)
    assert (outer.indexes[f"{table}/GSI1"].wcu, outer.tables[table].wcu) == (2, 4)


def test_results_of_several_items_have_what_their_requests_consumed(opening: Opening) -> None:
    db = opening(shop)
    for number in range(4):
        db.put(Order(user="u", order_id=str(number)))
    query = Order.key.query(user="u")
    assert db.page(query).consumed is None, "nothing asks for capacity"
    with db.consumed() as used:
        first = db.page(query, limit=2)
        second = db.page(query, limit=2, cursor=first.cursor)
        [orders] = together = db.collection(Order, user="u", root=False)
        deletion = db.delete_partition(query, dry_run=True)
    assert len(orders) == 4
    assert first.consumed is not None
    assert (first.consumed.rcu, first.consumed.requests, list(first.consumed.tables)) == (
        0.5,
        1,
        [opening.prefix + "Shop"],
    )
    found = [first.consumed, second.consumed, together.consumed, deletion.consumed]
    assert sum(each.rcu for each in found if each) == used.rcu
    assert sum(each.requests for each in found if each) == used.requests == 4
    assert db.page(query) == replace(db.page(query), consumed=used), "what it cost is not the page"


def test_a_page_counts_every_request_that_filled_it(opening: Opening) -> None:
    """A page of shards reads each of them, and rows of an index that projects keys are fetched."""
    db = opening(busy)
    for number in range(8):
        db.put(Reading(device=f"d{number}", at=number))
    with db.consumed() as used:
        page = db.page(Reading.by_kind.query(kind="x"), limit=8)
    assert len(page) == 8
    assert page.consumed == used
    assert used.requests > 2


def test_pages_of_an_observed_store_have_it(opening: Opening) -> None:
    db = opening(shop, observer=lambda seen: None)
    db.put(Order(user="u", order_id="o"))
    page = db.page(Order.in_state("open"))
    assert page.consumed is not None
    assert page.consumed.indexes[f"{opening.prefix}Shop/GSI1"].rcu == 0.5


@pytest.mark.in_process
def test_pages_of_flows_have_it_too(opening: Opening) -> None:
    def both(scope: flow.Scope) -> flow.Flow[list[float | None]]:
        found = []
        for _ in range(2):
            some = yield from flow.page(scope, Order.in_state("open"))
            found.append(None if some.consumed is None else some.consumed.rcu)
        return found

    with connect("sqlite://", shop) as db:
        db.put(Order(user="u", order_id="o"))
        assert flow.run(both(flow.scope_of(db)), db) == [None, None]
        with db.consumed():
            assert flow.run(both(flow.scope_of(db)), db) == [0.5, 0.5]

    async def main() -> list[float | None]:
        async with connect_async("sqlite://", shop) as beside:
            await beside.put(Order(user="u", order_id="o"))
            with beside.consumed():
                return await flow.arun(both(flow.scope_of(beside)), beside)

    assert asyncio.run(main()) == [0.5, 0.5]


def test_an_error_in_the_middle_of_a_page_reaches_its_retry(opening: Opening) -> None:
    db = opening(shop)
    db.put(Order(user="u", order_id="o"))
    throttle_once(opening, DynamoQuery)
    with db.consumed() as used:
        page = db.page(Order.in_state("open"))
    assert len(page) == 1
    assert page.consumed is not None
    assert (page.consumed.rcu, page.consumed.requests, used.requests) == (0.5, 1, 2)


def test_assert_cost_takes_any_store(opening: Opening) -> None:
    db = opening(shop)
    # In async mode, the store that the test's blocking face wraps.
    store: Any = getattr(db, "_inner", db)
    with assert_cost(store, rcu=0.5):
        db.get(Order, user="u", order_id="o")
    with pytest.raises(AssertionError, match=r"The block cost 2 WCU, not 1"), assert_cost(store, wcu=1):
        db.put(Order(user="u", order_id="o"))


@pytest.mark.in_process
def test_a_block_counts_its_own_thread_and_its_own_store(opening: Opening) -> None:
    with connect("sqlite://", shop) as db, connect("sqlite://", shop) as other:
        with db.consumed() as used, ThreadPoolExecutor(1) as pool:
            pool.submit(db.get, Order, user="u", order_id="o").result()
            other.get(Order, user="u", order_id="o")
            assert used == Consumed()
            db.get(Order, user="u", order_id="o")
        assert used.rcu == 0.5


@pytest.mark.in_process
def test_a_block_counts_the_tasks_that_it_starts_and_no_others(opening: Opening) -> None:
    async def main() -> tuple[Consumed, Consumed]:
        db = connect_async("sqlite://", shop)

        async def read(times: int) -> Consumed:
            with db.consumed() as used:
                await asyncio.gather(*(db.get(Order, user="u", order_id="o") for _ in range(times)))
            return used

        try:
            return await asyncio.gather(read(2), read(3))
        finally:
            await db.close()

    first, second = asyncio.run(main())
    assert (first.rcu, second.rcu) == (1, 1.5)


@pytest.mark.in_process
def test_connect_and_open_take_an_observer(opening: Opening) -> None:
    seen: list[Observation] = []
    db: Database = shop.open("sqlite://", observer=seen.append)
    db.put(Order(user="u", order_id="o"))
    db.history  # noqa: B018 - handles exist on an observed store
    with db.lease("job"):
        pass
    db.close()
    assert {each.operation for each in seen} >= {"PutItem"}
    assert len(seen) > 1, "a lease sends requests too"

    async def main() -> None:
        opened = shop.open_async("sqlite://", observer=seen.append)
        await opened.get(Order, user="u", order_id="o")
        await opened.close()

    asyncio.run(main())
    assert (seen[-1].operation, seen[-1].entity) == ("GetItem", "Order")
