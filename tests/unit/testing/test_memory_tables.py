"""A fresh store costs a fraction of opening one, and shares nothing with the others."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import thread_time
from typing import Any

import pytest

from solotable import connect
from solotable.testing.memory_tables import DatabaseTemplates
from solotable.testing.store_fixture import StoreFixture

from .shop import Order, Tally, shop, stock


@pytest.fixture
def templates() -> Iterator[DatabaseTemplates]:
    source = DatabaseTemplates()
    yield source
    source.close()


def _fresh(templates: DatabaseTemplates) -> float:
    began = thread_time()
    stage = StoreFixture(templates)
    stage.database([shop, stock])
    stage.close()
    return thread_time() - began


def _opened() -> float:
    began = thread_time()
    connect("sqlite://", shop, stock).close()
    return thread_time() - began


def test_a_fresh_store_takes_less_than_half_of_opening_one(templates: DatabaseTemplates) -> None:
    _fresh(templates)
    _opened()
    # CPU time, and in turns: a busy machine slows both.
    pairs = [(_fresh(templates), _opened()) for _ in range(100)]
    fresh, opened = (sorted(times) for times in zip(*pairs, strict=True))
    assert median(fresh) < median(opened) / 2


def test_fresh_stores_share_nothing(templates: DatabaseTemplates) -> None:
    def damage(engine: Any) -> None:
        engine.call(
            "UpdateTimeToLive",
            {"TableName": "Shop", "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": False}},
        )
        engine.call(
            "UpdateTable",
            {
                "TableName": "Stock",
                "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            },
        )
        engine.call(
            "UpdateTable",
            {"TableName": "Stock", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "ByShelf"}}]},
        )
        engine.call(
            "CreateTable",
            {
                "TableName": "More",
                "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}],
            },
        )

    one, other, later = (StoreFixture(templates) for _ in range(3))
    store, peer = one.database([shop, stock]), other.database([shop, stock])
    before = other.engine.call("DescribeTable", {"TableName": "Stock"})
    damage(one.engine)
    store.put(Tally(name="screws"))
    with store.transaction(token="same") as tx:
        tx.put(Order(order_id="1"))
    assert len(one.engine.call("ListStreams", {})["Streams"]) == 1

    for stage, theirs in ((other, peer), (later, later.database([shop, stock]))):
        assert theirs.get(Tally, name="screws") is None
        assert theirs.get(Order, order_id="1") is None
        assert stage.engine.call("ListTables", {})["TableNames"] == ["Shop", "Stock"]
        assert stage.engine.call("ListStreams", {})["Streams"] == []
        assert stage.engine.call("DescribeTable", {"TableName": "Stock"}) == before
        alive = stage.engine.call("DescribeTimeToLive", {"TableName": "Shop"})["TimeToLiveDescription"]
        assert alive["TimeToLiveStatus"] == "ENABLED"
        # No other transaction has this token.
        with theirs.transaction(token="same") as tx:
            tx.put(Order(order_id="2"))
        assert theirs.get(Order, order_id="2") is not None
    for stage in (one, other, later):
        stage.close()


def test_tables_that_a_test_opens_later_are_made_in_its_store(templates: DatabaseTemplates) -> None:
    stage = StoreFixture(templates)
    first = stage.database([shop])
    second = stage.database([stock, shop])
    second.put(Tally(name="screws"))
    first.put(Order(order_id="1"))
    assert second.get(Order, order_id="1") is not None
    stage.close()
