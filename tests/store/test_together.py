"""Patterns that meet in one entity: what one of them changes, the others follow."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import pytest

from solotable import (
    ANY,
    FROM_SCOPE,
    TTL,
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
    Retention,
    SoftDelete,
    Store,
    Table,
    Unique,
    Version,
)
from solotable.errors import DataError, NotUnique
from solotable.jobs.backfill import backfill
from solotable.jobs.purge import purge

from .opening import Opening

shop = Table("Shop", tenant="tenant_id", ttl="expires", stream=True, indexes=[Index("GSI1")])
shop_before = Table("Shop", tenant="tenant_id", ttl="expires", stream=True, indexes=[Index("GSI1")])


class Stall(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "STALL#{stall_id}")
    tenant_id: str = FROM_SCOPE
    stall_id: str
    offers: Annotated[int, Counter()] = 0


class Offer(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "OFFER#{offer_id}#LATEST")
    by_code = Key("TENANT#{tenant_id}#CODES", "{code}", index="GSI1", shards=2)
    history = History("OFFER#{offer_id}#v{version:06d}")
    events = Outbox()
    counted = Counted(Stall, "offers")
    retention = Retention(timedelta(hours=1), since="sold")
    tenant_id: str = FROM_SCOPE
    offer_id: str
    stall_id: str | None = None
    code: Annotated[str | None, Unique()] = None
    text: str = ""
    sold: datetime | None = None
    expires: Annotated[datetime | None, TTL()] = None
    version: Annotated[int, Version()] = 0


class Pass(Entity, table=shop):
    """Without a version: an update of other fields than those of the lock reads nothing."""

    key = Key("TENANT#{tenant_id}", "PASS#{pass_id}")
    retention = Retention(timedelta(hours=1), since="used")
    tenant_id: str = FROM_SCOPE
    pass_id: str
    code: Annotated[str, Unique()]
    used: datetime | None = None
    expires: Annotated[datetime | None, TTL()] = None


class Sign(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "SIGN#{path}")
    names = Names("path")
    deletion = SoftDelete(grace=timedelta(days=7))
    tenant_id: str = FROM_SCOPE
    path: str
    version: Annotated[int, Version()] = 0


class Note(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "NOTE#{note_id}")
    by_text = Key("TENANT#{tenant_id}#NOTES", "{text}", index="GSI1")
    deletion = SoftDelete(grace=timedelta(days=7))
    tenant_id: str = FROM_SCOPE
    note_id: str
    text: str


class Fair(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "FAIR#{fair_id}")
    deletion = SoftDelete(grace=timedelta(days=1), cascade=("Booth",))
    tenant_id: str = FROM_SCOPE
    fair_id: str


class Guild(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "GUILD#{guild_id}")
    deletion = SoftDelete(grace=timedelta(days=30))
    tenant_id: str = FROM_SCOPE
    guild_id: str
    booths: Annotated[int, Counter()] = 0


class Booth(Entity, table=shop):
    """Goes with its fair, and is counted by its guild."""

    key = Key("TENANT#{tenant_id}#FAIR#{fair_id}", "BOOTH#{booth_id}")
    counted = Counted(Guild, "booths")
    tenant_id: str = FROM_SCOPE
    fair_id: str
    booth_id: str
    guild_id: str


class NoteBefore(Entity, table=shop_before, tag="Note"):
    """The release before had no index of it."""

    key = Key("TENANT#{tenant_id}", "NOTE#{note_id}")
    deletion = SoftDelete(grace=timedelta(days=7))
    tenant_id: str = FROM_SCOPE
    note_id: str
    text: str


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(shop)


@pytest.fixture
def db(base: Database) -> Store:
    return base.tenant("acme")


def test_a_lock_lasts_as_long_as_its_holder_whose_end_is_put_off(db: Store, opening: Opening) -> None:
    db.create(Pass(pass_id="1", code="c", expires=opening.clock.at(60)))
    db.update(Pass, pass_id="1", set={"expires": opening.clock.at(600)})
    opening.clock.seconds += 61
    with pytest.raises(NotUnique):
        db.create(Pass(pass_id="2", code="c"))
    db.put(db.require(Pass, pass_id="1").model_copy(update={"expires": None}))
    opening.clock.seconds += 6000
    with pytest.raises(NotUnique):
        db.create(Pass(pass_id="2", code="c"))
    assert db.get(Pass, pass_id="1") is not None


def test_a_lock_ends_with_a_holder_that_got_an_end_later(db: Store, opening: Opening) -> None:
    db.create(Pass(pass_id="1", code="c"))
    db.update(Pass, pass_id="1", set={"expires": opening.clock.at(60)})
    db.create(Pass(pass_id="3", code="d"))
    db.update(Pass, pass_id="3", set={"used": opening.clock.at(0)})
    db.create(Offer(offer_id="1", code="o"))
    db.update(Offer, offer_id="1", version=ANY, set={"sold": opening.clock.at(0)})
    opening.clock.seconds += 3601
    assert db.get(Offer, offer_id="1") is None
    db.create(Pass(pass_id="2", code="c"))
    db.create(Pass(pass_id="4", code="d"))
    db.create(Offer(offer_id="2", code="o"))


def test_an_index_that_came_while_an_entity_was_deleted_has_it_when_it_is_back(
    base: Database, db: Store, opening: Opening
) -> None:
    old = opening.beside(shop_before).tenant("acme")
    old.put(NoteBefore(note_id="1", text="tea"))
    old.delete(NoteBefore, note_id="1")
    backfill(opening.beside(shop).admin(), Note, budget=100)
    note = db.undelete(Note, note_id="1")
    assert list(db.all(Note.by_text.query())) == [note]


def test_a_restored_version_does_not_end_at_once(db: Store, opening: Opening) -> None:
    db.create(Offer(offer_id="1", text="old", expires=opening.clock.at(60)))
    db.update(Offer, offer_id="1", version=ANY, set={"text": "new", "expires": opening.clock.at(6000)})
    opening.clock.seconds += 61
    restored = db.history(Offer, offer_id="1").restore(1)
    assert (restored.text, restored.expires) == ("old", opening.clock.at(6000))
    assert db.get(Offer, offer_id="1") == restored
    db.delete(restored)
    with pytest.raises(DataError, match="would expire at once"):
        db.history(Offer, offer_id="1").restore(1)
    assert db.history(Offer, offer_id="1").restore(2).text == "new"


def test_a_deleted_entity_keeps_its_former_names_until_it_is_purged(
    base: Database, db: Store, opening: Opening
) -> None:
    db.create(Sign(path="/a"))
    names = db.names(Sign)
    sign = names.rename("/a", to="/b", version=ANY)
    db.delete(sign)
    with pytest.raises(DataError, match="former name of '/b', which is deleted"):
        names.release("/a")
    assert db.undelete(Sign, path="/b") == sign
    assert names.resolve("/a", follow=True) == Redirect(name="/a", to="/b", entity=sign)
    names.release("/a")
    assert names.aliases("/b") == []


def test_a_purged_child_leaves_the_counter_of_a_parent_that_is_deleted_for_now(
    base: Database, db: Store, opening: Opening
) -> None:
    db.create(Fair(fair_id="f"))
    db.create(Guild(guild_id="g"))
    for booth_id in ("1", "2"):
        db.create(Booth(fair_id="f", booth_id=booth_id, guild_id="g"))
    db.delete(Guild, guild_id="g")
    db.delete(Fair, fair_id="f")
    opening.clock.seconds += 2 * 86_400
    assert purge(opening.beside(shop).admin()).removed == {"Fair": 1, "Booth": 2}
    assert db.undelete(Guild, guild_id="g").booths == 0


def test_a_child_does_not_come_in_the_transaction_that_deletes_its_parent(
    db: Store, opening: Opening
) -> None:
    db.create(Guild(guild_id="g"))
    db.create(Booth(fair_id="f", booth_id="0", guild_id="g"))
    was = opening.raw(shop)
    with (  # noqa: PT012 - the end of the block raises
        pytest.raises(DataError, match="changes a counter of the item that #1 delete Guild"),
        db.transaction() as tx,
    ):
        tx.delete(Guild, guild_id="g")
        tx.create(Booth(fair_id="f", booth_id="1", guild_id="g"))
    assert opening.raw(shop) == was
    with db.transaction() as tx:
        tx.delete(Guild, guild_id="g")
        tx.delete(Booth, fair_id="f", booth_id="0")
    assert db.undelete(Guild, guild_id="g").booths == 0


def test_a_token_tells_what_patterns_have_prepared_apart(db: Store) -> None:
    offer = db.create(Offer(offer_id="1", text="one"))
    db.update(offer, set={"text": "two"})
    db.update(Offer, offer_id="1", version=ANY, set={"text": "three"})
    db.create(Sign(path="/a"))
    history, names = db.history(Offer, offer_id="1"), db.names(Sign)

    def restore(version: int) -> None:
        with db.transaction(token="restore") as tx:
            tx.include(history.restoring(version))

    def rename(to: str) -> None:
        with db.transaction(token="rename") as tx:
            tx.include(names.renaming("/a", to=to, version=ANY))

    for _ in range(2):
        restore(1)
        rename("/b")
    assert db.require(Offer, offer_id="1").version == 4
    with pytest.raises(DataError, match="was used for another transaction"):
        restore(2)
    with pytest.raises(DataError, match="was used for another transaction"):
        rename("/c")


def test_more_than_a_transaction_takes_with_what_is_written_along(db: Store, opening: Opening) -> None:
    db.create(Stall(stall_id="s"))
    was = opening.raw(shop)
    with (  # noqa: PT012 - the end of the block raises
        pytest.raises(DataError, match="got 101: 25 of the caller and 76 derived writes"),
        db.transaction() as tx,
    ):
        # Each with its lock, its event and a look at its history; the counter is one for all.
        for number in range(25):
            tx.create(Offer(offer_id=str(number), stall_id="s", code=str(number)))
    assert opening.raw(shop) == was
    with db.transaction() as tx:
        for number in range(24):
            tx.create(Offer(offer_id=str(number), stall_id="s", code=str(number)))
    assert db.require(Stall, stall_id="s").offers == 24
