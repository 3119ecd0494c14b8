"""Each fault looks to a store as the real one does, and matches exactly when it was declared to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from solotable import AsyncDatabase, Database
from solotable._connect import open_engine, over, to_async
from solotable.errors import (
    AlreadyExists,
    BatchIncomplete,
    OutcomeUnknown,
    ServiceError,
    Throttled,
    TransactionFailed,
    TransportError,
    VersionConflict,
)
from solotable.testing import Clock, Faults, FaultyEngine, Journal, RecordingEngine
from solotable.urls import Url

from .shop import Account, Order, Tally, shop, stock


@pytest.fixture
def db(solotable_db: Callable[..., Database]) -> Database:
    return solotable_db(shop, stock)


@pytest.fixture
def sleepless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where anything waits for real time."""
    sleep = asyncio.sleep

    def refuse(seconds: float) -> None:
        raise AssertionError(f"slept for {seconds} s")

    async def refuse_async(seconds: float) -> None:
        assert not seconds, f"slept for {seconds} s"
        await sleep(0)

    monkeypatch.setattr(time, "sleep", refuse)
    monkeypatch.setattr(asyncio, "sleep", refuse_async)


@pytest.mark.usefixtures("sleepless")
def test_throttled_requests_are_sent_again_and_waiting_takes_no_time(
    db: Database, solotable_faults: Faults, solotable_clock: Clock, solotable_journal: Journal
) -> None:
    fault = solotable_faults.throttle("PutItem", times=5)
    shown = solotable_clock()
    db.put(Order(order_id="1"))
    assert fault.fired == 5
    assert len(solotable_journal.requests("PutItem")) == 6
    # Half of 50, 100, 200, 400 and 800 ms.
    assert solotable_clock() - shown == pytest.approx(0.775)
    assert solotable_journal.waited_seconds == pytest.approx(0.775)


def test_a_table_that_stays_throttled_raises(db: Database, solotable_faults: Faults) -> None:
    fault = solotable_faults.throttle("GetItem", probability=1)
    with pytest.raises(Throttled):
        db.get(Order, order_id="1")
    assert fault.fired == 8


@pytest.mark.usefixtures("sleepless")
def test_awaited_stores_meet_the_same_faults_and_wait_no_longer(
    solotable_async_db: Callable[..., AsyncDatabase], solotable_faults: Faults, solotable_clock: Clock
) -> None:
    fault = solotable_faults.throttle(times=5)
    shown = solotable_clock()
    stored = asyncio.run(solotable_async_db(shop).put(Order(order_id="1")))
    assert stored.placed is not None
    assert stored.placed.timestamp() == shown
    assert fault.fired == 5
    assert solotable_clock() - shown == pytest.approx(0.775)


def test_dice_fall_alike_in_every_run() -> None:
    def falls(seed: int) -> list[bool]:
        from solotable._protocol.requests import GetItem

        faults = Faults()
        faults.throttle("GetItem", probability=0.3, seed=seed)
        return [bool(list(faults.matching(GetItem(table="Shop", key={})))) for _ in range(100)]

    assert falls(7) == falls(7) != falls(8)
    assert 15 < sum(falls(7)) < 45


def test_a_fault_spares_the_first_requests_and_other_operations(
    db: Database, solotable_faults: Faults
) -> None:
    solotable_faults.internal_error("PutItem", after=2)
    db.put(Tally(name="a"))
    db.get(Tally, name="a")
    db.put(Tally(name="b"))
    with pytest.raises(ServiceError) as refused:
        db.put(Tally(name="c"))
    assert (refused.value.code, refused.value.status) == ("InternalServerError", 500)
    assert db.get(Tally, name="c") is None
    db.put(Tally(name="c"))


def test_after_an_internal_error_a_write_may_have_been_done(db: Database, solotable_faults: Faults) -> None:
    solotable_faults.internal_error("PutItem", applied=True)
    with pytest.raises(ServiceError):
        db.put(Tally(name="a"))
    assert db.get(Tally, name="a") is not None


