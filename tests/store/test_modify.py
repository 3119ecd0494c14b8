"""modify(): a read, a change and a put that loses no update of another writer."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Annotated, Any, cast

import pytest

from solotable import Counter, Database, Entity, Key, Store, Table, Unique, Version, flow
from solotable._flows.transactions.conflicts import CONFLICT_ATTEMPTS
from solotable._protocol.requests import GetItem, PutItem, TransactWriteItems
from solotable.errors import (
    ConditionFailed,
    DataError,
    DeclarationError,
    NotFound,
    NotUnique,
    OutcomeUnknown,
    TooManyConflicts,
    TransactionFailed,
)

from .models import Survey, surveyor
from .opening import Opening

stock = Table("Stock")


class Shelf(Entity, table=stock):
    """Without a version: what was read is compared."""

    key = Key("SHELF#{name}", "SHELF")
    name: str
    left: int = 0
    tags: set[str] | None = None
    parts: Annotated[int, Counter()] = 0
    code: Annotated[str | None, Unique()] = None


def _take(shelf: Shelf) -> Shelf:
    shelf.left -= 1
    return shelf


def test_an_entity_is_changed_by_a_function_on_a_copy(opening: Opening) -> None:
    db = opening(stock)
    db.put(Shelf(name="a", left=5))
    seen: list[Shelf] = []

    def change(shelf: Shelf) -> Shelf:
        seen.append(shelf)
        return _take(shelf)

    stored = db.modify(Shelf, change, name="a")
    assert (stored.left, len(seen)) == (4, 1)
    assert db.require(Shelf, name="a") == stored


def test_returning_none_leaves_it_as_it_is(opening: Opening) -> None:
    db = opening(stock)
    db.put(Shelf(name="a", left=5))
    opening.spy.sent.clear()

    def change(shelf: Shelf) -> None:
        shelf.left = 0

    assert db.modify(Shelf, change, name="a").left == 5
    assert not opening.spy.of(PutItem)


def test_an_error_of_the_function_ends_it(opening: Opening) -> None:
    db = opening(stock)
    db.put(Shelf(name="a", left=5))

    def change(shelf: Shelf) -> Shelf:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        db.modify(Shelf, change, name="a")
    assert db.require(Shelf, name="a").left == 5


def test_an_absent_entity_is_an_error_or_begins_as_the_default(opening: Opening) -> None:
    db = opening(stock)
    with pytest.raises(NotFound, match="name='a'"):
        db.modify(Shelf, _take, name="a")
    assert db.modify(Shelf, _take, name="a", default=Shelf(name="a", left=9)).left == 8
    assert db.modify(Shelf, _take, name="a", default=Shelf(name="a", left=9)).left == 7
    with pytest.raises(DataError, match="default of modify"):
        db.modify(Shelf, _take, name="a", default=Shelf(name="b"))


def test_a_default_that_another_writer_creates_first_is_read_again(opening: Opening) -> None:
    db, beside = opening(stock), opening.beside(stock)
    opening.spy.once(PutItem, lambda: beside.put(Shelf(name="a", left=3)))
    assert db.modify(Shelf, _take, name="a", default=Shelf(name="a", left=9)).left == 2


def test_the_result_is_the_same_entity(opening: Opening) -> None:
    db = opening(stock)
    db.put(Shelf(name="a"))
    with pytest.raises(DataError, match="must keep the key"):
        db.modify(Shelf, lambda shelf: Shelf(name="b"), name="a")
    wrong: Any = lambda shelf: 7  # noqa: E731 - the wrong type, on purpose
    with pytest.raises(DataError, match="returns a Shelf or None, got int"):
        db.modify(Shelf, wrong, name="a")


def test_a_conflict_reads_and_changes_again(opening: Opening) -> None:
    db, beside = opening(stock), opening.beside(stock)
    db.put(Shelf(name="a", left=5))
    opening.spy.once(PutItem, lambda: beside.put(Shelf(name="a", left=3, tags={"x"})))
    stored = db.modify(Shelf, _take, name="a")
    assert (stored.left, stored.tags) == (2, {"x"})


def test_an_attribute_that_another_writer_added_is_a_conflict(opening: Opening) -> None:
    db, beside = opening(stock), opening.beside(stock)
    db.put(Shelf(name="a", left=5))
    opening.spy.once(PutItem, lambda: beside.update(Shelf, name="a", set={"tags": {"x"}}))
    stored = db.modify(Shelf, _take, name="a")
    assert (stored.left, stored.tags) == (4, {"x"})


def test_an_entity_that_another_writer_deleted_is_not_found(opening: Opening) -> None:
    db, beside = opening(stock), opening.beside(stock)
    db.put(Shelf(name="a", left=5))
    opening.spy.once(PutItem, lambda: beside.delete(Shelf, name="a"))
    with pytest.raises(NotFound):
        db.modify(Shelf, _take, name="a")


def test_a_version_is_carried_over_whatever_the_function_returns(db: Store, opening: Opening) -> None:
    db.put(Survey(survey_id="s", title="a"))
    stored = db.modify(Survey, lambda found: Survey(survey_id="s", title=found.title + "b"), survey_id="s")
    assert (stored.title, stored.version) == ("ab", 2)
    beside = opening.beside(surveyor).tenant("acme")

    def overtake() -> None:
        beside.update(Survey, survey_id="s", set={"status": "completed"}, version=2)

    opening.spy.once(PutItem, overtake)
    stored = db.modify(Survey, lambda found: found.model_copy(update={"title": "c"}), survey_id="s")
    assert (stored.title, stored.status, stored.version) == ("c", "completed", 4)


def test_it_gives_up_after_a_bounded_number_of_conflicts(opening: Opening) -> None:
    db, beside = opening(stock), opening.beside(stock)
    db.put(Shelf(name="a", left=5))
    writes = 0

    def overtake(request: Any) -> None:
        nonlocal writes
        if isinstance(request, PutItem):
            writes += 1
            beside.put(Shelf(name="a", left=100 + writes))

    opening.spy.before = overtake
    with pytest.raises(TooManyConflicts, match="conflict with another writer in 20 attempts") as caught:
        db.modify(Shelf, _take, name="a")
    assert caught.value.attempts == writes == CONFLICT_ATTEMPTS


def test_a_key_that_holds_another_entity_is_not_tried_again(opening: Opening) -> None:
    db = opening(stock)
    opening.plant(stock, {"PK": {"S": "SHELF#a"}, "SK": {"S": "SHELF"}, "_type": {"S": "_lock"}})
    opening.spy.sent.clear()
    with pytest.raises(ConditionFailed, match="stored under the same key"):
        db.modify(Shelf, _take, name="a", default=Shelf(name="a"))
    assert len(opening.spy.of(GetItem)) == 1


def test_a_write_with_an_unknown_outcome_is_not_repeated(opening: Opening) -> None:
    db = opening(stock)
    db.put(Shelf(name="a", left=5))

    def lose(request: Any) -> None:
        if isinstance(request, PutItem):
            raise OutcomeUnknown("no answer")

    opening.spy.before = lose
    with pytest.raises(OutcomeUnknown):
        db.modify(Shelf, _take, name="a")
    opening.spy.before = None
    assert db.require(Shelf, name="a").left == 5


def test_nothing_is_written_by_a_process_that_dies_between_read_and_write(opening: Opening) -> None:
    db = opening(stock)
    db.put(Shelf(name="a", left=5))

    class Killed(BaseException):
        """As a signal would be."""

    def die(request: Any) -> None:
        if isinstance(request, PutItem):
            raise Killed

    opening.spy.before = die
    with pytest.raises(Killed):
        db.modify(Shelf, _take, name="a")
    opening.spy.before = None
    assert db.modify(Shelf, _take, name="a").left == 4


def test_a_unique_value_that_is_taken_is_not_a_conflict(opening: Opening) -> None:
    db = opening(stock)
    db.put(Shelf(name="a", code="x"))
    db.put(Shelf(name="b"))
    with pytest.raises(NotUnique):
        db.modify(Shelf, lambda shelf: shelf.model_copy(update={"code": "x"}), name="b")


def test_too_many_attributes_to_compare_ask_for_a_version() -> None:
    wide = Table("Wide")
    fields: dict[str, Any] = {f"f{number}": 0 for number in range(150)}
    kind = type(
        "Wide",
        (Entity,),
        {
            "__module__": __name__,
            "key": Key("W#{name}", "W"),
            "__annotations__": {"name": str, **dict.fromkeys(fields, int)},
            **fields,
        },
        table=wide,
    )
    with wide.open("sqlite://") as db:
        db.put(kind(name="a"))
        with pytest.raises(DeclarationError, match="declare a Version field"):
            db.modify(kind, lambda found: found, name="a")


class BackfillCounts(Entity, table=stock):
    """The same with a version."""

    key = Key("TALLY#{name}", "TALLY")
    name: str
    left: int = 0
    version: Annotated[int, Version()] = 0


def _count(tally: Any) -> Any:
    tally.left += 1
    return tally


@pytest.mark.parametrize("entity", [Shelf, BackfillCounts])
def test_eight_threads_lose_no_update(entity: type[Shelf] | type[BackfillCounts], tmp_path: Path) -> None:
    with stock.open(f"sqlite:///{tmp_path}/stock.db?durability=relaxed") as db:
        db.put(entity(name="a"))

        def work() -> None:
            for _ in range(20):
                db.modify(entity, _count, name="a")

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert db.require(entity, name="a", consistent=True).left == 160


@pytest.mark.parametrize("entity", [Shelf, BackfillCounts])
def test_eight_tasks_lose_no_update(entity: type[Shelf] | type[BackfillCounts], tmp_path: Path) -> None:
    async def contend() -> int:
        async with stock.open_async(f"sqlite:///{tmp_path}/stock.db?durability=relaxed") as db:
            await db.put(entity(name="a"))

            async def work() -> None:
                for _ in range(10):
                    await db.modify(entity, _count, name="a")

            await asyncio.gather(*(work() for _ in range(8)))
            return (await db.require(entity, name="a", consistent=True)).left

    assert asyncio.run(contend()) == 80


def test_a_transaction_is_repeated_from_its_reads_on(tmp_path: Path) -> None:
    with stock.open(f"sqlite:///{tmp_path}/stock.db?durability=relaxed") as db:
        db.put(BackfillCounts(name="a", left=200))
        db.put(BackfillCounts(name="b"))

        def move(db: Database) -> None:
            source, target = db.require(BackfillCounts, name="a"), db.require(BackfillCounts, name="b")
            with db.transaction() as tx:
                tx.put(source.model_copy(update={"left": source.left - 1}))
                tx.put(target.model_copy(update={"left": target.left + 1}))

        def work() -> None:
            for _ in range(10):
                db.retry_conflicts(lambda: move(db))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [db.require(BackfillCounts, name=name).left for name in "ab"] == [160, 40]


def test_an_attempt_that_always_fails_raises_its_last_error(opening: Opening) -> None:
    db = opening(stock)
    db.put(BackfillCounts(name="a"))
    attempts = 0

    def move() -> None:
        nonlocal attempts
        attempts += 1
        with opening.beside(stock).transaction() as tx:
            tx.update(BackfillCounts, name="a", set={"left": 1}, version=99)

    async def move_async() -> None:
        move()

    with pytest.raises(TransactionFailed):
        db.retry_conflicts(move if opening.runner is None else move_async)
    assert attempts == CONFLICT_ATTEMPTS


class Counted(Entity, table=stock):
    """With a version."""

    key = Key("COUNTED#{name}", "COUNTED")
    name: str
    left: int = 0
    code: Annotated[str | None, Unique()] = None
    version: Annotated[int, Version()] = 0


def _use(counted: Counted) -> Counted:
    counted.left += 1
    return counted


@pytest.mark.parametrize("version", [None, {"N": "0"}])
def test_item_without_a_version_is_changed_and_gets_one(version: dict[str, str] | None) -> None:
    db = stock.open("sqlite://")
    item = flow.encode_entity(flow.scope_of(db), Counted(name="a", left=5))
    del item["version"]
    if version is not None:
        item["version"] = version
    db.engine.handle(PutItem(table="Stock", item=item))
    stored = db.modify(Counted, _use, name="a")
    assert (stored.left, stored.version) == (6, 1)
    assert db.require(Counted, name="a") == stored
    assert db.modify(Counted, _use, name="a").version == 2


def test_item_without_a_version_loses_no_update_of_another_writer() -> None:
    db = stock.open("sqlite://")
    item = flow.encode_entity(flow.scope_of(db), Counted(name="a", left=5))
    db.engine.handle(PutItem(table="Stock", item=item))
    calls: list[int] = []

    def change(counted: Counted) -> Counted:
        calls.append(counted.left)
        if len(calls) == 1:
            db.engine.handle(PutItem(table="Stock", item={**item, "left": {"N": "7"}}))
        return _use(counted)

    assert db.modify(Counted, change, name="a").left == 8
    assert calls == [5, 7]


def test_conflict_that_the_function_raises_ends_the_call(opening: Opening) -> None:
    db = opening(stock)
    db.put(Shelf(name="a", left=5))
    calls: list[Shelf] = []

    def change(shelf: Shelf) -> Shelf:
        calls.append(shelf)
        raise ConditionFailed("of the function")

    with pytest.raises(ConditionFailed, match="of the function") as raised:
        db.modify(Shelf, change, name="a")
    assert type(raised.value) is ConditionFailed
    assert len(calls) == 1


def test_too_many_conflicts_are_not_a_conflict_to_repeat() -> None:
    assert not flow.is_conflict(TooManyConflicts("too many", item=None, attempts=20))


def test_condition_that_fails_on_the_item_that_was_read_is_not_repeated(opening: Opening) -> None:
    db = opening(stock)
    db.put(Shelf(name="a", left=5))
    [item] = opening.raw(stock)
    calls: list[Shelf] = []

    def change(shelf: Shelf) -> Shelf:
        calls.append(shelf)
        return _take(shelf)

    def refuse(request: Any) -> None:
        if isinstance(request, PutItem | TransactWriteItems):
            raise ConditionFailed(item=item)

    opening.spy.before = refuse
    with pytest.raises(ConditionFailed) as raised:
        db.modify(Shelf, change, name="a")
    assert not isinstance(raised.value, TooManyConflicts)
    assert len(calls) == 1


def test_async_function_is_rejected(opening: Opening) -> None:
    db = opening(stock)
    db.put(Shelf(name="a", left=5))

    async def change(shelf: Shelf) -> Shelf:
        return shelf

    with pytest.raises(DeclarationError, match=r"modify\(\) must not be async"):
        db.modify(Shelf, cast(Any, change), name="a")


def test_default_of_another_class_is_rejected(opening: Opening) -> None:
    db = opening(stock)
    with pytest.raises(DataError, match=r"default of modify\(\) is a Shelf, got Counted"):
        db.modify(Shelf, _take, name="a", default=cast(Any, Counted(name="a")))


def test_function_sees_the_tenant_in_the_default(base: Database) -> None:
    seen: list[str] = []

    def change(survey: Survey) -> None:
        seen.append(survey.tenant_id)

    base.tenant("a").modify(Survey, change, survey_id="s", default=Survey(survey_id="s", title="new"))
    assert seen == ["a"]
