"""Any sequence of writes leaves every stored item's index keys equal to those derived from the item.

Judged on the stored items themselves, and by asking each index: what it gives is what a plain dict of the
entities gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from solotable import Database, Store
from solotable._connect import connect
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable.errors import AlreadyExists, DataError, NotFound, TransactionFailed
from tests.store.models import Book, library
from tests.store.opening import stale_among

IDS = st.sampled_from(["a", "b", "c#", "%23"])
TEXTS = st.sampled_from(["", "x", "y#x", "é", "$"])
MOMENTS = st.integers(0, 3).map(lambda days: datetime(2030, 1, 1, tzinfo=UTC) + timedelta(days=days))
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "title": TEXTS,
    "author": TEXTS,
    "year": st.integers(0, 9999),
    "stars": st.integers(-5, 5),
    "shelf": st.none() | TEXTS,
    "position": st.none() | st.integers(-9999, 9999),
    "due": st.none() | MOMENTS,
    "tags": st.sets(TEXTS, max_size=2),
    "notes": TEXTS,
}
BOOKS = st.fixed_dictionaries(
    {"title": TEXTS, "author": TEXTS},
    optional={name: values for name, values in FIELDS.items() if name not in ("title", "author")},
)
SETS = st.fixed_dictionaries({}, optional=FIELDS)
REMOVES = st.sets(st.sampled_from(["year", "stars", "shelf", "position", "due", "tags", "notes"]), max_size=3)
ADDS = st.fixed_dictionaries(
    {},
    optional={
        "year": st.integers(-100, 100),
        "position": st.integers(-5, 5),
        "stars": st.integers(-2, 2),
        "tags": st.sets(TEXTS, min_size=1, max_size=2),
    },
)
CHANGES = st.tuples(SETS, REMOVES, ADDS).map(lambda given: _apart(*given)).filter(any)
WRITES = st.lists(
    st.tuples(st.sampled_from(["put", "create", "update", "delete"]), IDS, BOOKS, CHANGES),
    min_size=1,
    max_size=4,
    unique_by=lambda write: write[1],
)

Changes = tuple[dict[str, Any], set[str], dict[str, Any]]
#: What an absent attribute reads as.
ABSENT: dict[str, Any] = {
    "year": 2000,
    "stars": 0,
    "shelf": None,
    "position": None,
    "due": None,
    "tags": set(),
    "notes": "",
}


def _apart(sets: dict[str, Any], removes: set[str], adds: dict[str, Any]) -> Changes:
    """Let every field be changed once."""
    adds = {name: value for name, value in adds.items() if name not in sets}
    return sets, {name for name in removes if name not in sets and name not in adds}, adds


class Writes(RuleBasedStateMachine):
    """A store beside a dict of what it should hold."""

    base: Database
    db: Store

    @initialize()
    def open(self) -> None:
        self.base = connect("sqlite://", library)
        self.db = self.base.tenant("acme")
        #: The fields of each book as stored; a field that is missing here is absent there.
        self.stored: dict[str, dict[str, Any]] = {}

    def teardown(self) -> None:
        if hasattr(self, "base"):
            self.base.close()

    @rule(book_id=IDS, fields=BOOKS)
    def put(self, book_id: str, fields: dict[str, Any]) -> None:
        self.db.put(Book(book_id=book_id, **fields))
        self.stored[book_id] = _kept(Book(book_id=book_id, **fields))

    @rule(book_id=IDS, fields=BOOKS)
    def create(self, book_id: str, fields: dict[str, Any]) -> None:
        try:
            self.db.create(Book(book_id=book_id, **fields))
        except AlreadyExists:
            assert book_id in self.stored
        else:
            assert book_id not in self.stored
            self.stored[book_id] = _kept(Book(book_id=book_id, **fields))

    @rule(book_id=IDS, changes=CHANGES, by_entity=st.booleans())
    def update(self, book_id: str, changes: Changes, by_entity: bool) -> None:
        sets, removes, adds = changes
        found = self.db.get(Book, book_id=book_id) if by_entity else None
        try:
            if found is not None:
                after = self.db.update(found, set=sets, remove=removes, add=adds)
            else:
                after = self.db.update(Book, book_id=book_id, set=sets, remove=removes, add=adds)
        except NotFound:
            assert book_id not in self.stored
        except DataError:
            assert self._unfit(book_id, changes)
        else:
            self.stored[book_id] = _changed(self.stored[book_id], changes)
            assert after == self._book(book_id)

    @rule(book_id=IDS)
    def delete(self, book_id: str) -> None:
        there = self._book(book_id) if book_id in self.stored else None
        assert self.db.delete(Book, book_id=book_id) == there
        self.stored.pop(book_id, None)

    @rule(writes=WRITES)
    def transaction(self, writes: list[tuple[str, str, dict[str, Any], Changes]]) -> None:
        try:
            with self.db.transaction() as tx:
                for verb, book_id, fields, (sets, removes, adds) in writes:
                    if verb == "update":
                        tx.update(Book, book_id=book_id, set=sets, remove=removes, add=adds)
                    elif verb == "delete":
                        tx.delete(Book, book_id=book_id)
                    else:
                        getattr(tx, verb)(Book(book_id=book_id, **fields))
        except (TransactionFailed, NotFound, DataError):
            assert any(self._refuses(*write) for write in writes)
            return
        for verb, book_id, fields, changes in writes:
            if verb == "update":
                self.stored[book_id] = _changed(self.stored[book_id], changes)
            elif verb == "delete":
                self.stored.pop(book_id, None)
            else:
                self.stored[book_id] = _kept(Book(book_id=book_id, **fields))

    @rule(writes=WRITES)
    def batch(self, writes: list[tuple[str, str, dict[str, Any], Changes]]) -> None:
        with self.db.batch() as batch:
            for verb, book_id, fields, _ in writes:
                if verb == "delete":
                    batch.delete(Book, book_id=book_id)
                    self.stored.pop(book_id, None)
                else:
                    batch.put(Book(book_id=book_id, **fields))
                    self.stored[book_id] = _kept(Book(book_id=book_id, **fields))

    @rule(book_id=IDS, fields=SETS)
    def read_change_and_put(self, book_id: str, fields: dict[str, Any]) -> None:
        found = self.db.get(Book, book_id=book_id)
        if found is not None:
            for name, value in fields.items():
                setattr(found, name, value)
            self.stored[book_id] = _kept(self.db.put(found))

    @invariant()
    def keys_are_those_of_the_items(self) -> None:
        if not hasattr(self, "base"):
            return
        page = self.base.engine.handle(Scan(table=library.name, consistent=True))
        items = decode_items(page.items or ())
        assert stale_among(items, library) == []
        assert len(items) == len(self.stored)

    @invariant()
    def indexes_give_what_is_stored(self) -> None:
        if not hasattr(self, "base"):
            return
        books = [self._book(book_id) for book_id in self.stored]
        assert _by_id(self.db.all(Book.key.query())) == _by_id(books)
        assert _by_id(self.db.all(Book.by_year.query())) == _by_id(books)
        assert _by_id(self.db.all(Book.by_title.query())) == _by_id(books)
        due = [each for each in books if each.due is not None]
        assert [each.due for each in self.db.all(Book.by_due.query().consistent())] == sorted(
            each.due for each in due if each.due is not None
        )
        for text in ("", "x", "y#x", "é", "$"):
            of_author = [each for each in books if each.author == text]
            of_author.sort(key=lambda each: (each.year, each.book_id.replace("%", "%25").replace("#", "%23")))
            assert list(self.db.all(Book.of_author(text))) == of_author
            shelved = [each.position for each in books if each.shelf == text and each.position is not None]
            assert [each.position for each in self.db.all(Book.on_shelf(text))] == sorted(shelved)

    def _book(self, book_id: str) -> Book:
        return Book(tenant_id="acme", book_id=book_id, **self.stored[book_id])

    def _refuses(self, verb: str, book_id: str, fields: dict[str, Any], changes: Changes) -> bool:
        if verb == "create":
            return book_id in self.stored
        if verb == "update":
            return book_id not in self.stored or self._unfit(book_id, changes)
        return False

    def _unfit(self, book_id: str, changes: Changes) -> bool:
        """Whether what is added leaves the width of a key."""
        after = {**ABSENT, **_changed(self.stored[book_id], changes)} if book_id in self.stored else ABSENT
        return not 0 <= after["year"] <= 9999 or not -9999 <= (after["position"] or 0) <= 9999


def _kept(book: Book) -> dict[str, Any]:
    """Return the fields of a book that have an attribute once it is put."""
    return {
        name: value
        for name, value in book
        if name not in ("tenant_id", "book_id") and value is not None and value != set()
    }


def _changed(stored: dict[str, Any], changes: Changes) -> dict[str, Any]:
    sets, removes, adds = changes
    after = {**stored, **sets}
    for name, value in adds.items():
        # DynamoDB: what is added to an absent attribute is added to nothing, whatever the model's default.
        after[name] = after.get(name, set()) | value if name == "tags" else after.get(name, 0) + value
    return {
        name: value
        for name, value in after.items()
        if name not in removes and value is not None and value != set()
    }


def _by_id(books: Iterable[Book]) -> list[Book]:
    return sorted(books, key=lambda each: each.book_id)


Writes.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestWrites = Writes.TestCase
