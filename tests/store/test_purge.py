"""The purge: what is due goes for good, with what belongs to it; nothing else is touched."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Annotated, Any

import pytest

from solotable import (
    ANY,
    FROM_SCOPE,
    AdminStore,
    Counted,
    Counter,
    Database,
    Entity,
    History,
    Index,
    Key,
    Names,
    SoftDelete,
    Store,
    Table,
    Unique,
    Version,
)
from solotable._flows.jobs.purge_queue import digest_of, queue_key
from solotable._protocol.requests import PutItem, TransactWriteItems
from solotable.errors import DataError, DeclarationError, NotFound
from solotable.jobs.purge import Purged, list_receipts, purge

from .opening import Opening

DAY = 86_400
homes = Table("Homes", tenant="tenant_id", indexes=[Index("GSI1")])


class Plan(Entity, table=homes):
    """A parent that is not purged; accounts count on it."""

    key = Key("TENANT#{tenant_id}", "PLAN#{plan_id}")
    tenant_id: str = FROM_SCOPE
    plan_id: str
    sites: Annotated[int, Counter()] = 0


class Account(Entity, table=homes):
    key = Key("TENANT#{tenant_id}", "ACCOUNT#{account_id}")
    deletion = SoftDelete(grace=timedelta(days=30), cascade=("Site", "Login"))
    history = History("HISTORY#{account_id}#v{version:06d}")
    tenant_id: str = FROM_SCOPE
    account_id: str
    email: Annotated[str | None, Unique()] = None
    sites: Annotated[int, Counter()] = 0
    version: Annotated[int, Version()] = 0


class Site(Entity, table=homes):
    """Found by an index; has children, a lock, and counts on its account and on a plan."""

    key = Key("TENANT#{tenant_id}#SITE#{site_id}", "SITE")
    by_account = Key("TENANT#{tenant_id}#ACCOUNT#{account_id}", "SITE#{site_id}", index="GSI1")
    deletion = SoftDelete(grace=timedelta(days=7), cascade=("Page",))
    counted = Counted(Account, "sites")
    planned = Counted(Plan, "sites")
    tenant_id: str = FROM_SCOPE
    site_id: str
    account_id: str
    plan_id: str | None = None
    slug: Annotated[str | None, Unique()] = None


class Page(Entity, table=homes):
    """In its site's partition."""

    key = Key("TENANT#{tenant_id}#SITE#{site_id}", "PAGE#{page_id:06d}")
    deletion = SoftDelete(grace=timedelta(days=60))
    tenant_id: str = FROM_SCOPE
    site_id: str
    page_id: int


class Login(Entity, table=homes):
    """In a partition with those of other accounts."""

    key = Key("TENANT#{tenant_id}#LOGINS", "{at:06d}#{account_id}")
    tenant_id: str = FROM_SCOPE
    at: int
    account_id: str


class Route(Entity, table=homes):
    key = Key("TENANT#{tenant_id}#ROUTES", "ROUTE#{path}")
    deletion = SoftDelete(grace=timedelta(days=7))
    names = Names("path")
    tenant_id: str = FROM_SCOPE
    path: str
    version: Annotated[int, Version()] = 0


hot = Table("Hot")


class Topic(Entity, table=hot):
    key = Key("TOPIC#{topic_id}", "TOPIC")
    deletion = SoftDelete(grace=timedelta(days=1), cascade=("Vote",))
    topic_id: str


class Vote(Entity, table=hot):
    key = Key("VOTES#{topic_id}", "{vote_id}", shards=4)
    topic_id: str
    vote_id: str


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(homes)


@pytest.fixture
def db(base: Database) -> Store:
    return base.tenant("acme")


@pytest.fixture
def admin(opening: Opening) -> AdminStore:
    """Jobs are blocking, whatever the store of the test."""
    blocking = opening.beside(homes)
    return blocking.admin()


def tags(opening: Opening) -> dict[str, int]:
    counts: dict[str, int] = {}
    for item in opening.raw(homes):
        tag = item[homes.internal_tag]["S"]
        counts[tag] = counts.get(tag, 0) + 1
    return counts


def test_s2_22_a_deleted_account_is_had_back_for_30_days_and_then_purged(
    db: Store, admin: AdminStore, opening: Opening
) -> None:
    ada = db.create(Account(account_id="ada", email="ada@x"))
    db.delete(ada)
    opening.clock.seconds += 29 * DAY
    assert purge(admin).items == 0
    assert db.undelete(Account, account_id="ada") == ada
    db.delete(ada)
    opening.clock.seconds += 30 * DAY - 1
    before = opening.raw(homes)
    assert purge(admin).items == 0
    assert opening.raw(homes) == before, "not a second before"
    opening.clock.seconds += 1
    assert purge(admin).removed == {"Account": 1}
    assert tags(opening) == {"_receipt": 1}, "its lock and its entry are gone too"
    with pytest.raises(NotFound):
        db.undelete(Account, account_id="ada")
    assert db.create(Account(account_id="ada", email="ada@x")).version == 1


