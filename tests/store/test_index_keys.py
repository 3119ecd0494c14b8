"""Index keys follow the item: given, read and written under a condition, or gone together."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from solotable import ANY, Store
from solotable._protocol.requests import GetItem, TransactWriteItems, UpdateItem
from solotable.errors import ConditionFailed, DataError, NotFound, VersionConflict

from .models import Book, Loan, Section, library, surveyor
from .opening import Opening, stale_keys


def _book(**changes: object) -> Book:
    return Book.model_validate({"book_id": "b", "title": "T", "author": "A", **changes})


def test_all_parts_given_need_no_read(db: Store, opening: Opening) -> None:
    db.put(Section(survey_id="s1", section_id="roof", name="Roof", order=1))
    opening.spy.sent.clear()
    db.update(Section, survey_id="s1", section_id="roof", set={"order": 5})
    assert [type(each) for each in opening.spy.sent] == [UpdateItem]
    assert opening.only(Section)["GSI2SK"] == {"S": "SECTION#000005"}
    assert stale_keys(opening, surveyor) == []


def test_an_untouched_index_key_is_not_rewritten(db: Store, opening: Opening) -> None:
    db.put(_book())
    opening.spy.sent.clear()
    db.update(Book, book_id="b", set={"notes": "n"})
    (sent,) = opening.spy.sent
    assert isinstance(sent, UpdateItem)
    assert [action.path for action in sent.update.actions] == [("notes",)]


def test_a_part_that_is_not_given_is_read(db: Store, opening: Opening) -> None:
    db.put(_book(year=1999))
    opening.spy.sent.clear()
    after = db.update(Book, book_id="b", set={"author": "Z"})
    assert [type(each) for each in opening.spy.sent] == [GetItem, UpdateItem]
    assert opening.spy.of(GetItem)[0].consistent
    item = opening.only(Book)
    assert item["GSI1PK"] == {"S": "TENANT#acme#AUTHOR#Z"}
    assert item["GSI1SK"] == {"S": "BOOK#1999#b"}
    assert list(db.all(Book.of_author("Z"))) == [after]
    assert list(db.all(Book.of_author("A"))) == []


def test_a_racing_writer_is_seen(db: Store, opening: Opening) -> None:
    """Somebody changes the year between our read and our write: the key has their year and our author."""
    db.put(_book(year=1999))
    beside = opening.beside(surveyor, library).tenant("acme")
    opening.spy.once(UpdateItem, lambda: beside.update(Book, book_id="b", set={"year": 2024}))
    after = db.update(Book, book_id="b", set={"author": "Z"})
    assert (after.author, after.year) == ("Z", 2024)
    assert opening.only(Book)["GSI1SK"] == {"S": "BOOK#2024#b"}
    assert stale_keys(opening, library) == []


def test_a_racing_delete_is_seen(db: Store, opening: Opening) -> None:
    db.put(_book(year=1999))
    beside = opening.beside(surveyor, library).tenant("acme")
    opening.spy.once(UpdateItem, lambda: beside.delete(Book, book_id="b"))
    with pytest.raises(NotFound, match="Book"):
        db.update(Book, book_id="b", set={"author": "Z"})
    assert opening.raw(library) == []


def test_a_writer_that_never_stops_racing_ends_in_an_error(db: Store, opening: Opening) -> None:
    db.put(_book(year=1000))
    beside = opening.beside(surveyor, library).tenant("acme")

    def race(request: object) -> None:
        if isinstance(request, UpdateItem):
            beside.update(Book, book_id="b", add={"year": 1})

    opening.spy.before = race
    with pytest.raises(ConditionFailed, match="Book"):
        db.update(Book, book_id="b", set={"author": "Z"})
    opening.spy.before = None
    assert db.require(Book, book_id="b").author == "A"
    assert stale_keys(opening, library) == []


def test_a_race_inside_a_transaction_is_seen(db: Store, opening: Opening) -> None:
    db.put(_book(year=1999))
    beside = opening.beside(surveyor, library).tenant("acme")
    opening.spy.once(
        TransactWriteItems, lambda: beside.update(Book, book_id="b", set={"year": 2024, "shelf": "s"})
    )
    with db.transaction() as tx:
        tx.update(Book, book_id="b", set={"author": "Z"})
        tx.put(_book(book_id="c"))
    assert stale_keys(opening, library) == []
    assert [each.year for each in db.all(Book.of_author("Z"))] == [2024]


def test_a_race_under_a_version_is_a_conflict(db: Store, opening: Opening) -> None:
    loan = db.put(Loan(loan_id="l", reader="r"))
    beside = opening.beside(surveyor, library).tenant("acme")
    opening.spy.once(
        UpdateItem, lambda: beside.update(Loan, loan_id="l", version=ANY, set={"reader": "theirs"})
    )
    with pytest.raises(VersionConflict) as failed:
        db.update(loan, set={"reader": "mine"})
    assert failed.value.theirs.reader == "theirs"
    assert stale_keys(opening, library) == []


def test_a_false_condition_beside_parts_that_were_read_is_not_tried_again(
    db: Store, opening: Opening
) -> None:
    db.put(_book(year=1999))
    opening.spy.sent.clear()
    with pytest.raises(ConditionFailed, match="stars"):
        db.update(Book, book_id="b", set={"author": "Z"}, where=lambda b: b.stars > 3)
    assert len(opening.spy.of(UpdateItem)) == 1


def test_adding_to_a_part_of_a_key(db: Store, opening: Opening) -> None:
    db.put(_book(year=1999, shelf="s", position=-2))
    after = db.update(Book, book_id="b", add={"year": 2, "position": 5})
    assert (after.year, after.position) == (2001, 3)
    assert stale_keys(opening, library) == []
    assert [each.position for each in db.all(Book.on_shelf("s"))] == [3]


def test_none_removes_both_attributes_and_a_value_restores_both(db: Store, opening: Opening) -> None:
    db.put(_book(shelf="s", position=1))
    for changes in ({"set": {"shelf": None}}, {"remove": ["position"]}, {"set": {"position": None}}):
        db.put(_book(shelf="s", position=1))
        assert {"GSI2PK", "GSI2SK"} <= set(opening.only(Book))
        db.update(Book, book_id="b", **changes)
        assert {"GSI2PK", "GSI2SK"} & set(opening.only(Book)) == set()
        assert list(db.all(Book.on_shelf("s"))) == []
    back = db.update(Book, book_id="b", set={"position": 7})
    assert list(db.all(Book.on_shelf("s"))) == [back]
    assert stale_keys(opening, library) == []
    db.put(_book())
    assert {"GSI2PK", "GSI2SK"} & set(opening.only(Book)) == set()


def test_half_of_a_sparse_key_is_not_a_key(db: Store, opening: Opening) -> None:
    db.put(_book(shelf="s"))
    assert {"GSI2PK", "GSI2SK"} & set(opening.only(Book)) == set()
    db.update(Book, book_id="b", set={"position": 0})
    assert {"GSI2PK", "GSI2SK"} <= set(opening.only(Book))


def test_a_local_index(db: Store, opening: Opening) -> None:
    due = [datetime(2030, 1, day, tzinfo=UTC) for day in (3, 1, 2)]
    for number, moment in enumerate(due):
        db.put(_book(book_id=str(number), due=moment))
    db.put(_book(book_id="never"))
    query = Book.by_due.query()
    assert [each.book_id for each in db.all(query.consistent())] == ["1", "2", "0"]
    assert [each.book_id for each in db.all(query.since(due=due[2]))] == ["2", "0"]
    db.update(Book, book_id="1", set={"due": None})
    db.update(Book, book_id="2", set={"due": datetime(2031, 1, 1, tzinfo=UTC)})
    assert [each.book_id for each in db.all(query.consistent())] == ["0", "2"]
    assert stale_keys(opening, library) == []


def test_an_item_from_before_a_field_was_there(db: Store, opening: Opening) -> None:
    """An attribute that is absent reads as its default, and the keys are those of the default."""
    db.put(_book())
    item = opening.only(Book)
    del item["year"]
    opening.plant(library, item)
    after = db.update(Book, book_id="b", set={"author": "Z"})
    assert (after.author, after.year) == ("Z", 2000)
    assert stale_keys(opening, library) == []
    assert db.update(Book, book_id="b", set={"year": 1990}).year == 1990
    assert db.update(Book, book_id="b", remove=["year"]).year == 2000
    assert stale_keys(opening, library) == []
    assert db.update(Book, book_id="b", add={"year": 1985}).year == 1985
    assert stale_keys(opening, library) == []


def test_a_value_that_does_not_fit_its_key_is_refused_on_every_path(db: Store, opening: Opening) -> None:
    db.put(_book(year=9999))
    before = opening.only(Book)
    writes: list[Callable[[], object]] = [
        lambda: db.put(_book(year=12345)),
        lambda: db.put(_book(year=-1)),
        lambda: db.update(Book, book_id="b", set={"year": 10_000}),
        lambda: db.update(Book, book_id="b", add={"year": 1}),
        lambda: db.put(_book(due=datetime(2030, 1, 1, tzinfo=UTC), position=100_000, shelf="s")),
    ]
    for write in writes:
        with pytest.raises(DataError, match=r"year|position"):
            write()
    assert opening.only(Book) == before


def test_keys_after_every_kind_of_write(db: Store, opening: Opening) -> None:
    db.create(_book(shelf="s", position=1))
    db.put(_book(author="B"))
    with db.batch() as batch:
        batch.put(_book(book_id="c", author="B", shelf="s", position=2))
    with db.transaction() as tx:
        tx.update(Book, book_id="b", set={"shelf": "q", "position": -3, "title": "U"})
        tx.put(_book(book_id="d", year=5))
        tx.create(_book(book_id="e"))
        tx.update(Book, book_id="c", remove=["shelf"])
    assert stale_keys(opening, library) == []
    assert [each.book_id for each in db.all(Book.on_shelf("q"))] == ["b"]
    assert [each.book_id for each in db.all(Book.by_title.query(title="U"))] == ["b"]
