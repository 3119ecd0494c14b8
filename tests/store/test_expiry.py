"""Time to live: what has passed is hidden on every way to read, and counts as gone on every way to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from solotable import ANY, Store
from solotable.errors import AlreadyExists, NotFound, TransactionFailed, VersionConflict

from .models import Book, Loan, Notice, library
from .opening import Opening

QUERY = Loan.by_reader.query(reader="r")


def _put(db: Store, opening: Opening, loan_id: str, seconds: float | None) -> Loan:
    return db.put(
        Loan(loan_id=loan_id, reader="r", expires_at=None if seconds is None else opening.clock.at(seconds))
    )


READS: dict[str, Callable[[Store], list[str]]] = {
    "get": lambda db: [each.loan_id for name in "abc" if (each := db.get(Loan, loan_id=name)) is not None],
    "get_many": lambda db: [
        each.loan_id
        for each in db.get_many(Loan, [{"loan_id": name} for name in "abc"], consistent=True)
        if each is not None
    ],
    "page": lambda db: [each.loan_id for each in db.page(QUERY, limit=10)],
    "page that fills": lambda db: [
        each.loan_id for each in db.page(QUERY, limit=1, where=lambda e: e.note == "")
    ],
    "all": lambda db: [each.loan_id for each in db.all(QUERY)],
    "all of the table": lambda db: [each.loan_id for each in db.all(Loan.key.query())],
    "collection": lambda db: [each.loan_id for each in db.collection(Book, Loan)[1]],
}


@pytest.mark.parametrize("way", READS)
def test_what_has_passed_is_hidden(db: Store, opening: Opening, way: str) -> None:
    _put(db, opening, "a", 100)
    _put(db, opening, "b", 1000)
    _put(db, opening, "c", None)
    one = way == "page that fills"
    assert READS[way](db) == (["a"] if one else ["a", "b", "c"])
    opening.clock.seconds += 99.9
    assert READS[way](db)[0] == "a", "not a moment before"
    opening.clock.seconds += 0.1
    assert READS[way](db) == (["b"] if one else ["b", "c"])
    opening.clock.seconds += 10_000
    assert READS[way](db) == ["c"]
    assert len(opening.raw(library)) == 3, "DynamoDB has not removed them yet"


def test_first_count_and_require(db: Store, opening: Opening) -> None:
    _put(db, opening, "a", 100)
    _put(db, opening, "b", None)
    opening.clock.seconds += 100
    first = db.first(QUERY)
    assert first is not None
    assert first.loan_id == "b"
    assert db.count(QUERY) == 1
    assert db.count(QUERY, where=lambda e: e.loan_id == "a") == 0
    with pytest.raises(NotFound):
        db.require(Loan, loan_id="a")


def test_an_index_of_keys_only(db: Store, opening: Opening) -> None:
    db.put(Notice(notice_id="a", expires_at=opening.clock.at(100)))
    db.put(Notice(notice_id="b"))
    opening.clock.seconds += 100
    query = Notice.by_kind.query(kind="note")
    assert [each.notice_id for each in db.all(query)] == ["b"]
    assert [each.notice_id for each in db.page(query, limit=1)] == ["b"]
    assert db.count(query) == 1


def _in_transaction(db: Store, verb: str, *arguments: Any, **named: Any) -> None:
    with db.transaction() as tx:
        getattr(tx, verb)(*arguments, **named)


def test_writes_take_it_for_gone(db: Store, opening: Opening) -> None:
    old = _put(db, opening, "a", 100)
    opening.clock.seconds += 100
    with pytest.raises(NotFound, match="Loan"):
        db.update(Loan, loan_id="a", version=ANY, set={"note": "n"})
    with pytest.raises(NotFound, match="Loan"):
        db.update(Loan, loan_id="a", version=ANY, set={"reader": "n"})
    with pytest.raises((NotFound, VersionConflict)):
        db.update(old, set={"note": "n"})
    with pytest.raises(TransactionFailed) as failed:
        _in_transaction(db, "check", Loan, loan_id="a")
    assert isinstance(failed.value.failures[0].error, NotFound)
    with pytest.raises(TransactionFailed):
        _in_transaction(db, "update", Loan, loan_id="a", version=ANY, set={"note": "n"})
    assert opening.only(Loan)["note"] == {"S": ""}
    assert db.delete(Loan, loan_id="a", version=ANY) is None


@pytest.mark.parametrize("way", ["create", "put", "transaction create", "transaction put"])
def test_a_new_one_may_be_made_over_it(db: Store, opening: Opening, way: str) -> None:
    _put(db, opening, "a", 100)
    new = Loan(loan_id="a", reader="q", expires_at=opening.clock.at(5000))
    verb = way.removeprefix("transaction ")

    def write() -> None:
        if way.startswith("transaction"):
            _in_transaction(db, verb, new)
        else:
            getattr(db, verb)(new)

    with pytest.raises((AlreadyExists, VersionConflict, TransactionFailed)):
        write()
    opening.clock.seconds += 100
    write()
    assert db.require(Loan, loan_id="a").reader == "q"
    assert db.require(Loan, loan_id="a").version == 1


def test_a_lifetime_may_be_changed(db: Store, opening: Opening) -> None:
    old = _put(db, opening, "a", 100)
    longer = db.update(old, set={"expires_at": opening.clock.at(500.75)})
    assert longer.expires_at == opening.clock.at(500), "expiry knows whole seconds"
    opening.clock.seconds += 200
    assert db.get(Loan, loan_id="a") == longer
    forever = db.update(longer, set={"expires_at": None})
    opening.clock.seconds += 10_000
    assert db.get(Loan, loan_id="a") == forever
