"""Counters kept by ADD in the child's own transaction (C1.1, C1.5, C1.6, C2.6, C4.20), and their repair."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import create_model

from solotable import ANY, FROM_SCOPE, Counted, Counter, Database, Entity, Index, Key, Store, Table, Version
from solotable._protocol.requests import TransactWriteItems, UpdateItem
from solotable.errors import DataError, DeclarationError, NotFound, OutcomeUnknown, TransactionCancelled
from solotable.jobs.recount import recount

from .opening import Opening

counting = Table("Counting", tenant="tenant_id")


class Group(Entity, table=counting):
    key = Key("TENANT#{tenant_id}", "GROUP#{group_id}")
    tenant_id: str = FROM_SCOPE
    group_id: str
    title: str = ""
    members: Annotated[int, Counter()] = 0
    active: Annotated[int, Counter()] = 0
    dues: Annotated[Decimal, Counter()] = Decimal(0)
    version: Annotated[int, Version()] = 0


class Member(Entity, table=counting):
    key = Key("TENANT#{tenant_id}", "GROUP#{group_id}#MEMBER#{member_id}")
    counted = Counted(Group, "members")
    actives = Counted(Group, "active", where=lambda member: member.active)
    paying = Counted(Group, "dues", amount="fee")
    tenant_id: str = FROM_SCOPE
    group_id: str
    member_id: str
    active: bool = True
    fee: Decimal = Decimal(0)


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(counting)


@pytest.fixture
def db(base: Database) -> Store:
    db = base.tenant("acme")
    db.create(Group(group_id="g", title="first"))
    return db


def numbers(db: Store) -> tuple[int, int, Decimal]:
    group = db.require(Group, consistent=True, group_id="g")
    return group.members, group.active, group.dues


def test_c2_6_joining_and_leaving_are_counted_once(db: Store) -> None:
    db.put(Member(group_id="g", member_id="a", fee=Decimal("2.5")))
    db.put(Member(group_id="g", member_id="a", fee=Decimal("2.5")))
    db.put(Member(group_id="g", member_id="b", active=False))
    assert numbers(db) == (2, 1, Decimal("2.5"))
    db.update(Member, group_id="g", member_id="b", set={"active": True}, add={"fee": Decimal(1)})
    assert numbers(db) == (2, 2, Decimal("3.5"))
    for _ in range(2):
        db.delete(Member, group_id="g", member_id="a")
    assert numbers(db) == (1, 1, Decimal(1))


def test_c1_6_a_child_of_a_missing_parent_makes_no_ghost(db: Store, opening: Opening) -> None:
    with pytest.raises(
        NotFound, match=r"Group not found: .*group_id='nope'\. Its field members counts Member"
    ):
        db.put(Member(group_id="nope", member_id="a"))
    assert len(opening.raw(counting)) == 1


def test_c4_20_counting_neither_needs_nor_breaks_the_parents_version(db: Store) -> None:
    group = db.require(Group, group_id="g")
    db.put(Member(group_id="g", member_id="a"))
    changed = db.put(group.model_copy(update={"title": "second", "members": 99}))
    assert (changed.title, changed.members, changed.version) == ("second", 1, 2)
    assert numbers(db)[0] == 1
    assert db.update(changed, set={"title": "third"}).members == 1


def test_counters_are_changed_by_children_alone(db: Store) -> None:
    with pytest.raises(DataError, match="maintained by the store"):
        db.update(Group, group_id="g", version=ANY, set={"members": 5})
    assert db.create(Group(group_id="h", members=7)).members == 0


def test_a_put_of_the_parent_is_repeated_after_a_new_child(db: Store, opening: Opening) -> None:
    from solotable._protocol.requests import PutItem

    group = db.require(Group, group_id="g")
    beside = opening.beside(counting).tenant("acme")
    opening.spy.once(PutItem, lambda: beside.put(Member(group_id="g", member_id="late")))
    assert db.put(group.model_copy(update={"title": "x"})).members == 1
    assert numbers(db)[0] == 1


def test_one_transaction_may_hold_the_parent_and_many_children(db: Store) -> None:
    with db.transaction() as tx:
        tx.create(Group(group_id="new"))
        for name in "abc":
            tx.create(Member(group_id="new", member_id=name, fee=Decimal(2)))
    made = db.require(Group, group_id="new")
    assert (made.members, made.active, made.dues) == (3, 3, Decimal(6))
    with db.transaction() as tx:
        tx.update(Group, group_id="new", version=ANY, set={"title": "t"})
        tx.delete(Member, group_id="new", member_id="a")
        tx.create(Member(group_id="new", member_id="d", active=False))
        tx.check(Group, group_id="g", where=lambda group: group.title == "first")
        tx.create(Member(group_id="g", member_id="z"))
    made = db.require(Group, group_id="new")
    assert (made.members, made.active, made.dues, made.title) == (3, 2, Decimal(4), "t")
    assert numbers(db)[0] == 1
    with db.transaction() as tx:
        tx.delete(made)
        for name in "bcd":
            tx.delete(Member, group_id="new", member_id=name)
    assert db.get(Group, group_id="new") is None


def test_c1_5_a_lost_answer_does_not_count_twice(db: Store, opening: Opening) -> None:
    lost: list[object] = []

    def lose(request: object) -> None:
        if isinstance(request, TransactWriteItems) and not lost:
            lost.append(request)
            opening.engine.handle(request)
            raise OutcomeUnknown("the answer was lost", retryable=True)

    opening.spy.before = lose
    db.put(Member(group_id="g", member_id="a"))
    assert (len(lost), numbers(db)[0]) == (1, 1)


def test_c1_1_and_s1_9_many_first_writers_sum_exactly(db: Store, opening: Opening) -> None:
    beside = opening.beside(counting).tenant("acme")

    def churn(worker: int) -> int:
        dice = random.Random(worker)
        mine: set[str] = set()
        for step in range(15):
            name = f"{worker}-{dice.randrange(5)}"
            if name in mine and step % 3 == 0:
                beside.delete(Member, group_id="g", member_id=name)
                mine.discard(name)
            else:
                beside.put(Member(group_id="g", member_id=name))
                mine.add(name)
        return len(mine)

    with ThreadPoolExecutor(6) as pool:
        there = sum(pool.map(churn, range(6)))
    assert numbers(db)[:2] == (there, there)


def test_a_sharded_counter_sums_and_is_idempotent(db: Store) -> None:
    views = db.counter(counting, "views", shards=8)
    for step in range(40):
        views.add(2, token=f"view-{step // 2}")
    views.add(1)
    assert views.value() == 41
    assert db.counter(counting, "other", shards=8).value() == 0


def test_two_that_meet_on_a_shard_are_both_counted(db: Store, opening: Opening) -> None:
    met: list[object] = []

    def conflict(request: object) -> None:
        if isinstance(request, TransactWriteItems) and len(met) < 3:
            met.append(request)
            raise TransactionCancelled([{"Code": "TransactionConflict"}])

    opening.spy.before = conflict
    views = db.counter(counting, "views", shards=8)
    views.add()
    assert (len(met), views.value()) == (3, 1)


def test_sharded_counters_of_tenants_are_apart(base: Database) -> None:
    base.tenant("a").counter(counting, "n").add(1)
    assert base.tenant("b").counter(counting, "n").value() == 0


def test_recounting_finds_and_repairs_drift(opening: Opening) -> None:
    base = opening.beside(counting)
    db = base.tenant("acme")
    for group in ("g", "h"):
        db.create(Group(group_id=group))
        for name in "ab":
            db.create(Member(group_id=group, member_id=name, fee=Decimal(3)))
    _spoil(opening, "g", {"members": "9", "dues": "-1"})
    seen = list(recount(base.admin(), Member, budget=100, repair=False))
    assert {(each.key["group_id"], each.field) for each in seen if each.drifted} == {
        ("g", "members"),
        ("g", "dues"),
    }
    assert not any(each.repaired for each in seen)
    repaired = [each for each in recount(base.admin(), Member, budget=100) if each.repaired]
    assert {(each.field, each.said, each.counted) for each in repaired} == {
        ("members", Decimal(9), Decimal(2)),
        ("dues", Decimal(-1), Decimal(6)),
    }
    assert not any(each.drifted for each in recount(base.admin(), Member, budget=100))


def _spoil(opening: Opening, group: str, values: dict[str, str]) -> None:
    from solotable._expressions.ast import Assign, Const, Update

    actions = tuple(Assign((name,), Const({"N": value})) for name, value in values.items())
    opening.engine.handle(
        UpdateItem(
            table=opening.prefix + counting.name,
            key={"PK": {"S": "TENANT#acme"}, "SK": {"S": f"GROUP#{group}"}},
            update=Update(actions, creates=True),
        )
    )


def test_a_counter_is_declared_on_both_sides() -> None:
    with pytest.raises(
        DeclarationError, match=r"Group.title, which is not a counter; write title: Annotated"
    ):

        class Bad(Entity, table=Table("Bad")):
            key = Key("A#{a}", "B")
            counted = Counted(Group, "title")
            a: str


def test_a_counter_is_not_part_of_a_template() -> None:
    with pytest.raises(DeclarationError, match=r"Bad.by_count: 'count' is a Counter\(\), which changes with"):

        class Bad(Entity, table=Table("Bad", indexes=[Index("GSI1")])):
            key = Key("A#{a}", "B")
            by_count = Key("COUNTS", "{count:06d}", index="GSI1")
            a: str
            count: Annotated[int, Counter()] = 0


def test_no_transaction_removes_a_parent_and_keeps_its_child(db: Store, opening: Opening) -> None:
    db.create(Member(group_id="g", member_id="old"))
    before = opening.raw(counting)

    def removing(child: Member, **changes: Decimal) -> None:
        with db.transaction() as tx:
            tx.delete(Group, group_id="g", version=ANY)
            if changes:
                tx.update(child, set=changes)
            else:
                tx.create(child)

    refused = "changes a counter of the item that #1 delete Group group_id='g' removes"
    with pytest.raises(DataError, match=refused):
        removing(Member(group_id="g", member_id="new"))
    with pytest.raises(DataError, match=refused):
        removing(Member(group_id="g", member_id="old"), fee=Decimal(2))
    assert opening.raw(counting) == before
    with db.transaction() as tx:
        tx.delete(Group, group_id="g", version=ANY)
        tx.delete(Member, group_id="g", member_id="old")


def _first_column(each: Any) -> str:
    return str(each.column_000)


class Counting(Entity, table=counting, abstract=True):
    key = Key("TENANT#{tenant_id}", "GROUP#{group_id}#WIDE#{member_id}")
    actives = Counted(Group, "active", where=lambda each: _first_column(each) == "v")
    tenant_id: str = FROM_SCOPE
    group_id: str
    member_id: str


def _wide(name: str, columns: int, **more: Any) -> type[Counting]:
    fields: dict[str, Any] = {f"column_{at:03d}": (str, "v") for at in range(columns)}
    return create_model(name, __base__=Counting, __cls_kwargs__={"table": counting}, **fields, **more)


Widest = _wide("Widest", 137)
Versioned = _wide("Versioned", 320, version=(Annotated[int, Version()], 0))


@pytest.mark.parametrize("entity", [Widest, Versioned])
def test_a_predicate_counts_wide_entities(db: Store, entity: type[Counting]) -> None:
    key: Any = {"group_id": "g", "member_id": "m"}
    change: Any = {"column_000": "w"}
    version: Any = {"version": ANY} if entity is Versioned else {}
    stored = db.put(entity(**key))
    assert numbers(db)[1] == 1
    db.put(stored)
    db.update(entity, set=change, **key, **version)
    assert numbers(db)[1] == 0
    db.put(entity(group_id="g", member_id="n"))
    db.delete(entity, group_id="g", member_id="n", **version)
    db.delete(entity, **key, **version)
    assert numbers(db)[1] == 0


def test_a_predicate_over_too_many_fields_needs_a_version() -> None:
    with pytest.raises(DeclarationError, match=r"TooWide: .* depend on 141 fields, .* add a field, which"):
        _wide("TooWide", 138)


def test_an_update_of_what_the_predicate_does_not_read_is_one_request(db: Store, opening: Opening) -> None:
    class Seat(Entity, table=counting):
        key = Key("TENANT#{tenant_id}", "GROUP#{group_id}#SEAT#{member_id}")
        actives = Counted(Group, "active", where=lambda seat: seat.taken is not None and seat.row != "x")
        tenant_id: str = FROM_SCOPE
        group_id: str
        member_id: str
        taken: str | None = None
        row: str = "a"
        note: str = ""

    db.create(Seat(group_id="g", member_id="m", taken="yes"))
    assert numbers(db)[1] == 1
    opening.spy.sent.clear()
    db.update(Seat, group_id="g", member_id="m", set={"note": "by the window"})
    assert [type(each).__name__ for each in opening.spy.sent] == ["UpdateItem"]
    for change, count in (({"row": "x"}, 0), ({"row": "b"}, 1), ({"taken": None}, 0)):
        db.update(Seat, group_id="g", member_id="m", set=change)
        assert numbers(db)[1] == count
