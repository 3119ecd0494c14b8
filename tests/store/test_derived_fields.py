"""An update stores what the validated entity has: fields, index keys, locks, history and events follow."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Self

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ValidationInfo,
    WrapValidator,
    create_model,
    field_validator,
    model_validator,
)

from solotable import ANY, Database, Entity, History, Index, Key, Table, Unique, Version
from solotable.errors import DataError, DeclarationError, NotUnique
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


def _slug_of_title(value: str, info: ValidationInfo) -> str:
    return str(info.data["title"]).lower()


def _code_in_title(value: str, handler: Any, info: ValidationInfo) -> str:
    checked: str = handler(value)
    return checked if info.data and checked in info.data["title"] else "?"


class Post(Entity, table=papers):
    """Validators in Annotated that read another field."""

    key = Key("POST", "{number}")
    by_slug = Key("SLUG#{slug}", "POST", index="GSI1")
    number: str
    title: str
    slug: Annotated[str, AfterValidator(_slug_of_title), Unique(), Field(validate_default=True)] = ""
    code: Annotated[str, WrapValidator(_code_in_title)] = "?"
    views: int = 0


class Line(BaseModel):
    """A nested model whose validators compute and change its fields."""

    quantity: int
    price: int
    total: int = 0
    mail: str = ""
    note: str | None = None

    @model_validator(mode="after")
    def _add_up(self) -> Self:
        self.__dict__["total"] = self.quantity * self.price
        if self.quantity == 0:
            self.__dict__["note"] = None
        return self

    @field_validator("mail")
    @classmethod
    def _fold(cls, value: str) -> str:
        return value.lower()


class Offer(Entity, table=papers):
    """Nested models in a field, a list and a map."""

    key = Key("OFFER", "{number}")
    number: str
    line: Line
    lines: list[Line] = Field(default_factory=list)
    by_name: dict[str, Line] = Field(default_factory=dict)
    prices: dict[Annotated[str, AfterValidator(str.lower)], int] = Field(default_factory=dict)
    label: str = ""


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


def test_a_validator_in_annotated_moves_keys_and_locks(db: Database, opening: Opening) -> None:
    db.put(Post(number="1", title="Old"))
    updated = db.update(Post, number="1", set={"title": "New"})
    item = opening.only(Post)
    assert (updated.slug, item["slug"], item["GSI1PK"]) == ("new", {"S": "new"}, {"S": "SLUG#new"})
    with pytest.raises(NotUnique):
        db.put(Post(number="2", title="NEW"))
    assert db.put(Post(number="2", title="Old")).slug == "old"


def test_a_validator_in_annotated_gets_the_other_fields(db: Database, opening: Opening) -> None:
    db.put(Post(number="1", title="red fox"))
    updated = db.update(Post, number="1", set={"code": "fox"})
    assert (updated.code, opening.only(Post)["code"]) == ("fox", {"S": "fox"})
    created = db.upsert(Post, number="2", set={"title": "blue cat", "code": "cat"})
    assert created.code == "cat"
    assert db.upsert(Post, number="2", set={"title": "blue dog"}).code == "?"
    wrong: Any = {"code": 5}
    with pytest.raises(DataError):
        db.update(Post, number="1", set=wrong)


def test_validators_of_nested_models_change_what_an_update_stores(db: Database, opening: Opening) -> None:
    one = Line(quantity=1, price=5)
    db.put(Offer(number="1", line=one, lines=[one, one], by_name={"a": one}))
    updated = db.update(
        Offer,
        number="1",
        set={"line.mail": "B@X", "lines[1].quantity": 4, "by_name.a.quantity": 2},
        add={"line.quantity": 2},
    )
    item = opening.only(Offer)
    assert (item["line"]["M"]["total"], item["line"]["M"]["mail"]) == ({"N": "15"}, {"S": "b@x"})
    assert [each["M"]["total"]["N"] for each in item["lines"]["L"]] == ["5", "20"]
    assert item["by_name"]["M"]["a"]["M"]["total"] == {"N": "10"}
    assert db.require(Offer, number="1") == updated


def test_a_key_of_a_map_is_stored_as_its_validator_returns_it(db: Database, opening: Opening) -> None:
    db.put(Offer(number="1", line=Line(quantity=1, price=5), prices={"A": 1}))
    updated = db.update(Offer, number="1", set={"prices.B": 2})
    assert opening.only(Offer)["prices"] == {"M": {"a": {"N": "1"}, "b": {"N": "2"}}}
    assert db.require(Offer, number="1") == updated
    assert db.update(Offer, number="1", set={"prices.b": 3}).prices == {"a": 1, "b": 3}


def test_an_update_of_a_nested_model_keeps_unknown_members(db: Database, opening: Opening) -> None:
    db.put(Offer(number="1", line=Line(quantity=1, price=5, note="x"), lines=[Line(quantity=1, price=5)]))
    item = opening.only(Offer)
    item["line"]["M"]["newer"] = item["lines"]["L"][0]["M"]["newer"] = {"S": "kept"}
    opening.plant(papers, item)
    db.update(Offer, number="1", set={"line.quantity": 0, "lines[0].quantity": 3})
    item = opening.only(Offer)
    line, first = item["line"]["M"], item["lines"]["L"][0]["M"]
    assert (line["newer"], first["newer"]) == ({"S": "kept"}, {"S": "kept"})
    assert (line["total"], first["total"], "note" in line) == ({"N": "0"}, {"N": "15"}, False)


def test_a_field_of_a_validator_is_not_overwritten_by_an_older_value(db: Database, opening: Opening) -> None:
    from solotable._protocol.requests import UpdateItem

    db.put(Offer(number="1", line=Line(quantity=1, price=5), lines=[Line(quantity=1, price=5)]))
    item = opening.only(Offer)
    item["lines"]["L"][0]["M"]["total"] = {"N": "7"}  # as a program without the validator stores it
    opening.plant(papers, item)
    other = opening.beside(papers)
    later = [Line(quantity=3, price=3)]
    opening.spy.once(UpdateItem, lambda: other.update(Offer, number="1", set={"lines": later}))
    db.update(Offer, number="1", set={"line.quantity": 2})
    found = db.require(Offer, number="1")
    assert (found.line.total, found.lines) == (10, later)


class Checked(Entity, table=papers, abstract=True):
    """A validator that may read every field."""

    key = Key("WIDE", "{number}")
    number: str

    @model_validator(mode="after")
    def _accept(self) -> Self:
        return self


def _wide(name: str, fields: int, **more: Any) -> type[Checked]:
    columns: dict[str, Any] = {f"column_{at:03d}": (str, "v") for at in range(fields)}
    return create_model(name, __base__=Checked, __cls_kwargs__={"table": papers}, **columns, **more)


Widest = _wide("Widest", 140)
TooWide = _wide("TooWide", 141)
Versioned = _wide("Versioned", 320, version=(Annotated[int, Version()], 0))


@pytest.mark.parametrize("entity", [Widest, Versioned])
def test_wide_entities_with_validators_are_updated(db: Database, entity: type[Checked]) -> None:
    changes: Any = {"column_000": "x"}
    version: Any = {"version": ANY} if entity is Versioned else {}
    db.put(entity(number="1"))
    db.update(entity, number="1", set=changes, **version)
    changes = {"column_000": "x", "column_001": "y"}
    assert db.upsert(entity, number="1", set=changes) == db.require(entity, number="1")


def test_too_many_fields_to_compare_are_rejected_on_every_engine(db: Database) -> None:
    changes: Any = {"column_000": "x"}
    db.put(TooWide(number="1"))
    with pytest.raises(DeclarationError, match=r"depends on 141 stored fields, .* Declare a Version field"):
        db.update(TooWide, number="1", set=changes)
    with pytest.raises(DeclarationError, match="depends on 141 stored fields"):
        db.upsert(TooWide, number="1", set=changes)
    db.upsert(TooWide, number="2", set=changes)