def test_s2_25_deleted_sites_are_purged_after_7_days(db: Store, admin: AdminStore, opening: Opening) -> None:
    db.create(Account(account_id="a"))
    for site in ("1", "2"):
        db.create(Site(site_id=site, account_id="a"))
    db.delete(Site, site_id="1")
    opening.clock.seconds += 7 * DAY - 1
    assert purge(admin).items == 0
    opening.clock.seconds += 1
    assert purge(admin).removed == {"Site": 1}
    assert db.get(Site, site_id="2") is not None


def _populate(db: Store) -> None:
    db.create(Plan(plan_id="p"))
    for name in ("ada", "bob"):
        account = db.create(Account(account_id=name, email=f"{name}@x"))
        db.put(account.model_copy(update={"email": f"{name}@y"}))
        for site in range(3):
            db.create(Site(site_id=f"{name}{site}", account_id=name, plan_id="p", slug=f"slug-{name}-{site}"))
            for page in range(4):
                db.create(Page(site_id=f"{name}{site}", page_id=page))
        for at in range(5):
            db.create(Login(at=at, account_id=name))
    db.delete(Page, site_id="ada0", page_id=0)


def test_the_purge_takes_children_history_locks_and_counters_with_it(
    db: Store, admin: AdminStore, opening: Opening
) -> None:
    _populate(db)
    db.delete(Account, account_id="ada", version=ANY)
    opening.clock.seconds += 30 * DAY
    expected = {"Account": 1, "Site": 3, "Page": 12, "Login": 5}
    dry = purge(admin, dry_run=True)
    assert dry.removed == expected
    assert len([tag for tag in tags(opening) if tag == "_receipt"]) == 0, "a dry run writes nothing"
    done = purge(admin)
    assert done.removed == expected
    left = tags(opening)
    assert left.pop("_receipt") >= 1
    assert left == {
        "Plan": 1,
        "Account": 1,
        "Site": 3,
        "Page": 12,
        "Login": 5,
        "_history:Account": 1,
        "_unique": 4,
    }
    assert {each.account_id for each in db.all(Login.key.query())} == {"bob"}
    assert db.require(Plan, plan_id="p").sites == 3, "what counts elsewhere is taken off there"
    assert db.require(Account, account_id="bob").sites == 3
    db.create(Account(account_id="ada", email="ada@y"))


def test_former_names_go_with_their_entity(db: Store, admin: AdminStore, opening: Opening) -> None:
    db.create(Route(path="/a"))
    db.names(Route).rename("/a", to="/b", version=ANY)
    db.names(Route).rename("/b", to="/c", version=ANY)
    db.delete(Route, path="/c", version=ANY)
    opening.clock.seconds += 7 * DAY
    assert purge(admin).removed == {"Route": 1}
    assert tags(opening) == {"_receipt": 1}


def test_children_in_shards_are_found(opening: Opening) -> None:
    store = opening.beside(hot)
    store.create(Topic(topic_id="a"))
    store.create(Topic(topic_id="b"))
    for number in range(40):
        for topic_id in ("a", "b"):
            store.create(Vote(topic_id=topic_id, vote_id=str(number)))
    store.delete(Topic, topic_id="a")
    opening.clock.seconds += DAY
    assert purge(store.admin(), dry_run=True).removed == {"Topic": 1, "Vote": 40}
    assert purge(store.admin()).removed == {"Topic": 1, "Vote": 40}
    assert store.count(Vote.key.query(topic_id="b")) == 40


def test_receipts_name_what_went_by_digest_only(db: Store, admin: AdminStore, opening: Opening) -> None:
    _populate(db)
    db.delete(Account, account_id="ada", version=ANY)
    opening.clock.seconds += 31 * DAY
    done = purge(admin)
    found = list(list_receipts(admin))
    assert len(found) == done.items
    assert {each.run for each in found} == {done.run}
    key = Account.plan().key_from({"tenant_id": "acme", "account_id": "ada"})
    (mine,) = [each for each in found if each.entity == "Account"]
    assert (mine.digest, mine.why, mine.history) == (digest_of(Account.plan(), key), "deleted", 1)
    assert {each.why for each in found if each.entity != "Account"} == {"cascade"}
    texts = json.dumps([each.model_dump(mode="json") for each in found])
    assert "ada" not in texts
    assert "acme" not in texts


