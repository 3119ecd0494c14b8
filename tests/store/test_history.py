"""History: what a write replaces is kept by its own transaction (S0.3, S0.4, S0.19, C0.1, C0.3, C0.6)."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from solotable import (
    ANY,
    FROM_SCOPE,
    TTL,
    Created,
    Database,
    Entity,
    History,
    Index,
    Key,
    Store,
    Table,
    Unique,
    Updated,
    Version,
)
from solotable._connect import connect
from solotable._protocol.requests import GetItem, PutItem, Query, TransactWriteItems
from solotable._values import Item
from solotable.errors import (
    AlreadyExists,
    CursorRejected,
    DataError,
    DeclarationError,
    NotFound,
    NotUnique,
    TenantViolation,
    TransactionFailed,
    VersionConflict,
)

from .opening import Opening

cms = Table("Cms", tenant="tenant_id", indexes=[Index("GSI1")])
plain = Table("Plain", ttl="ends", indexes=[Index("ByStatus", partition="status", sort=None)])


class Content(Entity, table=cms):
    key = Key("TENANT#{tenant_id}", "CONTENT#{node_id}#LATEST")
    by_kind = Key("TENANT#{tenant_id}#KIND#{kind}", "{title}", index="GSI1")
    history = History("CONTENT#{node_id}#v{version:06d}", restored_from="restored_from")
    tenant_id: str = FROM_SCOPE
    node_id: str
    title: str
    kind: str = "page"
    blocks: list[str] = Field(default_factory=list)
    restored_from: int | None = None
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0


class Draft(Entity, table=cms):
    key = Key("TENANT#{tenant_id}", "DRAFT#{draft_id}")
    history = History("DRAFT#{draft_id}#v{version:04d}", keep=3, on_delete="purge")
    tenant_id: str = FROM_SCOPE
    draft_id: str
    text: str = ""
    slug: Annotated[str | None, Unique()] = None
    version: Annotated[int, Version()] = 0


class Job(Entity, table=plain):
    key = Key("JOB#{job_id}", "JOB")
    by_status = Key(("status",), index="ByStatus")
    history = History("v{version:06d}", keep=2)
    job_id: str
    status: str
    ends: Annotated[datetime | None, TTL()] = None
    version: Annotated[int, Version()] = 0


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(cms, plain)


@pytest.fixture
def db(base: Database) -> Store:
    return base.tenant("acme")


def write(db: Store, count: int, node_id: str = "n") -> Content:
    """Make an entity and update it so often."""
    content = db.create(Content(node_id=node_id, title="title 1"))
    for number in range(2, count + 2):
        content = db.update(content, set={"title": f"title {number}"})
    return content


def kept(opening: Opening, table: Table, kind: str = "_history:Content") -> list[Item]:
    """Return the snapshots as they are stored, without the marks of deletes."""
    found = [item for item in opening.raw(table) if item[table.internal_tag] == {"S": kind}]
    found.sort(key=lambda item: str(item["SK"]["S"]))
    return [item for item in found if not item["SK"]["S"].endswith("DELETED")]


def test_s0_19_k_updates_leave_k_snapshots_and_the_latest_is_the_next(db: Store, opening: Opening) -> None:
    content = write(db, 4)
    assert content.version == 5
    assert [item["SK"]["S"] for item in kept(opening, cms)] == [
        f"CONTENT#n#v00000{each}" for each in range(1, 5)
    ]
    assert [item["title"]["S"] for item in kept(opening, cms)] == [f"title {each}" for each in range(1, 5)]
    assert db.require(Content, node_id="n") == content


def test_c0_1_versions_sort_by_number(db: Store, opening: Opening) -> None:
    write(db, 11)
    history = db.history(Content, node_id="n")
    opening.spy.sent.clear()
    assert [each.version for each in history.list()] == list(range(11, 0, -1))
    assert [type(request) for request in opening.spy.sent] == [Query]
    first = history.list(limit=4)
    second = history.list(limit=4, cursor=first.cursor)
    third = history.list(limit=4, cursor=second.cursor)
    assert [[each.version for each in page] for page in (first, second, third)] == [
        [11, 10, 9, 8],
        [7, 6, 5, 4],
        [3, 2, 1],
    ]
    assert third.cursor is None
    write(db, 2, "other")
    assert first.cursor is not None
    with pytest.raises(CursorRejected):
        db.history(Content, node_id="other").list(cursor=first.cursor)
    with pytest.raises(DataError, match="limit= must be at least 1"):
        history.list(limit=0)


def test_a_snapshot_is_the_item_as_it_was_and_in_no_index(db: Store, opening: Opening) -> None:
    content = db.create(Content(node_id="n", title="one", blocks=["a"]))
    item = opening.only(Content)
    opening.plant(cms, {**item, "foreign": {"M": {"x": {"N": "1"}}}})
    db.put(content.model_copy(update={"title": "two"}))
    (snapshot,) = kept(opening, cms)
    expected = {name: value for name, value in item.items() if name not in ("GSI1PK", "GSI1SK")}
    expected |= {"SK": {"S": "CONTENT#n#v000001"}, "_type": {"S": "_history:Content"}}
    assert snapshot == {**expected, "foreign": {"M": {"x": {"N": "1"}}}}
    assert [each.title for each in db.all(Content.by_kind.query(kind="page"))] == ["two"]
    (found,) = db.history(Content, node_id="n").list()
    assert found.unknown_attributes == {"foreign": {"M": {"x": {"N": "1"}}}}


def test_attributes_that_are_index_keys_or_an_end_are_kept_aside(base: Database, opening: Opening) -> None:
    ends = opening.clock.at(3600)
    job = base.put(Job(job_id="j", status="new", ends=ends))
    base.update(job, set={"status": "done"}, remove=["ends"])
    (snapshot,) = kept(opening, plain, "_history:Job")
    assert not {"status", "ends"} & set(snapshot)
    assert [each.status for each in base.all(Job.by_status.query(status="new"))] == []
    history = base.history(Job, job_id="j")
    assert history.get(1) == job
    assert history.restore(1) == job.model_copy(update={"version": 3})
    assert [each.version for each in base.all(Job.by_status.query(status="new"))] == [3]
    opening.clock.seconds += 7200
    assert base.get(Job, job_id="j") is None
    assert [each.status for each in history.list()] == ["done", "new"], "snapshots have no end"


class Titled(BaseModel):
    """What a list of versions shows."""

    title: str
    version: int


class Ended(BaseModel):
    """What a list of jobs shows: an index key and an end, which snapshots keep aside."""

    status: str
    ends: datetime | None = None


def test_views_fetch_only_their_fields(db: Store, base: Database, opening: Opening) -> None:
    write(db, 5)
    history = db.history(Content, node_id="n")
    opening.spy.sent.clear()
    first = history.views(Titled, limit=3)
    (request,) = opening.spy.sent
    assert isinstance(request, Query)
    assert {path[0] for path in request.projection or ()} >= {"title", "version"}
    assert "blocks" not in repr(request.projection)
    rest = history.views(Titled, limit=3, cursor=first.cursor)
    assert [each.version for each in (*first, *rest)] == [5, 4, 3, 2, 1]
    assert first.items[0] == Titled(title="title 5", version=5)
    ends = opening.clock.at(3600)
    job = base.put(Job(job_id="j", status="new", ends=ends))
    base.update(job, set={"status": "done"}, remove=["ends"])
    opening.clock.seconds += 7200
    assert base.history(Job, job_id="j").views(Ended).items == [Ended(status="new", ends=ends)]

    class Wrong(BaseModel):
        nothing: int

    with pytest.raises(DeclarationError, match="has no field 'nothing'"):
        history.views(Wrong)


@pytest.mark.parametrize("way", ["put", "update", "delete"])
def test_every_way_to_write_keeps_what_it_replaces(db: Store, opening: Opening, way: str) -> None:
    content = db.create(Content(node_id="n", title="one"))
    steps: dict[str, Any] = {
        "put": lambda at: at.put(content.model_copy(update={"title": "two"})),
        "update": lambda at: at.update(Content, node_id="n", version=ANY, set={"title": "two"}),
        "delete": lambda at: at.delete(content),
    }
    opening.spy.sent.clear()
    steps[way](db)
    (sent,) = opening.spy.of(TransactWriteItems)
    assert [item["title"]["S"] for item in kept(opening, cms)] == ["one"]
    puts = [action for action in sent.actions if isinstance(action, PutItem) and action.condition]
    assert len(puts) == (2 if way == "put" else 1)

    other = db.create(Content(node_id="m", title="uno"))
    with db.transaction() as tx:
        if way == "put":
            tx.put(other.model_copy(update={"title": "due"}))
        elif way == "update":
            tx.update(other, set={"title": "due"})
        else:
            tx.delete(other)
    assert [item["title"]["S"] for item in kept(opening, cms)] == ["uno", "one"]
    assert (db.get(Content, node_id="m") is None) == (way == "delete")


def test_get_gives_old_ones_and_the_current_one(db: Store, opening: Opening) -> None:
    content = write(db, 2)
    history = db.history(Content, node_id="n")
    assert history.get(3) == content
    assert [getattr(history.get(each), "title", None) for each in (1, 2, 4, 0, -1)] == [
        "title 1",
        "title 2",
        None,
        None,
        None,
    ]

    def outrun() -> None:
        # Between the two readings the current version becomes a snapshot.
        opening.beside(cms, plain).tenant("acme").update(content, set={"title": "theirs"})

    sent = 0

    def before(request: Any) -> None:
        nonlocal sent
        sent += isinstance(request, GetItem)
        if sent == 2:
            opening.spy.before = None
            outrun()

    opening.spy.before = before
    assert history.get(3) == content


def test_diff_names_the_fields_that_changed(db: Store) -> None:
    content = db.create(Content(node_id="n", title="one"))
    db.update(content, set={"title": "two", "blocks": ["a"]})
    difference = db.history(Content, node_id="n").diff(1, 2)
    assert [(each.field, each.before, each.after) for each in difference] == [
        ("title", "one", "two"),
        ("blocks", [], ["a"]),
    ]
    assert len(db.history(Content, node_id="n").diff(2, 2)) == 0
    with pytest.raises(NotFound, match="Version 7 of Content node_id='n' not found"):
        db.history(Content, node_id="n").diff(1, 7)


def test_c0_6_a_restore_goes_forward_and_keeps_what_it_replaces(db: Store, opening: Opening) -> None:
    content = write(db, 2)
    opening.clock.seconds += 60
    history = db.history(Content, node_id="n")
    restored = history.restore(1)
    assert (restored.version, restored.title, restored.restored_from) == (4, "title 1", 1)
    assert restored.created == content.created
    assert restored.updated == opening.clock.at(60)
    assert db.require(Content, node_id="n") == restored
    assert [(each.version, each.title) for each in history.list()] == [
        (3, "title 3"),
        (2, "title 2"),
        (1, "title 1"),
    ]
    assert [each.version for each in db.all(Content.by_kind.query(kind="page"))] == [4]
    with pytest.raises(DataError, match="version 4 of Content node_id='n': it is the current version"):
        history.restore(4)
    with pytest.raises(NotFound, match=r"Version 9 .* not found"):
        history.restore(9)
    with pytest.raises(VersionConflict, match="expected version 3, found version 4"):
        history.restore(2, over=3)
    assert history.restore(2, over=4).version == 5
    with pytest.raises(NotFound, match="Content not found"):
        db.history(Content, node_id="never").restore(1)


def test_a_restore_brings_the_unknown_back_and_leaves_the_stamp(db: Store, opening: Opening) -> None:
    db.create(Content(node_id="n", title="one"))
    opening.plant(cms, {**opening.only(Content), "foreign": {"S": "old"}})
    moved = opening.clock.at(-3600)
    read = db.require(Content, node_id="n")
    db.put(Content(node_id="n", title="two", version=1, created=moved))
    assert "foreign" not in opening.only(Content)
    restored = db.history(Content, node_id="n").restore(1)
    assert (restored.title, restored.created) == ("one", moved)
    assert restored.unknown_attributes == read.unknown_attributes == {"foreign": {"S": "old"}}


def test_c0_6_a_restore_that_is_outrun_is_a_conflict(db: Store, opening: Opening) -> None:
    content = write(db, 2)
    beside = opening.beside(cms, plain).tenant("acme")
    opening.spy.once(TransactWriteItems, lambda: beside.update(content, set={"title": "theirs"}))
    with pytest.raises(VersionConflict):
        db.history(Content, node_id="n").restore(1)
    assert db.require(Content, node_id="n").title == "theirs"
    assert [item["title"]["S"] for item in kept(opening, cms)] == ["title 1", "title 2", "title 3"]


def test_a_restore_may_be_part_of_a_transaction(db: Store, base: Database) -> None:
    write(db, 2)
    with db.transaction() as tx:
        tx.include(db.history(Content, node_id="n").restoring(1))
        tx.create(Draft(draft_id="d"))
    assert db.require(Content, node_id="n").title == "title 1"

    def refused() -> None:
        with db.transaction() as tx:
            tx.include(db.history(Content, node_id="n").restoring(2))
            tx.create(Draft(draft_id="d"))

    with pytest.raises(TransactionFailed):
        refused()
    assert db.require(Content, node_id="n").title == "title 1"
    theirs = base.tenant("globex")
    with pytest.raises(TenantViolation, match="another tenant or database"), db.transaction() as tx:
        tx.include(theirs.history(Content, node_id="n").restoring(2))


def test_a_conflict_found_while_planning_fails_like_one_found_by_the_engine(db: Store) -> None:
    """A put with history reads the entity first, and its version may be newer than the caller's."""
    outdated = db.create(Content(node_id="n", title="one"))
    db.put(outdated.model_copy(update={"title": "two"}))
    with pytest.raises(TransactionFailed) as failed, db.transaction() as tx:  # noqa: PT012 - the end raises
        tx.create(Draft(draft_id="d"))
        tx.put(outdated)
    (failure,) = failed.value.failures
    assert (failure.position, failure.code) == (1, "ConditionalCheckFailed")
    assert isinstance(failure.error, VersionConflict)
    assert [each["Code"] for each in failed.value.reasons] == ["None", "ConditionalCheckFailed"]
    assert "failed at #2 Put Content" in str(failed.value)
    assert db.get(Draft, draft_id="d") is None


