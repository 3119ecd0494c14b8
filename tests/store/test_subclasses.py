"""Entities that share a base class: reads of the base return each item as its own class."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Self

import pytest
from pydantic import BaseModel

from solotable import Attr, Entity, Index, Key, Query, SoftDelete, Table, Version, pattern
from solotable._entities.lint import lint
from solotable.errors import AlreadyExists, ConditionFailed, DataError, DeclarationError

from .opening import Opening

github = Table("GitHub", stream=True, indexes=[Index("GSI1"), Index("GSI2", projection=["name"])])


class Account(Entity, table=github, abstract=True):
    """A user or an organisation; they share their names."""

    key = Key("ACCOUNT#{name}", "ACCOUNT")
    by_country = Key("COUNTRY#{country}", "{name}", index="GSI1")
    by_size = Key("SIZE#{size:03d}", "{name}", index="GSI2")
    name: str
    country: str = "NO"
    size: int = 0
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_country(cls, country: str) -> Query[Self]:
        """The accounts of a country."""
        return cls.by_country.query(country=country)


class User(Account):
    """A person."""

    mail: str = ""


class Organisation(Account, tag="Org"):
    """A company."""

    members: frozenset[str] = frozenset()
    deletion = SoftDelete(grace=timedelta(days=1))


class Repo(Entity, table=github):
    """Something that accounts own, in the same partition."""

    key = Key("ACCOUNT#{name}", "REPO#{repo}")
    name: str
    repo: str


class Name(BaseModel):
    """A part of an account."""

    name: str


def test_reads_of_a_base_class_return_instances_of_its_subclasses(opening: Opening) -> None:
    db = opening(github)
    ana, org = (
        db.create(User(name="ana", mail="a@x")),
        db.create(Organisation(name="acme", members=frozenset({"ana"}))),
    )
    db.put(Repo(name="ana", repo="r1"))
    assert db.require(Account, name="ana") == ana
    assert db.get(Account, name="acme") == org
    assert db.get_many(Account, [{"name": "acme"}, {"name": "x"}, {"name": "ana"}]) == [org, None, ana]
    assert list(db.all(Account.of_country("NO"))) == [org, ana]
    assert list(db.page(Account.of_country("NO"), where=lambda each: each.version == 1)) == [org, ana]
    assert [row.name for row in db.all(Account.of_country("NO").select(Name))] == ["acme", "ana"]
    assert db.count(Account.of_country("NO")) == 2
    assert {each.name for each in db.admin().scan(Account, budget=10)} == {"ana", "acme"}
    account, repos = db.collection(Account, Repo, name="ana")
    assert account == ana
    assert len(repos) == 1
    # The index projects only names, so the store fetches the entities.
    assert list(db.all(Account.by_size.query(size=0))) == [org, ana]


def test_reads_of_a_subclass_return_only_its_own_items(opening: Opening) -> None:
    db = opening(github)
    db.create(User(name="ana"))
    db.create(Organisation(name="acme"))
    assert [type(each) for each in db.all(User.of_country("NO"))] == [User]
    assert db.count(User.of_country("NO")) == 1
    assert db.get(User, name="acme") is None


def test_a_mixed_query_of_a_base_and_a_subclass_returns_the_rows_of_both(opening: Opening) -> None:
    db = opening(github)
    for name, size in (("ana", 1), ("bob", 2)):
        db.create(User(name=name, size=size, mail=f"{name}@x"))
    db.create(Organisation(name="org", size=3))
    everyone, some = Account.of_country("NO"), User.of_country("NO").where(lambda user: user.mail == "ana@x")
    for query in (everyone | some, some | everyone):
        assert [row.name for row in db.all(query)] == ["ana", "bob", "org"]
        assert db.count(query) == 3
        assert len(db.page(query, limit=2)) == 2
    # Both parts have a filter: a row meets the one of its own class or of its base.
    for limit, names in ((1, ["ana", "bob", "org"]), (2, ["ana", "org"]), (3, ["ana"])):
        larger = everyone.where(lambda account, limit=limit: account.size > limit)  # type: ignore[misc]
        assert [row.name for row in db.all(larger | some)] == names
    done = db.delete_partition(everyone.where(lambda account: account.size > 2) | some)
    assert done.deleted == {"User": 1, "Organisation": 1}


def test_subclasses_share_keys_and_do_not_replace_each_other(opening: Opening) -> None:
    db = opening(github)
    db.create(User(name="ana"))
    with pytest.raises((AlreadyExists, ConditionFailed)):
        db.create(Organisation(name="ana"))
    assert isinstance(db.get(Account, name="ana"), User)


def test_items_that_a_subclass_hides_are_hidden_from_its_base(opening: Opening) -> None:
    db = opening(github)
    db.create(User(name="ana"))
    org = db.create(Organisation(name="acme"))
    db.delete(org)
    assert [each.name for each in db.all(Account.key.query(name="acme"))] == []
    assert db.count(Account.key.query(name="acme")) == 0
    assert db.count(Account.of_country("NO")) == 1


def test_changes_of_a_base_class_are_those_of_its_subclasses(opening: Opening) -> None:
    db = opening(github)
    db.create(User(name="ana"))
    db.put(Repo(name="ana", repo="r1"))
    db.create(Organisation(name="acme"))
    assert {change.entity for change in db.admin().changes(Account)} == {User, Organisation}


def test_an_entity_that_was_read_by_its_base_is_written_as_its_own_class(opening: Opening) -> None:
    db = opening(github)
    db.create(User(name="ana", mail="a@x"))
    found = db.require(Account, name="ana")
    db.put(db.update(found, set={"size": 2}))
    assert db.require(User, name="ana").mail == "a@x"
    db.delete(db.require(Account, name="ana"))
    assert db.get(Account, name="ana") is None


def test_a_write_by_key_needs_the_subclass(opening: Opening) -> None:
    db = opening(github)
    db.create(User(name="ana"))
    with pytest.raises(DataError, match=r"update\(\) of Account by key needs its class: pass User or Org"):
        db.update(Account, name="ana", version=1, set={"size": 1})
    with pytest.raises(DataError, match=r"delete\(\) of Account by key"):
        db.delete(Account, name="ana", version=1)
    with pytest.raises(DataError, match=r"modify\(\) of Account by key"):
        db.modify(Account, lambda found: found, name="ana")
    with pytest.raises(DataError, match="Account is abstract and has no items"):
        db.put(Account(name="eve"))


def test_a_base_class_may_have_items(opening: Opening) -> None:
    table = Table("Animals")

    class Animal(Entity, table=table):
        key = Key("ANIMAL", "{name}")
        name: str

    class Dog(Animal):
        breed: str = ""

    class Puppy(Dog):
        weeks: int = 0

    db = opening(table)
    for entity in (Animal(name="a"), Dog(name="b"), Puppy(name="c")):
        db.put(entity)
    assert [type(each) for each in db.all(Animal.key.query())] == [Animal, Dog, Puppy]
    assert [type(each) for each in db.all(Dog.key.query())] == [Dog, Puppy]
    assert (db.count(Animal.key.query()), db.count(Dog.key.query())) == (3, 2)


def test_a_subclass_with_another_primary_key_is_an_entity_of_its_own() -> None:
    table = Table("Animals")

    class Animal(Entity, table=table):
        key = Key("ANIMAL", "{name}")
        name: str

    class Plant(Animal):
        key = Key("PLANT", "{name}")

    assert Animal.plan().subclasses == {}
    assert list(table.plans) == ["Animal", "Plant"]


def test_a_subclass_keeps_the_keys_and_attributes_of_its_base() -> None:
    table = Table("Animals", indexes=[Index("GSI1")])

    class Animal(Entity, table=table):
        key = Key("ANIMAL", "{name}")
        by_kind = Key("KIND#{kind}", "{name}", index="GSI1")
        name: str
        kind: str = ""

    with pytest.raises(DeclarationError, match=r"Dog\.by_kind differs from that of its base class Animal"):

        class Dog(Animal):
            by_kind = Key("DOG#{kind}", "{name}", index="GSI1")

    with pytest.raises(DeclarationError, match=r"Cat\.kind is stored otherwise"):

        class Cat(Animal):
            kind: Annotated[str, Attr("k")] = ""

    assert list(table.plans) == ["Animal"]


def test_subclasses_need_tags() -> None:
    table = Table("Animals", tag=None)

    class Animal(Entity, table=table):
        key = Key("ANIMAL", "{name}")
        name: str

    with pytest.raises(DeclarationError, match="Dog and Animal can have the same key"):

        class Dog(Animal):
            breed: str = ""


def test_the_linter_accepts_the_shared_keys_of_subclasses() -> None:
    assert [finding for finding in lint(github) if finding.severity == "error"] == []
