"""An entity with every pattern at once, in whatever order: what is stored along always fits what is stored.

After each step the raw items are compared with one another: the locks are those of the values that are
held, counters are the live children, snapshots are all there, what is hidden is in no index and has a
ticket, each change has one event, and nothing belongs to nobody. What is refused leaves no trace.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pydantic import Field

from solotable import (
    ANY,
    FROM_SCOPE,
    TTL,
    Counted,
    Counter,
    Database,
    Entity,
    History,
    Index,
    Key,
    Outbox,
    Retention,
    SoftDelete,
    Table,
    Unique,
    Updated,
    Version,
    upgrade,
)
from solotable._connect import over
from solotable._flows.jobs.reencode import stale_keys
from solotable._flows.retry import Retries
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable._values import Item
from solotable.engines import sqlite
from solotable.errors import SolotableError
from solotable.jobs.backfill import backfill
from solotable.jobs.purge import purge
from solotable.urls import Url

DAY = 86_400
before = Table(
    "Library", tenant="tenant_id", ttl="expires_at", stream=True, indexes=[Index("GSI1"), Index("GSI2")]
)
library = Table(
    "Library", tenant="tenant_id", ttl="expires_at", stream=True, indexes=[Index("GSI1"), Index("GSI2")]
)


class OldShelf(Entity, table=before, tag="Shelf"):
    key = Key("TENANT#{tenant_id}", "SHELF#{shelf}")
    deletion = SoftDelete(grace=timedelta(days=60))
    tenant_id: str = FROM_SCOPE
    shelf: str
    books: Annotated[int, Counter()] = 0
    worth: Annotated[int, Counter()] = 0


class OldBook(Entity, table=before, tag="Book", schema_version=1):
    """The release before: no index, and a genre instead of a kind."""

    key = Key("TENANT#{tenant_id}", "BOOK#{book_id}#LATEST")
    history = History("BOOK#{book_id}#v{version:06d}", restored_from="restored_from")
    events = Outbox(title="title")
    in_shelf = Counted(OldShelf, "books")
    in_worth = Counted(OldShelf, "worth", amount="price")
    deletion = SoftDelete(grace=timedelta(days=30))
    tenant_id: str = FROM_SCOPE
    book_id: str
    isbn: Annotated[str | None, Unique()] = None
    title: str = ""
    genre: str = "novel"
    shelf: str | None = None
    price: int = 1
    restored_from: int | None = None
    expires_at: Annotated[datetime | None, TTL()] = None
    version: Annotated[int, Version()] = 0


class Shelf(Entity, table=library):
    key = Key("TENANT#{tenant_id}", "SHELF#{shelf}")
    deletion = SoftDelete(grace=timedelta(days=60), cascade=("Book",))
    tenant_id: str = FROM_SCOPE
    shelf: str
    books: Annotated[int, Counter()] = 0
    worth: Annotated[int, Counter()] = 0


class Book(Entity, table=library, schema_version=2):
    key = Key("TENANT#{tenant_id}", "BOOK#{book_id}#LATEST")
    by_kind = Key("TENANT#{tenant_id}#KIND#{kind}", "{title}#{book_id}", index="GSI1", shards=3)
    by_shelf = Key("TENANT#{tenant_id}#SHELF#{shelf}", "{book_id}", index="GSI2", shards=2)
    history = History("BOOK#{book_id}#v{version:06d}", restored_from="restored_from")
    events = Outbox(title="title")
    in_shelf = Counted(Shelf, "books")
    in_worth = Counted(Shelf, "worth", amount="price")
    deletion = SoftDelete(grace=timedelta(days=30))
    retention = Retention(timedelta(days=36_500), since="sold_at")
    tenant_id: str = FROM_SCOPE
    book_id: str
    isbn: Annotated[str | None, Unique()] = None
    title: str = ""
    kind: str | None = "novel"
    tags: set[str] = Field(default_factory=set)
    notes: list[str] = Field(default_factory=list)
    shelf: str | None = None
    price: int = 1
    sold_at: datetime | None = None
    restored_from: int | None = None
    expires_at: Annotated[datetime | None, TTL()] = None
    updated_at: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @upgrade(to=2, replaces=("genre",))
    @staticmethod
    def to_kind(record: dict[str, Any]) -> dict[str, Any]:
        record["kind"] = f"{record.get('genre', 'novel')}s"
        return record


books = st.sampled_from(["a", "b"])
isbns = st.sampled_from([None, "1", "2"])
shelves = st.sampled_from([None, "left", "right", "none such"])
titles = st.sampled_from(["", "Tea", "Ada"])
START = datetime(2035, 1, 1, tzinfo=UTC)
ends = st.sampled_from([None, START + timedelta(days=20_000), START + timedelta(days=25_000)])
changes = st.one_of(
    st.builds(lambda value: {"set": {"title": value}}, titles),
    st.builds(lambda value: {"set": {"isbn": value}}, isbns),
    st.builds(lambda value: {"set": {"shelf": value}}, shelves),
    st.builds(lambda value: {"set": {"kind": value}}, st.sampled_from([None, "novel", "poem"])),
    st.builds(lambda value: {"set": {"expires_at": value}}, ends),
    st.sampled_from(
        [
            {"set": {"sold_at": START}},
            {"remove": ["expires_at"]},
            {"remove": ["isbn", "shelf"]},
            {"remove": ["kind"]},
            {"add": {"price": 3}},
            {"add": {"tags": {"old"}}, "set": {"title": "Old", "price": 9}},
            {"delete": {"tags": {"old"}}},
            {"append": {"notes": ["read"]}},
        ]
    ),
)
fields = st.fixed_dictionaries(
    {"isbn": isbns, "shelf": shelves, "title": titles, "expires_at": ends},
)
verbs = st.sampled_from(["update", "put", "restore", "delete"])


class Everything(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = START.timestamp()
        self.engine = sqlite.open(sqlite.MEMORY, clock=lambda: self.now)
        self.base = self.opened(library)
        self.db = self.base.tenant("acme")
        self.old = self.opened(before).tenant("acme")
        self.committed = 0
        self.tokens = 0
        #: The content of each version, by the book and its number.
        self.versions: dict[tuple[str, int], tuple[Any, ...]] = {}

    def opened(self, table: Table) -> Database:
        found = over(self.engine, (table,), Url("sqlite", "test"), clock=lambda: self.now)
        return Database(self.engine, replace(found.scope, retries=Retries(random=lambda: 0.0)))

    def teardown(self) -> None:
        self.engine.close()

    def raw(self) -> list[Item]:
        page = self.engine.handle(Scan(table="Library", consistent=True))
        assert not page.last_key
        return decode_items(page.items or ())

    def tagged(self, tag: str) -> list[Item]:
        return [item for item in self.raw() if item["_type"]["S"] == tag]

    def attempt(self, step: Callable[[], object], writes: int = 1) -> bool:
        """Do something; what is refused leaves no trace."""
        was = self.raw()
        try:
            step()
        except SolotableError:
            assert self.raw() == was
            return False
        self.committed += writes
        for item in self.tagged("Book"):
            book = cast(Book, Book.plan().decode(item))
            self.versions[book.book_id, book.version] = content(book)
        return True

    @initialize()
    def shelves(self) -> None:
        for shelf in ("left", "right"):
            self.db.create(Shelf(shelf=shelf))

    @initialize()
    def some_books(self) -> None:
        self.attempt(lambda: self.old.create(OldBook(book_id="a", isbn="1")))
        self.attempt(lambda: self.db.create(Book(book_id="b", title="Ada")))

    @rule(book_id=books, values=fields)
    def create(self, book_id: str, values: dict[str, Any]) -> None:
        self.makes(book_id, values, lambda: self.db.create(Book(book_id=book_id, **values)))

    @rule(book_id=books, values=fields)
    def create_by_the_release_before(self, book_id: str, values: dict[str, Any]) -> None:
        self.makes(book_id, values, lambda: self.old.create(OldBook(book_id=book_id, **values)))

    def makes(self, book_id: str, values: dict[str, Any], step: Callable[[], object]) -> None:
        taken = {item["isbn"]["S"] for item in self.tagged("Book") if "S" in item.get("isbn", {})}
        free = book_id not in {item["book_id"]["S"] for item in self.tagged("Book")}
        allowed = free and values["isbn"] not in taken and self.is_there(values["shelf"])
        assert self.attempt(step) == allowed

    @rule(book_id=books, change=changes)
    def update(self, book_id: str, change: dict[str, Any]) -> None:
        self.attempt(lambda: self.db.update(Book, book_id=book_id, version=ANY, **change))

    @rule(book_id=books, change=changes)
    def update_what_was_read(self, book_id: str, change: dict[str, Any]) -> None:
        book = self.db.get(Book, book_id=book_id)
        if book is None:
            return
        if self.attempt(lambda: self.db.update(book, **change)):
            assert not self.attempt(lambda: self.db.update(book, **change))
            assert not self.attempt(lambda: self.db.put(book))
            assert not self.attempt(lambda: self.db.delete(book))

    @rule(book_id=books, values=fields)
    def put(self, book_id: str, values: dict[str, Any]) -> None:
        book = self.db.get(Book, book_id=book_id)
        if book is not None:
            self.attempt(lambda: self.db.put(book.model_copy(update=values)))

    @rule(book_id=books)
    def delete(self, book_id: str) -> None:
        there = self.db.get(Book, book_id=book_id)
        counted = there is None or self.is_there(there.shelf)
        step = partial(self.db.delete, Book, book_id=book_id, version=ANY)
        assert self.attempt(step, int(there is not None)) == counted

    @rule(book_id=books)
    def undelete(self, book_id: str) -> None:
        mine = [item for item in self.tagged("Book") if item["book_id"]["S"] == book_id]
        # What is held past its grace stays, but is not to be had back.
        in_time = any("_purge_at" in item and int(item["_purge_at"]["N"]) > self.now for item in mine)
        shelf = mine[0].get("shelf", {}).get("S") if mine else None
        allowed = in_time and self.is_there(shelf)
        assert self.attempt(lambda: self.db.undelete(Book, book_id=book_id)) == allowed

    @rule(shelf=st.sampled_from(["left", "right"]))
    def delete_a_shelf(self, shelf: str) -> None:
        assert self.attempt(lambda: self.db.delete(Shelf, shelf=shelf), 0)

    @rule(shelf=st.sampled_from(["left", "right"]))
    def undelete_a_shelf(self, shelf: str) -> None:
        self.attempt(lambda: self.db.undelete(Shelf, shelf=shelf), 0)

    @rule(shelf=st.sampled_from(["left", "right"]))
    def create_a_shelf(self, shelf: str) -> None:
        self.attempt(lambda: self.db.create(Shelf(shelf=shelf)), 0)

    def is_there(self, shelf: str | None) -> bool:
        return shelf is None or self.db.get(Shelf, shelf=shelf) is not None

    @rule(book_id=books, version=st.integers(1, 3))
    def restore(self, book_id: str, version: int) -> None:
        self.attempt(lambda: self.db.history(Book, book_id=book_id).restore(version))

    @rule(book_id=books)
    def hold(self, book_id: str) -> None:
        self.attempt(lambda: self.db.hold(Book, book_id=book_id, reason="case 7"), 0)

    @rule(book_id=books)
    def release_hold(self, book_id: str) -> None:
        self.attempt(lambda: self.db.release_hold(Book, book_id=book_id), 0)

    @rule(verbs=st.tuples(verbs, verbs), change=changes, values=fields)
    def transaction(self, verbs: tuple[str, str], change: dict[str, Any], values: dict[str, Any]) -> None:
        """Two writes together, sent twice under one token."""
        self.tokens += 1
        found = {book_id: self.db.get(Book, book_id=book_id) for book_id in ("a", "b")}
        planned = dict(zip(found, verbs, strict=True))
        writes = sum(planned[book_id] != "delete" or found[book_id] is not None for book_id in found)

        def step() -> None:
            with self.db.transaction(token=f"t{self.tokens}") as tx:
                for book_id, verb in planned.items():
                    there = found[book_id] or Book(book_id=book_id)
                    if verb == "update":
                        tx.update(Book, book_id=book_id, version=ANY, **change)
                    elif verb == "put":
                        tx.put(there.model_copy(update={**values, "isbn": book_id}))
                    elif verb == "restore":
                        tx.include(self.db.history(Book, book_id=book_id).restoring(1))
                    else:
                        tx.delete(Book, book_id=book_id, version=ANY)

        if self.attempt(step, writes):
            assert self.attempt(step, 0)

    @rule(days=st.sampled_from([1, 31, 61]))
    def purge(self, days: int) -> None:
        self.now += days * DAY
        held = {item["book_id"]["S"] for item in self.tagged("Book") if "_held" in item}
        was = self.tagged("Book")
        done = purge(self.base.admin())
        assert done.problems == []
        left = {item["book_id"]["S"] for item in self.tagged("Book")}
        due = {
            each["book_id"]["S"]
            for each in was
            if "_purge_at" in each and int(each["_purge_at"]["N"]) <= self.now
        }
        shelves = {item["shelf"]["S"] for item in self.tagged("Shelf")}
        cascaded = {
            each["book_id"]["S"]
            for each in was
            if each.get("shelf", {}).get("S", "left") not in shelves and "_shape" in each
        }
        assert left - cascaded == {item["book_id"]["S"] for item in was} - (due - held) - cascaded

    @rule()
    def backfill(self) -> None:
        done = backfill(self.base.admin(), Book, budget=10_000, restart=True)
        assert (done.tally.failed, done.tally.newer) == (0, 0)
        assert all("_shape" in item for item in self.tagged("Book"))

    @invariant()
    def the_raw_items_fit(self) -> None:
        items = self.raw()
        found = [item for item in items if item["_type"]["S"] == "Book"]
        live = [item for item in found if "_deleted_at" not in item]
        self.locks_fit(items, found)
        self.counters_fit(items, live)
        self.history_fits(items, found)
        tickets = [key(item["_ticket"]["M"]["key"]["M"]) for item in items if item["_type"]["S"] == "_purge"]
        assert sorted(tickets) == sorted(key(item) for item in items if "_deleted_at" in item)
        assert sum(item["_type"]["S"] == "_outbox" for item in items) == self.committed
        plan = Book.plan()
        for item in items:
            if item not in live:
                assert not {"GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK"} & item.keys()
            elif "_shape" in item:
                assert stale_keys(plan, item, plan.decode(item)) == {}
                assert "genre" not in item
        tags = {item["_type"]["S"] for item in items}
        known = {"Book", "Shelf", "_unique", "_history:Book", "_outbox", "_purge", "_receipt", "_token"}
        assert {tag for tag in tags if not tag.startswith("_backfill")} <= known, tags

    def locks_fit(self, items: list[Item], found: list[Item]) -> None:
        locks = {
            item["PK"]["S"]: (key(item["holder"]["M"]), item.get("expires_at"))
            for item in items
            if item["_type"]["S"] == "_unique"
        }
        held = {
            f"UNIQUE#acme#Book#isbn#{item['isbn']['S']}": (key(item), number(item.get("expires_at")))
            for item in found
            if "S" in item.get("isbn", {})
        }
        assert locks == held

    def counters_fit(self, items: list[Item], live: list[Item]) -> None:
        counts: Tally[str] = Tally()
        worth: Tally[str] = Tally()
        for item in live:
            if "S" in item.get("shelf", {}):
                counts[item["shelf"]["S"]] += 1
                worth[item["shelf"]["S"]] += int(item["price"]["N"])
        for item in items:
            if item["_type"]["S"] == "Shelf":
                name = item["shelf"]["S"]
                assert (int(item["books"]["N"]), int(item["worth"]["N"])) == (counts[name], worth[name])

    def history_fits(self, items: list[Item], found: list[Item]) -> None:
        snapshots = sorted(item["SK"]["S"] for item in items if item["_type"]["S"] == "_history:Book")
        wanted = [
            f"BOOK#{item['book_id']['S']}#v{number:06d}"
            for item in found
            for number in range(1, int(item["version"]["N"]))
        ]
        assert snapshots == sorted(wanted)
        assert not any("expires_at" in item for item in items if item["_type"]["S"] == "_history:Book")
        for item in found:
            book_id = item["book_id"]["S"]
            for former in self.db.history(Book, book_id=book_id).list():
                assert content(former) == self.versions[book_id, former.version]


def content(book: Book) -> tuple[Any, ...]:
    return (book.title, book.isbn, book.kind, book.shelf, book.price, book.tags, book.notes, book.expires_at)


def key(item: Item) -> tuple[str, str]:
    return item["PK"]["S"], item["SK"]["S"]


def number(value: Any) -> Any:
    return value if value is not None and "N" in value else None


TestEverything = Everything.TestCase
TestEverything.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
