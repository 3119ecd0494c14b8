"""An update stores what the validated entity has: fields, index keys, locks, history and events follow."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Self

import pytest
from pydantic import ValidationInfo, field_validator, model_validator

from solotable import Database, Entity, History, Index, Key, Table, Unique, Version
from solotable.errors import NotUnique
from tests.store.opening import Opening, stale_keys

papers = Table("Papers", indexes=[Index("GSI1")])


class Paper(Entity, table=papers):
    """A field that a model validator computes from another one."""

    key = Key("PAPER", "{number}")
    by_title = Key("TITLES", "{title_key}#{number}", index="GSI1")
    number: str
    title: str
    title_key: str = ""
    pages: int = 0

    @model_validator(mode="after")
    def _fill(self) -> Self:
        self.__dict__["title_key"] = self.title.lower()
        return self


class Journal(Entity, table=papers):
    """A cached property, whose value Pydantic keeps beside the fields."""

    key = Key("JOURNAL", "{name}")
    name: str
    title: str = ""
    initial: str = ""

    @cached_property
    def upper(self) -> str:
        return self.title.upper()

    @model_validator(mode="after")
    def _fill(self) -> Self:
        self.__dict__["initial"] = self.upper[:1]
        return self


class Author(Entity, table=papers):
    """Field validators that change their values, one of them from another field."""

    key = Key("AUTHOR", "{name}")
    by_mail = Key("MAIL#{mail}", "{name}", index="GSI1")
    history = History("{name}#v{version:06d}")
    name: str
    mail: str
    handle: Annotated[str, Unique()] = ""
    version: Annotated[int, Version()] = 0

    @field_validator("mail")
    @classmethod
    def _fold(cls, value: str) -> str:
        return value.lower()

    @field_validator("handle")
    @classmethod
    def _from_mail(cls, value: str, info: ValidationInfo) -> str:
        return str(info.data["mail"]).partition("@")[0]


@pytest.fixture
def db(opening: Opening) -> Database:
    return opening(papers)


def test_a_field_of_a_model_validator_is_stored_and_indexed(db: Database, opening: Opening) -> None:
    db.put(Paper(number="1", title="Zebra"))
    updated = db.update(Paper, number="1", set={"title": "Apple"})
    assert updated.title_key == "apple"
    assert db.require(Paper, number="1") == updated
    item = opening.only(Paper)
    assert (item["title_key"], item["GSI1SK"]) == ({"S": "apple"}, {"S": "apple#1"})
    assert stale_keys(opening, papers) == []
    assert list(db.page(Paper.by_title.query(title_key="apple"))) == [updated]


def test_an_update_in_a_transaction_stores_the_same(db: Database, opening: Opening) -> None:
    db.put(Paper(number="1", title="Zebra"))
    with db.transaction() as tx:
        tx.update(Paper, number="1", set={"title": "Apple"}, add={"pages": 3})
    assert opening.only(Paper)["title_key"] == {"S": "apple"}
    assert db.require(Paper, number="1").pages == 3
    assert stale_keys(opening, papers) == []


def test_a_second_writer_between_read_and_write_is_seen(db: Database, opening: Opening) -> None:
    from solotable._protocol.requests import UpdateItem

    db.put(Paper(number="1", title="Zebra"))
    other = opening.beside(papers)
    opening.spy.once(UpdateItem, lambda: other.update(Paper, number="1", set={"title": "Mango"}))
    db.update(Paper, number="1", set={"pages": 9})
    found = db.require(Paper, number="1")
    assert (found.title, found.title_key, found.pages) == ("Mango", "mango", 9)
    assert stale_keys(opening, papers) == []


def test_a_field_validator_changes_what_an_update_stores(db: Database, opening: Opening) -> None:
    author = db.put(Author(name="ana", mail="A@X"))
    assert (author.mail, author.handle) == ("a@x", "a")
    updated = db.update(author, set={"mail": "B@X"})
    item = opening.only(Author)
    assert (updated.mail, item["mail"], item["GSI1PK"]) == ("b@x", {"S": "b@x"}, {"S": "MAIL#b@x"})
    assert db.require(Author, name="ana") == updated


def test_a_unique_field_of_a_validator_moves_its_lock(db: Database) -> None:
    author = db.put(Author(name="ana", mail="a@x", handle="?"))
    assert author.handle == "a"
    db.update(author, set={"mail": "b@x"})
    other = db.put(Author(name="bob", mail="a@x", handle="?"))
    assert other.handle == "a"
    with pytest.raises(NotUnique):
        db.update(other, set={"mail": "b@y"})
    assert [each.handle for each in db.history(Author, name="ana").list()] == ["a"]


def test_a_put_of_a_copy_stores_what_the_validators_return(db: Database, opening: Opening) -> None:
    paper = db.put(Paper(number="1", title="Zebra"))
    changes: dict[str, Any] = {"title": "Apple"}
    stored = db.put(paper.model_copy(update=changes))
    assert stored.title_key == "apple"
    assert opening.only(Paper)["GSI1SK"] == {"S": "apple#1"}


def test_a_cached_property_is_neither_stored_nor_an_error(db: Database, opening: Opening) -> None:
    journal = Journal(name="j", title="ant")
    assert journal.upper == "ANT"
    journal = db.put(journal)
    assert db.update(journal, set={"title": "bee"}).initial == "B"
    item = opening.only(Journal)
    assert (item["initial"], "upper" in item) == ({"S": "B"}, False)
