"""Shapes of stored items: releases that read and write one table side by side (S2.28)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from solotable import (
    ANY,
    Database,
    Entity,
    History,
    Index,
    Key,
    SoftDelete,
    Table,
    Unique,
    Version,
    downgrade,
    exists,
    upgrade,
)
from solotable._protocol.requests import GetItem, UpdateItem
from solotable.errors import (
    ConditionFailed,
    DataError,
    NewerSchemaVersion,
    NotFound,
    TransactionFailed,
    VersionConflict,
)
from solotable.jobs.backfill import backfill, report

from .opening import Opening

NAMES = Index("NAMES", projection="KEYS_ONLY")
first = Table("Profiles", indexes=[NAMES])
second = Table("Profiles", indexes=[Index("NAMES", projection="KEYS_ONLY")])
third = Table("Profiles", indexes=[Index("NAMES", projection="KEYS_ONLY")])


class Avatar(BaseModel):
    url: str
    size: int


class ProfileImages(BaseModel):
    avatar: Avatar | None = None


class OldProfile(Entity, table=first, tag="Profile", schema_version=1):
    """The first release."""

    key = Key("USER#{user_id}", "PROFILE")
    by_name = Key("NAME#{name}", "USER#{user_id}", index="NAMES")
    user_id: str
    name: str
    avatar_url: str | None = None
    likes: int = 0


class Profile(Entity, table=second, tag="Profile", schema_version=2):
    """The release that moves the avatar, and serves the one before."""

    key = Key("USER#{user_id}", "PROFILE")
    by_name = Key("NAME#{name}", "USER#{user_id}", index="NAMES")
    user_id: str
    name: str
    profile_images: ProfileImages = ProfileImages()
    likes: int = 0

    @upgrade(to=2, replaces=("avatar_url",))
    @staticmethod
    def avatars(record: dict[str, Any]) -> dict[str, Any]:
        url = record.get("avatar_url")
        if url is not None:
            record["profile_images"] = {"avatar": {"url": url, "size": 64}}
        return record

    @downgrade(to=1)
    @staticmethod
    def avatar_url(record: dict[str, Any]) -> dict[str, Any]:
        avatar = record.get("profile_images", {}).get("avatar")
        return {**record, "avatar_url": avatar["url"]} if avatar else record


class NewProfile(Entity, table=third, tag="Profile", schema_version=2):
    """The release after: nobody needs the old attribute any more."""

    key = Key("USER#{user_id}", "PROFILE")
    by_name = Key("NAME#{name}", "USER#{user_id}", index="NAMES")
    user_id: str
    name: str
    profile_images: ProfileImages = ProfileImages()
    likes: int = 0
    avatars = Profile.avatars


def images(url: str) -> ProfileImages:
    return ProfileImages(avatar=Avatar(url=url, size=64))


@pytest.fixture
def old(opening: Opening) -> Database:
    return opening(first)


@pytest.fixture
def new(old: Database, opening: Opening) -> Database:
    return opening(second)


@pytest.fixture
def newest(old: Database, opening: Opening) -> Database:
    return opening(third)


def test_s2_28_an_item_with_the_old_the_new_or_both_attributes_reads_the_same(
    new: Database, opening: Opening
) -> None:
    new.put(Profile(user_id="new", name="ada", profile_images=images("a.png")))
    both = opening.only(Profile)
    assert both["avatar_url"] == {"S": "a.png"}
    assert (both["_shape"], both["_shape_from"]) == ({"N": "2"}, {"N": "1"})
    only_new = {name: value for name, value in both.items() if name not in ("avatar_url", "_shape_from")}
    only_old = {name: value for name, value in both.items() if not name.startswith(("_shape", "profile_"))}
    for item in (both, only_new, only_old):
        opening.plant(second, item)
        found = new.require(Profile, user_id="new")
        assert found == Profile(user_id="new", name="ada", profile_images=images("a.png"))
        assert found.unknown_attributes == {}


def test_s2_28_a_rolling_deploy_loses_no_change_of_either_release(old: Database, new: Database) -> None:
    old.put(OldProfile(user_id="u", name="ada", avatar_url="1.png"))
    assert new.require(Profile, user_id="u").profile_images == images("1.png")
    new.update(Profile, user_id="u", set={"profile_images.avatar.url": "2.png"})
    assert old.require(OldProfile, user_id="u").avatar_url == "2.png"
    old.update(OldProfile, user_id="u", set={"avatar_url": "3.png"})
    assert new.require(Profile, user_id="u").profile_images == images("3.png")
    new.update(Profile, user_id="u", add={"likes": 1})
    old.update(OldProfile, user_id="u", add={"likes": 1})
    old.put(old.require(OldProfile, user_id="u").model_copy(update={"avatar_url": "4.png"}))
    found = new.put(new.require(Profile, user_id="u"))
    assert (found.profile_images, found.likes) == (images("4.png"), 2)
    new.update(Profile, user_id="u", set={"profile_images": ProfileImages()})
    assert old.require(OldProfile, user_id="u").avatar_url is None


def test_s2_28_the_old_attribute_is_removed_after_the_last_old_release(
    new: Database, newest: Database, opening: Opening
) -> None:
    new.put(Profile(user_id="u", name="ada", profile_images=images("1.png")))
    newest.update(NewProfile, user_id="u", set={"name": "bea"})
    item = opening.only(NewProfile)
    assert item.keys().isdisjoint({"avatar_url", "_shape_from"})
    assert (item["_shape"], item["NAMESPK"]) == ({"N": "2"}, {"S": "NAME#bea"})


def test_a_partial_update_of_an_old_item_leaves_no_mixture(
    old: Database, newest: Database, opening: Opening
) -> None:
    old.put(OldProfile(user_id="u", name="ada", avatar_url="1.png"))
    opening.plant(first, {**opening.only(OldProfile), "theirs": {"S": "kept"}})
    changed = newest.update(NewProfile, user_id="u", set={"name": "bea"}, add={"likes": 2})
    assert changed == newest.require(NewProfile, user_id="u")
    assert (changed.profile_images, changed.likes) == (images("1.png"), 2)
    item = opening.only(NewProfile)
    assert (item["_shape"], item["theirs"]) == ({"N": "2"}, {"S": "kept"})
    assert (item["NAMESPK"], "avatar_url" in item) == ({"S": "NAME#bea"}, False)


def test_an_update_of_a_current_item_reads_nothing_first(newest: Database, opening: Opening) -> None:
    newest.put(NewProfile(user_id="u", name="ada"))
    opening.spy.sent.clear()
    newest.update(NewProfile, user_id="u", add={"likes": 1})
    assert [type(request) for request in opening.spy.sent] == [UpdateItem]


def test_a_write_between_the_reading_and_the_upgrade_is_not_lost(
    old: Database, newest: Database, opening: Opening
) -> None:
    beside = opening.beside(first)
    beside.put(OldProfile(user_id="u", name="ada", avatar_url="1.png"))
    updates: list[int] = []

    def intrude(request: object) -> None:
        # The first update is refused for the schema version, the second is the upgrade.
        if isinstance(request, UpdateItem):
            updates.append(1)
            if len(updates) == 2:
                beside.update(OldProfile, user_id="u", set={"avatar_url": "2.png"}, add={"likes": 5})

    opening.spy.before = intrude
    changed = newest.update(NewProfile, user_id="u", set={"name": "bea"})
    opening.spy.before = None
    assert (changed.name, changed.likes, changed.profile_images) == ("bea", 5, images("2.png"))
    assert len(updates) == 3


def _is_large(profile: NewProfile) -> bool:
    assert profile.profile_images.avatar is not None
    return profile.profile_images.avatar.size > 100


def _has_avatar(profile: NewProfile) -> bool:
    assert profile.profile_images.avatar is not None
    return exists(profile.profile_images.avatar.url)


def test_a_condition_of_an_update_applies_to_the_upgraded_item(old: Database, newest: Database) -> None:
    old.put(OldProfile(user_id="u", name="ada", avatar_url="1.png"))
    with pytest.raises(ConditionFailed):
        newest.update(NewProfile, user_id="u", set={"name": "x"}, where=_is_large)
    changed = newest.update(NewProfile, user_id="u", set={"name": "x"}, where=_has_avatar)
    assert changed.name == "x"
    with pytest.raises(NotFound):
        newest.update(NewProfile, user_id="nobody", set={"name": "x"})


def _rename(db: Database, *users: str) -> None:
    with db.transaction() as tx:
        for user in users:
            tx.update(NewProfile, user_id=user, set={"name": "zed"})


def test_old_items_are_updated_in_a_transaction(old: Database, newest: Database, opening: Opening) -> None:
    old.put(OldProfile(user_id="u", name="ada", avatar_url="1.png"))
    old.put(OldProfile(user_id="w", name="ada", avatar_url="2.png"))
    with newest.transaction() as tx:
        tx.update(NewProfile, user_id="u", set={"name": "bea"})
        tx.update(NewProfile, user_id="w", set={"name": "cay"})
        tx.put(NewProfile(user_id="x", name="dan"))
    assert {item["_shape"]["N"] for item in opening.raw(third)} == {"2"}
    assert newest.require(NewProfile, user_id="w").profile_images == images("2.png")
    with pytest.raises(TransactionFailed, match="NewProfile not found"):
        _rename(newest, "u", "nobody")
    assert newest.require(NewProfile, user_id="u").name == "bea"


class NameOnly(BaseModel):
    name: str


class ImagesOnly(BaseModel):
    profile_images: ProfileImages


def test_views_indexes_and_batches_of_keys_upgrade_too(old: Database, newest: Database) -> None:
    old.put(OldProfile(user_id="u", name="ada", avatar_url="1.png"))
    by_key = NewProfile.key.query(user_id="u")
    by_name = NewProfile.by_name.query(name="ada")
    assert list(newest.all(by_key.select(ImagesOnly))) == [ImagesOnly(profile_images=images("1.png"))]
    assert list(newest.all(by_name.select(ImagesOnly))) == [ImagesOnly(profile_images=images("1.png"))]
    assert [each.profile_images for each in newest.all(by_name)] == [images("1.png")]
    (found,) = newest.get_many(NewProfile, [{"user_id": "u"}])
    assert found is not None
    assert found.profile_images == images("1.png")


REFUSED: dict[str, Callable[[Database], object]] = {
    "get": lambda db: db.get(OldProfile, user_id="u"),
    "query": lambda db: list(db.all(OldProfile.key.query(user_id="u"))),
    "view": lambda db: list(db.all(OldProfile.key.query(user_id="u").select(NameOnly))),
    "put": lambda db: db.put(OldProfile(user_id="u", name="x")),
    "update": lambda db: db.update(OldProfile, user_id="u", set={"name": "x"}),
    "update of a plain field": lambda db: db.update(OldProfile, user_id="u", add={"likes": 1}),
    "delete": lambda db: db.delete(OldProfile, user_id="u"),
}


@pytest.mark.parametrize("way", REFUSED)
def test_an_item_of_a_newer_schema_version_is_rejected_and_left_as_it_is(
    old: Database, newest: Database, opening: Opening, way: str
) -> None:
    newest.put(NewProfile(user_id="u", name="ada"))
    before = opening.only(NewProfile)
    with pytest.raises(
        NewerSchemaVersion, match="has schema version 2, but this code knows versions up to 1"
    ) as refused:
        REFUSED[way](old)
    assert (refused.value.schema_version, refused.value.known) == (2, 1)
    assert opening.only(NewProfile) == before


lenient = Table("Profiles", indexes=[Index("NAMES", projection="KEYS_ONLY")])


class LenientProfile(Entity, table=lenient, tag="Profile", schema_version=1, newer="read"):
    key = Key("USER#{user_id}", "PROFILE")
    user_id: str
    name: str
    likes: int = 0


def test_newer_items_are_read_where_that_was_asked_for_and_never_written(
    newest: Database, opening: Opening
) -> None:
    newest.put(NewProfile(user_id="u", name="ada"))
    db = opening(lenient)
    found = db.require(LenientProfile, user_id="u")
    assert found.name == "ada"
    writes: list[Callable[[], object]] = [
        lambda: db.put(found),
        lambda: db.update(found, set={"name": "x"}),
        lambda: db.update(LenientProfile, user_id="u", add={"likes": 1}),
        lambda: db.delete(LenientProfile, user_id="u"),
    ]
    for write in writes:
        with pytest.raises(NewerSchemaVersion):
            write()
    assert newest.require(NewProfile, user_id="u").name == "ada"


def test_a_batch_checks_no_schema_version_and_needs_overwrite(newest: Database) -> None:
    with pytest.raises(DataError, match=r"overwrite=True"), newest.batch() as batch:
        batch.put(NewProfile(user_id="u", name="x"))
    with newest.batch(overwrite=True) as batch:
        batch.put(NewProfile(user_id="u", name="x"))


plain_notes = Table("Notes", schema_version="v")
counted_notes = Table("Notes", schema_version="v")


class Note(Entity, table=plain_notes):
    key = Key("NOTE#{note_id}", "NOTE")
    note_id: str
    text: str
    version: Annotated[int, Version()] = 0


class LongNote(Entity, table=counted_notes, tag="Note", schema_version=3):
    key = Key("NOTE#{note_id}", "NOTE")
    note_id: str
    title: str
    words: int
    version: Annotated[int, Version()] = 0

    @upgrade(to=2, replaces=("text",))
    @staticmethod
    def titles(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "title": record["text"]}

    @upgrade(to=3)
    @staticmethod
    def words_of(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "words": len(record["title"].split())}


def test_versions_are_kept_over_an_upgrade(opening: Opening) -> None:
    old, new = opening(plain_notes), opening(counted_notes)
    old.create(Note(note_id="n", text="one two"))
    assert "v" not in opening.only(Note)
    read = new.require(LongNote, note_id="n")
    assert (read.title, read.words, read.version) == ("one two", 2, 1)
    changed = new.update(read, set={"title": "three"})
    assert (changed.words, changed.version, opening.only(LongNote)["v"]) == (2, 2, {"N": "3"})
    with pytest.raises(VersionConflict):
        new.update(read, set={"title": "four"})
    with pytest.raises(VersionConflict):
        new.put(read)
    opening.plant(plain_notes, {**opening.only(LongNote), "text": {"S": "five"}, "v": {"N": "1"}})
    with pytest.raises(VersionConflict):
        new.update(LongNote, note_id="n", set={"title": "x"}, version=1)
    assert new.update(LongNote, note_id="n", set={"words": 9}, version=ANY).version == 3


emails = Table("Emails")
lower_emails = Table("Emails")


class User(Entity, table=emails):
    key = Key("USER#{user_id}", "USER")
    user_id: str
    email: Annotated[str, Unique()]


class LowerUser(Entity, table=lower_emails, tag="User", schema_version=2):
    key = Key("USER#{user_id}", "USER")
    user_id: str
    email: Annotated[str, Unique()]
    name: str = ""

    @upgrade(to=2)
    @staticmethod
    def lower(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "email": record["email"].lower()}


def test_an_upgrade_may_not_change_what_a_lock_follows_from(opening: Opening) -> None:
    opening(emails).create(User(user_id="u", email="Ada"))
    with pytest.raises(DataError, match=r"changes email, which LowerUser\.email depends on"):
        opening(lower_emails).update(LowerUser, user_id="u", set={"name": "x"})


def test_a_faulty_upgrade_names_itself(opening: Opening) -> None:
    opening.beside(emails)
    opening.plant(
        emails, {"PK": {"S": "USER#u"}, "SK": {"S": "USER"}, "_type": {"S": "User"}, "user_id": {"S": "u"}}
    )
    with pytest.raises(
        DataError, match=r"LowerUser\.lower \(upgrade to schema version 2\) failed .* KeyError: 'email'"
    ):
        opening(lower_emails).get(LowerUser, user_id="u")
    assert opening.spy.of(GetItem)


old_pages = Table("Pages", indexes=[Index("GSI1")])
new_pages = Table("Pages", indexes=[Index("GSI1")])


class OldPage(Entity, table=old_pages, tag="Page"):
    key = Key("PAGE#{page_id}", "LATEST")
    by_title = Key("TITLE#{title}", "PAGE#{page_id}", index="GSI1")
    history = History("v{version:05d}")
    deletion = SoftDelete(grace=timedelta(days=1))
    page_id: str
    title: str
    version: Annotated[int, Version()] = 0


class NewPage(Entity, table=new_pages, tag="Page", schema_version=2):
    key = Key("PAGE#{page_id}", "LATEST")
    by_heading = Key("HEADING#{heading}", "PAGE#{page_id}", index="GSI1")
    history = History("v{version:05d}")
    deletion = SoftDelete(grace=timedelta(days=1))
    page_id: str
    heading: str
    version: Annotated[int, Version()] = 0

    @upgrade(to=2, replaces=("title",))
    @staticmethod
    def headings(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "heading": record["title"]}


def test_snapshots_of_an_old_schema_version_are_read_and_restored(opening: Opening) -> None:
    old, new = opening(old_pages), opening(new_pages)
    old.update(old.create(OldPage(page_id="p", title="one")), set={"title": "two"})
    changed = new.update(new.require(NewPage, page_id="p"), set={"heading": "three"})
    assert (changed.heading, changed.version) == ("three", 3)
    history = new.history(NewPage, page_id="p")
    former = [history.get(version) for version in (1, 2)]
    assert [each and each.heading for each in former] == ["one", "two"]
    assert history.restore(1).heading == "one"
    assert opening.only(NewPage)["_shape"] == {"N": "2"}


def test_a_deleted_entity_is_upgraded_in_its_grave_and_had_back(opening: Opening) -> None:
    old, new = opening(old_pages), opening(new_pages)
    old.delete(old.create(OldPage(page_id="p", title="one")))
    admin = opening.beside(new_pages).admin()
    assert backfill(admin, NewPage, budget=100).tally.upgraded == 1
    assert new.get(NewPage, page_id="p") is None
    assert "GSI1PK" not in opening.only(NewPage)
    assert new.undelete(NewPage, page_id="p").heading == "one"
    assert report(admin, NewPage, budget=100).stale_keys == 0
    assert [each.page_id for each in new.all(NewPage.by_heading.query(heading="one"))] == ["p"]
