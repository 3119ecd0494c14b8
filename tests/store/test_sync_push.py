"""Push: mutations run once, in order, and are confirmed with their effects (S4.32, S4.36, C4.8)."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from solotable import AsyncStore, Database, Store
from solotable._protocol.requests import BatchGetItem, Request, TransactWriteItems
from solotable.errors import DataError, SyncUnavailable, Throttled, TransportError
from solotable.sync import Mutators, Rejected
from solotable.sync.push import pusher
from solotable.sync.push.clients import MOST_REJECTED
from tests.waiting import HANG_SECONDS

from .opening import Opening
from .syncing import Note, Project, Replica, Setting, Tag, Todo, sync_of, synced

pytestmark = pytest.mark.blocking
NOT_FOUND = {"error": "ClientStateNotFound"}


@pytest.fixture
def db(opening: Opening) -> Database:
    return opening(synced)


@pytest.fixture
def replica(db: Database) -> Replica:
    return Replica(sync_of(db))


def test_a_mutation_is_run_confirmed_and_seen_by_others(db: Database, replica: Replica) -> None:
    """S4.36, C4.8: the id of the client is in the transaction of the mutation."""
    replica.mutate("put", id="a", text="A")
    replica.mutate("asyncPut", id="b", text="B")
    replica.mutate("mine", id="c")
    replica.sync_all()
    assert replica.texts == {"a": "A", "b": "B", "c": "ann c1 3"}
    other = Replica(replica.sync, group="g2", client="c2", user="bob")
    other.pull()
    assert other.texts == replica.texts
    assert other.confirmed == {}
    assert db.tenant("other").page(Todo.listed()).items == []


def test_edits_of_different_items_merge_and_only_changes_travel(replica: Replica) -> None:
    """S4.32: two clients edit two items; both succeed, and each gets only the other's item."""
    other = Replica(replica.sync, group="g2", client="c2", user="bob")
    replica.mutate("put", id="1")
    replica.mutate("put", id="2")
    replica.sync_all()
    other.pull()
    replica.mutate("put", id="1", text="of ann")
    other.mutate("put", id="2", text="of bob")
    assert replica.push() == other.push() == {}
    for each in (replica, other):
        each.pull()
        assert each.texts == {"1": "of ann", "2": "of bob"}
        assert len(each.pulled["patch"]) == 2
    assert other.rejected == replica.rejected == {}


def test_duplicates_are_skipped_with_one_read(opening: Opening, replica: Replica) -> None:
    for number in range(5):
        replica.mutate("increment", id="a", text=str(number))
        assert replica.push() == {}
    opening.spy.sent.clear()
    assert replica.push() == {}
    assert [type(each) for each in opening.spy.sent] == [BatchGetItem]
    replica.pull()
    assert replica.data["todo/a"]["count"] == 5


def test_200_queued_mutations_take_few_transactions(opening: Opening, replica: Replica) -> None:
    for number in range(200):
        replica.mutate("put", id=str(number), text="x" * 100)
    opening.spy.sent.clear()
    replica.sync_all()
    assert len(opening.spy.of(TransactWriteItems)) <= 5
    assert len(replica.texts) == 200


@pytest.mark.in_process
def test_a_push_of_one_item_takes_8_write_units(db: Database, replica: Replica) -> None:
    replica.mutate("put", id="first")
    replica.sync_all()
    replica.mutate("put", id="a", text="x" * 500)
    with db.consumed() as used:
        replica.push()
    assert used.wcu - sum(units.wcu for units in used.indexes.values()) <= 8


