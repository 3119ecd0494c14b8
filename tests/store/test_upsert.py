"""Upserts: one write that updates an entity, or creates it whole."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import pytest
from pydantic import ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from solotable import (
    FROM_SCOPE,
    TTL,
    Counted,
    Counter,
    Created,
    Database,
    Encrypted,
    Entity,
    History,
    Index,
    Key,
    Outbox,
    SoftDelete,
    Table,
    Unique,
    Updated,
    Version,
    flow,
    upgrade,
)
from solotable._protocol.requests import GetItem, PutItem, TransactWriteItems, UpdateItem
from solotable.encryption import Keyring, generate_key
from solotable.errors import AlreadyExists, ConditionFailed, DataError, NotUnique, TransactionFailed

from .opening import Clock, Opening, stale_keys

shop = Table("Shop", stream=True, indexes=[Index("GSI1")], ttl="expires_at")
club = Table("Club", tenant="club_id")


class Visit(Entity, table=shop):
    """Nothing that depends on a stored item: one request."""

    key = Key("PAGE#{page}", "VISIT")
    by_day = Key("DAY#{day}", "PAGE#{page}", index="GSI1")
    page: str
    day: str | None = None
    count: int = 0
    tags: set[str] = Field(default_factory=set)
    notes: list[str] = Field(default_factory=list)
    kind: str = "page"
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0


class Page(Entity, table=shop):
    """An index key with a default, and additions to defaults."""

    key = Key("PAGE#{page}", "PAGE")
    by_state = Key("STATE#{state}", "PAGE#{page}", index="GSI1")
    page: str
    title: str
    state: str = "open"
    stars: int = 10
    tags: set[str] = Field(default_factory=lambda: {"new"})
    notes: list[str] = Field(default_factory=lambda: ["first"])


class Session(Entity, table=shop):
    key = Key("SESSION#{token}", "SESSION")
    token: str
    user: str = "guest"
    hits: int = 0
    expires_at: Annotated[datetime | None, TTL()] = None


class Group(Entity, table=shop):
    key = Key("GROUP#{group_id}", "GROUP")
    group_id: str
    members: Annotated[int, Counter()] = 0


class Account(Entity, table=shop):
    """Every kind of derived write."""

    key = Key("ACCOUNT#{account_id}", "ACCOUNT")
    history = History("ACCOUNT-OF#v{version:06d}")
    outbox = Outbox()
    counted = Counted(Group, "members")
    account_id: str
    group_id: str
    email: Annotated[str | None, Unique()] = None
    version: Annotated[int, Version()] = 0


class Note(Entity, table=shop):
    key = Key("NOTE#{note_id}", "NOTE")
    deletion = SoftDelete(grace=timedelta(days=30))
    note_id: str
    text: str = ""
    version: Annotated[int, Version()] = 0


class Range(Entity, table=shop):
    key = Key("RANGE#{range_id}", "RANGE")
    range_id: str
    low: int = 0
    high: int = 9

    @model_validator(mode="after")
    def _is_ordered(self) -> Range:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Contact(Entity, table=shop):
    """A validator that changes its value, which is part of an index key."""

    key = Key("CONTACT#{contact_id}", "CONTACT")
    by_mail = Key("MAIL#{mail}", "CONTACT", index="GSI1")
    contact_id: str
    mail: str

    @field_validator("mail")
    @classmethod
    def _lower(cls, value: str) -> str:
        return value.lower()


class Patient(Entity, table=shop):
    key = Key("PATIENT#{patient_id}", "PATIENT")
    patient_id: str
    name: str = ""
    notes: Annotated[str | None, Encrypted(Keyring({"k": generate_key()}))] = None


class Tagged(Entity, table=shop):
    """Defaults that are computed from other fields, and aliases."""

    model_config = ConfigDict(alias_generator=to_camel)
    key = Key("TAGGED#{name}", "TAGGED")
    name: str
    home_city: str
    kind: str = "person"
    tags: list[str] = Field(default_factory=lambda data: [data["name"], data["kind"], data["home_city"]])
    total: int = Field(default_factory=lambda data: len(data["tags"]))


class Member(Entity, table=club):
    key = Key("CLUB#{club_id}", "MEMBER#{member_id}")
    club_id: str = FROM_SCOPE
    member_id: str
    points: int = 0


class Ticking(Clock):
    """A clock that moves on whenever it is read."""

    def __call__(self) -> float:
        self.seconds += 1
        return self.seconds


@pytest.fixture
def store(opening: Opening) -> Database:
    return opening(shop, club)


def test_a_missing_entity_is_created_whole_in_one_request(store: Database, opening: Opening) -> None:
    visit = store.upsert(Visit, page="a", set={"day": "d1"}, add={"count": 1, "tags": {"x"}})
    assert [type(sent) for sent in opening.spy.sent] == [UpdateItem]
    at = opening.clock.at(0)
    assert visit == Visit(page="a", day="d1", count=1, tags={"x"}, created=at, updated=at, version=1)
    assert store.get(Visit, page="a") == visit
    assert [found.page for found in store.all(Visit.by_day.query(day="d1"))] == ["a"]
    put = store.put(Visit(page="b", day="d1", count=1, tags={"x"}))
    stored = {item["PK"]["S"]: item for item in opening.raw(shop)}
    names = [set(stored[f"PAGE#{page}"]) for page in (visit.page, put.page)]
    assert names[0] == names[1]


def test_a_stored_entity_is_updated_in_one_request(store: Database, opening: Opening) -> None:
    store.put(Visit(page="a", day="d1", count=5, kind="post", notes=["b"]))
    opening.clock.seconds += 60
    opening.spy.sent.clear()
    changed = store.upsert(
        Visit,
        page="a",
        set={"day": "d2"},
        add={"count": 2},
        prepend={"notes": ["a"]},
        set_if_missing={"kind": "x"},
    )
    assert [type(sent) for sent in opening.spy.sent] == [UpdateItem]
    assert (changed.count, changed.kind, changed.notes, changed.version) == (7, "post", ["a", "b"], 2)
    assert changed.created == opening.clock.at(0)
    assert changed.updated == opening.clock.at(60)
    assert stale_keys(opening, shop) == []
    gone = store.upsert(Visit, page="a", set={"day": None})
    assert gone.day is None
    assert stale_keys(opening, shop) == []


def test_an_index_key_with_a_stored_field_is_read_first(store: Database, opening: Opening) -> None:
    made = store.upsert(Page, page="a", set={"title": "A"})
    assert made == Page(page="a", title="A")
    assert (len(opening.spy.of(GetItem)), len(opening.spy.of(PutItem))) == (1, 1)
    store.update(Page, page="a", set={"state": "closed"})
    assert store.upsert(Page, page="a", set={"title": "B"}).state == "closed"
    assert stale_keys(opening, shop) == []


def test_an_addition_to_a_new_entity_starts_from_the_default(store: Database) -> None:
    changes = {"add": {"stars": 1, "tags": {"hot"}}, "append": {"notes": ["last"]}}
    made = store.upsert(Page, page="a", set={"title": "A"}, **changes)  # type: ignore[arg-type]  # three mappings
    assert (made.stars, made.tags, made.notes) == (11, {"new", "hot"}, ["first", "last"])
    again = store.upsert(Page, page="a", set={"title": "A"}, **changes)  # type: ignore[arg-type]  # the same
    assert (again.stars, again.tags, again.notes) == (12, {"new", "hot"}, ["first", "last", "last"])


def test_a_default_of_other_fields_is_computed_from_the_new_ones(store: Database) -> None:
    created = store.upsert(
        Tagged, name="ana", set={"home_city": "Bonn"}, append={"tags": ["x"]}, add={"total": 10}
    )
    assert created.tags == ["ana", "person", "Bonn", "x"]
    assert (created.total, store.require(Tagged, name="ana")) == (14, created)
    updated = store.upsert(Tagged, name="ana", set={"home_city": "Köln"}, prepend={"tags": ["y"]})
    assert updated.tags == ["y", "ana", "person", "Bonn", "x"]


def test_a_missing_field_is_named_as_in_the_model(store: Database) -> None:
    with pytest.raises(DataError, match="needs home_city to create the item"):
        store.upsert(Tagged, name="ana", append={"tags": ["x"]})


def test_the_first_write_has_one_time(store: Database, opening: Opening) -> None:
    opening.clock = Ticking()
    db = opening(shop)
    for visit in (db.put(Visit(page="a")), db.upsert(Visit, page="b", add={"count": 1})):
        assert visit.created is not None
        assert visit.created == visit.updated


@pytest.mark.parametrize("first", ["created", "deleted"])
def test_what_was_read_is_read_again_when_another_writer_was_first(
    store: Database, opening: Opening, first: str
) -> None:
    beside = opening.beside(shop)
    if first == "created":
        opening.spy.once(PutItem, lambda: beside.put(Page(page="a", title="B", state="closed")))
    else:
        beside.put(Page(page="a", title="B", stars=1))
        opening.spy.once(UpdateItem, lambda: beside.delete(Page, page="a"))
    found = store.upsert(Page, page="a", set={"title": "A"}, add={"stars": 1})
    expected = {"state": "closed", "stars": 11} if first == "created" else {"state": "open", "stars": 11}
    assert found == Page(page="a", title="A", **expected)  # type: ignore[arg-type]  # two fields
    assert stale_keys(opening, shop) == []


def test_an_expired_entity_is_replaced_and_not_continued(store: Database, opening: Opening) -> None:
    store.put(Session(token="t", user="zoe", hits=7, expires_at=opening.clock.at(60)))
    opening.clock.seconds += 120
    assert store.upsert(Session, token="t", add={"hits": 1}) == Session(token="t", hits=1)
    assert store.upsert(Session, token="t", add={"hits": 1}).hits == 2


def test_derived_writes_are_part_of_it(store: Database, opening: Opening) -> None:
    store.put(Group(group_id="g"))
    opening.spy.sent.clear()
    made = store.upsert(Account, account_id="a", set={"group_id": "g", "email": "z@x"})
    assert made.version == 1
    assert len(opening.spy.of(TransactWriteItems)) == 1
    assert store.require(Group, group_id="g").members == 1
    changed = store.upsert(Account, account_id="a", set={"group_id": "g", "email": "y@x"})
    assert changed.version == 2
    assert store.require(Group, group_id="g").members == 1
    assert len(store.history(Account, account_id="a").list().items) == 1
    with pytest.raises(NotUnique):
        store.upsert(Account, account_id="b", set={"group_id": "g", "email": "y@x"})
    store.upsert(Account, account_id="b", set={"group_id": "g", "email": "z@x"})
    assert store.require(Group, group_id="g").members == 2


def test_a_deleted_entity_keeps_its_key(store: Database) -> None:
    note = store.upsert(Note, note_id="n", set={"text": "a"})
    store.delete(note)
    with pytest.raises(AlreadyExists):
        store.upsert(Note, note_id="n", set={"text": "b"})


def test_another_entity_under_the_key_is_not_changed(store: Database, opening: Opening) -> None:
    planted = {
        "PK": {"S": "PAGE#a"},
        "SK": {"S": "VISIT"},
        "_type": {"S": "Page"},
        "page": {"S": "a"},
        "title": {"S": "T"},
    }
    opening.plant(shop, planted)
    with pytest.raises(ConditionFailed, match=r"Upsert Visit page='a'.*Page is stored under the same key"):
        store.upsert(Visit, page="a", set={"day": "d"})
    assert opening.raw(shop) == [planted]


def test_rules_of_the_model_hold_in_both_cases(store: Database) -> None:
    with pytest.raises(DataError, match="low is above high"):
        store.upsert(Range, range_id="r", set={"low": 10})
    store.put(Range(range_id="r", high=5))
    with pytest.raises(DataError, match="low is above high"):
        store.upsert(Range, range_id="r", set={"low": 6})
    assert store.upsert(Range, range_id="r", set={"low": 5}).low == 5


def test_what_a_validator_returns_is_stored(store: Database, opening: Opening) -> None:
    assert store.upsert(Contact, contact_id="c", set={"mail": "A@X"}).mail == "a@x"
    assert store.upsert(Contact, contact_id="c", set={"mail": "B@X"}).mail == "b@x"
    assert [each.mail for each in store.all(Contact.by_mail.query(mail="b@x"))] == ["b@x"]
    assert stale_keys(opening, shop) == []


def test_an_encrypted_field_is_stored_as_ciphertext(store: Database, opening: Opening) -> None:
    for name in ("a", "b"):
        found = store.upsert(Patient, patient_id="p", set={"name": name}, set_if_missing={"notes": "secret"})
        assert (found.name, found.notes) == (name, "secret")
    assert store.upsert(Patient, patient_id="p", set={"notes": "secret 2"}).notes == "secret 2"
    assert "secret" not in repr(opening.raw(shop))


def test_what_could_not_be_created_is_rejected(store: Database) -> None:
    with pytest.raises(DataError, match=r"upsert\(\) of Page needs title to create the item; pass set="):
        store.upsert(Page, page="a", set={"state": "x"})
    with pytest.raises(DataError, match=r"upsert\(\) takes whole fields, got Visit\.notes\[0\]"):
        store.upsert(Visit, page="a", set={"notes[0]": "x"})
    with pytest.raises(DataError, match=r"Visit\.version is maintained by the store"):
        store.upsert(Visit, page="a", set={"version": 7})
    with pytest.raises(DataError, match=r"upsert\(\) takes an Entity class, got an instance of Visit"):
        store.upsert(Visit(page="a"), set={"day": "d"})  # type: ignore[arg-type]  # the point of the test


def test_transactions_and_flows_upsert_too(store: Database, opening: Opening) -> None:
    for _ in range(2):
        with store.transaction() as tx:
            tx.upsert(Visit, page="a", add={"count": 1})
            tx.upsert(Page, page="a", set={"title": "A"}, add={"stars": 1})
    assert (store.require(Visit, page="a").count, store.require(Page, page="a").stars) == (2, 12)
    beside = opening.beside(shop, club)
    made = flow.run(flow.upsert(flow.scope_of(beside), Visit, page="a", add={"count": 1}), beside)
    assert made.count == 3
    assert stale_keys(opening, shop) == []
    failing = store.transaction()
    failing.upsert(Visit, page="b", add={"count": 1})
    failing.check(Page, page="a", where=lambda page: page.stars > 100)
    with pytest.raises(TransactionFailed), failing:
        pass
    assert store.get(Visit, page="b") is None


def test_a_tenant_upserts_its_own_entities(store: Database) -> None:
    a, b = store.tenant("a"), store.tenant("b")
    assert a.upsert(Member, member_id="m", add={"points": 1}) == Member(club_id="a", member_id="m", points=1)
    assert a.upsert(Member, member_id="m", add={"points": 1}).points == 2
    assert b.upsert(Member, member_id="m", add={"points": 1}).points == 1


def test_an_item_of_an_older_schema_version_is_upgraded(opening: Opening) -> None:
    files = Table("Files")

    class File(Entity, table=files, schema_version=2):
        key = Key("FILE#{file_id}", "FILE")
        file_id: str
        size: int = 0
        name: str = ""

        @upgrade(to=2)
        @staticmethod
        def _named(record: dict[str, object]) -> dict[str, object]:
            return {**record, "name": "old"}

    store = opening(files)
    opening.plant(
        files, {"PK": {"S": "FILE#f"}, "SK": {"S": "FILE"}, "_type": {"S": "File"}, "file_id": {"S": "f"}}
    )
    assert store.upsert(File, file_id="f", add={"size": 1}) == File(file_id="f", size=1, name="old")
    assert store.upsert(File, file_id="g", add={"size": 1}) == File(file_id="g", size=1)
