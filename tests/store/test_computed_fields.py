"""Computed fields in keys: every write keeps the keys right, and queries take them as arguments."""

# mypy: disable-error-code="prop-decorator"
# Pydantic documents `@computed_field` over `@property`, which mypy does not support.

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, computed_field

from solotable import ANY, FROM_SCOPE, Database, Entity, Index, Key, Table, Version
from solotable.errors import DataError, StoredDataError
from solotable.jobs.backfill import backfill
from tests.store.opening import Opening, stale_keys

library = Table("Library", indexes=[Index("GSI1"), Index("GSI2")])
rooms = Table("Rooms", tenant="tenant_id", indexes=[Index("GSI1")])


class Place(BaseModel):
    town: str
    street: str = ""


class Book(Entity, table=library):
    """Index keys of computed fields: of one field, of two, of a list, of a nested model and of a method."""

    key = Key("BOOK", "{isbn}")
    by_title = Key("TITLES", "{title_key}#{isbn}", index="GSI1")
    by_shelf = Key("SHELF#{shelf}", "{size:04d}#{isbn}", index="GSI2", when={"is_shelved": True})

    isbn: str
    title: str
    printed: date = date(2000, 1, 1)
    topics: list[str] = Field(default_factory=list)
    place: Place | None = None
    copies: int = 1
    notes: str = ""

    @computed_field
    @property
    def title_key(self) -> str:
        """The title for sorting, without an article."""
        return self.title.lower().removeprefix("the ")

    @computed_field
    @property
    def is_shelved(self) -> bool:
        return self.copies > 0

    @computed_field
    @property
    def shelf(self) -> str | None:
        if self.place is None:
            return None
        return f"{self.place.town}/{self._decade()}"

    @computed_field
    @property
    def size(self) -> int:
        return len(self.topics) + self.copies

    def _decade(self) -> int:
        return self.printed.year // 10 * 10


def _label(pen: Any) -> str:
    return f"{pen.colour}-{len(pen.owners)}"


class Pen(Entity, table=library):
    """A property whose code does not show which fields it reads."""

    key = Key("PEN", "{pen}")
    by_label = Key("PENS", "{label}", index="GSI1")
    pen: str
    colour: str
    owners: set[str] = Field(default_factory=set)
    note: str = ""
    version: Annotated[int, Version()] = 0

    @computed_field
    @property
    def label(self) -> str:
        return _label(self)


class Room(Entity, table=rooms):
    """A computed part of the primary key, in a table with tenants, with a version."""

    key = Key("TENANT#{tenant_id}#FLOOR#{floor}", "ROOM#{number}")
    by_load = Key("TENANT#{tenant_id}#LOAD", "{load:03d}#{number}", index="GSI1")

    tenant_id: str = FROM_SCOPE
    number: str
    seats: int
    taken: int = 0
    version: Annotated[int, Version()] = 0

    @computed_field
    @property
    def floor(self) -> str:
        return self.number[:1]

    @computed_field
    @property
    def load(self) -> int:
        return 100 * self.taken // self.seats


@pytest.fixture
def db(opening: Opening) -> Database:
    return opening(library)


def book(**more: Any) -> Book:
    return Book.model_validate({"isbn": "1", "title": "The Zebra", **more})


def test_a_put_stores_computed_fields_only_in_keys(db: Database, opening: Opening) -> None:
    put = db.put(book(place=Place(town="Rome")))
    item = opening.only(Book)
    assert item["GSI1SK"] == {"S": "zebra#1"}
    assert (item["GSI2PK"], item["GSI2SK"]) == ({"S": "SHELF#Rome/2000"}, {"S": "0001#1"})
    assert not {"title_key", "shelf", "size", "is_shelved"} & item.keys()
    assert db.require(Book, isbn="1") == put


def test_queries_and_ranges_take_computed_fields(db: Database) -> None:
    first, second = db.put(book()), db.put(book(isbn="2", title="Apple"))
    assert list(db.page(Book.by_title.query(title_key="zebra"))) == [first]
    assert list(db.page(Book.by_title.query().until(title_key="m"))) == [second]
    assert list(db.page(Book.by_title.query().starts_with(title_key="z"))) == [first]


@pytest.mark.parametrize(
    ("changes", "title_key", "shelf"),
    [
        ({"set": {"title": "The Ant"}}, "ant#1", "SHELF#Rome/2000 0002#1"),
        ({"set": {"printed": date(1999, 1, 1)}}, "zebra#1", "SHELF#Rome/1990 0002#1"),
        ({"set": {"place.town": "Oslo"}}, "zebra#1", "SHELF#Oslo/2000 0002#1"),
        ({"append": {"topics": ["b", "c"]}}, "zebra#1", "SHELF#Rome/2000 0004#1"),
        ({"prepend": {"topics": ["b"]}}, "zebra#1", "SHELF#Rome/2000 0003#1"),
        ({"add": {"copies": 4}}, "zebra#1", "SHELF#Rome/2000 0006#1"),
        ({"set": {"copies": 0}}, "zebra#1", None),
        ({"remove": ["place"]}, "zebra#1", None),
        ({"set": {"notes": "torn"}}, "zebra#1", "SHELF#Rome/2000 0002#1"),
    ],
)
@pytest.mark.parametrize("verb", ["update", "upsert", "transaction"])
def test_an_update_recomputes_the_keys(
    db: Database,
    opening: Opening,
    verb: str,
    changes: dict[str, Any],
    title_key: str,
    shelf: str | None,
) -> None:
    db.put(book(place=Place(town="Rome"), topics=["a"]))
    if verb == "transaction":
        with db.transaction() as tx:
            tx.update(Book, isbn="1", **changes)
    elif verb == "update":
        updated = db.update(Book, isbn="1", **changes)
        assert updated == db.require(Book, isbn="1")
    elif "place.town" in changes.get("set", {}):
        return
    else:
        if "title" not in changes.get("set", {}):
            changes = {**changes, "set_if_missing": {"title": "x"}}
        db.upsert(Book, isbn="1", **changes)
    item = opening.only(Book)
    assert item["GSI1SK"] == {"S": title_key}
    found = f"{item['GSI2PK']['S']} {item['GSI2SK']['S']}" if "GSI2PK" in item else None
    assert found == shelf
    assert stale_keys(opening, library) == []


