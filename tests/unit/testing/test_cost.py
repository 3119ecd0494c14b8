"""What blocks cost, by DynamoDB's arithmetic: 4 KB for reading, 1 KB for writing, each index for itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from solotable import Database, connect
from solotable._connect import over
from solotable._protocol.requests import GetItem
from solotable.engines import sqlite
from solotable.errors import ConditionFailed
from solotable.testing import Journal, RecordingEngine, assert_cost, assert_no_scan

from .shop import Account, Order, Tally, shop, stock

Opener = Callable[..., Database]
Cost = Callable[..., AbstractContextManager[None]]

SMALL = 700  # bytes of a note that leave an order under 1 KB
LARGE = 4500  # over 4 KB, under 5 KB


@pytest.fixture
def db(solotable_db: Opener) -> Database:
    return solotable_db(shop, stock)


def test_reads_cost_halves_of_4_kb(db: Database, solotable_cost: Cost) -> None:
    db.put(Order(order_id="small", note="x" * SMALL))
    db.put(Order(order_id="large", note="x" * LARGE))
    with solotable_cost(rcu=0.5, wcu=0):
        db.get(Order, order_id="small")
    with solotable_cost(rcu=1, wcu=0):
        db.get(Order, order_id="small", consistent=True)
    with solotable_cost(rcu=1, wcu=0):
        db.get(Order, order_id="large")
    with solotable_cost(rcu=0.5, wcu=0):
        db.get(Order, order_id="none")
    with solotable_cost(rcu=1.5, wcu=0):
        db.get_many(Order, [{"order_id": "small"}, {"order_id": "large"}])
    # Over 5 KB together: two steps of 4 KB, halved.
    with solotable_cost(rcu=1, wcu=0):
        assert db.count(Order.of_buyer("ana")) == 2


def test_writes_cost_1_kb_steps_for_the_table_and_for_each_index(db: Database, solotable_cost: Cost) -> None:
    with solotable_cost(rcu=0, wcu=2):
        db.put(Order(order_id="1", note="x" * SMALL))
    with solotable_cost(rcu=0, wcu=10):
        db.put(Order(order_id="2", note="x" * LARGE))
    with solotable_cost(rcu=0, wcu=1):
        db.put(Tally(name="screws"))
    # The index has the item under another key: removed there, and written.
    with solotable_cost(wcu=3):
        db.update(Order, order_id="1", set={"buyer": "bo"})
    with solotable_cost(wcu=2):
        db.delete(Order, order_id="1")
    with solotable_cost(wcu=1):
        db.delete(Order, order_id="1")


def test_transactions_cost_double_and_their_repetition_is_a_read(db: Database, solotable_cost: Cost) -> None:
    def send() -> None:
        with db.transaction(token="one") as tx:
            tx.put(Tally(name="screws"))
            tx.put(Tally(name="nails"))

    # The token is looked for, and is an item of the transaction.
    with solotable_cost(rcu=1, wcu=6):
        send()
    with solotable_cost(rcu=1, wcu=0):
        send()


def test_a_batch_costs_as_much_as_its_writes(db: Database, solotable_cost: Cost) -> None:
    with solotable_cost(rcu=0, wcu=5), db.batch() as batch:
        for name in ("screws", "nails", "nuts"):
            batch.put(Tally(name=name))
        batch.put(Order(order_id="1"))


def test_a_wrong_cost_fails_and_lists_every_request(db: Database) -> None:
    def work() -> None:
        db.get(Order, order_id="1")
        db.put(Order(order_id="1"))
        db.count(Order.of_buyer("ana"))

    with pytest.raises(AssertionError) as failed, assert_cost(db, rcu=1, wcu=0):
        work()
    assert str(failed.value).splitlines() == [
        "The block cost 2 WCU, not 0.",
        "  1. GetItem Shop  0.5 RCU",
        "  2. PutItem Shop  2 WCU  (of that ByBuyer 1)",
        "  3. Query Shop/ByBuyer  0.5 RCU  (of that ByBuyer 0.5)",
    ]
    nothing = r"0 RCU, not 0\.5 and 0 WCU, not 1\.\n  No request\."
    with pytest.raises(AssertionError, match=nothing), assert_cost(db, rcu=0.5, wcu=1):
        pass


def test_cheaper_is_wrong_too_unless_it_is_a_limit(db: Database) -> None:
    with pytest.raises(AssertionError, match=r"0\.5 RCU, not 1\."), assert_cost(db, rcu=1):
        db.get(Order, order_id="1")
    with assert_cost(db, rcu=1, at_most=True):
        db.get(Order, order_id="1")
    with (
        pytest.raises(AssertionError, match=r"1\.5 RCU, not at most 1\."),
        assert_cost(db, rcu=1, at_most=True),
    ):
        assert [db.get(Order, order_id="1") for _ in range(3)] == [None] * 3


def test_an_assertion_without_a_figure_or_without_a_record_is_refused(db: Database) -> None:
    with pytest.raises(TypeError, match="needs rcu= or wcu="), assert_cost(db):
        pass
    with (
        connect("sqlite://", stock) as unrecorded,
        pytest.raises(TypeError, match="has no journal"),
        assert_no_scan(unrecorded),
    ):
        pass
    with pytest.raises(TypeError, match="has no journal"), assert_cost(object(), rcu=0):
        pass


def test_an_error_in_the_block_is_raised_rather_than_its_cost(db: Database) -> None:
    with pytest.raises(ZeroDivisionError), assert_cost(db, rcu=5):
        _ = 1 / 0


def test_a_scan_is_found(db: Database) -> None:
    with assert_no_scan(db):
        db.count(Order.of_buyer("ana"))
    with pytest.raises(AssertionError, match=r"  1\. Scan Shop  0\.5 RCU"), assert_no_scan(db):
        list(db.admin().scan(Order, budget=10))


@pytest.mark.parametrize(
    "statement, scans",
    [
        ("SELECT * FROM Shop", True),
        ("SELECT * FROM Shop WHERE note = 'x'", True),
        ('SELECT * FROM "Shop"."ByBuyer"', True),
        ("SELECT * FROM Shop WHERE PK = 'ORDER#1'", False),
        ('SELECT * FROM "Shop"."ByBuyer" WHERE ByBuyerPK = \'BUYER#ana\'', False),
        ("INSERT INTO Shop VALUE {'PK': 'a', 'SK': 'b'}", False),
    ],
)
def test_a_statement_scans_when_it_names_no_partition(db: Database, statement: str, scans: bool) -> None:
    engine: Any = db.engine
    engine.call("ExecuteStatement", {"Statement": statement})
    assert bool(engine.journal.scans) is scans


def test_a_recording_engine_answers_what_was_asked_and_no_more() -> None:
    with sqlite.open(":memory:") as bare:
        engine = RecordingEngine(bare)
        store = over(engine, [stock])
        store.put(Tally(name="screws"))
        key = {"PK": {"S": "TALLY#screws"}, "SK": {"S": "TALLY"}}
        asked = GetItem(table="Stock", key=key)
        assert engine.handle(asked) == bare.handle(asked)
        total = GetItem(table="Stock", key=key, capacity="TOTAL")
        assert engine.handle(total) == bare.handle(total)
        assert engine.journal.requests("GetItem") == [asked, total]
        assert [record.rcu for record in engine.journal.records if record.operation == "GetItem"] == [
            0.5,
            0.5,
        ]


def test_a_refusal_is_recorded_with_its_error(db: Database, solotable_journal: Journal) -> None:
    db.put(Account(name="ana"))
    with pytest.raises(ConditionFailed):
        db.create(Account(name="ana"))
    refused = solotable_journal.records[-1]
    assert isinstance(refused.error, ConditionFailed)
    assert str(refused) == "PutItem Shop  0 RCU  error: ConditionFailed"
    assert refused.seconds > 0
