"""Pull: exactly one version of the view, at a cost of what changed (S4.16, S4.17, C4.7)."""

from __future__ import annotations

from typing import Any

import pytest

from solotable import FROM_SCOPE, Database, Entity, Key, Synced, Table
from solotable._protocol.requests import BatchGetItem, GetItem, Query, Request, TransactGetItems
from solotable._values import Item
from solotable.errors import StoredDataError, SyncUnavailable, TransactionCancelled
from tests.waiting import HANG_SECONDS

from .opening import Opening
from .syncing import Note, Project, Replica, Todo, sync_of, synced

pytestmark = pytest.mark.blocking


@pytest.fixture
def db(opening: Opening) -> Database:
    return opening(synced)


@pytest.fixture
def replica(db: Database) -> Replica:
    return Replica(sync_of(db))


def fill(db: Database, count: int, text: str = "") -> None:
    acme = db.tenant("acme")
    for start in range(0, count, 50):
        with acme.transaction() as tx:
            for number in range(start, min(start + 50, count)):
                tx.put(Todo(todo_id=f"{number:05d}", text=text))


def test_a_pull_brings_puts_deletes_and_nothing_twice(db: Database, replica: Replica) -> None:
    """S4.17, C4.7: deletes appear, ties cannot be lost, and a second pull is empty."""
    acme = db.tenant("acme")
    fill(db, 3)
    replica.pull()
    assert len(replica.texts) == 3
    acme.delete(Todo, todo_id="00000")
    acme.update(Todo, todo_id="00001", set={"text": "one"})
    acme.update(Todo, todo_id="00001", set={"text": "two"})
    replica.pull()
    assert [op["op"] for op in replica.pulled["patch"]] == ["del", "put"]
    assert replica.texts == {"00001": "two", "00002": ""}
    replica.pull()
    assert replica.pulled["patch"] == []


def test_a_pull_without_changes_is_one_read_of_one_unit(
    opening: Opening, db: Database, replica: Replica
) -> None:
    """S4.16: the state of the sync is one read, not a query of pending items."""
    replica.mutate("put", id="a")
    replica.sync_all()
    replica.pull()
    opening.spy.sent.clear()
    with db.consumed() as used:
        replica.pull()
    assert [type(each) for each in opening.spy.sent] == [GetItem]
    assert used.rcu <= 1


def test_the_cost_of_a_pull_is_that_of_the_changes(opening: Opening, db: Database, replica: Replica) -> None:
    def cost(changes: int) -> float:
        replica.pull()
        for number in range(changes):
            db.tenant("acme").update(Todo, todo_id=f"{number:05d}", add={"count": 1})
        with db.consumed() as used:
            replica.pull()
        assert len(replica.pulled["patch"]) == changes
        return used.rcu

    fill(db, 120, "x" * 2_000)
    assert cost(1) <= 3
    assert cost(10) <= 10
    assert cost(0) <= 1


def test_a_cookie_that_is_of_no_use_gets_the_whole_view(db: Database, replica: Replica) -> None:
    """Never a wedge: the order of the answer is above that of any cookie."""
    fill(db, 2)
    replica.pull()
    good = replica.cookie
    space: dict[str, Any] = good["spaces"]
    for cookie in (
        17,
        -3.5,
        1e300,
        "abc",
        "zzz~~~",
        {"order": 99},
        {"order": "x"},
        {**good, "order": good["order"] + 1},
        {**good, "spaces": {"": ["1", "x"]}},
        {**good, "spaces": {"": [1]}},
        {**good, "spaces": 7},
        {**good, "base": -1},
        {**good, "next": "x"},
        {**good, "next": ["elsewhere", 0, None]},
        {**good, "next": ["", 0, "zzz"]},
        {**good, "next": ["", 0, ""]},
        {**good, "next": ["", 0, "TODO#\ud800"]},
        {**good, "next": ["", 0, "TODO#" + "x" * 1_100]},
        {**good, "next": ["", 900, None]},
        10**400,
        {"order": 10**400},
        {"order": 900, "base": 0, "spaces": {"": [900, space[""][1]]}},
        {"order": 1, "base": 0, "spaces": {"": [1, "another epoch"]}},
        {"order": 1, "base": 0, "spaces": {"project/secret": [1, "x"]}},
    ):
        stray = Replica(replica.sync)
        stray.cookie, stray.data = cookie, {"stale": 1}
        stray.pull()
        assert stray.pulled["patch"][0] == {"op": "clear"}, cookie
        assert set(stray.data) == {"todo/00000", "todo/00001"}, cookie
        db.tenant("acme").update(Todo, todo_id="00000", add={"count": 1})
        stray.pull()
        assert [op["op"] for op in stray.pulled["patch"]] == ["put"], cookie