def test_an_update_reads_only_if_a_source_changes(db: Database, opening: Opening) -> None:
    db.put(book())
    opening.spy.sent.clear()
    db.update(Book, isbn="1", set={"notes": "torn"})
    db.update(Book, isbn="1", set={"title": "Ant"})
    assert [type(each).__name__ for each in opening.spy.sent] == ["UpdateItem", "UpdateItem"]


def test_a_second_writer_of_a_source_is_seen(db: Database, opening: Opening) -> None:
    from solotable._protocol.requests import UpdateItem

    db.put(book(place=Place(town="Rome")))
    other = opening.beside(library)
    opening.spy.once(UpdateItem, lambda: other.update(Book, isbn="1", set={"printed": date(1950, 1, 1)}))
    db.update(Book, isbn="1", set={"place.town": "Oslo"})
    assert opening.only(Book)["GSI2PK"] == {"S": "SHELF#Oslo/1950"}
    assert stale_keys(opening, library) == []


def test_modify_batch_and_transaction_put_store_the_keys(db: Database, opening: Opening) -> None:
    def rename(stored: Book) -> Book:
        stored.title = "Ant"
        return stored

    db.put(book())
    db.modify(Book, rename, isbn="1")
    with db.batch() as batch:
        batch.put(book(isbn="2"))
    with db.transaction() as tx:
        tx.put(book(isbn="3", title="Bee"))
    assert [each.title_key for each in db.all(Book.by_title.query())] == ["ant", "bee", "zebra"]
    assert stale_keys(opening, library) == []


def test_a_computed_part_of_the_primary_key_follows_from_the_others(opening: Opening) -> None:
    db = opening(rooms).tenant("acme")
    room = db.put(Room(number="204", seats=4))
    assert opening.only(Room)["PK"] == {"S": "TENANT#acme#FLOOR#2"}
    assert db.get(Room, number="204") == room
    assert db.get_many(Room, [{"number": "204"}]) == [room]
    room = db.update(Room, number="204", version=ANY, set={"taken": 3})
    assert opening.only(Room)["GSI1SK"] == {"S": "075#204"}
    assert list(db.page(Room.key.query(floor="2"))) == [room]
    assert list(db.page(Room.key.query(number="204"))) == [room]
    assert list(db.page(Room.by_load.query().since(load=50))) == [room]
    assert list(db.page(Room.by_load.query().before(load=75))) == []
    with pytest.raises(DataError, match="got floor='3', but the other parts give '2'"):
        db.get(Room, number="204", floor="3")
    with pytest.raises(DataError, match="part of the primary key"):
        db.update(Room, number="204", version=ANY, set={"number": "3"})  # type: ignore[arg-type]
    assert db.delete(room) == room


def test_a_stored_key_of_another_computed_value_is_rejected(opening: Opening) -> None:
    db = opening(rooms)
    db.tenant("acme").put(Room(number="204", seats=4))
    item = opening.only(Room) | {"PK": {"S": "TENANT#acme#FLOOR#9"}}
    opening.plant(rooms, item)
    with pytest.raises(StoredDataError, match="derive another key"):
        list(db.tenant("acme").page(Room.key.query(floor="9")))


def test_a_property_with_unknown_sources_is_recomputed_by_every_update(
    db: Database, opening: Opening
) -> None:
    pen = db.put(Pen(pen="1", colour="red"))
    pen = db.update(pen, add={"owners": {"ana", "bob"}})
    assert opening.only(Pen)["GSI1SK"] == {"S": "red-2"}
    pen = db.update(pen, set={"colour": "blue"}, delete={"owners": {"ana"}})
    assert opening.only(Pen)["GSI1SK"] == {"S": "blue-1"}
    db.update(pen, set={"note": "x"})
    assert list(db.page(Pen.by_label.query(label="blue-1"))) == [db.require(Pen, pen="1")]
    assert stale_keys(opening, library) == []


def test_a_backfill_repairs_keys_of_a_changed_function(db: Database, opening: Opening) -> None:
    db.put(book())
    right = opening.only(Book)
    opening.plant(
        library, right | {"GSI1SK": {"S": "former#1"}, "GSI2PK": {"S": "SHELF#x"}, "GSI2SK": {"S": "0"}}
    )
    done = backfill(opening.beside(library).admin(), Book, budget=100)
    assert (done.tally.reindexed, done.problems) == (1, ())
    assert opening.only(Book) == right