def test_other_traits_follow_a_restore(db: Store) -> None:
    draft = db.create(Draft(draft_id="d", slug="old"))
    draft = db.update(draft, set={"slug": "new"})
    other = db.create(Draft(draft_id="e", slug="old"))
    with pytest.raises(NotUnique):
        db.history(Draft, draft_id="d").restore(1)
    db.delete(other)
    assert db.history(Draft, draft_id="d").restore(1).slug == "old"
    db.create(Draft(draft_id="e", slug="new"))


def test_only_the_newest_are_kept(db: Store, opening: Opening) -> None:
    draft = db.create(Draft(draft_id="d"))
    for number in range(6):
        draft = db.update(draft, set={"text": str(number)})
    history = db.history(Draft, draft_id="d")
    assert [each.version for each in history.list()] == [6, 5, 4]
    assert history.get(3) is None
    db.delete(draft)
    assert opening.raw(cms) == [], "on_delete='purge' takes the history along"
    again = db.create(Draft(draft_id="d"))
    assert db.update(again, set={"text": "x"}).version == 2


def test_a_deleted_entity_keeps_its_history_and_its_numbers(db: Store, opening: Opening) -> None:
    content = write(db, 1)
    db.delete(content)
    assert db.delete(Content, node_id="n", version=ANY) is None, "it is gone, and that is no error"
    history = db.history(Content, node_id="n")
    assert [each.version for each in history.list()] == [2, 1]
    assert history.get(2) == content
    for make in (db.create, db.put):
        with pytest.raises(
            AlreadyExists, match=r"deleted at version 2 .* restore\(\) a version, or purge\(\)"
        ):
            make(Content(node_id="n", title="anew"))
    restored = history.restore(2)
    assert (restored.version, restored.title, restored.created) == (3, "title 2", content.created)
    assert [each.version for each in history.list()] == [2, 1]
    db.delete(db.update(restored, set={"title": "last"}))
    assert [each.version for each in history.list()] == [4, 3, 2, 1]
    assert history.purge() == 4
    assert opening.raw(cms) == []
    assert write(db, 2).version == 3