def test_a_cookie_of_another_tenant_gives_nothing_of_it(db: Database, replica: Replica) -> None:
    fill(db, 2)
    replica.pull()
    other = Replica(replica.sync, tenant="other")
    other.cookie, other.data = replica.cookie, dict(replica.data)
    other.pull()
    assert other.data == {}


def test_an_unknown_group_with_an_old_cookie_is_served(db: Database, replica: Replica) -> None:
    """A new group of a client forks the snapshot of the old one: it must not be told to start again."""
    replica.mutate("put", id="a")
    replica.sync_all()
    fork = Replica(replica.sync, group="g2", client="c2")
    fork.cookie, fork.data = replica.cookie, dict(replica.data)
    replica.mutate("put", id="b")
    replica.sync_all()
    fork.pull()
    assert fork.texts == replica.texts
    assert [op["op"] for op in fork.pulled["patch"]] == ["put"]


def test_a_trimmed_log_gives_the_whole_view(opening: Opening, db: Database, replica: Replica) -> None:
    fill(db, 1)
    replica.pull()
    for _ in range(3):
        db.tenant("acme").update(Todo, todo_id="00000", add={"count": 1})
    opening.clock.seconds += 40 * 86_400
    assert replica.sync.trim("acme", days=30) == 4
    replica.pull()
    assert replica.pulled["patch"][0] == {"op": "clear"}
    assert replica.data["todo/00000"]["count"] == 3
    replica.pull()
    assert replica.pulled["patch"] == []
    db.tenant("acme").update(Todo, todo_id="00000", add={"count": 1})
    replica.pull()
    assert [op["op"] for op in replica.pulled["patch"]] == ["put"]


def test_a_reset_gives_everything_again_and_keeps_the_queue(
    opening: Opening, db: Database, replica: Replica
) -> None:
    """After a restore: items changed without a log, and clients are ahead of the table."""
    replica.mutate("put", id="a")
    replica.sync_all()
    kept = opening.raw(synced)
    for name in ("b", "c", "d"):
        replica.mutate("put", id=name)
    replica.sync_all()
    for item in opening.raw(synced):
        opening.engine.handle(_deletion(opening, item))
    for item in kept:
        opening.plant(synced, item)
    assert replica.sync.reset_all() == 1
    replica.mutate("put", id="e")
    replica.pull()
    assert set(replica.texts) == {"a"}
    replica.sync_all()
    assert set(replica.texts) == {"a", "e"}
    assert replica.confirmed == {"c1": 5}


def _deletion(opening: Opening, item: dict[str, Any]) -> Request[Any]:
    from solotable._protocol.requests import DeleteItem

    return DeleteItem(table=opening.prefix + synced.name, key={name: item[name] for name in ("PK", "SK")})


def test_a_reset_space_shows_what_a_migration_wrote(opening: Opening, db: Database, replica: Replica) -> None:
    fill(db, 1)
    replica.pull()
    item = next(each for each in opening.raw(synced) if each["SK"]["S"].startswith("TODO#"))
    opening.plant(synced, {**item, "text": {"S": "migrated"}})
    replica.pull()
    assert replica.texts == {"00000": ""}
    replica.sync.reset("acme")
    replica.pull()
    assert replica.texts == {"00000": "migrated"}


