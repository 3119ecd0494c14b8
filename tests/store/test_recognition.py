"""Items are recognised by their type tag or, in a table that does not require tags, by their keys."""

from __future__ import annotations

from typing import Any, Self

import pytest
from pydantic import BaseModel

from solotable import Entity, Index, Key, Query, Table, pattern
from solotable._values import Item
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    DataError,
    DeclarationError,
    NotFound,
    UnknownEntity,
)

from .opening import Opening

untagged = Table("Untagged", tag=None, stream=True, indexes=[Index("GSI1")])
partly = Table("Partly", tag_required=False, stream=True, indexes=[Index("GSI1")])


class Name(BaseModel):
    """A part of a user."""

    name: str


class User(Entity, table=untagged):
    """A user without a tag."""

    key = Key("USER#{user}", "PROFILE")
    by_city = Key("CITY#{city}", "{user}", index="GSI1")
    user: str
    name: str = ""
    city: str | None = None

    @pattern
    @classmethod
    def of_city(cls, city: str) -> Query[Self]:
        """The users of a city."""
        return cls.by_city.query(city=city)


class Photo(Entity, table=untagged):
    """A photo without a tag."""

    key = Key("USER#{user}", "PHOTO#{photo}")
    user: str
    photo: str

    @pattern
    @classmethod
    def of_user(cls, user: str) -> Query[Self]:
        """The photos of a user."""
        return cls.key.query(user=user)


class Member(Entity, table=partly, tag="M"):
    """A member, whose tag may be missing."""

    key = Key("MEMBER#{member}", "PROFILE")
    member: str
    name: str = ""

    @pattern
    @classmethod
    def everything(cls, member: str) -> Query[Self]:
        """A member."""
        return cls.key.query(member=member)


class Visit(Entity, table=partly):
    """A visit of a member."""

    key = Key("MEMBER#{member}", "VISIT#{number:04d}")
    member: str
    number: int


def user(of: str, /, **more: str) -> Item:
    """Return an item as another program writes it."""
    key = {"PK": f"USER#{of}", "SK": "PROFILE", "user": of}
    return {name: {"S": value} for name, value in {**key, **more}.items()}


def member(of: str, /, **more: str) -> Item:
    """Return an item without a tag, as another program writes it."""
    key = {"PK": f"MEMBER#{of}", "SK": "PROFILE", "member": of}
    return {name: {"S": value} for name, value in {**key, **more}.items()}


STRANGER: Item = {"PK": {"S": "USER#zoe"}, "SK": {"S": "PHOTO#p1#LIKE#ana"}}


def test_an_item_without_a_tag_is_read_changed_and_deleted(opening: Opening) -> None:
    db = opening(untagged)
    opening.plant(untagged, user("zoe", name="Zoe", legacy="x"))
    assert db.require(User, user="zoe").name == "Zoe"
    db.update(User, user="zoe", set={"city": "Oslo"})
    (item,) = opening.raw(untagged)
    assert item == user("zoe", name="Zoe", legacy="x", city="Oslo", GSI1PK="CITY#Oslo", GSI1SK="zoe")
    assert [each.user for each in db.all(User.of_city("Oslo"))] == ["zoe"]
    db.put(db.require(User, user="zoe"))
    assert opening.raw(untagged) == [item]
    db.delete(User, user="zoe")
    assert opening.raw(untagged) == []


def test_writes_without_a_tag_require_or_reject_an_item(opening: Opening) -> None:
    db = opening(untagged)
    with pytest.raises(NotFound):
        db.update(User, user="zoe", set={"name": "Zoe"})
    db.create(User(user="zoe"))
    assert opening.raw(untagged) == [user("zoe", name="")]
    with pytest.raises(AlreadyExists):
        db.create(User(user="zoe"))


def test_every_read_takes_only_items_of_its_entity(opening: Opening) -> None:
    db = opening(untagged)
    db.put(User(user="zoe", name="Zoe", city="Oslo"))
    for number in range(3):
        db.put(Photo(user="zoe", photo=f"p{number}"))
    owner, photos = db.collection(User, Photo, user="zoe")
    assert owner is not None
    assert len(photos) == 3
    assert db.count(Photo.of_user("zoe")) == 3
    assert db.count(User.of_city("Oslo")) == 1
    assert [row.name for row in db.page(User.of_city("Oslo").select(Name))] == ["Zoe"]
    assert len(list(db.admin().scan(Photo, budget=100))) == 3
    assert len(list(db.admin().scan(User, budget=100))) == 1


