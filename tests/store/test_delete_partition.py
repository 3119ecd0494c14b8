"""delete_partition: the rows of a query, with budget and cursor, traits and conditions."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import pytest

from solotable import (
    ANY,
    FROM_SCOPE,
    Counted,
    Counter,
    Database,
    Entity,
    History,
    Index,
    Key,
    PartitionDeletion,
    SoftDelete,
    Store,
    Table,
    Unique,
    Version,
    flow,
)
from solotable._protocol.requests import BatchWriteItem, Query
from solotable.errors import CursorRejected, DataError, TenantViolation

from .opening import Opening

carts = Table("Carts", tenant="org", indexes=[Index("ByState")])


class Cart(Entity, table=carts):
    """Counts its lines."""

    key = Key("ORG#{org}#CART#{cart}", "CART")
    org: str = FROM_SCOPE
    cart: str
    lines: Annotated[int, Counter()] = 0


class Line(Entity, table=carts):
    """Plain: deleted in batches."""

    key = Key("ORG#{org}#CART#{cart}", "LINE#{number:04d}")
    by_state = Key("ORG#{org}#STATE#{state}", "LINE#{cart}#{number:04d}", index="ByState")
    org: str = FROM_SCOPE
    cart: str
    number: int
    state: str = "new"


class Gift(Entity, table=carts):
    """With a unique code, versions, history and a counter at its cart."""

    key = Key("ORG#{org}#CART#{cart}", "GIFT#{number:04d}")
    history = History("PAST#{number:04d}#v{version:06d}")
    counted = Counted(Cart, "lines")
    org: str = FROM_SCOPE
    cart: str
    number: int
    code: Annotated[str, Unique()]
    version: Annotated[int, Version()] = 0


class Note(Entity, table=carts):
    """Deleted softly."""

    key = Key("ORG#{org}#CART#{cart}", "NOTE#{number:04d}")
    deletion = SoftDelete(grace=timedelta(days=3))
    org: str = FROM_SCOPE
    cart: str
    number: int


class Tip(Entity, table=carts):
    """Counted at its cart, without a version."""

    key = Key("ORG#{org}#CART#{cart}", "TIP#{number:04d}")
    counted = Counted(Cart, "lines")
    org: str = FROM_SCOPE
    cart: str
    number: int


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(carts)


@pytest.fixture
def db(base: Database) -> Store:
    store = base.tenant("acme")
    for cart in ("c", "c2"):
        store.put(Cart(cart=cart))
        with store.batch() as batch:
            for number in range(60):
                batch.put(Line(cart=cart, number=number))
        for number in range(3):
            store.create(Gift(cart=cart, number=number, code=f"{cart}{number}"))
            store.put(Note(cart=cart, number=number))
    return store


WHOLE = (
    Cart.key.query(cart="c") | Line.key.query(cart="c") | Gift.key.query(cart="c") | Note.key.query(cart="c")
)


def test_plain_rows_go_in_batches(db: Store, opening: Opening) -> None:
    opening.spy.sent.clear()
    done = db.delete_partition(Line.key.query(cart="c").since(number=10))
    assert done == PartitionDeletion(deleted={"Line": 50}, read=50, done=True)
    assert (len(opening.spy.of(Query)), len(opening.spy.of(BatchWriteItem))) == (1, 2)
    assert [each.number for each in db.all(Line.key.query(cart="c"))] == list(range(10))
    assert db.count(Line.key.query(cart="c2")) == 60
    assert db.delete_partition(Line.key.query(cart="none")).total == 0


def test_traits_go_with_their_entities(db: Store) -> None:
    gifts = db.delete_partition(Gift.key.query(cart="c"))
    assert gifts.deleted == {"Gift": 3}
    cart = db.require(Cart, cart="c")
    assert cart.lines == 0
    # The locks are free again, and the history has the deletions.
    db.create(Gift(cart="c2", number=9, code="c0"))
    assert [each.version for each in db.history(Gift, cart="c", number=1).list()] == [1]
    notes = db.delete_partition(Note.key.query(cart="c"))
    assert notes.deleted == {"Note": 3}
    assert db.undelete(Note, cart="c", number=1).number == 1


def test_a_whole_partition_in_steps(db: Store) -> None:
    seen: list[PartitionDeletion] = []
    counted = db.delete_partition(WHOLE, dry_run=True)
    assert (counted.deleted, counted.dry_run) == ({"Cart": 1, "Gift": 3, "Line": 60, "Note": 3}, True)
    assert db.count(WHOLE) == 67
    cursor, total, steps = None, 0, 0
    while True:
        step = db.delete_partition(WHOLE, budget=20, cursor=cursor, progress=seen.append)
        total, steps, cursor = total + step.total, steps + 1, step.cursor
        assert step.read <= 20
        assert step.done is (cursor is None)
        if step.done:
            break
    assert (total, steps >= 4, seen[-1]) == (67, True, step)
    assert db.count(WHOLE) == 0
    assert db.count(Line.key.query(cart="c2")) == 60
    # Beginning again needs no cursor: what was deleted is gone.
    assert db.delete_partition(WHOLE).total == 0


def test_rows_that_change_meanwhile_are_kept(db: Store, opening: Opening) -> None:
    for number in (3, 4):
        db.update(Line, cart="c", number=number, set={"state": "old"})
    opening.spy.once(Query, lambda: None)
    stale = Line.by_state.query(state="old")

    def move(request: Any) -> None:
        if type(request).__name__ == "DeleteItem" and request.key["SK"]["S"].endswith("3"):
            opening.spy.before = None
            db.update(Line, cart="c", number=3, set={"state": "new"})

    if opening.runner is None:
        opening.spy.before = move
    done = db.delete_partition(stale)
    if opening.runner is None:
        assert (done.deleted, done.changed) == ({"Line": 1}, 1)
        assert db.require(Line, cart="c", number=3).state == "new"
    assert db.get(Line, cart="c", number=4) is None


@pytest.mark.parametrize("entity", [Gift, Note, Tip])
def test_rows_that_another_caller_deletes_first_are_not_counted(
    db: Store, opening: Opening, entity: type[Any]
) -> None:
    other = opening.beside(carts).tenant("acme")
    for number in range(3):
        db.put(Tip(cart="c", number=number))
    before = db.require(Cart, cart="c").lines
    version: dict[str, Any] = {"version": ANY} if entity is Gift else {}

    def step_in(request: Any) -> None:
        # After the query has read all three rows, before the first of them is deleted.
        if not isinstance(request, Query):
            opening.spy.before = None
            for number in (0, 1):
                other.delete(entity, cart="c", number=number, **version)

    opening.spy.before = step_in
    done = db.delete_partition(entity.key.query(cart="c"))
    assert (done.deleted, done.changed, done.read) == ({entity.__name__: 1}, 0, 3)
    assert db.count(entity.key.query(cart="c")) == 0
    assert db.require(Cart, cart="c").lines == before - (3 if entity is not Note else 0)


def test_a_filter_is_a_condition_of_the_delete(db: Store, opening: Opening) -> None:
    db.update(Line, cart="c", number=7, set={"state": "old"})
    opening.spy.sent.clear()
    done = db.delete_partition(Line.key.query(cart="c").where(lambda line: line.state == "old"))
    assert (done.deleted, done.read) == ({"Line": 1}, 60)
    assert opening.spy.of(BatchWriteItem) == []
    assert db.count(Line.key.query(cart="c")) == 59


def test_unknown_items_are_kept_unless_raw(base: Database, db: Store, opening: Opening) -> None:
    ghost = {
        "PK": {"S": "ORG#acme#CART#c"},
        "SK": {"S": "LINE#0003"},
        "_type": {"S": "Ghost"},
        "org": {"S": "acme"},
    }
    opening.plant(carts, ghost)
    query = Line.key.query(cart="c")
    done = db.delete_partition(query)
    assert (done.deleted, done.unknown, done.done) == ({"Line": 59}, 1, True)
    assert db.page(query, unknown="skip").skipped == 1
    with pytest.raises(TenantViolation, match=r"db.admin\(\)"):
        db.delete_partition(query, raw=True)
    admin = base.admin()
    mine = Line.key.query(org="acme", cart="c")
    assert admin.delete_partition(mine, raw=True, dry_run=True).deleted == {"item": 1}
    assert admin.delete_partition(mine, raw=True).deleted == {"item": 1}
    assert db.page(query, unknown="skip").skipped == 0
    assert db.count(WHOLE) == 7
    assert admin.delete_partition(mine.between(number=(5, 3)), raw=True).done


def test_what_is_rejected(base: Database, db: Store) -> None:
    query = Line.key.query(cart="c")
    cursor = db.delete_partition(query, budget=1, dry_run=True).cursor
    assert cursor is not None
    with pytest.raises(CursorRejected):
        db.page(query, cursor=cursor)
    with pytest.raises(CursorRejected):
        db.delete_partition(query.since(number=3), cursor=cursor)
    with pytest.raises(CursorRejected):
        db.delete_partition(query, cursor=db.page(query, limit=1).cursor)
    with pytest.raises(DataError, match="budget"):
        db.delete_partition(query, budget=0)
    with pytest.raises(DataError, match="takes a Query"):
        db.delete_partition(Line)  # type: ignore[arg-type]  # what it rejects
    admin = base.admin()
    for wrong in (WHOLE, Line.by_state.query(state="x"), query.where(lambda line: line.state == "x")):
        with pytest.raises(DataError, match="one primary key"):
            admin.delete_partition(wrong, raw=True)
    assert base.tenant("other").delete_partition(query).total == 0
    assert db.count(query) == 60


def test_as_a_flow(base: Database, db: Store, opening: Opening) -> None:
    if opening.runner is not None:
        pytest.skip("a flow of the blocking store")
    done = flow.run(flow.delete_partition(flow.scope_of(db), Line.key.query(cart="c"), budget=30), base)
    assert (done.total, done.done) == (30, False)