@pytest.mark.parametrize("version", ["900", "1" + "0" * 30, "1.5", "-1"])
def test_items_of_another_table_are_synced_after_a_reset(
    opening: Opening, db: Database, replica: Replica, version: str
) -> None:
    """An export carries the versions of its table, which may be far ahead of the log here."""
    fill(db, 2)
    item = next(each for each in opening.raw(synced) if each["SK"]["S"].startswith("TODO#"))
    changes: Item = {"SK": {"S": "TODO#imported"}, "todo_id": {"S": "imported"}, "_sv": {"N": version}}
    opening.plant(synced, {**item, **changes})
    replica.sync.reset("acme")
    replica.pull()
    assert set(replica.texts) == {"00000", "00001", "imported"}
    replica.mutate("finish", id="imported")
    replica.sync_all()
    assert replica.data["todo/imported"]["state"] == "done"
    other = Replica(replica.sync, group="g2", user="bob")
    other.pull()
    assert other.data == replica.data


def test_all_spaces_of_an_import_are_reset(opening: Opening, db: Database, replica: Replica) -> None:
    """A table that got its items from an export has no head yet."""
    fill(db, 2)
    db.tenant("acme").put(Project(project_id="p"))
    for item in opening.raw(synced):
        if item["PK"]["S"].startswith("SYNC#"):
            db.engine.handle(_deletion(opening, item))
        else:
            opening.plant(synced, {**item, "_sv": {"N": "70"}})
    assert replica.sync.reset_all() == 2
    replica.pull()
    assert set(replica.texts) == {"00000", "00001"}


def test_a_view_in_pages_arrives_with_the_changes_in_between(db: Database) -> None:
    acme = db.tenant("acme")
    fill(db, 25)
    acme.create(Project(project_id="p"))
    for number in range(5):
        acme.create(Note(project_id="p", note_id=str(number)))
    sync = sync_of(db, page_items=10, view=lambda _store, _user: ["", "project/p"])
    replica = Replica(sync)
    pulls = 0
    while replica.data.get("control/sync") != {"complete": True}:
        replica.pull()
        pulls += 1
        # One behind the page, one before it, and one that a later page has.
        acme.delete(Todo, todo_id="00024")
        acme.put(Todo(todo_id="00001", text=str(pulls)))
        acme.put(Todo(todo_id="00023", text=str(pulls)))
        assert pulls < 20
    assert pulls >= 3
    replica.pull()
    whole = Replica(sync_of(db, view=lambda _store, _user: ["", "project/p"]))
    whole.pull()
    assert {key: value for key, value in replica.data.items() if key != "control/sync"} == whole.data
    assert len(whole.data) == 30


def test_access_to_a_space_is_given_and_taken(db: Database) -> None:
    acme = db.tenant("acme")
    for name in ("p", "q"):
        acme.create(Project(project_id=name))
        acme.create(Note(project_id=name, note_id="1"))
    allowed = ["project/p"]
    replica = Replica(sync_of(db, view=lambda _store, _user: allowed))
    replica.pull()
    assert set(replica.data) == {"project/p", "note/p/1"}
    allowed.append("project/q")
    replica.pull()
    assert "clear" not in str(replica.pulled["patch"])
    assert len(replica.data) == 4
    allowed.remove("project/p")
    replica.pull()
    assert set(replica.data) == {"project/q", "note/q/1"}
    allowed.clear()
    replica.pull()
    assert replica.data == {}
    allowed.append("project/p")
    replica.pull()
    assert set(replica.data) == {"project/p", "note/p/1"}


def test_a_forged_cookie_shows_no_key_of_a_space_without_access(db: Database) -> None:
    acme = db.tenant("acme")
    acme.create(Project(project_id="secret"))
    replica = Replica(sync_of(db, view=lambda _store, _user: []))
    replica.cookie = {"order": 1, "base": 0, "spaces": {"project/secret": [1, ""]}}
    replica.pull()
    assert "secret" not in str(replica.pulled)