def test_mutations_read_what_earlier_ones_of_the_push_wrote(db: Database, replica: Replica) -> None:
    for _ in range(3):
        replica.mutate("increment", id="a")
    replica.mutate("put", id="b")
    replica.mutate("delete", id="b")
    replica.mutate("finishAll")
    replica.mutate("tag", id="t", text="name")
    replica.mutate("setting", id="s")
    replica.mutate("setting", id="s")
    replica.sync_all()
    assert replica.rejected == {}
    assert replica.data["todo/a"] == {"todo_id": "a", "text": "", "state": "done", "count": 3}
    assert "todo/b" not in replica.data
    acme = db.tenant("acme")
    assert acme.require(Setting, name="s").value == 2
    assert acme.require(Tag, tag_id="t").version == 1
    assert [todo.todo_id for todo in acme.page(Todo.in_state("done")).items] == ["a"]


def test_a_rejected_mutation_counts_without_its_writes(db: Database, replica: Replica) -> None:
    """Each rejection is confirmed, moves the cookie, and is shown to its client with the reason."""
    replica.pull()
    wrong = [
        ("reject", {"id": "a"}, "forbidden"),
        ("unknown", {"id": "a"}, "unknown_mutator"),
        ("put", {"wrong": 1}, "invalid_arguments"),
        ("put", None, "invalid_arguments"),
        ("divide", {"id": "a"}, "ZeroDivisionError"),
        ("finish", {"id": "a"}, "NotFound"),
    ]
    for number, (name, args, code) in enumerate(wrong, start=1):
        before = replica.cookie
        replica.mutate(name)
        replica.queue[-1]["args"] = args
        replica.sync_all()
        assert replica.cookie["order"] > before["order"]
        assert replica.rejected[number] == code
    assert replica.texts == {}
    assert replica.data["control/rejected/c1/1"]["reason"] == "You may not do this."
    again = Replica(replica.sync)
    again.pull()
    assert again.rejected == replica.rejected
    other = Replica(replica.sync, group="g2", client="c2")
    other.pull()
    assert other.data == {}


def test_rejections_are_mixed_with_successes_in_one_transaction(replica: Replica) -> None:
    replica.mutate("put", id="a")
    replica.mutate("reject", id="b")
    replica.mutate("create", id="a")
    replica.mutate("put", id="c")
    replica.sync_all()
    assert set(replica.texts) == {"a", "c"}
    assert replica.rejected == {2: "forbidden", 3: "AlreadyExists"}


def test_only_the_latest_rejections_stay_in_the_view(replica: Replica) -> None:
    for _ in range(MOST_REJECTED + 3):
        replica.mutate("reject", id="a")
    replica.sync_all()
    assert sorted(replica.rejected) == list(range(4, MOST_REJECTED + 4))
    replica.mutate("reject", id="a")
    replica.sync_all()
    assert sorted(replica.rejected) == list(range(5, MOST_REJECTED + 5))


def test_a_long_queue_of_rejected_mutations_ends(replica: Replica) -> None:
    """A mutator was renamed: the rejections do not fit into one log record."""
    for _ in range(1_500):
        replica.mutate("renamed" * 12, id="a")
    replica.mutate("put", id="after")
    replica.sync_all()
    assert set(replica.texts) == {"after"}
    assert sorted(replica.rejected) == list(range(1_501 - MOST_REJECTED, 1_501))


def test_a_mutation_with_too_many_items_is_rejected(replica: Replica) -> None:
    replica.mutate("put", id="first")
    replica.mutate("many", id="x", text="120")
    replica.mutate("many", id="y", text="80")
    replica.sync_all()
    assert replica.rejected == {2: "too_large"}
    assert len(replica.texts) == 81


def test_writes_that_the_database_rejects_do_not_stop_the_queue(replica: Replica) -> None:
    replica.mutate("put", id="before")
    replica.mutate("raw", id="a")
    replica.mutate("huge", id="h")
    replica.mutate("put", id="after")
    replica.sync_all()
    assert set(replica.texts) == {"before", "after"}
    assert replica.rejected == {2: "invalid_writes", 3: "too_large"}