@pytest.mark.parametrize("applied", [True, False])
def test_the_outcome_of_a_write_that_timed_out_is_unknown(
    db: Database, solotable_faults: Faults, applied: bool
) -> None:
    solotable_faults.timeout("PutItem", applied=applied)
    with pytest.raises(OutcomeUnknown):
        db.put(Tally(name="a"))
    assert (db.get(Tally, name="a") is not None) is applied


@pytest.mark.parametrize("applied", [True, False])
def test_a_transaction_that_timed_out_is_done_once(
    db: Database, solotable_faults: Faults, applied: bool
) -> None:
    db.put(Tally(name="screws", count=1))
    fault = solotable_faults.timeout("TransactWriteItems", applied=applied, times=2)
    with db.transaction() as tx:
        tx.update(Tally, name="screws", add={"count": 10})
    assert fault.fired == 2
    assert db.require(Tally, name="screws").count == 11


def test_reads_that_time_out_are_asked_again(db: Database, solotable_faults: Faults) -> None:
    db.put(Tally(name="a"))
    fault = solotable_faults.timeout("GetItem", applied=True, times=3)
    assert db.get(Tally, name="a") is not None
    assert fault.fired == 3


def test_what_was_never_sent_is_sent_again(db: Database, solotable_faults: Faults) -> None:
    solotable_faults.unreachable("PutItem", times=2)
    db.put(Tally(name="a"))
    solotable_faults.unreachable("PutItem", times=8)
    with pytest.raises(TransportError) as lost:
        db.put(Tally(name="b"))
    assert not isinstance(lost.value, OutcomeUnknown)
    assert db.get(Tally, name="b") is None


def test_another_writer_slips_in_between_read_and_write(db: Database, solotable_faults: Faults) -> None:
    mine = db.put(Account(name="ana", points=1))
    theirs = mine.model_copy(update={"points": 50})
    fault = solotable_faults.run_before("PutItem", lambda: db.put(theirs))
    with pytest.raises(VersionConflict) as conflict:
        db.put(mine.model_copy(update={"points": 2}))
    assert fault.fired == 1
    assert conflict.value.theirs.points == 50
    assert db.require(Account, name="ana").points == 50


def test_what_slips_in_meets_no_faults_itself(db: Database, solotable_faults: Faults) -> None:
    wrote: list[Tally] = []
    fault = solotable_faults.run_before(
        "PutItem", lambda: wrote.append(db.put(Tally(name="theirs"))), times=2
    )
    db.put(Tally(name="mine"))
    assert (fault.fired, len(wrote)) == (1, 1)


def test_another_creator_slips_in(db: Database, solotable_faults: Faults) -> None:
    solotable_faults.run_before(None, lambda: db.create(Order(order_id="1", note="theirs")))
    with pytest.raises(AlreadyExists) as refused:
        db.create(Order(order_id="1", note="mine"))
    assert refused.value.found.note == "theirs"


@pytest.mark.parametrize("processed", [None, 1, 24])
def test_what_a_batch_hands_back_is_written_in_the_end(
    db: Database, solotable_faults: Faults, processed: int | None, solotable_journal: Journal
) -> None:
    fault = solotable_faults.partial_batch(processed=processed, times=2)
    with db.batch() as batch:
        for number in range(15):
            batch.put(Tally(name=f"{number}"))
            batch.put(Order(order_id=f"{number}"))
    # 25 and 5: halves of 25 and of 13; 1 of 25 and 1 of 24; 24 of 25, and 5 fit into 24.
    assert fault.fired == {None: 2, 1: 2, 24: 1}[processed]
    assert len(solotable_journal.requests("BatchWriteItem")) == 2 + fault.fired
    found = db.get_many(Tally, [{"name": f"{number}"} for number in range(15)])
    assert [row and row.name for row in found] == [f"{number}" for number in range(15)]
    assert db.count(Order.of_buyer("ana")) == 15


