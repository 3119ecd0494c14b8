"""A table of ElectroDB: read and written by solotable, then by ElectroDB again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import Field

from solotable import Attr, Created, Entity, Epoch, Index, Key, Table, Updated
from solotable.errors import AlreadyExists
from tests.serving import Served

from .foreign import ForeignProgram

library = Table(
    "Library",
    partition="pk",
    sort="sk",
    adopt="electrodb",
    indexes=[
        Index("gsi1", partition="gsi1pk", sort="gsi1sk"),
        Index("gsi2", partition="gsi2pk", sort="gsi2sk"),
    ],
)


class Stamped(Entity):
    created_at: Annotated[datetime | None, Created(), Epoch("ms"), Attr("createdAt")] = None
    updated_at: Annotated[datetime | None, Updated(), Epoch("ms"), Attr("updatedAt")] = None


class Author(Stamped, table=library, tag="author"):
    key = Key("$library#authorname_{author_name}", "$author_1")
    works = Key("$library#authorname_{author_name}", "$works#author_1", index="gsi1")

    author_name: Annotated[str, Attr("authorName")]
    country: str


class Book(Stamped, table=library, tag="book"):
    key = Key("$library#isbn_{isbn}", "$book_1")
    works = Key("$library#authorname_{author_name}", "$works#book_1#title_{title}", index="gsi1")

    isbn: str
    title: str
    author_name: Annotated[str, Attr("authorName")]
    pages: int
    price: Decimal
    in_print: Annotated[bool, Attr("inPrint")]
    genres: set[str] = Field(default_factory=set)
    published_on: Annotated[date, Attr("publishedOn")]
    shelf: dict[str, Any] | None = None
    # ElectroDB's `subtitle` is not declared: it survives as an unknown attribute.


class Loan(Stamped, table=library, tag="loan"):
    key = Key("$library#memberid_{member_id}", "$loan_1#isbn_{isbn}#copy_{copy_number:d}")
    of_book = Key("$library#isbn_{isbn}", "$loan_1#dueon_{due_on}", index="gsi2")

    member_id: Annotated[str, Attr("memberId")]
    isbn: str
    copy_number: Annotated[int, Attr("copy")]
    due_on: Annotated[date, Attr("dueOn")]
    renewals: int = 0


def test_items_of_electrodb_are_read_and_written_in_both_directions(
    server: Served, foreign: Callable[[str], ForeignProgram]
) -> None:
    program = foreign("electrodb")
    stored = {item["pk"]["S"] + item["sk"]["S"]: item for item in program.run("write")}
    with library.open(server.url) as db:
        emma = db.require(Book, isbn="978-Emma")
        assert (emma.title, emma.pages, emma.price) == ("Emma", 474, Decimal("9.5"))
        assert (emma.genres, emma.published_on) == ({"novel", "comedy"}, date(1815, 12, 23))
        assert emma.shelf == {"room": 2, "row": "C"}
        assert emma.created_at is not None
        assert emma.created_at.timestamp() * 1000 == float(
            stored["$library#isbn_978-emma$book_1"]["createdAt"]["N"]
        )
        assert db.get(Book, isbn="978-EMMA") == emma, "ElectroDB's keys have no case"
        found = list(db.all(Book.works.query(author_name="Jane Austen")))
        assert [book.title for book in found] == ["Emma", "Persuasion"]
        assert found[1].unknown_attributes["subtitle"] == {"S": "A Novel"}
        loans = db.all(Loan.of_book.query(isbn="978-P").until(due_on=date(2026, 1, 15)))
        assert [loan.copy_number for loan in loans] == [12]
        (author,) = db.all(Author.works.query(author_name="JANE AUSTEN"))
        assert author.country == "UK"
        works = Author.works.query(author_name="Jane Austen") | Book.works.query(author_name="Jane Austen")
        assert [type(each) for each in db.page(works, limit=10)] == [Author, Book, Book]

        db.put(emma)
        db.update(Book, isbn="978-P", set={"title": "Persuasion (annotated)", "pages": 300})
        with pytest.raises(AlreadyExists):
            db.create(emma.model_copy(update={"isbn": "978-emma"}))
        susan = emma.model_copy(
            update={"isbn": "978-LS", "title": "Lady Susan", "pages": 80, "price": Decimal("4.25")}
        )
        db.create(susan)
        db.create(Loan(member_id="M-2", isbn="978-LS", copy_number=1, due_on=date(2026, 3, 1)))
    after = {item["pk"]["S"] + item["sk"]["S"]: item for item in program.run("verify")}
    persuasion = after["$library#isbn_978-p$book_1"]
    assert persuasion["subtitle"] == {"S": "A Novel"}
    assert persuasion["gsi1sk"] == {"S": "$works#book_1#title_persuasion (annotated)"}
    loan = after["$library#memberid_m-2$loan_1#isbn_978-ls#copy_1"]
    assert (loan["__edb_e__"], loan["__edb_v__"]) == ({"S": "loan"}, {"S": "1"})
    with library.open(server.url) as db:
        renamed = db.require(Book, isbn="978-LS")
        assert renamed.title == "Lady Susan, 2nd"
        titles = [book.title for book in db.all(Book.works.query(author_name="Jane Austen"))]
        assert titles == ["Emma", "Lady Susan, 2nd", "Persuasion (annotated)"]
        assert db.require(Loan, member_id="M-2", isbn="978-LS", copy_number=1).renewals == 1


def test_an_entity_of_another_model_version_has_its_own_field() -> None:
    table = Table("Versions", partition="pk", sort="sk", adopt="electrodb")

    class Shelf(Entity, table=table, tag="shelf"):
        key = Key("$library#row_{row}", "$shelf_2")
        row: str
        model_version: Annotated[str, Attr("__edb_v__")] = "2"

    with table.open("sqlite://") as db:
        db.put(Shelf(row="C"))
        engine: Any = db.engine
        item = engine.call("Scan", {"TableName": "Versions"})["Items"][0]
        assert item["__edb_v__"] == {"S": "2"}
        assert item["pk"] == {"S": "$library#row_c"}
        assert db.require(Shelf, row="C").row == "C"