@pytest.mark.parametrize(
    "error",
    [Throttled("ThrottlingException", "slow"), TransportError("no route")],
    ids=["throttled", "network"],
)
def test_an_error_of_the_database_is_never_confirmed(
    opening: Opening, replica: Replica, error: Exception
) -> None:
    """Wherever it strikes: nothing is lost, and the same push succeeds later."""
    replica.mutate("increment", id="a")
    replica.mutate("finish", id="missing")
    sent = 0
    strikes = 0

    def strike(_: Request[Any]) -> None:
        nonlocal sent
        sent += 1
        if sent > strikes:
            raise error

    opening.spy.before = strike
    for strikes in range(3):  # noqa: B007 - the function above reads it
        sent = 0
        with pytest.raises((SyncUnavailable, Throttled, TransportError)):
            replica.push()
    opening.spy.before = None
    replica.sync_all()
    assert replica.data["todo/a"]["count"] == 1
    assert replica.rejected == {2: "NotFound"}


def test_an_unexpected_error_is_repeated_and_then_rejected(replica: Replica) -> None:
    """A bug of a mutator may be gone after a restart, but it must not stop its client for ever."""
    replica.mutate("put", id="before")
    replica.mutate("bug", id="a")
    replica.mutate("put", id="after")
    for _ in range(4):
        with pytest.raises(SyncUnavailable, match="The mutator 'bug' failed"):
            replica.push()
    replica.sync_all()
    assert set(replica.texts) == {"before", "after"}
    assert replica.rejected == {2: "failed"}


def test_a_conflict_runs_the_mutators_again_on_new_items(
    opening: Opening, db: Database, replica: Replica
) -> None:
    other = opening.beside(synced).tenant("acme")
    other.put(Todo(todo_id="a", count=5))
    replica.mutate("increment", id="a")
    opening.spy.once(TransactWriteItems, lambda: other.update(Todo, todo_id="a", add={"count": 10}))
    replica.sync_all()
    assert replica.data["todo/a"]["count"] == 16


def test_a_rejection_holds_only_if_its_reason_still_does(
    opening: Opening, db: Database, replica: Replica
) -> None:
    """What a rejected mutation read is checked in the transaction that confirms it."""
    other = opening.beside(synced).tenant("acme")
    replica.mutate("finish", id="a")

    def create_without_a_log() -> None:
        item = {
            "PK": {"S": "TENANT#acme"},
            "SK": {"S": "TODO#a"},
            "_type": {"S": "Todo"},
            "todo_id": {"S": "a"},
        }
        opening.plant(synced, {**item, "tenant_id": {"S": "acme"}})

    opening.spy.once(TransactWriteItems, create_without_a_log)
    replica.sync_all()
    assert replica.rejected == {}
    assert other.require(Todo, todo_id="a").state == "done"


def test_a_push_of_another_process_is_not_repeated(opening: Opening, db: Database, replica: Replica) -> None:
    twin = Replica(sync_of(opening.beside(synced)))
    for each in (replica, twin):
        each.mutate("increment", id="a")
    opening.spy.once(TransactWriteItems, twin.push)
    replica.sync_all()
    assert replica.data["todo/a"]["count"] == 1


def test_constant_conflicts_end_in_backpressure(opening: Opening, db: Database, replica: Replica) -> None:
    other = opening.beside(synced).tenant("acme")
    replica.mutate("increment", id="a")

    def before(request: Request[Any]) -> None:
        if isinstance(request, TransactWriteItems):
            other.upsert(Todo, todo_id="b", add={"count": 1})

    opening.spy.before = before
    with pytest.raises(SyncUnavailable, match="Other writers"):
        replica.push()
    opening.spy.before = None
    replica.sync_all()
    assert replica.data["todo/a"]["count"] == 1