def test_an_item_that_no_key_matches_is_unknown(opening: Opening) -> None:
    db = opening(untagged)
    opening.plant(untagged, STRANGER)
    with pytest.raises(UnknownEntity, match=r"PHOTO#p1#LIKE#ana.* matches the key of no entity"):
        db.collection(User, Photo, user="zoe")
    # A scan of an entity reads every item of the table, and skips those of others.
    assert list(db.admin().scan(User, budget=100)) == []


def test_a_write_adds_a_tag_that_is_missing(opening: Opening) -> None:
    db = opening(partly)
    opening.plant(partly, member("ana", name="Ana"))
    found = db.require(Member, member="ana")
    db.put(found)
    assert opening.raw(partly) == [{**member("ana", name="Ana"), "_type": {"S": "M"}}]
    assert db.require(Member, member="ana") == found


def test_an_update_leaves_the_tag_as_it_is(opening: Opening) -> None:
    db = opening(partly)
    opening.plant(partly, member("ana"))
    db.update(Member, member="ana", set={"name": "Ana"})
    assert opening.raw(partly) == [member("ana", name="Ana")]
    with pytest.raises(NotFound):
        db.update(Member, member="eve", set={"name": "Eve"})


def test_an_item_with_the_tag_of_another_entity_is_not_touched(opening: Opening) -> None:
    db = opening(partly)
    other = {**member("ana"), "_type": {"S": "Robot"}}
    opening.plant(partly, other)
    with pytest.raises(UnknownEntity):
        db.get(Member, member="ana")
    attempts: list[Any] = [
        lambda: db.create(Member(member="ana")),
        lambda: db.update(Member, member="ana", set={"name": "x"}),
        lambda: db.delete(Member, member="ana"),
    ]
    for attempt in attempts:
        with pytest.raises((ConditionFailed, NotFound, UnknownEntity)):
            attempt()
    assert opening.raw(partly) == [other]


def test_items_with_and_without_a_tag_are_counted_together(opening: Opening) -> None:
    db = opening(partly)
    opening.plant(partly, member("ana"))
    db.put(Visit(member="ana", number=1))
    visit = {"PK": "MEMBER#ana", "SK": "VISIT#0002", "member": "ana"}
    opening.plant(partly, {**{name: {"S": value} for name, value in visit.items()}, "number": {"N": "2"}})
    assert db.count(Member.everything("ana")) == 1
    assert db.count(Visit.key.query(member="ana")) == 2
    assert [each.number for each in db.all(Visit.key.query(member="ana"))] == [1, 2]
    assert len(list(db.admin().scan(Visit, budget=10))) == 2


def test_changes_of_items_without_a_tag_are_recognised(opening: Opening) -> None:
    db = opening(untagged)
    db.put(User(user="zoe"))
    db.put(Photo(user="zoe", photo="p1"))
    found = [change.entity for change in db.admin().changes(User)]
    assert found == [User]


def test_keys_must_tell_entities_apart_where_tags_are_not_required() -> None:
    table = Table("Mixed", tag=None)

    class One(Entity, table=table):
        key = Key("A#{one}", "X#{part}")
        one: str
        part: str

    with pytest.raises(DeclarationError, match=r"Two and One can have the same key \(PK=A#.*, SK=X#fixed\)"):

        class Two(Entity, table=table):
            key = Key("A#{two}", "X#fixed")
            two: str

    assert [plan.name for plan in table.plans.values()] == ["One"]


def test_a_table_with_tags_accepts_keys_that_only_tags_tell_apart() -> None:
    table = Table("Mixed")

    class One(Entity, table=table):
        key = Key("A#{one}", "X")
        one: str

    class Two(Entity, table=table):
        key = Key("A#{two}", "X")
        two: str

    assert len(table.plans) == 2


