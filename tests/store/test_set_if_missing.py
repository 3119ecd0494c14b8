"""`set_if_missing=` and `prepend=` of an update."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import pytest
from pydantic import Field

from solotable import TTL, Database, Entity, Index, Key, Retention, Table, flow
from solotable._protocol.requests import GetItem, UpdateItem
from solotable.errors import DataError

from .opening import Opening, stale_keys

shelf = Table("Shelf", indexes=[Index("GSI1")], ttl="expires_at")


class Book(Entity, table=shelf):
    key = Key("BOOK#{book_id}", "BOOK")
    by_owner = Key("OWNER#{owner}", "{place}", index="GSI1")
    book_id: str
    title: str | None = None
    owner: str | None = None
    place: str = "hall"
    notes: list[str] = Field(default_factory=list)
    short: Annotated[list[str], Field(max_length=2)] = Field(default_factory=list)


class Letter(Entity, table=shelf):
    key = Key("LETTER#{letter_id}", "LETTER")
    retention = Retention(timedelta(days=1), since="read_at")
    letter_id: str
    read_at: datetime | None = None
    expires_at: Annotated[datetime | None, TTL()] = None


@pytest.fixture
def store(opening: Opening) -> Database:
    return opening(shelf)


def test_a_value_is_set_where_none_is_stored(store: Database, opening: Opening) -> None:
    store.put(Book(book_id="b"))
    assert store.update(Book, book_id="b", set_if_missing={"title": "A"}).title == "A"
    assert store.update(Book, book_id="b", set_if_missing={"title": "B"}).title == "A"
    assert opening.spy.of(GetItem) == []


def test_the_index_key_follows_the_value_that_is_stored(store: Database, opening: Opening) -> None:
    store.put(Book(book_id="b", place="loft"))
    assert store.update(Book, book_id="b", set_if_missing={"owner": "zoe"}).owner == "zoe"
    assert [book.book_id for book in store.all(Book.by_owner.query(owner="zoe"))] == ["b"]
    assert store.update(Book, book_id="b", set_if_missing={"owner": "ann", "place": "x"}).owner == "zoe"
    assert stale_keys(opening, shelf) == []
    assert list(store.all(Book.by_owner.query(owner="ann"))) == []


def test_an_index_key_is_computed_again_when_another_writer_sets_the_value_first(
    store: Database, opening: Opening
) -> None:
    store.put(Book(book_id="b"))
    beside = opening.beside(shelf)
    opening.spy.once(UpdateItem, lambda: beside.update(Book, book_id="b", set={"owner": "ann"}))
    assert store.update(Book, book_id="b", set_if_missing={"owner": "zoe"}).owner == "ann"
    assert stale_keys(opening, shelf) == []


def test_prepend_puts_values_at_the_start_of_a_list(store: Database) -> None:
    store.put(Book(book_id="b", notes=["c"]))
    assert store.update(Book, book_id="b", prepend={"notes": ["a", "b"]}).notes == ["a", "b", "c"]
    store.update(Book, book_id="b", remove=["notes"])
    assert store.update(Book, book_id="b", prepend={"notes": ["x"]}).notes == ["x"]


def test_both_work_in_a_transaction_and_in_a_flow(store: Database, opening: Opening) -> None:
    store.put(Book(book_id="b", notes=["b"]))
    with store.transaction() as tx:
        tx.update(Book, book_id="b", set_if_missing={"title": "T", "owner": "o"}, prepend={"notes": ["a"]})
    assert store.require(Book, book_id="b") == Book(book_id="b", title="T", owner="o", notes=["a", "b"])
    beside = opening.beside(shelf)
    update = flow.update(flow.scope_of(beside), Book, book_id="b", prepend={"notes": ["0"]})
    assert flow.run(update, beside).notes == ["0", "a", "b"]
    assert stale_keys(opening, shelf) == []


def test_a_rule_of_the_model_holds_for_a_prepended_list(store: Database) -> None:
    store.put(Book(book_id="b", short=["a"]))
    with pytest.raises(DataError, match=r"Book\.short"):
        store.update(Book, book_id="b", prepend={"short": ["b", "c"]})


def test_a_field_is_changed_once_in_an_update(store: Database) -> None:
    store.put(Book(book_id="b"))
    with pytest.raises(DataError, match=r"Book\.title is changed twice in one update"):
        store.update(Book, book_id="b", set={"title": "A"}, set_if_missing={"title": "B"})
    with pytest.raises(DataError, match=r"Book\.notes is changed twice in one update"):
        store.update(Book, book_id="b", append={"notes": ["a"]}, prepend={"notes": ["b"]})


def test_wrong_arguments_are_rejected(store: Database) -> None:
    store.put(Book(book_id="b"))
    with pytest.raises(DataError, match=r"prepend= takes lists, but Book\.title is not a list"):
        store.update(Book, book_id="b", prepend={"title": ["A"]})  # type: ignore[arg-type]  # what the test is about
    with pytest.raises(DataError, match=r"set_if_missing= takes values, got None for Book\.title"):
        store.update(Book, book_id="b", set_if_missing={"title": None})  # type: ignore[typeddict-item]  # what the test is about
    with pytest.raises(DataError, match=r"Book\.place = 7"):
        store.update(Book, book_id="b", set_if_missing={"place": 7})  # type: ignore[typeddict-item]  # what the test is about
    store.put(Letter(letter_id="l"))
    with pytest.raises(DataError, match="starts the retention period"):
        store.update(Letter, letter_id="l", set_if_missing={"read_at": datetime(2035, 1, 1, tzinfo=UTC)})