def test_ids_of_the_future_are_not_run(opening: Opening, replica: Replica) -> None:
    replica.mutate("put", id="a")
    replica.sync_all()
    replica.made = 4
    replica.mutate("put", id="late")
    with pytest.raises(SyncUnavailable, match="missing before"):
        replica.push()
    assert replica.texts == {"a": ""}
    # The record is old enough to be visible everywhere: the server has lost the mutations in between.
    opening.clock.seconds += 60
    assert replica.push() == NOT_FOUND


def test_a_client_that_the_server_does_not_know_starts_again(replica: Replica) -> None:
    replica.made = 6
    replica.mutate("put", id="a")
    assert replica.push() == NOT_FOUND


def test_a_group_belongs_to_its_first_user(replica: Replica) -> None:
    replica.mutate("put", id="a")
    replica.sync_all()
    thief = Replica(replica.sync, user="eve", client="c9")
    thief.mutate("put", id="stolen")
    assert thief.push() == NOT_FOUND
    assert thief.pull() == NOT_FOUND
    elsewhere = Replica(replica.sync, user="eve", tenant="other", client="c9")
    elsewhere.pull()
    assert elsewhere.data == {}


def test_a_push_carries_mutations_of_several_clients(replica: Replica) -> None:
    mutations = [
        {
            "id": number,
            "clientID": client,
            "name": "put",
            "args": {"id": f"{client}{number}"},
            "timestamp": 1.5,
        }
        for number in (1, 2)
        for client in ("c1", "c2")
    ]
    assert replica.push(*mutations) == {}
    replica.pull()
    assert replica.confirmed == {"c1": 2, "c2": 2}
    assert len(replica.texts) == 4


def test_a_long_push_is_done_in_parts(replica: Replica, db: Database) -> None:
    slow = Replica(sync_of(db, budget_seconds=0.0))
    for number in range(200):
        slow.mutate("put", id=str(number))
    for _ in range(2):
        with pytest.raises(SyncUnavailable, match="mutations are left"):
            slow.push()
    slow.sync_all()
    assert len(slow.texts) == 200


def test_versions_that_the_server_does_not_know(db: Database) -> None:
    replica = Replica(sync_of(db, schema_versions={"1", "2"}))
    assert replica.push(pushVersion=0)["versionType"] == "push"
    assert replica.pull(pullVersion=0) == {"error": "VersionNotSupported", "versionType": "pull"}
    assert replica.push(schemaVersion="3") == {"error": "VersionNotSupported", "versionType": "schema"}
    assert replica.pull(schemaVersion="3")["versionType"] == "schema"
    wrongs: list[Any] = [["1"], {}, 1, None]
    for wrong in wrongs:
        assert replica.push(schemaVersion=wrong)["versionType"] == "schema"
    assert replica.push(schemaVersion="2") == {}


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"pushVersion": 1},
        {"pushVersion": 1, "clientGroupID": "g", "mutations": 3},
        {"pushVersion": 1, "clientGroupID": "", "mutations": []},
        {"pushVersion": 1, "clientGroupID": "g" * 300, "mutations": []},
        {"pushVersion": 1, "clientGroupID": "#" * 200, "mutations": []},
        {"pushVersion": 1, "clientGroupID": "\ud800", "mutations": []},
        {"pushVersion": 1, "clientGroupID": "g", "mutations": [3]},
        {"pushVersion": 1, "clientGroupID": "g", "mutations": [{"id": True, "clientID": "c", "name": "put"}]},
        {"pushVersion": 1, "clientGroupID": "g", "mutations": [{"id": -1, "clientID": "c", "name": "put"}]},
        {"pushVersion": 1, "clientGroupID": "g", "mutations": [{"id": 1.5, "clientID": "c", "name": "put"}]},
        {"pushVersion": 1, "clientGroupID": "g", "mutations": [{"id": 1, "clientID": 3, "name": "put"}]},
        {"pushVersion": 1, "clientGroupID": "g", "mutations": [{"id": 1, "clientID": "c", "name": None}]},
        {"pushVersion": 1, "clientGroupID": "g", "mutations": [{"id": 1, "clientID": "c", "name": "\ud800"}]},
    ],
)
def test_a_body_that_no_client_sends_is_rejected(replica: Replica, body: Any) -> None:
    with pytest.raises(DataError, match="Malformed sync request"):
        replica.sync.push("acme", "ann", body)