def test_a_hold_prevents_the_purge_and_is_reported(db: Store, admin: AdminStore, opening: Opening) -> None:
    for number in range(3):
        db.create(Page(site_id="s", page_id=number))
    db.hold(Page, site_id="s", page_id=0, reason="case 7")
    for number in range(3):
        db.delete(Page, site_id="s", page_id=number)
    db.hold(Page, site_id="s", page_id=1, reason="case 8")
    opening.clock.seconds += 60 * DAY
    any_gone = False
    for dry_run in (True, False, False):
        report = purge(admin, dry_run=dry_run)
        assert {each.held for each in report.held} == {"case 7", "case 8"}
        assert report.items == (0 if any_gone else 1)
        any_gone = not dry_run
    listed = admin.deleted(Page)
    assert {each.held for each in listed} == {"case 7", "case 8"}
    db.release_hold(Page, site_id="s", page_id=0)
    with pytest.raises(NotFound, match="no hold to release"):
        db.release_hold(Page, site_id="s", page_id=0)
    assert purge(admin).removed == {"Page": 1}


def test_a_hold_is_carried_through_writes(db: Store, opening: Opening) -> None:
    page = db.create(Page(site_id="s", page_id=1))
    db.hold(Page, site_id="s", page_id=1, reason="case")
    db.put(page)
    assert "_held" in opening.only(Page)
    beside = opening.beside(homes).tenant("acme")
    db.release_hold(Page, site_id="s", page_id=1)
    opening.spy.once(PutItem, lambda: beside.hold(Page, site_id="s", page_id=1, reason="again"))
    db.put(page)
    assert "_held" in opening.only(Page), "a hold between reading and writing is not lost"
    with pytest.raises(NotFound):
        db.hold(Page, site_id="s", page_id=2, reason="case")
    with pytest.raises(DataError, match="takes a non-empty reason"):
        db.hold(Page, site_id="s", page_id=1, reason="")
    with pytest.raises(DeclarationError):
        db.hold(Login, at=1, account_id="a", reason="case")


def test_a_held_child_keeps_its_parent(db: Store, admin: AdminStore, opening: Opening) -> None:
    _populate(db)
    db.hold(Page, site_id="ada2", page_id=3, reason="case 9")
    db.delete(Account, account_id="ada", version=ANY)
    opening.clock.seconds += 31 * DAY
    before = opening.raw(homes)
    for dry_run in (True, False):
        report = purge(admin, dry_run=dry_run)
        assert [each.held for each in report.held] == ["Site: Page: case 9"]
        assert report.items == 0
    assert opening.raw(homes) == before
    db.release_hold(Page, site_id="ada2", page_id=3)
    assert purge(admin).items == 21


def test_a_rule_can_hold_more(db: Store, admin: AdminStore, opening: Opening) -> None:
    for number in range(5):
        db.create(Page(site_id="s", page_id=number))
        db.delete(Page, site_id="s", page_id=number)
    opening.clock.seconds += 60 * DAY
    report = purge(admin, hold=lambda page: "odd" if page.key["page_id"] % 2 else None)
    assert report.items == 3
    assert [each.held for each in report.held] == ["odd", "odd"]


def test_an_entity_that_is_undeleted_or_held_during_the_purge_stays(
    db: Store, admin: AdminStore, opening: Opening
) -> None:
    """The conditions decide, not what was read: the clocks of two machines may differ."""
    for number in range(120):
        db.create(Page(site_id="s", page_id=number))
        db.delete(Page, site_id="s", page_id=number)
    opening.clock.seconds += 60 * DAY
    watched = AdminStore(opening.spy, admin.scope)
    at = int(opening.clock.seconds)
    keys = (
        Page.plan().key_from({"tenant_id": "acme", "site_id": "s", "page_id": each}) for each in range(120)
    )
    first = [
        each for each, key in enumerate(keys) if queue_key(Page.plan(), key, at)["PK"] == {"S": "PURGE#0"}
    ]
    behind = opening.beside(homes).tenant("acme")

    def step_in() -> None:
        opening.clock.seconds -= 50 * DAY
        behind.undelete(Page, site_id="s", page_id=first[0])
        opening.clock.seconds += 50 * DAY
        behind.hold(Page, site_id="s", page_id=first[1], reason="now")

    opening.spy.once(TransactWriteItems, step_in)
    report = purge(watched)
    assert (report.items, report.stale, len(report.held)) == (118, 1, 1)
    assert tags(opening)["Page"] == 2
    assert db.get(Page, site_id="s", page_id=first[0]) is not None