def test_two_who_bring_the_same_entity_back(db: Store, opening: Opening) -> None:
    db.delete(write(db, 1))
    beside = opening.beside(cms, plain).tenant("acme")
    theirs = beside.history(Content, node_id="n")
    opening.spy.once(TransactWriteItems, lambda: theirs.restore(1))
    with pytest.raises(VersionConflict):
        db.history(Content, node_id="n").restore(2)
    assert db.require(Content, node_id="n").title == "title 1"

    db.delete(Content, node_id="n", version=ANY)

    def back_and_gone() -> None:
        beside.delete(theirs.restore(1))

    opening.spy.once(TransactWriteItems, back_and_gone)
    with pytest.raises(VersionConflict, match="another writer"):
        db.history(Content, node_id="n").restore(2)
    assert [each.version for each in theirs.list()] == [4, 3, 2, 1], "no number is used twice"


def test_purge_keeps_the_requested_versions(db: Store, opening: Opening) -> None:
    write(db, 30)
    write(db, 2, "other")
    history = db.history(Content, node_id="n")
    assert history.purge(keep=3) == 27
    assert [each.version for each in history.list()] == [30, 29, 28]
    assert history.purge(keep=3) == 0
    assert history.purge() == 3
    assert len(kept(opening, cms)) == 2, "those of the other one"
    assert db.require(Content, node_id="n").version == 31
    with pytest.raises(DataError):
        history.purge(keep=-1)


