"""Comparisons: every difference is found, a write beside is none, and a killed comparison resumes."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from solotable import Counted, Counter, Database, Encrypted, Entity, Index, Key, Table, connect, flow
from solotable._values import Item, dump_item
from solotable.encryption import Keyring
from solotable.errors import DataError
from solotable.flow.requests import DeleteItem, PutItem
from solotable.migrations.diff import DiffOptions, DiffReport, compare
from solotable.migrations.mapping import Mapping, Part, Source
from solotable.migrations.migration import Migration
from tests.migrations.stored_items import put_items, stored_items

shop = Table("Shop", indexes=[Index("GSI1")], ttl="expires")
users = Table("Users", partition="id", sort=None)
texts = Table("Texts", partition="owner", sort=None)
keyring = Keyring({"k1": b"0" * 32})


class Person(Entity, table=shop):
    key = Key("PERSON#{person_id}", "PERSON")
    by_city = Key("CITY#{city}", "{person_id}", index="GSI1")

    person_id: str
    city: str = "Unknown"

    pets: Annotated[int, Counter()] = 0


class Pet(Entity, table=shop):
    key = Key("PERSON#{person_id}", "PET#{pet_id}")
    counted = Counted(Person, "pets")

    person_id: str
    pet_id: str


class Patient(Entity, table=shop):
    key = Key("PATIENT#{patient_id}", "PATIENT")

    patient_id: str
    illness: Annotated[str, Encrypted(keyring)]


class Page(Entity, table=shop):
    key = Key("PAGE#{page_id}", "PAGE")

    page_id: str
    title: str = ""
    text: str = ""
    theme: str = "light"


def people() -> Mapping:
    mapping = Mapping(shop, Source("Users", key="id"))

    @mapping.rule("Users")
    def person(item: dict[str, Any]) -> Iterator[Entity]:
        pets = item.get("pets", [])
        yield Person(person_id=item["id"], city=item.get("city", "Unknown"), pets=len(pets))
        for pet in pets:
            yield Pet(person_id=item["id"], pet_id=pet)

    @mapping.inverse(
        "Users",
        Person,
        Pet,
        key=lambda entity: {"id": entity.person_id},
        read=lambda db, key: db.all(
            (Person.key.query(person_id=key["id"]) | Pet.key.query(person_id=key["id"])).consistent()
        ),
    )
    def user(entities: list[Any]) -> dict[str, Any] | None:
        found = [each for each in entities if isinstance(each, Person)]
        pets = [each.pet_id for each in entities if isinstance(each, Pet)]
        return {"id": found[0].person_id, "city": found[0].city, "pets": pets} if found else None

    return mapping


def user(number: int, **values: Any) -> Item:
    return dump_item({"id": f"u{number:05d}", "city": f"city {number % 9}", "pets": ["a", "b"], **values})


@pytest.fixture
def db() -> Iterator[Database]:
    with connect("sqlite://", users, texts, shop) as opened:
        yield opened


def copied(db: Database, mapping: Mapping, **items: list[Item]) -> Migration:
    """Store items in the sources, and their outputs in the target."""
    for source, rows in items.items():
        put_items(db, source, rows)
        put_items(
            db,
            "Shop",
            (
                {**output.item, "_migration": {"S": "x"}}
                for row in rows
                for output in mapping.outputs(source, row).items.values()
                if output.kind == "put"
            ),
        )
    return Migration("move", mapping, sources=db, target=db)


def run(migration: Migration, **options: Any) -> DiffReport:
    return compare(migration, DiffOptions(settle_seconds=0, **options))


def test_equal_sides_have_no_difference_in_both_directions(db: Database) -> None:
    migration = copied(db, people(), Users=[user(n) for n in range(60)])
    report = run(migration)
    assert (report.is_equal, report.expected, report.actual, report.exit_code) == (True, 180, 180, 0)
    back = run(migration, forward=False)
    assert (back.is_equal, back.expected, back.actual) == (True, 60, 60)


def test_each_kind_of_planted_difference_is_found_and_nothing_else(db: Database) -> None:
    migration = copied(db, people(), Users=[user(n) for n in range(80)])
    stored = stored_items(db, "Shop")
    randomness = random.Random(20)
    randomness.shuffle(stored)
    planted: dict[str, set[str]] = {"changed": set(), "missing": set(), "extra": set()}
    scope = flow.scope_of(db)
    for at, item in enumerate(stored[:60]):
        key = {name: item[name] for name in ("PK", "SK")}
        kind = ("changed", "missing", "extra")[at % 3]
        if kind == "changed":
            name = randomness.choice(
                [each for each in item if each not in ("PK", "SK", "_type", "_migration")]
            )
            request: Any = PutItem(table="Shop", item={**item, name: {"S": "other"}})
        elif kind == "missing":
            request = DeleteItem(table="Shop", key=key)
        else:
            key = {"PK": item["PK"], "SK": {"S": item["SK"]["S"] + "#more"}}
            request = PutItem(table="Shop", item={**item, **key})
        flow.run(flow.send(scope, request), db)
        planted[kind].add(f"{key['PK']['S']}|{key['SK']['S']}")
    found: dict[str, set[str]] = {"changed": set(), "missing": set(), "extra": set()}

    def collect(difference: Any) -> bool:
        found[difference.kind].add(f"{difference.key['PK']['S']}|{difference.key['SK']['S']}")
        return False

    report = run(migration, on_difference=collect, samples=7)
    assert found == planted
    assert report.differences == {"changed": 20, "missing": 20, "extra": 20}
    assert sum(sum(kinds.values()) for kinds in report.by_entity.values()) == 60
    assert (len(report.samples), report.exit_code) == (7, 1)


def test_a_sample_names_the_attributes_and_the_source_item_of_a_difference(db: Database) -> None:
    migration = copied(db, people(), Users=[user(1), user(2)])
    (item,) = [
        each for each in stored_items(db, "Shop") if each["PK"] == {"S": "PERSON#u00001"} and "city" in each
    ]
    put_items(db, "Shop", [{**item, "city": {"S": "Elsewhere"}}])
    (sample,) = run(migration).samples
    assert sample["attributes"] == {
        "city": {"expected": {"S": "city 1"}, "actual": {"S": "Elsewhere"}},
    }
    assert sample["origins"] == [{"source": "Users", "key": {"id": {"S": "u00001"}}}]


def test_encrypted_fields_are_compared_by_their_values_and_masked_in_samples(db: Database) -> None:
    mapping = Mapping(shop, Source("Users", key="id"))

    @mapping.rule("Users")
    def patient(item: dict[str, Any]) -> Iterator[Entity]:
        yield Patient(patient_id=item["id"], illness=item["city"])

    migration = copied(db, mapping, Users=[user(1, city="gout"), user(2, city="flu")])
    assert run(migration).is_equal
    wrong = Patient(patient_id="u00002", illness="plague").to_item()
    put_items(db, "Shop", [wrong])
    report = run(migration)
    (sample,) = report.samples
    assert sample["attributes"] == {"illness": "***"}
    assert "plague" not in str(report.to_json())


def test_parts_of_two_sources_are_compared_as_one_item(db: Database) -> None:
    mapping = Mapping(shop, Source("Users", key="id"), Source("Texts", key="owner"))

    @mapping.rule("Users", parts={Page: ["title"]})
    def titles(item: dict[str, Any]) -> Iterator[Part]:
        yield Part(Page, {"page_id": item["id"]}, {"title": item["city"]})

    @mapping.rule("Texts", parts={Page: ["text"]})
    def bodies(item: dict[str, Any]) -> Iterator[Part]:
        yield Part(Page, {"page_id": item["owner"]}, {"text": item["text"]})

    put_items(db, "Users", [user(n) for n in range(50)])
    put_items(db, "Texts", [dump_item({"owner": f"u{n:05d}", "text": f"text {n}"}) for n in range(25)])
    pages = [Page(page_id=f"u{n:05d}", title=f"city {n % 9}", text=f"text {n}").to_item() for n in range(50)]
    for page in pages[25:]:
        del page["text"]
    put_items(db, "Shop", pages)
    migration = Migration("move", mapping, sources=db, target=db)
    assert run(migration).is_equal
    put_items(db, "Shop", [{**pages[3], "text": {"S": "wrong"}}, {**pages[4], "theme": {"S": "dark"}}])
    put_items(db, "Shop", [{**pages[30], "text": {"S": "of no source"}}])
    report = run(migration)
    assert report.differences == {"changed": 3}


def test_one_key_from_two_source_items_is_a_conflict(db: Database) -> None:
    mapping = Mapping(shop, Source("Users", key="id"))

    @mapping.rule("Users")
    def person(item: dict[str, Any]) -> Iterator[Entity]:
        yield Person(person_id=item["city"])

    migration = copied(db, mapping, Users=[user(1), user(10), user(2)])
    report = run(migration)
    assert report.differences == {"conflict": 1}
    assert [origin["key"] for origin in report.samples[0]["origins"]] in (
        [{"id": {"S": "u00001"}}, {"id": {"S": "u00010"}}],
        [{"id": {"S": "u00010"}}, {"id": {"S": "u00001"}}],
    )


def test_a_dead_letter_makes_sides_unequal(db: Database) -> None:
    migration = copied(db, people(), Users=[user(1)])
    put_items(db, "Users", [dump_item({"id": "u2", "pets": ["a", "a"]})])
    report = run(migration)
    assert (report.total, report.dead_letters, report.is_equal, report.exit_code) == (0, 1, False, 1)
    assert "two items with the key" in report.dead_samples[0].cause


def test_a_counter_that_is_counted_at_the_switch_is_ignored(db: Database) -> None:
    mapping = Mapping(shop, Source("Users", key="id"))
    mapping.rule("Users")(lambda item: [Person(person_id=item["id"])])
    mapping.recounts(Person, "pets")
    migration = copied(db, mapping, Users=[user(1)])
    (item,) = stored_items(db, "Shop")
    put_items(db, "Shop", [{**item, "pets": {"N": "7"}}])
    assert run(migration).is_equal


def test_an_item_that_only_one_side_has_expired_is_no_difference(db: Database) -> None:
    mapping = Mapping(shop, Source("Users", key="id"))
    mapping.rule("Users", raw=True)(
        lambda item: [{"PK": item["id"], "SK": {"S": "x"}, "expires": {"N": "1000"}}]
    )
    put_items(db, "Users", [user(1)])
    migration = Migration("move", mapping, sources=db, target=db)
    assert run(migration).is_equal


class Killed(Exception):
    """Ends a comparison at any point."""


def test_a_killed_comparison_resumes_and_reads_no_page_twice(db: Database, tmp_path: Path) -> None:
    large = "x" * 9_000
    migration = copied(db, people(), Users=[user(n, city=f"{large}{n}"[-2000:]) for n in range(1100)])
    (first,) = [
        each for each in stored_items(db, "Shop") if each["PK"] == {"S": "PERSON#u00007"} and "city" in each
    ]
    put_items(db, "Shop", [{**first, "city": {"S": "wrong"}}])
    state = tmp_path / "diff.state"
    pages: list[int] = []

    def kill(items: int) -> None:
        pages.append(items)
        raise Killed

    for _ in range(40):
        try:
            report = run(migration, state=state, save_seconds=0, progress=kill)
            break
        except Killed:
            continue
    else:
        pytest.fail("the comparison made no progress")
    assert report.differences == {"changed": 1}
    assert (report.expected, report.actual) == (3300, 3300)
    assert pages == sorted(set(pages))
    assert len(pages) > 4
    assert not state.exists()


def test_a_state_of_another_comparison_is_refused(db: Database, tmp_path: Path) -> None:
    migration = copied(db, people(), Users=[user(1)])
    state = tmp_path / "diff.state"

    def kill(_: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        run(migration, state=state, save_seconds=0, progress=kill)
    with pytest.raises(DataError, match="state of another comparison"):
        run(migration, state=state, forward=False)
    state.write_bytes(b"{}\n")
    with pytest.raises(DataError, match="not the state of a comparison"):
        run(migration, state=state)


def test_writes_beside_a_comparison_are_no_difference_and_planted_ones_are_found(db: Database) -> None:
    mapping = people()
    migration = copied(db, mapping, Users=[user(n) for n in range(200)])
    planted = [each for each in stored_items(db, "Shop") if each["PK"]["S"] < "PERSON#u00100"][::10]
    put_items(db, "Shop", ({**item, "odd": {"S": "planted"}} for item in planted))
    stop = threading.Event()

    def write() -> None:
        randomness = random.Random(7)
        scope = flow.scope_of(db)
        while not stop.is_set():
            # Clients write items of the source, and the migration applies each a moment later.
            number = randomness.randrange(100, 250)
            before = mapping.outputs("Users", user(number)).items
            after = user(number, city=str(randomness.random()))
            for item in (after, user(number)):
                flow.run(flow.send(scope, PutItem(table="Users", item=item)), db)
                put_items(db, "Shop", (each.item for each in mapping.outputs("Users", item).items.values()))
            assert before

    writer = threading.Thread(target=write)
    writer.start()
    try:
        reports = [compare(migration, DiffOptions(settle_seconds=0.02, rounds=50)) for _ in range(3)]
    finally:
        stop.set()
        writer.join()
    assert [report.differences for report in reports] == [{"changed": len(planted)}] * 3
    assert [report.unsettled for report in reports] == [0, 0, 0]


def test_a_change_that_is_applied_after_the_lag_is_no_difference_and_one_that_is_not_applied_is(
    db: Database,
) -> None:
    mapping = people()
    migration = copied(db, mapping, Users=[user(n) for n in range(20)])
    late, lost = user(3, city="late"), user(4, city="lost")
    put_items(db, "Users", [late, lost])

    def apply_late(_: float) -> None:
        put_items(db, "Shop", (each.item for each in mapping.outputs("Users", late).items.values()))

    report = compare(migration, DiffOptions(sleep=apply_late))
    assert (report.differences, report.settled) == ({"changed": 1}, 1)
    assert report.samples[0]["key"]["PK"] == {"S": "PERSON#u00004"}


def test_an_item_that_never_stays_the_same_is_unsettled(db: Database) -> None:
    migration = copied(db, people(), Users=[user(1)])
    cities = iter(range(100))

    def change(_: float) -> None:
        put_items(db, "Users", [user(1, city=f"c{next(cities)}")])

    change(0)
    report = compare(migration, DiffOptions(sleep=change, rounds=4))
    assert (report.total, report.unsettled, report.exit_code, report.is_equal) == (0, 1, 2, False)