def test_an_entity_cannot_be_undeleted_after_its_purge_began(
    db: Store, admin: AdminStore, opening: Opening
) -> None:
    _populate(db)
    db.delete(Account, account_id="ada", version=ANY)
    opening.clock.seconds += 31 * DAY
    behind = opening.beside(homes).tenant("acme")
    tried: list[Any] = []

    def step_in() -> None:
        opening.clock.seconds -= 20 * DAY
        for act in (
            lambda: behind.undelete(Account, account_id="ada"),
            lambda: behind.hold(Account, account_id="ada", reason="late"),
        ):
            with pytest.raises(NotFound):
                act()
            tried.append(act)
        opening.clock.seconds += 20 * DAY

    opening.spy.once(TransactWriteItems, step_in)
    assert purge(AdminStore(opening.spy, admin.scope)).items == 21
    assert len(tried) == 2


def test_a_child_that_changed_is_purged_with_its_new_lock(
    db: Store, admin: AdminStore, opening: Opening
) -> None:
    db.create(Account(account_id="a"))
    db.create(Site(site_id="1", account_id="a", slug="old"))
    db.delete(Account, account_id="a", version=ANY)
    opening.clock.seconds += 30 * DAY
    behind = opening.beside(homes).tenant("acme")
    opening.spy.once(TransactWriteItems, lambda: behind.update(Site, site_id="1", set={"slug": "new"}))
    assert purge(AdminStore(opening.spy, admin.scope)).removed == {"Account": 1, "Site": 1}
    assert set(tags(opening)) == {"_receipt"}, "no lock is left behind"


def test_a_purge_never_goes_ahead_of_time(db: Store, admin: AdminStore, opening: Opening) -> None:
    db.create(Page(site_id="s", page_id=1))
    db.delete(Page, site_id="s", page_id=1)
    later = opening.clock.seconds + 61 * DAY
    assert purge(admin, now=later, dry_run=True).items == 1
    with pytest.raises(DataError, match="is in the future"):
        purge(admin, now=later)


def test_progress_tells_how_many_are_due(db: Store, admin: AdminStore, opening: Opening) -> None:
    for number in range(7):
        db.create(Page(site_id="s", page_id=number))
        db.delete(Page, site_id="s", page_id=number)
    opening.clock.seconds += 60 * DAY
    seen: list[tuple[int, int | None]] = []
    purge(admin, progress=lambda report: seen.append((report.looked_at, report.due)))
    assert seen[-1] == (7, 7)


def test_a_child_that_is_due_itself_is_counted_once(db: Store, admin: AdminStore, opening: Opening) -> None:
    _populate(db)
    db.delete(Account, account_id="ada", version=ANY)
    opening.clock.seconds += 61 * DAY
    dry, done = purge(admin, dry_run=True), purge(admin)
    assert dry.removed == done.removed == {"Account": 1, "Site": 3, "Page": 12, "Login": 5}
    assert list(admin.deleted(Page)) == []


def test_what_cannot_be_purged_does_not_keep_the_rest(db: Store, admin: AdminStore, opening: Opening) -> None:
    db.create(Account(account_id="bad"))
    db.delete(Account, account_id="bad", version=ANY)
    bad = opening.only(Account)
    opening.plant(homes, {**bad, "version": {"S": "x"}})
    db.create(Page(site_id="s", page_id=1))
    db.delete(Page, site_id="s", page_id=1)
    opening.clock.seconds += 61 * DAY
    report = purge(admin)
    assert report.removed == {"Page": 1}
    assert "Account" in report.problems[0]


def test_two_purges_at_once_remove_everything_once(db: Store, admin: AdminStore, opening: Opening) -> None:
    _populate(db)
    for name in ("ada", "bob"):
        db.delete(Account, account_id=name, version=ANY)
    for number in range(150):
        db.create(Page(site_id="s", page_id=number))
        db.delete(Page, site_id="s", page_id=number)
    opening.clock.seconds += 61 * DAY
    stores = [opening.beside(homes).admin() for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(purge, stores))
    assert [report.problems for report in reports] == [[], []]
    digests = [each.digest for each in list_receipts(admin)]
    assert len(digests) == len(set(digests)) == sum(report.items for report in reports) == 2 * 21 + 150
    assert set(tags(opening)) == {"Plan", "_receipt"}
    assert db.require(Plan, plan_id="p").sites == 0


def test_nothing_to_purge_is_said(opening: Opening) -> None:
    plain = Table("Plain")

    class Note(Entity, table=plain):
        key = Key("NOTE#{note_id}", "NOTE")
        note_id: str

    with pytest.raises(DeclarationError, match="nothing to purge"):
        purge(opening.beside(plain).admin())


def test_a_report_is_json(db: Store, admin: AdminStore) -> None:
    report: Purged = purge(admin)
    assert json.loads(json.dumps(report.row()))["items"] == 0
