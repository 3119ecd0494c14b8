"""Soft delete: hidden on every way to read, had back byte for byte, and what the other traits do (S2.22)."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from solotable import (
    ANY,
    FROM_SCOPE,
    TTL,
    AdminStore,
    Counted,
    Counter,
    Database,
    Entity,
    History,
    Index,
    Key,
    Names,
    Outbox,
    Redirect,
    SoftDelete,
    Store,
    Table,
    Unique,
    Version,
)
from solotable._flows.traits.outbox import load_event
from solotable._protocol.requests import TransactWriteItems, UpdateItem
from solotable._values import Item
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    DataError,
    DeclarationError,
    NotFound,
    NotUnique,
    ServiceError,
    TransactionFailed,
    VersionConflict,
)
from solotable.jobs.backfill import backfill

from .opening import Opening

DAY = 86_400
club = Table(
    "Club",
    tenant="tenant_id",
    ttl="expires",
    indexes=[
        Index("GSI1"),
        Index("GSI2", projection="KEYS_ONLY"),
    ],
)
guests = Table(
    "Guests",
    indexes=[
        Index("BY_CITY", partition="city", sort="name"),
        Index("BY_TOWN", partition="town", sort="name", projection=("note",)),
    ],
)


class Guest(Entity, table=guests):
    """In indexes by attributes of its own, which a delete leaves."""

    key = Key("GUEST#{guest_id}", "GUEST")
    by_city = Key(("city",), ("name",), index="BY_CITY")
    by_town = Key(("town",), ("name",), index="BY_TOWN")
    deletion = SoftDelete(grace=timedelta(days=1))
    guest_id: str
    name: str
    city: str = "Ulm"
    town: str = "Ulm"
    note: str = ""


class Team(Entity, table=club):
    key = Key("TENANT#{tenant_id}", "TEAM#{team_id}")
    tenant_id: str = FROM_SCOPE
    team_id: str
    members: Annotated[int, Counter()] = 0


class Member(Entity, table=club):
    key = Key("TENANT#{tenant_id}", "MEMBER#{member_id}")
    by_name = Key("TENANT#{tenant_id}#NAMES", "{name}", index="GSI1")
    by_team = Key("TENANT#{tenant_id}#TEAM#{team_id}", "{member_id}", index="GSI2")
    deletion = SoftDelete(grace=timedelta(days=30))
    counted = Counted(Team, "members")
    tenant_id: str = FROM_SCOPE
    member_id: str
    name: str
    city: str = "Ulm"
    team_id: str = "t"
    email: Annotated[str | None, Unique()] = None
    note: str | None = None


class Card(Entity, table=club):
    """With a version, and as little as possible besides."""

    key = Key("TENANT#{tenant_id}#CARD#{card_id}", "CARD")
    deletion = SoftDelete(grace=timedelta(days=7))
    tenant_id: str = FROM_SCOPE
    card_id: str
    text: str = ""
    version: Annotated[int, Version()] = 0


class Post(Entity, table=club):
    """With a history and names."""

    key = Key("TENANT#{tenant_id}#BLOG", "POST#{path}")
    deletion = SoftDelete(grace=timedelta(days=7))
    history = History("POST#{path}#v{version:06d}")
    tenant_id: str = FROM_SCOPE
    path: str
    text: str = ""
    version: Annotated[int, Version()] = 0


class Route(Entity, table=club):
    key = Key("TENANT#{tenant_id}#ROUTES", "ROUTE#{path}")
    deletion = SoftDelete(grace=timedelta(days=7))
    names = Names("path", protected=("/",))
    tenant_id: str = FROM_SCOPE
    path: str
    version: Annotated[int, Version()] = 0


class Brief(BaseModel):
    name: str


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(club)


@pytest.fixture
def db(base: Database) -> Store:
    db = base.tenant("acme")
    db.create(Team(team_id="t"))
    return db


def names(members: Any) -> list[str]:
    return sorted(each.name for each in members if each is not None)


READS: dict[str, Callable[[Store], list[str]]] = {
    "get": lambda db: names(db.get(Member, member_id=each) for each in "ab"),
    "get_many": lambda db: names(
        db.get_many(Member, [{"member_id": each} for each in "ab"], consistent=True)
    ),
    "all": lambda db: names(db.all(Member.key.query())),
    "page": lambda db: names(db.page(Member.key.query(), limit=1)),
    "first": lambda db: names([db.first(Member.key.query())]),
    "collection": lambda db: names(db.collection(Team, Member)[1]),
    "index": lambda db: names(db.all(Member.by_name.query())),
    "index of keys": lambda db: names(db.all(Member.by_team.query(team_id="t"))),
    "view": lambda db: names(db.all(Member.key.query().select(Brief))),
    "filter": lambda db: names(db.all(Member.key.query(), where=lambda each: each.city == "Ulm")),
}
COUNTS = {
    "key": Member.key.query(),
    "index": Member.by_name.query(),
    "index of keys": Member.by_team.query(team_id="t"),
}


@pytest.mark.parametrize("way", READS)
def test_c2_9_what_is_deleted_is_hidden_on_every_way_to_read(db: Store, opening: Opening, way: str) -> None:
    db.create(Member(member_id="a", name="Ada"))
    db.create(Member(member_id="b", name="Bob"))
    db.delete(Member, member_id="a")
    assert READS[way](db) == ["Bob"]
    stored = [item for item in opening.raw(club) if item[club.internal_tag] == {"S": "Member"}]
    assert len(stored) == 2, "the item itself is still there"
    db.undelete(Member, member_id="a")
    assert READS[way](db) == (["Ada"] if way in ("page", "first") else ["Ada", "Bob"])


@pytest.mark.parametrize("way", COUNTS)
def test_c2_9_what_is_deleted_is_not_counted(db: Store, way: str) -> None:
    db.create(Member(member_id="a", name="Ada"))
    db.create(Member(member_id="b", name="Bob"))
    db.delete(Member, member_id="a")
    assert db.count(COUNTS[way]) == 1


@pytest.mark.parametrize("key", [Guest.by_city, Guest.by_town], ids=["all", "some"])
def test_c2_9_an_index_that_a_deleted_item_stays_in_does_not_show_it(opening: Opening, key: Any) -> None:
    db = opening(guests)
    place = {"city": "Ulm"} if key.path.name == "by_city" else {"town": "Ulm"}
    db.create(Guest(guest_id="a", name="Ada"))
    db.create(Guest(guest_id="b", name="Bob"))
    db.delete(Guest, guest_id="a")
    query = key.query(**place)
    assert names(db.all(query)) == ["Bob"]
    assert names(db.page(query, limit=1)) == ["Bob"]
    assert names(db.all(query.select(Brief))) == ["Bob"]
    assert db.count(query) == 1


def test_writes_take_it_for_gone(db: Store) -> None:
    ada = db.create(Member(member_id="a", name="Ada"))
    assert db.delete(Member, member_id="a") == ada
    assert db.delete(Member, member_id="a") is None
    with pytest.raises(NotFound):
        db.update(Member, member_id="a", set={"name": "x"})
    with pytest.raises(NotFound):
        db.require(Member, member_id="a")
    with pytest.raises(ConditionFailed, match="the item does not exist"):
        db.delete(Member, member_id="a", where=lambda each: each.name == "Ada")
    with pytest.raises(TransactionFailed) as failed, db.transaction() as tx:
        tx.check(Member, member_id="a")
    assert isinstance(failed.value.failures[0].error, NotFound)
    with db.transaction() as tx:
        tx.delete(Member, member_id="a")


@pytest.mark.parametrize("verb", ["create", "put"])
def test_a_create_over_a_deleted_entity_is_rejected_with_its_purge_time(
    db: Store, opening: Opening, verb: str
) -> None:
    db.create(Member(member_id="a", name="Ada"))
    db.delete(Member, member_id="a")
    told = r"Member member_id='a': it was deleted at 2035-01-01T.*undelete\(\) it until 2035-01-31 00:00:00"
    opening.spy.sent.clear()
    with pytest.raises(AlreadyExists, match=told):
        getattr(db, verb)(Member(member_id="a", name="New"))
    assert len(opening.spy.sent) <= 2, "it is not tried again and again"
    card = db.create(Card(card_id="c"))
    db.delete(card)
    with pytest.raises(AlreadyExists, match="it was deleted at"):
        getattr(db, verb)(Card(card_id="c"))
    with pytest.raises(VersionConflict, match="the item does not exist"):
        db.put(card)
    with pytest.raises(VersionConflict, match="the item does not exist"):
        db.delete(card)


def test_undelete_gives_the_identical_item_back(db: Store, base: Database, opening: Opening) -> None:
    db.create(Member(member_id="a", name="Ada", email="ada@x", note="n"))
    before = raw(opening)
    db.delete(Member, member_id="a")
    (entry,) = base.admin().deleted(Member)
    assert entry.key == {"tenant_id": "acme", "member_id": "a"}
    assert entry.purge_at - entry.deleted_at == timedelta(days=30)
    opening.clock.seconds += 30 * DAY - 0.5
    assert db.undelete(Member, member_id="a").email == "ada@x"
    assert raw(opening) == before
    assert list(base.admin().deleted(Member)) == []
    with pytest.raises(NotFound, match="it is not deleted"):
        db.undelete(Member, member_id="a")


def test_a_transaction_undeletes_with_its_other_writes_or_not_at_all(db: Store, opening: Opening) -> None:
    db.create(Member(member_id="a", name="Ada", email="ada@x"))
    before = raw(opening)
    db.delete(Member, member_id="a")

    def fail() -> None:
        with db.transaction() as tx:
            tx.undelete(Member, member_id="a")
            tx.check(Member, member_id="none")

    with pytest.raises(TransactionFailed):
        fail()
    assert db.get(Member, member_id="a") is None
    with db.transaction() as tx:
        tx.undelete(Member, member_id="a")
        tx.create(Card(card_id="c"))
    db.delete(Card, card_id="c", version=1)
    assert db.require(Member, member_id="a").email == "ada@x"
    assert [item for item in raw(opening) if "Member" in str(item["_type"])] == [
        item for item in before if "Member" in str(item["_type"])
    ]


def raw(opening: Opening) -> list[Item]:
    return sorted(opening.raw(club), key=lambda item: (item["PK"]["S"], item["SK"]["S"]))


def test_a_version_is_neither_raised_nor_needed_to_have_it_back(db: Store, opening: Opening) -> None:
    card = db.create(Card(card_id="c"))
    before = raw(opening)
    db.delete(card)
    assert db.undelete(Card, card_id="c") == card
    assert raw(opening) == before
    with pytest.raises(VersionConflict):
        db.delete(Card, card_id="c", version=7)
    db.delete(Card, card_id="c", version=ANY)
    opening.clock.seconds += 7 * DAY
    with pytest.raises(NotFound, match="its grace period is over"):
        db.undelete(Card, card_id="c")
    with pytest.raises(NotFound):
        db.undelete(Card, card_id="never")


def test_locks_are_kept_and_counters_follow(db: Store) -> None:
    db.create(Member(member_id="a", name="Ada", email="ada@x"))
    db.delete(Member, member_id="a")
    assert db.require(Team, team_id="t").members == 0
    with pytest.raises(NotUnique):
        db.create(Member(member_id="b", name="Bob", email="ada@x"))
    db.undelete(Member, member_id="a")
    assert db.require(Team, team_id="t").members == 1


def test_a_history_has_no_version_of_a_delete_that_can_be_taken_back(db: Store) -> None:
    post = db.put(db.create(Post(path="p", text="1")).model_copy(update={"text": "2"}))
    db.delete(post)
    assert db.get(Post, path="p") is None
    db.undelete(Post, path="p")
    assert [each.version for each in db.history(Post, path="p").list()] == [1]
    assert db.put(post.model_copy(update={"text": "3"})).version == 3


def test_former_names_are_kept(db: Store) -> None:
    db.create(Route(path="/"))
    with pytest.raises(DataError, match="protected"):
        db.delete(Route, path="/", version=ANY)
    db.create(Route(path="/old"))
    db.names(Route).rename("/old", to="/new", version=ANY)
    db.delete(Route, path="/new", version=ANY)
    assert db.names(Route).resolve("/old", follow=True) is None
    with pytest.raises(AlreadyExists):
        db.create(Route(path="/old"))
    db.undelete(Route, path="/new")
    assert db.names(Route).resolve("/old", follow=True) == Redirect(
        name="/old", to="/new", entity=db.require(Route, path="/new")
    )


def test_a_delete_between_reading_and_writing_is_not_undone(db: Store, opening: Opening) -> None:
    ada = db.create(Member(member_id="a", name="Ada"))
    beside = opening.beside(club).tenant("acme")
    opening.spy.once(TransactWriteItems, lambda: beside.delete(Member, member_id="a"))
    with pytest.raises(AlreadyExists, match="it was deleted"):
        db.put(ada.model_copy(update={"name": "Eve", "email": "x"}))
    assert db.get(Member, member_id="a") is None
    beside.undelete(Member, member_id="a")
    opening.spy.once(TransactWriteItems, lambda: beside.delete(Member, member_id="a"))
    assert db.delete(Member, member_id="a") is None, "somebody else's delete was first"
    opening.spy.once(TransactWriteItems, lambda: beside.undelete(Member, member_id="a"))
    with pytest.raises(NotFound, match="it is not deleted"):
        db.undelete(Member, member_id="a")
    assert db.require(Team, team_id="t").members == 1


def test_undelete_restores_the_current_index_key(db: Store, opening: Opening) -> None:
    db.create(Member(member_id="a", name="Ada"))
    beside = opening.beside(club).tenant("acme")
    opening.spy.once(TransactWriteItems, lambda: beside.update(Member, member_id="a", set={"name": "Eve"}))
    removed = db.delete(Member, member_id="a")
    assert removed is not None
    assert removed.name == "Eve"
    db.undelete(Member, member_id="a")
    assert names(db.all(Member.by_name.query(name="Eve"))) == ["Eve"]


def test_tenants_do_not_reach_each_others_deleted(base: Database, db: Store) -> None:
    db.create(Member(member_id="a", name="Ada"))
    db.delete(Member, member_id="a")
    with pytest.raises(NotFound):
        base.tenant("other").undelete(Member, member_id="a")
    assert not hasattr(db, "deleted"), "the list is of all tenants"


def test_the_list_of_deleted_goes_page_by_page_in_the_order_of_the_purge(
    base: Database, db: Store, opening: Opening
) -> None:
    for number in range(23):
        db.create(Card(card_id=str(number)))
        db.delete(Card, card_id=str(number), version=ANY)
        opening.clock.seconds += 60
    db.create(Member(member_id="a", name="Ada"))
    db.delete(Member, member_id="a")
    found, cursor = [], None
    while True:
        page = base.admin().deleted(Card, limit=5, cursor=cursor)
        found += [each.key["card_id"] for each in page]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [str(number) for number in range(23)]


DECLARATIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "no grace": (lambda: {"deletion": SoftDelete(grace=timedelta(0))}, "leaves no time to undelete"),
    "no tuple": (lambda: {"deletion": SoftDelete(grace=timedelta(1), cascade=Team)}, "is a tuple"),  # type: ignore[arg-type]
}


@pytest.mark.in_process
@pytest.mark.parametrize("case", DECLARATIONS)
def test_declarations_that_are_refused(case: str) -> None:
    made, message = DECLARATIONS[case]
    body = {"key": Key("A#{a}", "A"), "__annotations__": {"a": str}, "__module__": __name__, **made()}
    with pytest.raises(DeclarationError, match=message):
        type("Bad", (Entity,), body, table=Table("Bad"))


def test_a_table_that_could_not_list_its_tickets_is_refused() -> None:
    with pytest.raises(DeclarationError, match="needs a partition key and a sort key of type S"):

        class Alone(Entity, table=Table("Alone", sort=None)):
            key = Key("A#{a}")
            deletion = SoftDelete(grace=timedelta(days=1))
            a: str


def test_only_what_is_declared_can_be_had_back(db: Store) -> None:
    with pytest.raises(DeclarationError, match="Team is deleted at once"):
        db.undelete(Team, team_id="t")


def test_racing_deletes_and_undeletes_leave_one_truth(db: Store, opening: Opening) -> None:
    """Every member is shown, counted and without a entry, or hidden, not counted and with one entry."""
    everybody = [str(number) for number in range(4)]
    for each in everybody:
        db.create(Member(member_id=each, name=each, email=f"{each}@x"))

    def shuffle(seed: int) -> None:
        mine, dice = opening.beside(club).tenant("acme"), random.Random(seed)
        for _ in range(12):
            member = dice.choice(everybody)
            with suppress(NotFound, AlreadyExists, ServiceError):
                if dice.random() < 0.5:
                    mine.delete(Member, member_id=member)
                else:
                    mine.undelete(Member, member_id=member)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(shuffle, range(4)))
    items = opening.raw(club)
    hidden = sorted(item["member_id"]["S"] for item in items if "_deleted_at" in item)
    shown = sorted(each.member_id for each in db.all(Member.key.query()))
    listed = [item["_ticket"]["M"]["key"]["M"]["SK"]["S"] for item in items if "_ticket" in item]
    assert sorted(hidden + shown) == everybody
    assert sorted(listed) == [f"MEMBER#{each}" for each in hidden]
    assert db.require(Team, consistent=True, team_id="t").members == len(shown)
    assert names(db.all(Member.by_name.query())) == shown
    assert len([item for item in items if item[club.internal_tag] == {"S": "_unique"}]) == len(everybody)


def test_a_backfill_does_not_put_what_is_deleted_into_an_index(db: Store, opening: Opening) -> None:
    admin = AdminStore(opening.spy, opening.beside(club).admin().scope)
    beside = opening.beside(club).tenant("acme")
    for each in "ab":
        db.create(Member(member_id=each, name=each))
    for item in opening.raw(club):
        if item[club.internal_tag] == {"S": "Member"}:
            opening.plant(club, {name: value for name, value in item.items() if name != "GSI1PK"})
    db.delete(Member, member_id="a")
    opening.spy.once(UpdateItem, lambda: beside.delete(Member, member_id="b"))
    backfill(admin, Member, budget=1000, together=1)
    assert not [item for item in opening.raw(club) if "GSI1PK" in item], "neither before nor meanwhile"


feed = Table("Feed", stream=True, ttl="ends")


class Story(Entity, table=feed):
    key = Key("STORY#{story_id}", "STORY")
    deletion = SoftDelete(grace=timedelta(days=7))
    events = Outbox(title="story_id")
    story_id: str
    version: Annotated[int, Version()] = 0


def test_an_outbox_tells_of_deletes_and_undeletes(opening: Opening) -> None:
    db = opening(feed)
    db.create(Story(story_id="s"))
    opening.clock.seconds += 1
    db.delete(Story, story_id="s", version=ANY)
    opening.clock.seconds += 1
    db.undelete(Story, story_id="s")
    events = [
        load_event(feed, item) for item in opening.raw(feed) if item[feed.internal_tag] == {"S": "_outbox"}
    ]
    told = [(each.verb, each.version) for each in sorted(events, key=lambda each: each.at)]
    assert told == [("created", 1), ("deleted", 1), ("undeleted", 1)]


def test_a_delete_by_an_older_release_is_not_counted_in_a_newer_index(opening: Opening) -> None:
    table = Table("Releases", indexes=[Index("GSI1"), Index("GSI2")])

    class Order(Entity, table=table):
        key = Key("ORDER#{order_id}", "ORDER")
        by_state = Key("STATE", "{order_id}", index="GSI2")
        deletion = SoftDelete(grace=timedelta(days=30))
        order_id: str

    db = opening(table)
    for order_id in ("1", "2"):
        db.put(Order(order_id=order_id))
    db.delete(Order, order_id="1")
    (deleted,) = (item for item in opening.raw(table) if item["PK"] == {"S": "ORDER#1"})
    # The older release, which does not know the index, leaves its key.
    opening.plant(table, {**deleted, "GSI2PK": {"S": "STATE"}, "GSI2SK": {"S": "1"}})
    assert [each.order_id for each in db.all(Order.by_state.query())] == ["2"]
    assert db.count(Order.by_state.query()) == 1


def test_a_view_of_an_index_that_does_not_project_the_deletion_is_read(opening: Opening) -> None:
    """A delete removes the item from the index, so the index need not say which items are deleted."""
    listed = Table("Listed", ttl="expires", indexes=[Index("GSI1", projection=("name",))])

    class Song(Entity, table=listed):
        key = Key("SONG#{song_id}", "SONG")
        by_kind = Key("SONGS", "{song_id}", index="GSI1")
        deletion = SoftDelete(grace=timedelta(days=1))
        song_id: str
        name: str
        text: str = ""

    db = opening(listed)
    for song_id in ("a", "b"):
        db.create(Song(song_id=song_id, name=song_id.upper()))
    db.delete(Song, song_id="a")
    assert names(db.all(Song.by_kind.query().select(Brief))) == ["B"]
    assert names(db.all(Song.by_kind.query())) == ["B"]


def test_a_view_of_an_index_that_does_not_project_the_expiry_hides_what_is_expired(opening: Opening) -> None:
    listed = Table("Listed", ttl="expires", indexes=[Index("GSI1", projection=("name",))])

    class Note(Entity, table=listed):
        key = Key("NOTE#{note_id}", "NOTE")
        by_kind = Key("NOTES", "{note_id}", index="GSI1")
        note_id: str
        name: str
        expires: Annotated[datetime | None, TTL()] = None

    db = opening(listed)
    db.create(Note(note_id="a", name="A", expires=datetime(2001, 1, 1, tzinfo=UTC)))
    db.create(Note(note_id="b", name="B"))
    assert names(db.all(Note.by_kind.query().select(Brief))) == ["B"]


@pytest.mark.parametrize(
    ("projection", "before"),
    [("KEYS_ONLY", 1), (["parcel_id", "size", "_deleted_at"], 1), (["parcel_id", "size"], 2)],
    ids=str,
)
def test_a_backfill_removes_the_keys_that_a_delete_by_an_older_release_leaves(
    opening: Opening, projection: Any, before: int
) -> None:
    """Without the time of the delete in the index, the entity is visible there until then (ST304)."""
    table = Table("Narrow", indexes=[Index("GSI1", projection=projection)])

    class Parcel(Entity, table=table):
        key = Key("PARCEL#{parcel_id}", "PARCEL")
        by_size = Key("SIZE", "{parcel_id}", index="GSI1")
        deletion = SoftDelete(grace=timedelta(days=30))
        parcel_id: str
        size: int = 1

    db = opening(table)
    for parcel_id in ("1", "2"):
        db.put(Parcel(parcel_id=parcel_id))
    db.delete(Parcel, parcel_id="1")
    (deleted,) = (item for item in opening.raw(table) if item["PK"] == {"S": "PARCEL#1"})
    opening.plant(table, {**deleted, "GSI1PK": {"S": "SIZE"}, "GSI1SK": {"S": "1"}})
    query = Parcel.by_size.query()
    assert (db.count(query), len(list(db.all(query)))) == (before, before)
    done = backfill(opening.beside(table).admin(), Parcel, budget=100)
    assert (done.tally.reindexed, done.problems) == (1, ())
    assert (db.count(query), len(list(db.all(query)))) == (1, 1)
    db.undelete(Parcel, parcel_id="1")
    assert db.count(query) == 2