@pytest.mark.in_process
def test_a_crowd_on_one_space_loses_and_repeats_nothing(db: Database) -> None:
    """8 clients, each in a separate group, push 5 increments one by one, and resend each push."""
    sync = sync_of(db)

    def run(number: int) -> Replica:
        replica = Replica(sync, group=f"g{number}", client=f"c{number}", user=f"u{number}")
        for _ in range(5):
            replica.mutate("increment", id="shared")
            replica.push()
            replica.push()
        replica.pull()
        return replica

    with ThreadPoolExecutor(8) as pool:
        replicas = list(pool.map(run, range(8)))
    for replica in replicas:
        replica.pull()
        assert replica.queue == []
        assert replica.data["todo/shared"]["count"] == 40


def test_finer_spaces_are_written_together_and_read_apart(db: Database) -> None:
    """A user who does not read a space can write to it, and the mutation is still confirmed."""
    acme = db.tenant("acme")
    for name in ("p", "q"):
        acme.create(Project(project_id=name))
    sync = sync_of(db, view=lambda _store, user: ["project/p"] if user == "ann" else [])
    ann, bob = Replica(sync), Replica(sync, user="bob", group="g2", client="c2")
    ann.mutate("note", project="p", id="1")
    ann.mutate("note", project="q", id="2")
    bob.mutate("note", project="q", id="3")
    bob.mutate("reject", id="x")
    for each in (ann, bob):
        each.sync_all()
    assert set(ann.data) == {"project/p", "note/p/1"}
    assert set(bob.data) == {"control/rejected/c2/2"}
    assert acme.require(Project, project_id="q").notes == 2
    assert [note.note_id for note in acme.page(Note.key.query(project_id="q")).items] == ["2", "3"]


def test_mutators_are_typed_and_named_once() -> None:
    own = Mutators()

    @own.register("one")
    def one(db: Store, args: int) -> None: ...

    from solotable.errors import DeclarationError

    with pytest.raises(DeclarationError, match="registered twice"):
        own.register("one")(one)
    with pytest.raises(DeclarationError, match="has no type for 'args'"):
        own.register("two")(lambda db, args: None)
    with pytest.raises(DeclarationError, match="got 1 parameters"):
        own.register("three")(lambda db: None)
    assert (list(own), len(own)) == (["one"], 1)
    with pytest.raises(Rejected, match="no mutator 'four'"):
        own.get("four")


def test_a_mutation_that_was_done_before_a_reset_is_confirmed(replica: Replica) -> None:
    """The answer of its push was lost, so no pull has confirmed it, and no new mutation follows."""
    replica.mutate("put", id="a")
    replica.push()
    replica.sync.reset("acme")
    replica.pull()
    assert replica.queue
    assert replica.push() == {}
    replica.pull()
    assert replica.queue == []
    assert replica.push(*_sent(replica, 1)) == {}
    assert replica.pull()["patch"] == []


def _sent(replica: Replica, number: int) -> list[dict[str, Any]]:
    return [{"id": number, "clientID": replica.client, "name": "put", "args": {"id": "a"}, "timestamp": 1.5}]


def test_a_reset_skips_no_id_of_a_client_that_has_lost_nothing(replica: Replica) -> None:
    for name in ("a", "b", "c"):
        replica.mutate("put", id=name)
    first, second, third = replica.queue
    replica.push(first)
    replica.sync.reset("acme")
    with pytest.raises(SyncUnavailable, match="missing before"):
        replica.push(first, third)
    replica.push(first, second, third)
    replica.pull()
    assert set(replica.texts) == {"a", "b", "c"}
    assert replica.confirmed == {"c1": 3}