def test_the_id_of_a_group_chooses_no_space(opening: Opening) -> None:
    """A user without spaces names a group like a space, and still gets nothing of it."""
    teams = Table("Teams", tenant="tenant_id")

    class Member(Entity, table=teams):
        key = Key("TENANT#{tenant_id}#{group_id}", "MEMBER#{name}")
        sync = Synced(space="group/{group_id}")

        tenant_id: str = FROM_SCOPE
        group_id: str
        name: str

    db = opening(teams)
    eve = Replica(sync_of(db, view=lambda store, user: []), group="1", user="eve")
    eve.pull()
    db.tenant("acme").put(Member(group_id="1", name="secret"))
    eve.pull()
    assert eve.data == {}
    eve.mutate("unknown")
    eve.sync_all()
    assert eve.rejected == {1: "unknown_mutator"}
    again = Replica(eve.sync, group="1", user="eve")
    again.pull()
    assert set(again.data) == {"control/rejected/c1/1"}


def test_a_commit_that_is_only_half_visible_is_waited_for(
    opening: Opening, db: Database, replica: Replica
) -> None:
    """The head is read, but the record of its version is not there yet: no answer may skip it."""
    fill(db, 1)
    replica.pull()
    db.tenant("acme").update(Todo, todo_id="00000", set={"text": "new"})
    record = next(each for each in opening.raw(synced) if each["SK"]["S"].endswith("002"))
    opening.engine.handle(_deletion(opening, record))
    sleeps = 0

    def sleep(_: float) -> None:
        nonlocal sleeps
        sleeps += 1
        if sleeps == 2:
            opening.plant(synced, record)

    opening.spy.sleep = sleep
    replica.pull()
    assert replica.texts == {"00000": "new"}
    assert [op["op"] for op in replica.pulled["patch"]] == ["put"]


def test_a_record_that_stays_invisible_is_backpressure_not_a_gap(
    opening: Opening, db: Database, replica: Replica
) -> None:
    fill(db, 1)
    db.tenant("acme").update(Todo, todo_id="00000", set={"text": "new"})
    record = next(each for each in opening.raw(synced) if each["SK"]["S"].endswith("002"))
    opening.engine.handle(_deletion(opening, record))
    opening.spy.sleep = lambda _: None
    with pytest.raises(SyncUnavailable, match="not visible yet"):
        replica.pull()
    opening.clock.seconds += 60
    replica.pull()
    assert replica.texts == {"00000": "new"}


def test_items_that_change_during_a_whole_view_are_of_one_version(
    opening: Opening, db: Database, replica: Replica
) -> None:
    """The log is replayed after the items, so the answer is never older than its cookie."""
    fill(db, 3)
    other = opening.beside(synced).tenant("acme")
    queries = 0

    def before(request: Request[Any]) -> None:
        nonlocal queries
        if isinstance(request, Query):
            queries += 1
            if queries in (2, 3):
                other.delete(Todo, todo_id="00000")
                other.update(Todo, todo_id="00002", add={"count": 1})

    opening.spy.before = before
    replica.pull()
    opening.spy.before = None
    assert replica.data["todo/00002"]["count"] == 2
    assert "todo/00000" not in replica.data
    replica.pull()
    assert replica.pulled["patch"] == []


def test_a_value_that_is_too_large_for_the_log_is_read_from_its_item(db: Database, replica: Replica) -> None:
    acme = db.tenant("acme")
    replica.pull()
    with acme.transaction() as tx:
        for name in ("a", "b"):
            tx.put(Todo(todo_id=name, text=name * 200_000))
    replica.pull()
    assert {name: len(text) for name, text in replica.texts.items()} == {"a": 200_000, "b": 200_000}
    with acme.transaction() as tx:
        for name in ("a", "b"):
            tx.put(Todo(todo_id=name, text=name * 190_000))
    acme.delete(Todo, todo_id="a")
    acme.delete(Todo, todo_id="b")
    replica.pull()
    assert replica.texts == {}


