"""get_many over several classes, and transact_get: entities of one moment."""

from __future__ import annotations

from typing import Any

import pytest

from solotable import Database, Entity, EntityKey, Key, Store, Table, flow
from solotable._protocol.requests import BatchGetItem, TransactGetItems
from solotable.errors import (
    DataError,
    StoredDataError,
    TenantViolation,
    TransactionCancelled,
    TransactionFailed,
)

from .models import Book, Loan, Section, Survey, library, surveyor
from .opening import Opening

other_table = Table("OtherTable")


class Badge(Entity, table=other_table, scope="global"):
    """An entity of another table."""

    key = Key("BADGE#{name}", "BADGE")
    name: str


def _fill(db: Store) -> None:
    db.put(Survey(survey_id="s", title="t"))
    db.put(Section(survey_id="s", section_id="1", name="n", order=1))
    db.put(Book(book_id="b", title="T", author="A"))


KEYS: tuple[EntityKey[Any], ...] = (
    Survey.key(survey_id="s"),
    Book.key(book_id="b"),
    Section.key(survey_id="s", section_id="none"),
    Section.key(survey_id="s", section_id="1"),
    Survey.key(survey_id="s"),
)


@pytest.mark.parametrize("verb", ["get_many", "transact_get"])
def test_keys_of_any_classes_and_tables(db: Store, opening: Opening, verb: str) -> None:
    _fill(db)
    opening.spy.sent.clear()
    found = getattr(db, verb)(*KEYS)
    survey, book, nothing, section, again = found
    assert isinstance(found, tuple)
    assert (survey.title, book.title, nothing, section.name, again) == ("t", "T", None, "n", survey)
    (request,) = opening.spy.sent
    assert isinstance(request, BatchGetItem if verb == "get_many" else TransactGetItems)
    assert getattr(db, verb)() == ()
    assert len(opening.spy.sent) == 1


def test_the_types_are_those_of_the_classes(db: Store) -> None:
    _fill(db)
    survey, book = db.get_many(Survey.key(survey_id="s"), Book.key(book_id="b"), consistent=True)
    assert survey is not None
    assert book is not None
    assert (survey.title, book.author) == ("t", "A")
    one, two, three = db.transact_get(Survey.key(survey_id="s"), Book.key(book_id="x"), Loan.key(loan_id="x"))
    assert one is not None
    assert (one.title, two, three) == ("t", None, None)


def test_more_than_a_batch_of_keys(db: Store, opening: Opening) -> None:
    with db.batch() as batch:
        for number in range(130):
            batch.put(Section(survey_id="s", section_id=str(number), name="n", order=number))
    keys = [Section.key(survey_id="s", section_id=str(number)) for number in range(130)]
    opening.spy.sent.clear()
    found = db.get_many(*keys)
    assert [each.order for each in found if each is not None] == list(range(130))
    assert len(opening.spy.of(BatchGetItem)) == 2
    opening.spy.sent.clear()
    with pytest.raises(DataError, match="at most 100 items, got 130"):
        db.transact_get(*keys)
    assert opening.spy.sent == []
    assert len(db.transact_get(*keys[:100])) == 100
    # An item that is asked for twice counts once.
    assert len(db.transact_get(*keys[:100], *keys[:5])) == 105


def test_other_tenants_and_wrong_arguments(base: Database, db: Store) -> None:
    _fill(db)
    key = Survey.key(tenant_id="acme", survey_id="s")
    other = base.tenant("other")
    assert other.transact_get(Survey.key(survey_id="s")) == (None,)
    assert other.get_many(Survey.key(survey_id="s")) == (None,)
    for read in (other.get_many, other.transact_get):
        with pytest.raises(TenantViolation):
            read(key)
    (found,) = base.admin().transact_get(key)
    assert found is not None
    for read in (db.get_many, db.transact_get):
        with pytest.raises(DataError, match=r"takes keys of entities, such as User.key\(username=...\), got"):
            read(key, Survey)  # type: ignore[call-overload]  # what it rejects
        with pytest.raises(DataError, match="section_id is missing"):
            read(Section.key(survey_id="s"))  # type: ignore[call-arg]  # what the test is about
    with pytest.raises(DataError, match="not a primary key"):
        Section.by_order(survey_id="s")  # type: ignore[call-arg]  # what the test is about
    with pytest.raises(DataError, match="no part 'nope'"):
        Section.key(nope=1)  # type: ignore[call-arg]  # what the test is about


def test_a_foreign_item_is_not_an_entity(db: Store, opening: Opening) -> None:
    db.put(Book(book_id="b", title="T", author="A"))
    opening.plant(library, {**opening.only(Book), "_type": {"S": "Ghost"}})
    for read in (db.get_many, db.transact_get):
        with pytest.raises(StoredDataError):
            read(Book.key(book_id="b"))


def test_a_conflict_is_retried_and_then_named(db: Store, opening: Opening) -> None:
    _fill(db)
    opening.spy.sleep = lambda seconds: None
    conflict = {"Code": "TransactionConflict", "Message": "conflict"}
    times = 3

    def before(request: Any) -> None:
        nonlocal times
        if isinstance(request, TransactGetItems) and times:
            times -= 1
            raise TransactionCancelled([{"Code": "None"}, conflict])

    opening.spy.before = before
    survey, book = db.transact_get(Survey.key(survey_id="s"), Book.key(book_id="b"))
    assert (survey is None, book is None, times) == (False, False, 0)
    times = 1_000
    with pytest.raises(TransactionFailed, match=r"#2 Book.key\(book_id='b'\).*try again") as failed:
        db.transact_get(Survey.key(survey_id="s"), Book.key(book_id="b"))
    assert [failure.code for failure in failed.value.failures] == ["TransactionConflict"]
    assert failed.value.reasons[1] == conflict


def test_the_same_verbs_as_flows(opening: Opening) -> None:
    if opening.runner is not None:
        pytest.skip("a flow of the blocking store")
    db = opening(surveyor, library, other_table)
    db.put(Badge(name="n"))
    db.tenant("acme").put(Book(book_id="b", title="T", author="A"))
    scope = flow.scope_of(db.admin())
    keys = (Badge.key(name="n"), Book.key(tenant_id="acme", book_id="b"))
    with pytest.raises(DataError, match="got dict"):
        flow.run(flow.get_many(scope, Badge.key(name="n"), {}), db)  # type: ignore[call-overload]  # rejected
    for verb in (flow.get_many, flow.transact_get):
        found = flow.run(verb(scope, *keys), db)
        assert [type(each).__name__ for each in found] == ["Badge", "Book"]


def test_keys_compare_and_print() -> None:
    key = Survey.key(survey_id="s")
    assert (key, hash(key)) == (Survey.key(survey_id="s"), hash(Survey.key(survey_id="s")))
    assert key != Survey.key(survey_id="t")
    assert key != "x"
    assert repr(key) == "Survey.key(survey_id='s')"


def test_a_key_part_may_have_the_name_self(opening: Opening) -> None:
    table = Table("Selves")

    class Node(Entity, table=table):
        key = Key("NODE#{self}", "NODE")
        self: str

    db = opening(table)
    db.put(Node(self="a"))
    assert [each.self for each in db.all(Node.key.query(self="a"))] == ["a"]
    (found,) = db.get_many(Node.key(self="a"))
    assert found is not None