def test_a_push_that_does_not_end_stops_no_other_for_long(db: Database) -> None:
    own = Mutators()
    began, end = threading.Event(), threading.Event()

    @own.register("stick")
    def stick(store: Store, args: dict[str, Any]) -> None:
        began.set()
        assert end.wait(HANG_SECONDS)

    @own.register("put")
    def put(store: Store, args: dict[str, Any]) -> None:
        store.put(Todo(todo_id="a"))

    sync = sync_of(db, mutators=own, budget_seconds=0.05)
    stuck, other = Replica(sync), Replica(sync, group="g2", client="c2")
    elsewhere = Replica(sync, tenant="other")
    stuck.mutate("stick")
    other.mutate("put")
    elsewhere.mutate("put")
    with ThreadPoolExecutor(1) as pool:
        push = pool.submit(stuck.push)
        try:
            assert began.wait(HANG_SECONDS)
            for _ in range(3):
                with pytest.raises(SyncUnavailable, match="has not ended"):
                    other.push()
            elsewhere.sync_all()
        finally:
            end.set()
        assert push.result(HANG_SECONDS) == {}
    other.sync_all()
    assert other.texts == {"a": ""}


def test_an_async_mutator_that_does_not_end_is_cancelled_and_then_rejected(db: Database) -> None:
    own = Mutators()

    @own.register("stick")
    async def stick(store: AsyncStore, args: dict[str, Any]) -> None:
        await asyncio.Event().wait()

    replica = Replica(sync_of(db, mutators=own, budget_seconds=0.01))
    replica.mutate("stick")
    for _ in range(4):
        with pytest.raises(SyncUnavailable, match="failed"):
            replica.push()
    replica.sync_all()
    assert replica.rejected == {1: "failed"}


def test_a_push_of_too_many_clients_is_done_in_part(
    opening: Opening, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each client costs a read, so a body of 10 MB must not cost 100,000."""
    monkeypatch.setattr(pusher, "_MOST_CLIENTS", 5)
    mutations = [
        {"id": 1, "clientID": f"c{number}", "name": "put", "args": {"id": "a"}, "timestamp": 1.5}
        for number in range(7)
    ]
    opening.spy.sent.clear()
    with pytest.raises(SyncUnavailable, match="takes 5 clients, got 7"):
        replica.push(*mutations)
    parts = [part for each in opening.spy.of(BatchGetItem) for part in each.tables]
    assert len([key for part in parts for key in part.keys]) == 6
    replica.pull()
    assert len(replica.confirmed) == 5
    assert replica.push(*(each for each in mutations if each["clientID"] not in replica.confirmed)) == {}
    replica.pull()
    assert len(replica.confirmed) == 7


def test_a_reason_that_quotes_a_broken_text_is_confirmed(db: Database) -> None:
    own = Mutators()

    @own.register("refuse")
    def refuse(store: Store, args: dict[str, Any]) -> None:
        raise Rejected(f"There is no {args['name']}.", code=args["name"])

    replica = Replica(sync_of(db, mutators=own))
    replica.mutate("refuse", name="half of \ud83d")
    replica.sync_all()
    assert replica.data["control/rejected/c1/1"]["reason"] == "There is no half of ?."


def test_a_mutation_that_changes_nothing_is_confirmed(
    opening: Opening, db: Database, replica: Replica
) -> None:
    """The item gets no new version, and the values of another writer in between are replaced."""
    for _ in range(2):
        replica.mutate("asyncPut", id="a", text="same")
        replica.sync_all()
    assert opening.only(Todo)["_sv"] == {"N": "1"}
    other = opening.beside(synced).tenant("acme")
    opening.spy.once(TransactWriteItems, lambda: other.update(Todo, todo_id="a", set={"text": "other"}))
    replica.mutate("asyncPut", id="a", text="same")
    replica.sync_all()
    assert replica.texts == {"a": "same"}