def test_purge_goes_on_from_page_to_page(db: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solotable._flows.traits.history._PURGED_AT_ONCE", 4)
    write(db, 13)
    history = db.history(Content, node_id="n")
    assert history.purge(keep=6) == 7
    assert [each.version for each in history.list()] == [13, 12, 11, 10, 9, 8]
    assert history.purge() == 6


def test_a_snapshot_that_no_longer_fits_the_model_is_a_clear_error(db: Store, opening: Opening) -> None:
    write(db, 2)
    (snapshot, _) = kept(opening, cms)
    opening.plant(cms, {**snapshot, "title": {"L": []}})
    history = db.history(Content, node_id="n")
    for read in (lambda: history.get(1), lambda: history.restore(1), history.list):
        with pytest.raises(DataError, match="Version 1 of Content node_id='n' was stored by an older model"):
            read()
    assert history.restore(2).version == 4


def test_a_left_over_snapshot_is_never_overwritten(db: Store, opening: Opening) -> None:
    content = write(db, 1)
    (snapshot,) = kept(opening, cms)
    opening.plant(cms, {**snapshot, "SK": {"S": "CONTENT#n#v000002"}})
    with pytest.raises(DataError, match=r"Version 2 .* is already in its history.*purge\(\)"):
        db.update(content, set={"title": "x"})
    assert db.require(Content, node_id="n") == content


def test_other_readers_do_not_see_snapshots_as_entities(db: Store, base: Database) -> None:
    content = write(db, 3)
    db.delete(write(db, 1, "gone"))
    assert list(db.all(Content.key.query())) == [content]
    assert list(base.admin().scan(Content, budget=100)) == [content]
    assert db.count(Content.key.query()) == 1


def test_tenants_have_separate_histories(db: Store, base: Database) -> None:
    write(db, 2)
    theirs = base.tenant("globex").history(Content, node_id="n")
    assert len(theirs.list()) == 0
    assert theirs.get(1) is None
    with pytest.raises(TenantViolation):
        db.history(Content, tenant_id="globex", node_id="n")
    admin = base.admin().history(Content, tenant_id="acme", node_id="n")
    assert [each.version for each in admin.list()] == [2, 1]


def test_an_entity_without_a_history_says_so(db: Store) -> None:
    class Bare(Entity, table=Table("Bare", tenant="tenant_id")):
        key = Key("TENANT#{tenant_id}", "BARE#{bare_id}")
        tenant_id: str = FROM_SCOPE
        bare_id: str

    with pytest.raises(DeclarationError, match="Bare has no history; declare one"):
        db.history(Bare, bare_id="x")
    with (
        pytest.raises(DataError, match="has history, which a batch cannot write"),
        db.batch() as batch,
    ):
        batch.put(Content(node_id="n", title="t"))


def test_c0_3_two_editors_one_wins_and_no_snapshot_is_lost(db: Store, opening: Opening) -> None:
    content = write(db, 1)
    beside = opening.beside(cms, plain).tenant("acme")
    opening.spy.once(TransactWriteItems, lambda: beside.update(content, set={"title": "theirs"}))
    with pytest.raises(VersionConflict) as refused:
        db.update(content, set={"title": "mine"})
    assert refused.value.theirs.title == "theirs"
    assert [item["title"]["S"] for item in kept(opening, cms)] == ["title 1", "title 2"]


def edit(db: Store, times: int) -> tuple[int, int]:
    """Read and update so often; return how often that was done, and how often somebody was faster."""
    done = outrun = 0
    while done < times:
        content = db.require(Content, consistent=True, node_id="n")
        try:
            db.update(content, set={"title": f"title {content.version + 1}"})
            done += 1
        except VersionConflict:
            outrun += 1
    return done, outrun


def edit_file(url: str, times: int) -> tuple[int, int]:
    with connect(url, cms) as db:
        return edit(db.tenant("acme"), times)


def whole(db: Store, updates: int) -> None:
    """Check that after k updates there are k snapshots, each as it was, and LATEST is k + 1."""
    latest = db.require(Content, consistent=True, node_id="n")
    assert (latest.version, latest.title) == (updates + 1, f"title {updates + 1}")
    found = list(db.history(Content, node_id="n").list(limit=1000))
    assert [(each.version, each.title) for each in found] == [
        (number, f"title {number}") for number in range(updates, 0, -1)
    ]


def test_s0_19_c0_3_threads_that_edit_lose_no_snapshot(opening: Opening) -> None:
    db = opening.beside(cms, plain).tenant("acme")
    db.create(Content(node_id="n", title="title 1"))
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: edit(db, 8), range(4)))
    assert sum(each for each, _ in done) == 32
    whole(db, 32)