def test_what_a_batch_of_keys_hands_back_is_read_in_the_end(db: Database, solotable_faults: Faults) -> None:
    for number in range(9):
        db.put(Tally(name=f"{number}"))
    fault = solotable_faults.partial_batch("BatchGetItem", times=3)
    found = db.get_many(Tally, [{"name": f"{number}"} for number in range(10)], consistent=True)
    assert [row and row.name for row in found] == [*(f"{number}" for number in range(9)), None]
    assert fault.fired == 3


def test_a_batch_without_progress_raises(db: Database, solotable_faults: Faults) -> None:
    solotable_faults.partial_batch(processed=1, probability=1)
    batch = db.batch()
    for number in range(12):
        batch.put(Tally(name=f"{number}"))
    with pytest.raises(BatchIncomplete) as refused, batch:
        pass
    assert len(refused.value.leftovers) == 2


def test_a_transaction_meets_another(db: Database, solotable_faults: Faults) -> None:
    solotable_faults.transaction_conflict("TransactWriteItems", probability=1)
    tx = db.transaction()
    tx.put(Tally(name="a"))
    tx.put(Tally(name="b"))
    with pytest.raises(TransactionFailed) as refused, tx:
        pass
    assert [reason["Code"] for reason in refused.value.reasons] == ["TransactionConflict", "None"]
    assert db.get_many(Tally, [{"name": "a"}, {"name": "b"}]) == [None, None]


def test_a_transaction_that_meets_another_once_is_sent_again(db: Database, solotable_faults: Faults) -> None:
    fault = solotable_faults.transaction_conflict("TransactWriteItems", times=2)
    with db.transaction() as tx:
        tx.put(Tally(name="a"))
    assert fault.fired == 2
    assert db.get(Tally, name="a") is not None


def test_a_write_that_meets_a_transaction_is_sent_again(db: Database, solotable_faults: Faults) -> None:
    fault = solotable_faults.transaction_conflict("UpdateItem", times=2)
    db.put(Tally(name="a"))
    assert db.update(Tally, name="a", add={"count": 1}).count == 1
    assert fault.fired == 2


def test_a_fault_that_can_never_strike_is_refused(solotable_faults: Faults) -> None:
    with pytest.raises(ValueError, match="'Putitem' cannot have this fault; expected one of PutItem, "):
        solotable_faults.throttle("Putitem")
    with pytest.raises(
        ValueError, match="'PutItem' cannot have this fault; expected one of BatchGetItem, BatchW"
    ):
        solotable_faults.partial_batch("PutItem")
    with pytest.raises(ValueError, match="at least 1"):
        solotable_faults.partial_batch(processed=0)


def test_faults_can_be_taken_back(db: Database, solotable_faults: Faults) -> None:
    solotable_faults.internal_error(times=100)
    solotable_faults.clear()
    db.put(Tally(name="a"))


@pytest.mark.parametrize("path", ["", "/shop.db"])
def test_elsewhere_than_in_the_fixtures_waiting_takes_its_time(tmp_path: Path, path: str) -> None:
    faults = Faults()
    bare = open_engine(Url.parse(f"sqlite:///{tmp_path}{path}" if path else "sqlite://"))
    engine = RecordingEngine(FaultyEngine(bare, faults))
    db = over(engine, [stock])
    awaited_db = AsyncDatabase(to_async(engine), db.scope)

    def put() -> None:
        db.put(Tally(name="a"))

    def put_awaited() -> None:
        asyncio.run(awaited_db.put(Tally(name="b")))

    for work in (put, put_awaited):
        engine.journal.clear()
        fault = faults.throttle("PutItem", times=3)
        began = time.monotonic()
        work()
        assert fault.fired == 3
        assert time.monotonic() - began >= engine.journal.waited_seconds > 0
    asyncio.run(awaited_db.close())
