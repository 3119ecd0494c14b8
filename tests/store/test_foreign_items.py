"""A write never changes or removes an item that it does not recognise, and loses no attribute of one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest

from solotable import FROM_SCOPE, Database, Entity, Index, Key, SoftDelete, Store, Table, Version, one_of
from solotable._values import Item
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    StoredDataError,
    TransactionFailed,
    UnknownEntity,
    VersionConflict,
)
from tests.store.opening import Opening

people = Table("People", indexes=[Index("GSI1"), Index("GSI2")])


class Person(Entity, table=people):
    """A plain entity."""

    key = Key("PERSON#{name}", "PERSON")
    name: str
    city: str = ""


class Member(Entity, table=people):
    """Another entity under the same key."""

    key = Key("PERSON#{name}", "PERSON")
    name: str
    version: Annotated[int, Version()] = 0


class Guest(Entity, table=people):
    """An entity with soft deletes under the same key."""

    key = Key("PERSON#{name}", "PERSON")
    deletion = SoftDelete(grace=timedelta(days=1))
    name: str


UNTAGGED: Item = {
    "PK": {"S": "PERSON#zoe"},
    "SK": {"S": "PERSON"},
    "name": {"S": "zoe"},
    "version": {"N": "3"},
    "precious": {"S": "yes"},
}
NEWER: Item = {**UNTAGGED, "_type": {"S": "Robot"}}


def test_the_error_says_how_to_recognise_items_without_a_tag(opening: Opening) -> None:
    db = opening(people)
    opening.plant(people, UNTAGGED)
    with pytest.raises(UnknownEntity, match=r"has no type tag \(_type\); add it with `solotable tag`, or"):
        db.get(Person, name="zoe")


@pytest.fixture
def db(opening: Opening) -> Database:
    return opening(people)


def _transaction(work: Callable[[Any], Any]) -> Callable[[Database], Any]:
    def run(db: Database) -> Any:
        with db.transaction() as tx:
            work(tx)

    return run


WRITES: dict[str, Callable[[Database], Any]] = {
    "put": lambda db: db.put(Person(name="zoe")),
    "put a version": lambda db: db.put(Member(name="zoe", version=3)),
    "update": lambda db: db.update(Person, name="zoe", set={"city": "Bern"}),
    "delete": lambda db: db.delete(Person, name="zoe"),
    "delete a version": lambda db: db.delete(Member, name="zoe", version=3),
    "soft delete": lambda db: db.delete(Guest, name="zoe"),
    "modify": lambda db: db.modify(Person, lambda person: person, name="zoe", default=Person(name="zoe")),
}
IN_TRANSACTION: dict[str, Callable[[Database], Any]] = {
    "put": _transaction(lambda tx: tx.put(Person(name="zoe"))),
    "update": _transaction(lambda tx: tx.update(Person, name="zoe", set={"city": "Bern"})),
    "delete": _transaction(lambda tx: tx.delete(Person, name="zoe")),
    "delete a version": _transaction(lambda tx: tx.delete(Member, name="zoe", version=3)),
}


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize("stored", [UNTAGGED, NEWER], ids=["untagged", "newer"])
def test_no_write_touches_an_item_that_no_entity_recognises(
    db: Database, opening: Opening, verb: str, stored: Item
) -> None:
    opening.plant(people, stored)
    with pytest.raises(UnknownEntity) as rejected:
        WRITES[verb](db)
    assert rejected.value.item == stored
    assert opening.raw(people) == [stored]


@pytest.mark.parametrize("verb", IN_TRANSACTION)
@pytest.mark.parametrize("stored", [UNTAGGED, NEWER], ids=["untagged", "newer"])
def test_no_transaction_touches_an_item_that_no_entity_recognises(
    db: Database, opening: Opening, verb: str, stored: Item
) -> None:
    opening.plant(people, stored)
    with pytest.raises(TransactionFailed) as rejected:
        IN_TRANSACTION[verb](db)
    assert isinstance(rejected.value.failures[0].error, UnknownEntity)
    assert opening.raw(people) == [stored]


@pytest.mark.parametrize("stored", [UNTAGGED, NEWER], ids=["untagged", "newer"])
def test_a_create_over_an_unknown_item_says_that_something_exists(
    db: Database, opening: Opening, stored: Item
) -> None:
    opening.plant(people, stored)
    for entity in (Person(name="zoe"), Member(name="zoe"), Guest(name="zoe")):
        with pytest.raises(AlreadyExists, match="stored under the same key"):
            db.create(entity)
    assert opening.raw(people) == [stored]


def test_no_write_replaces_an_item_of_another_entity(db: Database, opening: Opening) -> None:
    db.put(Person(name="zoe", city="Bern"))
    stored = opening.raw(people)
    with pytest.raises(ConditionFailed, match="Person is stored under the same key"):
        db.put(Guest(name="zoe"))
    with pytest.raises(ConditionFailed, match="Person is stored under the same key"):
        db.put(Member(name="zoe"))
    with pytest.raises(VersionConflict):
        db.put(Member(name="zoe", version=1))
    with pytest.raises(AlreadyExists):
        db.create(Guest(name="zoe"))
    assert opening.raw(people) == stored


def test_writes_of_recognised_items_cost_what_they_did(db: Database, opening: Opening) -> None:
    db.put(Person(name="ana"))
    db.put(Person(name="ana", city="Bern"))
    assert db.delete(Person, name="ana") == Person(name="ana", city="Bern")
    assert db.delete(Person, name="ana") is None
    assert len(opening.spy.sent) == 4


crew = Table("Crew", tenant="tenant_id")


class Sailor(Entity, table=crew):
    """An entity of a tenant."""

    key = Key("TENANT#{tenant_id}", "SAILOR#{name}")
    tenant_id: str = FROM_SCOPE
    name: str


def test_a_put_never_replaces_an_item_that_names_another_tenant(opening: Opening) -> None:
    db: Store = opening(crew).tenant("acme")
    other: Item = {
        "PK": {"S": "TENANT#acme"},
        "SK": {"S": "SAILOR#zoe"},
        "_type": {"S": "Sailor"},
        "tenant_id": {"S": "other"},
        "name": {"S": "zoe"},
    }
    opening.plant(crew, other)
    with pytest.raises(Exception, match="names another tenant"):
        db.put(Sailor(name="zoe"))
    with pytest.raises(Exception, match="names another tenant"):
        db.delete(Sailor, name="zoe")
    assert opening.raw(crew) == [other]


class Resident(Entity, table=people):
    """An entity that an index finds by another field."""

    key = Key("RESIDENT#{name}", "HOUSE#{house:04d}")
    by_city = Key("CITY#{city}", "{name}", index="GSI1")
    name: str
    house: int
    city: str


def _resident(name: str, **key: str) -> Item:
    item = Resident.plan().encode({"name": name, "house": 7, "city": "Bern"})
    return {**item, **{attribute: {"S": text} for attribute, text in key.items()}}


@pytest.mark.parametrize(
    "key",
    [{"PK": "RESIDENT#Eric Johnson"}, {"SK": "HOUSE#7"}, {"PK": "RESIDENT#eric"}, {"PK": "Resident|Eric"}],
    ids=str,
)
def test_an_item_under_another_key_than_its_fields_derive_is_not_read(
    db: Database, opening: Opening, key: dict[str, str]
) -> None:
    stored = _resident("Eric Johnson", **key)
    opening.plant(people, stored)
    with pytest.raises(StoredDataError, match="derive another key") as rejected:
        db.page(Resident.by_city.query(city="Bern"))
    assert str({"S": next(iter(key.values()))}) in str(rejected.value)
    with pytest.raises(StoredDataError, match="derive another key"):
        list(db.admin().scan(Resident, budget=10))
    assert opening.raw(people) == [stored]


visits = Table("Visits", indexes=[Index("GSI1")])


class Visit(Entity, table=visits):
    key = Key("VISITS#{at:day}", "{at:s}#{visit_id}", shards=4)
    by_id = Key("VISIT#{visit_id}", "VISIT", index="GSI1")
    at: datetime
    visit_id: str


@pytest.mark.parametrize("where", ["shard", "bucket", "no such shard"])
def test_an_item_in_another_shard_or_bucket_than_its_fields_choose_is_not_read(
    opening: Opening, where: str
) -> None:
    """An update of it would not find it, and a put would add a second item."""
    db = opening(visits)
    visit = db.put(Visit(at=datetime(2026, 11, 16, 12, tzinfo=UTC), visit_id="v"))
    [written] = opening.raw(visits)
    assert db.first(Visit.by_id.query(visit_id="v")) == visit
    db.delete(visit)
    shard = int(written["PK"]["S"][-2:])
    partition = {
        "shard": f"VISITS#2026-11-16#{(shard + 1) % 4:02d}",
        "bucket": f"VISITS#2026-11-17#{shard:02d}",
        "no such shard": "VISITS#2026-11-16#99",
    }[where]
    stored: Item = {**written, "PK": {"S": partition}}
    opening.plant(visits, stored)
    with pytest.raises(StoredDataError, match="derive another key"):
        db.first(Visit.by_id.query(visit_id="v"))
    with pytest.raises(StoredDataError, match="derive another key"):
        list(db.admin().scan(Visit, budget=10))
    assert opening.raw(visits) == [stored]


@pytest.mark.parametrize("name", ["zoe", "Eric Johnson", "a#b", "50%", "é-x", "a@b.c", "0"])
def test_every_item_that_the_store_writes_is_read(db: Database, name: str) -> None:
    resident = db.put(Resident(name=name, house=7, city="Bern"))
    assert list(db.page(Resident.by_city.query(city="Bern"))) == [resident]
    assert db.get(Resident, name=name, house=7) == resident


def test_a_set_of_options_has_one_order_in_every_process() -> None:
    """A cursor is bound to the condition of its query."""
    from solotable._entities.patterns.conditions import record
    from solotable._expressions.ast import Const, In

    names = {f"name{number}" for number in range(40)}
    condition = record(Person.plan(), lambda person: one_of(person.city, names))
    assert isinstance(condition, In)
    assert [each.value for each in condition.options if isinstance(each, Const)] == [
        {"S": name} for name in sorted(names)
    ]