def test_s0_19_c0_3_processes_that_edit_lose_no_snapshot(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'cms.db'}"
    with connect(url, cms) as base:
        db = base.tenant("acme")
        db.create(Content(node_id="n", title="title 1"))
        with multiprocessing.get_context("spawn").Pool(3) as pool:
            done = pool.starmap(edit_file, [(url, 15)] * 3)
        assert sum(each for each, _ in done) == 45
        whole(db, 45)


def test_one_version_has_one_successor(opening: Opening) -> None:
    db = opening.beside(cms, plain).tenant("acme")
    content = db.create(Content(node_id="n", title="one"))

    def attempt(number: int) -> bool:
        try:
            if number % 2:
                db.update(content, set={"title": str(number)})
            else:
                db.put(content.model_copy(update={"title": str(number)}))
        except VersionConflict:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(attempt, range(12))) == 1
    assert db.require(Content, node_id="n").version == 2
    assert [each.title for each in db.history(Content, node_id="n").list()] == ["one"]


def test_what_a_write_costs(db: Store, opening: Opening) -> None:
    content = db.create(Content(node_id="n", title="t"))
    opening.spy.sent.clear()
    db.update(content, set={"title": "u"})
    assert [type(request) for request in opening.spy.sent] == [GetItem, TransactWriteItems]
    (sent,) = opening.spy.of(TransactWriteItems)
    assert len(sent.actions) == 2
    draft = db.create(Draft(draft_id="d"))
    for _ in range(4):
        opening.spy.sent.clear()
        draft = db.put(draft)
    (sent,) = opening.spy.of(TransactWriteItems)
    assert [type(action).__name__ for action in sent.actions] == ["PutItem", "PutItem", "DeleteItem"]
