"""Unique fields: a lock item in the write's own transaction (S0.8, S2.9, C0.10, C2.4)."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Annotated

import pytest

from solotable import ANY, FROM_SCOPE, TTL, Database, Entity, Key, Store, Table, Unique, Version
from solotable._connect import connect
from solotable._protocol.requests import PutItem
from solotable.errors import DataError, DeclarationError, NotUnique, TransactionFailed
from solotable.jobs.locks import take_locks
from tests.waiting import HANG_SECONDS

from .opening import Opening

people = Table("People", tenant="tenant_id", ttl="expires")


class Person(Entity, table=people):
    key = Key("TENANT#{tenant_id}", "PERSON#{person_id}")
    tenant_id: str = FROM_SCOPE
    person_id: str
    email: Annotated[str | None, Unique(normalise="casefold")] = None
    badge: Annotated[int | None, Unique()] = None
    note: str = ""


class Site(Entity, table=people):
    key = Key("TENANT#{tenant_id}", "SITE#{site_id}")
    tenant_id: str = FROM_SCOPE
    site_id: str
    owner: str
    slug: Annotated[str, Unique(within=("owner",), normalise="exact")]
    expires: Annotated[datetime | None, TTL()] = None
    version: Annotated[int, Version()] = 0


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(people)


@pytest.fixture
def db(base: Database) -> Store:
    return base.tenant("acme")


def locks(opening: Opening) -> list[str]:
    return sorted(item["PK"]["S"] for item in opening.raw(people) if item["_type"] == {"S": "_unique"})


def test_a_taken_value_is_refused_and_its_holder_named(db: Store, opening: Opening) -> None:
    db.create(Person(person_id="ada", email="Ada@example.com"))
    with pytest.raises(NotUnique) as refused:
        db.create(Person(person_id="eve", email="ada@EXAMPLE.com"))
    assert str(refused.value) == (
        "Person.email = 'ada@EXAMPLE.com' is already used by Person person_id='ada'; choose another value."
    )
    assert refused.value.holder == {"tenant_id": "acme", "person_id": "ada"}
    assert db.get(Person, person_id="eve") is None
    assert locks(opening) == ["UNIQUE#acme#Person#email#ada@example.com"]


def _in_transaction(db: Store) -> None:
    with db.transaction() as tx:
        tx.update(Person, person_id="eve", set={"email": "a"})
        tx.put(Person(person_id="another"))


WAYS: dict[str, Callable[[Store], object]] = {
    "create": lambda db: db.create(Person(person_id="new", email="a")),
    "put": lambda db: db.put(Person(person_id="eve", email="a")),
    "update": lambda db: db.update(Person, person_id="eve", set={"email": "a"}),
    "transaction": _in_transaction,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_keeps_it(db: Store, way: str) -> None:
    db.create(Person(person_id="ada", email="a"))
    db.create(Person(person_id="eve", email="e"))
    with pytest.raises((NotUnique, TransactionFailed), match="used by Person person_id='ada'"):
        WAYS[way](db)
    eve = db.require(Person, person_id="eve")
    assert (eve.email, db.get(Person, person_id="another")) == ("e", None)


def test_changing_removing_and_deleting_give_a_value_back(db: Store, opening: Opening) -> None:
    db.create(Person(person_id="ada", email="a", badge=7))
    db.update(Person, person_id="ada", set={"email": "b"})
    db.create(Person(person_id="bob", email="a"))
    db.update(Person, person_id="ada", remove=["email"])
    db.create(Person(person_id="cay", email="b"))
    db.delete(Person, person_id="ada")
    db.create(Person(person_id="dan", badge=7))
    db.put(Person(person_id="bob"))
    assert locks(opening) == ["UNIQUE#acme#Person#badge#7", "UNIQUE#acme#Person#email#b"]


def test_a_write_that_leaves_the_value_alone_needs_no_transaction(db: Store, opening: Opening) -> None:
    db.create(Person(person_id="ada", email="a"))
    opening.spy.sent.clear()
    db.update(Person, person_id="ada", set={"note": "x"})
    assert [type(request).__name__ for request in opening.spy.sent] == ["UpdateItem"]
    assert db.put(Person(person_id="ada", email="A")).email == "A"  # the same value by its rule


def test_c0_10_tenants_and_parents_are_separate_scopes(base: Database) -> None:
    one, other = base.tenant("one"), base.tenant("other")
    one.create(Person(person_id="p", email="same"))
    other.create(Person(person_id="p", email="same"))
    one.create(Site(site_id="1", owner="ada", slug="home"))
    one.create(Site(site_id="2", owner="bob", slug="home"))
    one.create(Site(site_id="3", owner="bob", slug="Home"))
    with pytest.raises(NotUnique):
        one.create(Site(site_id="4", owner="bob", slug="home"))
    moved = one.require(Site, site_id="1")
    with pytest.raises(NotUnique):
        one.update(moved, set={"owner": "bob"})


def test_values_that_contain_the_delimiter_do_not_meet(db: Store) -> None:
    db.create(Site(site_id="1", owner="a#b", slug="c"))
    db.create(Site(site_id="2", owner="a", slug="b#c"))
    db.create(Person(person_id="1", email="x" * 2000))
    with pytest.raises(NotUnique):
        db.create(Person(person_id="2", email="X" * 2000))


def test_one_spelling_of_a_character_is_another(db: Store) -> None:
    db.create(Person(person_id="1", email="caf\u00e9"))
    with pytest.raises(NotUnique):
        db.create(Person(person_id="2", email="cafe\u0301"))


def test_a_lock_ends_when_its_holder_does(db: Store, opening: Opening) -> None:
    db.create(Site(site_id="1", owner="o", slug="s", expires=opening.clock.at(60)))
    with pytest.raises(NotUnique):
        db.create(Site(site_id="2", owner="o", slug="s"))
    opening.clock.seconds += 61
    assert db.create(Site(site_id="2", owner="o", slug="s")).version == 1


def test_another_writer_between_reading_and_writing_leaves_no_lock_behind(
    db: Store, opening: Opening
) -> None:
    from solotable._protocol.requests import TransactWriteItems

    db.create(Person(person_id="ada", email="a"))
    beside = opening.beside(people).tenant("acme")
    opening.spy.once(
        TransactWriteItems, lambda: beside.update(Person, person_id="ada", set={"email": "theirs"})
    )
    db.update(Person, person_id="ada", set={"email": "mine"})
    assert locks(opening) == ["UNIQUE#acme#Person#email#mine"]


def test_two_in_one_transaction_cannot_take_one_value(db: Store) -> None:
    tx = db.transaction()
    tx.create(Person(person_id="1", email="a"))
    tx.create(Person(person_id="2", email="A"))
    with pytest.raises(DataError, match="can write an item once"), tx:
        pass


def test_batches_cannot_keep_locks_and_refuse(db: Store) -> None:
    with pytest.raises(DataError, match="has email, badge, which a batch cannot write"), db.batch() as batch:
        batch.put(Person(person_id="1", email="a"))


def test_c2_4_of_many_racing_creators_exactly_one_wins(db: Store, opening: Opening) -> None:
    beside = opening.beside(people).tenant("acme")

    def attempt(number: int) -> bool:
        try:
            beside.create(Person(person_id=f"p{number}", email="wanted"))
        except NotUnique:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, range(24)))
    assert won.count(True) == 1
    assert locks(opening) == ["UNIQUE#acme#Person#email#wanted"]


def _race(url: str, number: int, results: multiprocessing.Queue[tuple[int, bool]]) -> None:
    with connect(url, people) as base:
        db = base.tenant("acme")
        for round_ in range(20):
            try:
                db.create(Person(person_id=f"p{number}-{round_}", email=f"name-{round_}"))
                results.put((round_, True))
            except NotUnique:
                results.put((round_, False))


def test_c2_4_of_racing_processes_exactly_one_wins_each_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/people.db"
    connect(url, people).close()
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[tuple[int, bool]] = context.Queue()
    racers = [context.Process(target=_race, args=(url, number, results)) for number in range(3)]
    for racer in racers:
        racer.start()
    outcomes = [results.get(timeout=HANG_SECONDS) for _ in range(3 * 20)]
    for racer in racers:
        racer.join()
    for round_ in range(20):
        assert sorted(won for name, won in outcomes if name == round_) == [False, False, True]


def test_the_version_of_an_entity_is_checked_first(db: Store) -> None:
    site = db.create(Site(site_id="1", owner="o", slug="s"))
    db.update(site, set={"slug": "t"})
    from solotable.errors import VersionConflict

    with pytest.raises(VersionConflict) as refused:
        db.put(site.model_copy(update={"slug": "u"}))
    assert (refused.value.theirs.slug, refused.value.mine.slug) == ("t", "u")
    assert db.delete(Site, site_id="1", version=ANY) is not None


def test_locks_are_taken_for_entities_that_were_stored_without_them(opening: Opening) -> None:
    base = opening.beside(people)
    db = base.tenant("acme")
    for person in (Person(person_id="a", email="x"), Person(person_id="b", email="X"), Person(person_id="c")):
        bare = person.model_copy(update={"tenant_id": "acme"})
        item = person.plan().encode(bare.__dict__)
        opening.engine.handle(PutItem(table=opening.prefix + people.name, item=item))
    db.create(Person(person_id="d", email="mine"))
    seen = {each.entity.__dict__["person_id"]: each for each in take_locks(base.admin(), Person, budget=100)}
    assert sorted(seen) == ["a", "b", "c", "d"]
    refused = [each.refused for each in seen.values() if each.refused is not None]
    assert [type(each) for each in refused] == [NotUnique]
    assert locks(opening) == ["UNIQUE#acme#Person#email#mine", "UNIQUE#acme#Person#email#x"]
    again = list(take_locks(base.admin(), Person, budget=100))
    assert sum(each.refused is not None for each in again) == 1
    with pytest.raises(NotUnique):
        db.create(Person(person_id="e", email="x"))


def test_a_unique_value_must_be_a_text_a_number_or_bytes() -> None:
    with pytest.raises(DeclarationError, match="use a string, a number or bytes"):

        class Bad(Entity, table=Table("Tab")):
            key = Key("A#{a}", "B")
            a: str
            tags: Annotated[set[str], Unique()]