def test_reads_of_several_items_can_skip_unknown_ones(opening: Opening) -> None:
    db = opening(untagged)
    db.put(User(user="zoe", city="Oslo"))
    for number in range(3):
        db.put(Photo(user="zoe", photo=f"p{number}"))
    opening.plant(untagged, {**STRANGER, "GSI1PK": {"S": "CITY#Oslo"}, "GSI1SK": {"S": "zz"}})
    query = User.of_city("Oslo")
    reads: list[Any] = [
        lambda **more: db.page(query, **more),
        lambda **more: list(db.all(query, **more)),
        lambda **more: db.first(query.descending(), **more),
        lambda **more: db.count(query, **more),
        lambda **more: db.collection(User, Photo, user="zoe", **more),
        lambda **more: list(db.all(query.select(Name), **more)),
    ]
    for read in reads:
        with pytest.raises(UnknownEntity, match='unknown="skip"'):
            read()
    page = db.page(query, unknown="skip")
    assert ([each.user for each in page], page.skipped, page.scanned) == (["zoe"], 1, 2)
    assert [each.user for each in db.all(query, unknown="skip")] == ["zoe"]
    first = db.first(query.descending(), unknown="skip")
    assert first is not None
    assert first.user == "zoe"
    assert db.count(query, unknown="skip") == 1
    assert len(db.collection(User, Photo, user="zoe", unknown="skip")[1]) == 3
    with pytest.raises(DataError, match='unknown= is "raise" or "skip"'):
        db.page(query, unknown="ignore")  # type: ignore[arg-type]  # what the test is about


def test_a_cursor_is_valid_whatever_is_done_with_unknown_items(opening: Opening) -> None:
    db = opening(untagged)
    for name in ("a", "c"):
        db.put(User(user=name, city="Oslo"))
    opening.plant(untagged, {**STRANGER, "GSI1PK": {"S": "CITY#Oslo"}, "GSI1SK": {"S": "b"}})
    first = db.page(User.of_city("Oslo"), limit=1)
    with pytest.raises(UnknownEntity):
        db.page(User.of_city("Oslo"), limit=1, cursor=first.cursor)
    second = db.page(User.of_city("Oslo"), limit=1, cursor=first.cursor, unknown="skip")
    assert ([each.user for each in second], second.skipped) == (["c"], 1)


@pytest.mark.parametrize("foreign", ["Photo", "User", "Zed", "_internal"])
def test_a_table_without_tags_ignores_the_tag_of_another_program(opening: Opening, foreign: str) -> None:
    db = opening(untagged)
    profile = {"PK": "USER#zoe", "SK": "PROFILE", "user": "zoe", "name": "Zoe", "_type": foreign}
    photo = {"PK": "USER#zoe", "SK": "PHOTO#p1", "user": "zoe", "photo": "p1", "_type": foreign}
    for item in (profile, photo):
        opening.plant(untagged, {name: {"S": value} for name, value in item.items()})
    assert db.require(User, user="zoe").name == "Zoe"
    assert db.require(Photo, user="zoe", photo="p1").photo == "p1"
    assert [each.photo for each in db.all(Photo.of_user("zoe"))] == ["p1"]
    assert db.count(Photo.of_user("zoe")) == 1
    assert len(list(db.admin().scan(User, budget=10))) == 1
    assert db.update(User, user="zoe", set={"name": "Z"}).name == "Z"
    db.put(db.require(User, user="zoe"))
    assert db.require(User, user="zoe").unknown_attributes["_type"] == {"S": foreign}


def test_a_tag_that_is_not_a_string_is_none_for_reads_and_writes(opening: Opening) -> None:
    db = opening(partly)
    key = {"PK": {"S": "MEMBER#ana"}, "SK": {"S": "PROFILE"}}
    opening.plant(partly, {**key, "member": {"S": "ana"}, "_type": {"NULL": True}})
    assert db.require(Member, member="ana").member == "ana"
    assert db.count(Member.everything("ana")) == 1
    assert db.update(Member, member="ana", set={"name": "Ana"}).name == "Ana"
    assert db.put(Member(member="ana", name="A")).name == "A"
