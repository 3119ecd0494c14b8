"""The outbox: an event in the mutation's own transaction, delivered at least once, kept once."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import pytest

from solotable import ANY, FROM_SCOPE, Actor, Database, Entity, Event, Key, Outbox, Store, Table, Version
from solotable._protocol.requests import Query, TransactWriteItems
from solotable.errors import DataError, DeclarationError, FeedTrimmed, TransactionFailed, VersionConflict
from solotable.jobs.deliver import dead, deliver, redeliver, waiting
from solotable.jobs.sinks import AuditSink, EventBridgeSink, JsonLinesSink, Sink

from .blog import AuditRecord, Draft, Member, Note, Post, blog
from .opening import Opening

ANN = Actor(id="u1", name="Ann", email="ann@example.org")


@pytest.fixture
def db(opening: Opening) -> Database:
    return opening(blog)


@pytest.fixture
def beside(opening: Opening, db: Database) -> Database:
    """The store of the process that delivers: jobs are blocking."""
    return opening.beside(blog)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solotable.jobs.deliver._FIRST_WAIT_SECONDS", 0.0)


def events(db: Database, consumer: str = "look") -> list[Event]:
    found: list[Event] = []
    deliver(db, [found.append], consumer=consumer)
    return found


def create_beside(store: Store, post: Post, note_id: str) -> None:
    with store.transaction() as tx:
        tx.create(post)
        tx.check(Note, note_id=note_id)


def three(db: Database) -> None:
    acme = db.tenant("acme").acting(ANN, request_id="r-7")
    post = acme.create(Post(post_id="p", title="Hello", tags={"a"}))
    acme.update(post, set={"status": "live"})
    acme.delete(Post, post_id="p", version=2)


def test_every_mutation_leaves_one_event_that_can_be_read_alone(db: Database, beside: Database) -> None:
    three(db)
    created, updated, deleted = events(beside)
    assert (created.verb, updated.verb, deleted.verb) == ("created", "updated", "deleted")
    assert created.tenant == "acme"
    assert created.request_id == "r-7"
    assert created.target.model_dump() == {"entity": "Post", "key": {"post_id": "p"}, "title": "Hello"}
    assert created.snapshot["tags"] == {"a"}
    assert created.changes == {}
    assert {name: each.model_dump() for name, each in updated.changes.items()} == {
        "status": {"before": "draft", "after": "live"}
    }
    assert (updated.snapshot["status"], updated.version) == ("live", 2)
    assert deleted.snapshot["title"] == "Hello"
    assert len({event.id for event in (created, updated, deleted)}) == 3


def test_s0_24_the_actor_is_readable(db: Database, beside: Database) -> None:
    three(db)
    assert {event.actor for event in events(beside)} == {ANN}


def test_s0_25_the_target_has_a_title(db: Database, beside: Database) -> None:
    three(db)
    assert {event.target.title for event in events(beside)} == {"Hello"}


def test_s0_26_an_audit_record_is_read_without_another_query(
    db: Database, beside: Database, opening: Opening
) -> None:
    three(db)
    deliver(beside, [AuditSink()])
    opening.spy.sent.clear()
    page = db.tenant("acme").audit()
    assert [type(request) for request in opening.spy.sent] == [Query]
    (updated,) = [event for event in page if event.verb == "updated"]
    assert (updated.actor, updated.target.title, updated.snapshot["status"]) == (ANN, "Hello", "live")


def test_s0_10_the_audit_trail_of_a_tenant_is_one_query_newest_first(
    db: Database, beside: Database, opening: Opening
) -> None:
    acme = db.tenant("acme")
    for number in range(5):
        opening.clock.seconds += 1
        acme.create(Post(post_id=f"p{number}", title=f"T{number}"))
    db.tenant("other").create(Post(post_id="theirs", title="Theirs"))
    deliver(beside, [AuditSink()])
    first = acme.audit(limit=3)
    assert [event.target.title for event in first] == ["T4", "T3", "T2"]
    rest = acme.audit(limit=3, cursor=first.cursor)
    assert [event.target.title for event in rest] == ["T1", "T0"]
    keys = sorted(item["SK"]["S"] for item in opening.raw(blog) if item["_type"] == {"S": "_audit"})
    assert all(key.startswith("AUDIT#20") for key in keys)
    assert [event.target.title for event in db.tenant("other").audit()] == ["Theirs"]


def test_c0_12_an_event_is_in_the_transaction_of_its_mutation(db: Database, opening: Opening) -> None:
    opening.spy.sent.clear()
    db.tenant("acme").create(Post(post_id="p", title="Hello"))
    (sent,) = opening.spy.of(TransactWriteItems)
    assert len(sent.actions) == 2


def test_c0_12_a_mutation_that_fails_leaves_no_event(db: Database, beside: Database) -> None:
    acme = db.tenant("acme")
    post = acme.create(Post(post_id="p", title="Hello"))
    acme.update(post, set={"title": "Other"})
    with pytest.raises(VersionConflict):
        acme.update(post, set={"title": "Late"})
    with pytest.raises(TransactionFailed):
        create_beside(acme, Post(post_id="q", title="New"), "missing")
    assert [event.target.title for event in events(beside)] == ["Hello", "Other"]


def test_c0_12_a_key_that_is_created_again_has_new_events(db: Database, beside: Database) -> None:
    # The clock stands still and versions begin again: only the id tells the two lives apart.
    three(db)
    three(db)
    deliver(beside, [AuditSink()])
    assert len({event.id for event in db.tenant("acme").audit()}) == 6


def test_c0_12_an_event_that_is_delivered_twice_is_kept_once(db: Database, beside: Database) -> None:
    three(db)
    deliver(beside, [AuditSink(), AuditSink(AuditRecord.of)], consumer="one")
    deliver(beside, [AuditSink(), AuditSink(AuditRecord.of)], consumer="two")
    assert len(db.tenant("acme").audit()) == 3
    kept = list(beside.admin().scan(AuditRecord, budget=1000))
    assert len(kept) == 3
    assert {(each.email, each.title) for each in kept} == {("ann@example.org", "Hello")}


def test_s0_23_the_request_neither_waits_for_nor_fails_on_delivery(db: Database, beside: Database) -> None:
    def broken(event: Event) -> None:
        raise OSError("the bus is down")

    three(db)
    assert deliver(beside, [broken], attempts=1).dead == 3
    three(db)
    assert len(events(beside)) == 6


def test_what_is_deleted_softly_and_had_back_leaves_its_events(db: Database, beside: Database) -> None:
    acme = db.tenant("acme")
    acme.delete(acme.create(Draft(draft_id="d")))
    acme.undelete(Draft, draft_id="d")
    assert [event.verb for event in events(beside)] == ["created", "deleted", "undeleted"]


def test_threads_that_write_the_same_entity_leave_one_event_of_each_version(
    db: Database, beside: Database
) -> None:
    store = beside.tenant("acme")
    store.create(Post(post_id="p", title="start"))

    def change(number: int) -> None:
        store.update(Post, post_id="p", set={"title": str(number)}, version=ANY)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(change, range(12)))
    found = events(beside)
    assert sorted(event.version or 0 for event in found) == list(range(1, 14))
    titles = {event.version: event.target.title for event in found}
    # Each event says what the one before it has left.
    for event in found:
        if event.verb == "updated" and event.version is not None:
            assert event.changes["title"].before == titles[event.version - 1]


def test_a_snapshot_holds_only_the_fields_that_were_named(db: Database, beside: Database) -> None:
    acme = db.tenant("acme").acting(ANN)
    member = acme.create(Member(member_id="m", name="Bo", password_hash="x1"))
    acme.update(member, set={"password_hash": "x2"})
    created, updated = events(beside)
    assert created.snapshot == {"name": "Bo"}
    assert (updated.snapshot, updated.changes) == ({"name": "Bo"}, {})


def test_an_actor_that_is_required_must_be_there(db: Database, beside: Database) -> None:
    with pytest.raises(DataError, match="acting"):
        db.tenant("acme").create(Member(member_id="m", name="Bo"))
    assert events(beside) == []
    assert type(db.acting(ANN)) is type(db)


def test_an_event_ends_by_the_time_to_live(db: Database, opening: Opening) -> None:
    db.tenant("acme").acting(ANN).create(Member(member_id="m", name="Bo"))
    (event,) = [item for item in opening.raw(blog) if item["_type"] == {"S": "_outbox"}]
    assert int(event["expires_at"]["N"]) == int(opening.clock()) + 30 * 24 * 3600


def test_a_sink_that_fails_for_a_while_loses_nothing(db: Database, beside: Database) -> None:
    three(db)
    taken: list[str] = []
    asked = 0

    def flaky(event: Event) -> None:
        nonlocal asked
        asked += 1
        if asked % 3:
            raise OSError("not now")
        taken.append(event.verb)

    done = deliver(beside, [flaky])
    assert (taken, done.events, done.dead) == (["created", "updated", "deleted"], 3, 0)


def test_a_job_that_dies_in_a_sink_keeps_its_place(db: Database, beside: Database) -> None:
    three(db)

    def deadly(event: Event) -> None:
        if event.verb == "updated":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deliver(beside, [deadly], consumer="job")
    assert "updated" in [event.verb for event in events(beside, "job")]


def test_an_event_that_a_sink_never_takes_becomes_a_dead_letter(
    db: Database, beside: Database, caplog: pytest.LogCaptureFixture
) -> None:
    three(db)
    taken: list[str] = []

    def picky(event: Event) -> None:
        if event.verb == "updated":
            raise ValueError("cannot read it")
        taken.append(event.verb)

    with caplog.at_level(logging.ERROR):
        done = deliver(beside, [picky], attempts=3)
    assert (done.events, done.dead, taken) == (3, 1, ["created", "deleted"])
    assert "in every attempt" in caplog.text
    (letter,) = dead(beside)
    assert (letter.sink, letter.attempts, letter.error) == ("picky", 3, "ValueError: cannot read it")
    assert redeliver(beside, [picky]).dead == 1
    mended: list[Event] = []

    def picky_(event: Event) -> None:
        mended.append(event)

    picky_.__name__ = "picky"
    assert redeliver(beside, [picky_]).events == 1
    assert [event.id for event in mended] == [letter.event.id]
    assert dead(beside) == []


def test_sinks_get_eventbridge_entries_and_lines(db: Database, beside: Database, tmp_path: Path) -> None:
    three(db)
    entries: list[dict[str, Any]] = []
    sinks: list[Sink] = [
        EventBridgeSink(entries.append, source="blog", bus="main"),
        JsonLinesSink(tmp_path / "log.jsonl"),
    ]
    deliver(beside, sinks)
    first = entries[0]
    assert (first["Source"], first["DetailType"], first["EventBusName"]) == ("blog", "Post created", "main")
    assert first["Resources"] == ["Blog/Post/p"]
    detail = json.loads(first["Detail"])
    assert detail["actor"]["email"] == "ann@example.org"
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["verb"] for line in lines] == ["created", "updated", "deleted"]
    assert lines[0] == detail


def test_what_waits_can_be_counted_without_delivering_it(db: Database, beside: Database) -> None:
    three(db)
    assert (waiting(beside), waiting(beside)) == (3, 3)
    deliver(beside, [AuditSink()])
    assert waiting(beside) == 0


@pytest.mark.in_process
def test_after_a_loss_the_outbox_itself_is_delivered(
    db: Database, beside: Database, opening: Opening
) -> None:
    assert deliver(beside, [AuditSink()]).events == 0
    three(db)
    opening.clock.seconds += 30 * 3600
    three(db)
    with pytest.raises(FeedTrimmed, match="--recover"):
        deliver(beside, [AuditSink()])
    deliver(beside, [AuditSink()], recover=True)
    assert len(db.tenant("acme").audit()) == 6
    assert deliver(beside, [AuditSink()]).events == 0


@pytest.mark.parametrize(
    "settings, outbox, text",
    [
        ({}, Outbox(title="headline"), "not a field"),
        ({"stream": False}, Outbox(), "stream=True"),
        ({"ttl": None}, Outbox(), "days=None"),
        ({}, Outbox(days=1), "2 days"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(
    settings: dict[str, Any], outbox: Outbox, text: str
) -> None:
    table = Table("Tab", **{"ttl": "expires_at", "stream": True, **settings})
    with pytest.raises(DeclarationError, match=text):

        class Page(Entity, table=table):
            key = Key("PAGE#{page_id}", "PAGE")
            events = outbox
            page_id: str
            title: str = ""
            version: Annotated[int, Version()] = 0


def test_an_outbox_needs_a_version() -> None:
    declared = Table("Other", tenant="tenant_id", ttl="expires_at", stream=True)
    with pytest.raises(DeclarationError, match="version"):

        class Page(Entity, table=declared):
            key = Key("TENANT#{tenant_id}", "PAGE#{page_id}")
            events = Outbox()
            tenant_id: str = FROM_SCOPE
            page_id: str
