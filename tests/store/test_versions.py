"""The optimistic lock: on every way to write, with both items in the conflict and nothing changed by it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from solotable import ANY, Store
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    DataError,
    DeclarationError,
    TransactionFailed,
    VersionConflict,
)

from .models import Loan, Reader, Survey
from .opening import Opening


def _in_transaction(db: Store, verb: str, *arguments: Any, **named: Any) -> None:
    with db.transaction() as tx:
        getattr(tx, verb)(*arguments, **named)


#: Every way to write a stale copy. `old` is version 1, version 2 is stored.
STALE: dict[str, Callable[[Store, Loan], Any]] = {
    "put": lambda db, old: db.put(old),
    "put of a new one": lambda db, old: db.put(Loan(loan_id="l", reader="x")),
    "update by entity": lambda db, old: db.update(old, set={"note": "mine"}),
    "update by entity, index key": lambda db, old: db.update(old, set={"reader": "mine"}),
    "update by key": lambda db, old: db.update(Loan, loan_id="l", version=1, set={"note": "mine"}),
    "delete": lambda db, old: db.delete(old),
    "delete by key": lambda db, old: db.delete(Loan, loan_id="l", version=1),
    "transaction put": lambda db, old: _in_transaction(db, "put", old),
    "transaction update": lambda db, old: _in_transaction(db, "update", old, set={"note": "mine"}),
    "transaction update by key": lambda db, old: _in_transaction(
        db, "update", Loan, loan_id="l", version=1, set={"note": "mine"}
    ),
    "transaction delete": lambda db, old: _in_transaction(db, "delete", old),
    "transaction check": lambda db, old: _in_transaction(db, "check", Loan, loan_id="l", version=1),
}


@pytest.mark.parametrize("way", STALE)
def test_a_stale_write_is_a_conflict(db: Store, opening: Opening, way: str) -> None:
    old = db.put(Loan(loan_id="l", reader="r", note="first"))
    assert old.version == 1
    theirs = db.update(old, set={"note": "theirs"})
    assert theirs.version == 2
    mine = old.model_copy()
    before = opening.only(Loan)
    with pytest.raises((VersionConflict, TransactionFailed)) as failed:
        STALE[way](db, old)
    conflict = failed.value
    if isinstance(conflict, TransactionFailed):
        assert [failure.position for failure in conflict.failures] == [0]
        conflict = conflict.failures[0].error
    assert isinstance(conflict, VersionConflict)
    assert conflict.theirs == theirs
    assert "Loan loan_id='l'" in str(conflict)
    assert re.search("found (version )?2;", str(conflict))
    if "by key" not in way and "check" not in way and "new" not in way:
        assert conflict.mine is old
    assert old == mine, "the caller's object is as it was"
    assert opening.only(Loan) == before


@pytest.mark.parametrize("way", [way for way in STALE if "put of" not in way])
def test_a_write_of_what_is_gone_is_a_conflict(db: Store, opening: Opening, way: str) -> None:
    old = db.put(Loan(loan_id="l", reader="r"))
    db.delete(old)
    with pytest.raises((VersionConflict, TransactionFailed, ConditionFailed)) as failed:
        STALE[way](db, old)
    conflict: Any = failed.value
    if isinstance(conflict, TransactionFailed):
        conflict = conflict.failures[0].error
    assert isinstance(conflict, VersionConflict) or "no Loan" in str(conflict)
    assert getattr(conflict, "theirs", None) is None
    assert opening.raw(Loan.plan().table) == []


def test_create_of_a_versioned_entity(db: Store) -> None:
    first = db.create(Loan(loan_id="l", reader="r"))
    assert first.version == 1
    with pytest.raises(AlreadyExists) as failed:
        db.create(Loan(loan_id="l", reader="q"))
    assert failed.value.found == first
    with pytest.raises(AlreadyExists):
        db.create(first)
    with pytest.raises(TransactionFailed) as cancelled:
        _in_transaction(db, "create", Loan(loan_id="l", reader="q"))
    assert isinstance(cancelled.value.failures[0].error, AlreadyExists)


def test_versions_ascend_by_one_on_every_path(db: Store) -> None:
    loan = db.put(Loan(loan_id="l", reader="r"))
    loan = db.put(loan)
    loan = db.update(loan, set={"note": "n"})
    loan = db.update(Loan, loan_id="l", version=3, set={"reader": "q"})
    assert loan.version == 4
    loan = db.update(Loan, loan_id="l", version=ANY, add={"copies": 1})
    assert (loan.version, loan.copies) == (5, 2)
    with db.transaction() as tx:
        after = tx.put(loan)
    assert after.version == 6
    with db.transaction() as tx:
        tx.update(after, set={"note": "m"})
    assert db.require(Loan, loan_id="l").version == 7
    with db.batch(overwrite=True) as batch:
        batch.put(db.require(Loan, loan_id="l"))
    assert db.require(Loan, loan_id="l").version == 8
    assert db.delete(Loan, loan_id="l", version=ANY) is not None


def test_a_write_by_key_must_say_which_version(db: Store, opening: Opening) -> None:
    db.put(Loan(loan_id="l", reader="r"))
    db.put(Survey(survey_id="s", title="t"))
    opening.spy.sent.clear()
    with pytest.raises(DeclarationError, match=r"Loan needs version=.*version=ANY"):
        db.update(Loan, loan_id="l", set={"note": "n"})
    with pytest.raises(DeclarationError, match=r"Loan needs version=.*version=ANY"):
        db.delete(Loan, loan_id="l")
    with pytest.raises(DeclarationError, match="Survey needs version="), db.transaction() as tx:
        tx.delete(Survey, survey_id="s")
    with pytest.raises(DeclarationError, match="Survey needs version="), db.transaction() as tx:
        tx.update(Survey, survey_id="s", set={"title": "x"})
    with pytest.raises(DeclarationError, match="Reader has no Version field"):
        db.delete(Reader, reader_id="r", version=1)
    with pytest.raises(DataError, match=r"Loan is versioned.*overwrite=True"), db.batch() as batch:
        batch.put(Loan(loan_id="l", reader="x"))
    with pytest.raises(DataError, match=r"Loan is versioned"), db.batch() as batch:
        batch.delete(Loan, loan_id="l")
    assert opening.spy.sent == []


def test_a_failed_condition_with_the_right_version_is_not_a_conflict(db: Store) -> None:
    loan = db.put(Loan(loan_id="l", reader="r"))
    writes: list[Callable[[], object]] = [
        lambda: db.put(loan, where=lambda each: each.note == "x"),
        lambda: db.update(loan, set={"note": "y"}, where=lambda each: each.note == "x"),
        lambda: db.delete(loan, where=lambda each: each.note == "x"),
    ]
    for write in writes:
        with pytest.raises(ConditionFailed) as failed:
            write()
        assert not isinstance(failed.value, VersionConflict)
        assert failed.value.found == loan
        assert "note" in str(failed.value)


@pytest.mark.parametrize("version", ["7", 7.0, True, b"7", ()])
def test_an_invalid_version_is_never_taken_for_any(db: Store, version: Any) -> None:
    loan = db.put(Loan(loan_id="l", reader="r"))
    with pytest.raises(DataError, match="version= takes an int or ANY"):
        db.update(Loan, loan_id="l", version=version, set={"note": "x"})
    with pytest.raises(DataError, match="version= takes an int or ANY"):
        db.delete(Loan, loan_id="l", version=version)
    for verb in ("update", "delete", "check"):
        changes: Any = {"set": {"note": "x"}} if verb == "update" else {}
        with pytest.raises(DataError, match="version= takes an int or ANY"):
            _in_transaction(db, verb, Loan, loan_id="l", version=version, **changes)
    assert db.get(Loan, loan_id="l") == loan


def test_a_check_of_what_has_no_version_takes_none(db: Store) -> None:
    db.put(Reader(reader_id="r", name="Ann"))
    with pytest.raises(DeclarationError, match="Reader has no Version field"):
        _in_transaction(db, "check", Reader, reader_id="r", version=1)