def test_a_damaged_item_does_not_stop_the_view(
    opening: Opening, db: Database, replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    fill(db, 2)
    item = next(each for each in opening.raw(synced) if each["SK"]["S"].startswith("TODO#"))
    opening.plant(synced, {**item, "count": {"S": "many"}})
    opening.clock.seconds += 60
    replica.pull()
    assert set(replica.texts) == {"00001"}
    assert "clients do not get the Todo TODO#00000" in caplog.text


def test_a_listener_is_poked_by_pushes_and_by_other_processes(opening: Opening, db: Database) -> None:
    sync = sync_of(db, poll_seconds=0.01)
    replica = Replica(sync)
    with sync.pokes("acme", "ann") as listener:
        replica.mutate("put", id="a")
        replica.push()
        assert listener.wait(HANG_SECONDS)
        opening.beside(synced).tenant("acme").put(Todo(todo_id="b"))
        while True:
            assert listener.wait(HANG_SECONDS)
            replica.pull()
            if "b" in replica.texts:
                break
    sync.close()


def test_a_pull_reads_the_owner_of_a_group_once(opening: Opening, replica: Replica) -> None:
    replica.mutate("put", id="a")
    replica.sync_all()
    opening.spy.sent.clear()
    for _ in range(3):
        replica.pull()
    assert len(opening.spy.of(BatchGetItem)) == 0


def test_a_table_that_lost_its_last_commits_does_not_stop_its_clients(
    opening: Opening, db: Database, replica: Replica
) -> None:
    """A restore without a reset: the cookie is of the future, and so are the confirmed ids."""
    replica.mutate("put", id="a")
    replica.sync_all()
    kept = opening.raw(synced)
    replica.mutate("put", id="b")
    replica.sync_all()
    for item in opening.raw(synced):
        opening.engine.handle(_deletion(opening, item))
    for item in kept:
        opening.plant(synced, item)
    replica.pull()
    assert replica.texts == {"a": ""}
    assert replica.confirmed == {"c1": 2}


def test_a_last_mutation_id_never_goes_down_with_the_record_of_its_client(
    opening: Opening, db: Database
) -> None:
    """The client got its id from the log; a new space needs the record, which is not visible yet."""
    db.tenant("acme").create(Project(project_id="p"))
    allowed = [""]
    replica = Replica(sync_of(db, view=lambda _store, _user: allowed))
    replica.mutate("put", id="a")
    replica.sync_all()
    (old,) = _internal(opening, "CLIENT#")
    replica.mutate("put", id="b")
    replica.sync_all()
    (new,) = _internal(opening, "CLIENT#")
    opening.plant(synced, old)
    allowed.append("project/p")
    opening.spy.sleep = lambda _: None
    with pytest.raises(SyncUnavailable, match="not visible yet"):
        replica.pull()
    opening.spy.sleep = lambda _: opening.plant(synced, new)
    replica.pull()
    assert set(replica.data) == {"todo/a", "todo/b", "project/p"}
    assert replica.confirmed == {"c1": 2}
    # Every record is visible after some seconds, so the cookie needs no id any more.
    opening.clock.seconds += 60
    db.tenant("acme").delete(Todo, todo_id="a")
    replica.pull()
    assert "recent" not in replica.cookie


def test_a_new_group_with_the_cookie_of_another_does_not_wait_for_its_ids(db: Database) -> None:
    """A new group begins with the cookie of the old one, whose ids have records of their group."""
    allowed = [""]
    replica = Replica(sync_of(db, view=lambda _store, _user: allowed))
    replica.mutate("put", id="a")
    replica.sync_all()
    replica.mutate("put", id="b")
    replica.sync_all()
    assert replica.cookie["group"] == replica.group
    db.tenant("acme").create(Project(project_id="p"))
    allowed.append("project/p")
    replica.group = "another"
    replica.pull()
    assert set(replica.data) == {"todo/a", "todo/b", "project/p"}


def _internal(opening: Opening, start: str) -> list[Item]:
    """Return the stored items of spaces whose sort key has a start."""
    return [
        item
        for item in opening.raw(synced)
        if item["PK"]["S"].startswith("SYNC#") and item["SK"]["S"].startswith(start)
    ]


def test_a_deletion_that_is_visible_before_its_head_is_of_its_version(
    opening: Opening, db: Database, replica: Replica
) -> None:
    fill(db, 2)
    opening.clock.seconds += 60
    (before,) = _internal(opening, "HEAD")
    db.tenant("acme").delete(Todo, todo_id="00000")
    (after,) = _internal(opening, "HEAD")
    record = _internal(opening, "LOG#")[-1]
    opening.plant(synced, before)
    opening.engine.handle(_deletion(opening, record))
    conflicts = 0

    def act(request: Request[Any]) -> None:
        nonlocal conflicts
        if isinstance(request, TransactGetItems) and not conflicts:
            conflicts += 1
            raise TransactionCancelled([{"Code": "TransactionConflict"}])

    def sleep(_: float) -> None:
        for item in (after, record):
            opening.plant(synced, item)

    opening.spy.before, opening.spy.sleep = act, sleep
    replica.pull()
    assert set(replica.texts) == {"00001"}
    assert replica.cookie["spaces"][""][0] == 2
    assert replica.pull()["patch"] == []


def test_a_page_needs_every_record_since_the_last_page(opening: Opening, db: Database) -> None:
    """A deletion of an earlier key is only in the log, and the log was trimmed between two pages."""
    fill(db, 6)
    replica = Replica(sync_of(db, page_items=3))
    replica.pull()
    acme = db.tenant("acme")
    acme.update(Todo, todo_id="00005", set={"text": "new"})
    acme.delete(Todo, todo_id="00000")
    opening.engine.handle(_deletion(opening, _internal(opening, "LOG#")[-1]))
    opening.clock.seconds += 60
    for _ in range(4):
        replica.pull()
    assert replica.data["control/sync"] == {"complete": True}
    assert set(replica.texts) == {f"{number:05d}" for number in range(1, 6)}


def test_a_space_without_its_head_is_loaded_again(opening: Opening, db: Database, replica: Replica) -> None:
    """Another program deleted the head and left the log: no client and no writer may stop."""
    replica.mutate("put", id="a")
    replica.sync_all()
    fill(db, 2)
    replica.pull()
    (head,) = _internal(opening, "HEAD")
    opening.engine.handle(_deletion(opening, head))
    replica.pull()
    assert set(replica.texts) == {"a", "00000", "00001"}
    assert replica.pull()["patch"] == []
    db.tenant("acme").put(Todo(todo_id="b"))
    replica.mutate("put", id="c")
    replica.sync_all()
    assert set(replica.texts) == {"a", "00000", "00001", "b", "c"}
    assert replica.confirmed == {"c1": 2}
    assert replica.pulled["patch"][0] == {"op": "clear"}
    assert int(_internal(opening, "HEAD")[0]["version"]["N"]) == 4
    assert replica.pull()["patch"] == []


def test_a_space_that_lost_its_head_and_its_log_is_loaded_again(
    opening: Opening, db: Database, replica: Replica
) -> None:
    for name in ("a", "b", "c"):
        replica.mutate("put", id=name)
        replica.sync_all()
    for item in _internal(opening, "HEAD") + _internal(opening, "LOG#"):
        opening.engine.handle(_deletion(opening, item))
    for step in ("d", "e"):
        opening.clock.seconds += 60
        replica.pull()
        replica.mutate("put", id=step)
        replica.sync_all()
        other = Replica(replica.sync, group=step, client=step)
        other.pull()
        assert other.texts == replica.texts
    assert set(replica.texts) == {"a", "b", "c", "d", "e"}


def test_an_item_of_a_lost_log_is_older_than_any_commit(
    opening: Opening, db: Database, replica: Replica
) -> None:
    """It is read before its new state is visible, with the version of the log that is gone."""
    for text in ("1", "2", "3"):
        db.tenant("acme").put(Todo(todo_id="a", text=text))
    old = opening.only(Todo)
    for item in _internal(opening, "HEAD") + _internal(opening, "LOG#"):
        opening.engine.handle(_deletion(opening, item))
    db.tenant("acme").put(Todo(todo_id="a", text="new"))
    opening.plant(synced, old)
    replica.pull()
    assert replica.texts == {"a": "new"}


@pytest.mark.parametrize(
    "change", [{"version": {"S": "1"}}, {"version": {"N": "1.5"}}, {"epoch": None}, {"at": {"NULL": True}}]
)
def test_a_damaged_head_is_named_and_a_reset_repairs_it(
    opening: Opening, db: Database, replica: Replica, change: dict[str, Any]
) -> None:
    replica.mutate("put", id="a")
    replica.sync_all()
    (head,) = _internal(opening, "HEAD")
    damaged = {name: value for name, value in {**head, **change}.items() if value is not None}
    opening.plant(synced, damaged)
    replica.mutate("put", id="b")
    for act in (replica.pull, lambda: db.tenant("acme").put(Todo(todo_id="c"))):
        with pytest.raises(StoredDataError, match=r"The head of tenant 'acme' is damaged .*Sync\.reset"):
            act()
    with pytest.raises(SyncUnavailable, match="is damaged"):
        replica.push()
    replica.sync.reset("acme")
    replica.sync_all()
    assert set(replica.texts) == {"a", "b"}


@pytest.mark.parametrize(("start", "match"), [("LOG#", "The log record LOG#"), ("CLIENT#", "client 'c1'")])
def test_a_damaged_internal_item_is_named(opening: Opening, replica: Replica, start: str, match: str) -> None:
    replica.mutate("put", id="a")
    replica.push()
    (item,) = _internal(opening, start)
    opening.plant(synced, {**item, "at": {"S": "yesterday"}})
    with pytest.raises(StoredDataError, match=match):
        replica.pull()


def test_an_import_just_before_a_reset_is_not_undone_by_the_log(
    opening: Opening, db: Database, replica: Replica
) -> None:
    """The log of the last seconds belongs to the epoch before."""
    early = Replica(replica.sync, group="g2", client="c2")
    early.pull()
    fill(db, 2)
    acme = db.tenant("acme")
    acme.delete(Todo, todo_id="00001")
    item = next(each for each in opening.raw(synced) if each["SK"]["S"].startswith("TODO#"))
    plain = {name: value for name, value in item.items() if name != "_sv"}
    opening.plant(synced, {**plain, "text": {"S": "imported"}})
    opening.plant(synced, {**plain, "SK": {"S": "TODO#00001"}, "todo_id": {"S": "00001"}})
    replica.sync.reset("acme")
    for each in (replica, early):
        each.pull()
        assert each.texts == {"00000": "imported", "00001": ""}


def test_an_id_that_is_confirmed_during_a_slow_pull_has_its_effects(opening: Opening, db: Database) -> None:
    """The pull has read the head; then a sibling pushes, and the process stands still for a minute."""
    db.tenant("acme").create(Project(project_id="p"))
    allowed = [""]
    view = {"view": lambda _store, _user: allowed}
    replica = Replica(sync_of(db, **view))
    replica.mutate("put", id="a")
    replica.sync_all()
    allowed.append("project/p")
    sibling = Replica(sync_of(opening.beside(synced), **view), client="c2")
    sibling.mutate("put", id="b")

    def act() -> None:
        sibling.push()
        opening.clock.seconds += 60

    opening.spy.once(Query, act)
    replica.pull()
    assert replica.confirmed == {"c1": 1, "c2": 1}
    assert set(replica.texts) == {"a", "b"}
