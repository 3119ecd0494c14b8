"""The change feed: typed, at least once, with places that never go back, and loud about losses."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from solotable import Checkpoint, Database, Table
from solotable._protocol.requests import Control
from solotable.errors import DataError, DeclarationError, FeedTrimmed, TenantViolation, UnknownEntity

from .blog import Draft, Note, Post, blog
from .models import surveyor
from .opening import Opening

HOUR = 3600.0


@pytest.fixture
def db(opening: Opening) -> Database:
    return opening(blog)


def texts(changes: Any) -> list[str]:
    return [change.current.text for change in changes]


def note(db: Database, *names: str) -> None:
    for name in names:
        db.tenant("acme").put(Note(note_id=name, text=name))


def test_changes_are_entities_with_what_was_and_what_is(db: Database) -> None:
    acme = db.tenant("acme")
    post = acme.create(Post(post_id="p", title="One"))
    changed = acme.update(post, set={"title": "Two"})
    acme.delete(changed)
    db.tenant("other").put(Note(note_id="n"))
    first, second, third, fourth = db.changes()
    assert (first.kind, first.before, first.after) == ("inserted", None, post)
    assert (second.kind, second.before, second.after) == ("modified", post, changed)
    assert (third.kind, third.before, third.after) == ("removed", changed, None)
    assert (fourth.entity, fourth.tenant, fourth.by_ttl, fourth.table) == (Note, "other", False, "Blog")
    sequences = [int(each.sequence) for each in (first, second, third, fourth)]
    assert sequences == sorted(set(sequences))


def test_what_is_deleted_softly_is_removed_and_comes_back(db: Database) -> None:
    acme = db.tenant("acme")
    acme.delete(acme.create(Draft(draft_id="d")))
    acme.undelete(Draft, draft_id="d")
    assert [change.kind for change in db.changes()] == ["inserted", "removed", "inserted"]


def test_only_the_entities_that_were_asked_for_are_given(db: Database) -> None:
    db.tenant("acme").create(Post(post_id="p", title="One"))
    note(db, "a")
    assert [change.after for change in db.changes(Note)] == [
        Note(tenant_id="acme", note_id="a", text="a"),
    ]


def test_what_was_not_committed_is_delivered_again_with_the_same_sequence(db: Database) -> None:
    note(db, "a", "b", "c")
    feed = db.changes(consumer="mail")
    seen = []
    for change in feed:
        seen.append(change)
        if change.current.text == "b":  # type: ignore[attr-defined]  # only notes were written
            feed.commit()
    assert [each.sequence for each in db.changes(consumer="mail")] == [seen[2].sequence]
    assert seen[0].time.tzinfo is not None
    again = db.changes(consumer="mail")
    assert texts(again) == ["c"]
    again.commit()
    assert texts(db.changes(consumer="mail")) == []


def test_consumers_do_not_know_each_other(db: Database) -> None:
    note(db, "a")
    one = db.changes(consumer="one")
    assert texts(one) == ["a"]
    one.commit()
    assert texts(db.changes(consumer="two")) == ["a"]
    assert texts(db.changes(consumer="one")) == []
    assert texts(db.changes()) == ["a"]


def test_a_loop_goes_on_where_the_last_one_has_ended(db: Database) -> None:
    feed = db.changes(consumer="mail")
    note(db, "a")
    assert texts(feed) == ["a"]
    assert texts(feed) == []
    note(db, "b")
    assert texts(feed) == ["b"]


def test_of_two_workers_the_slower_never_takes_the_place_back(db: Database) -> None:
    note(db, "a", "b", "c")
    slow, fast = db.changes(consumer="mail"), db.changes(consumer="mail")
    first = next(iter(slow))
    assert texts(fast) == ["a", "b", "c"]
    fast.commit()
    slow.commit()
    assert first.current.text == "a"  # type: ignore[attr-defined]
    assert texts(db.changes(consumer="mail")) == []
    # The slower one learns of it and skips what the other has handled.
    assert texts(slow) == []
    note(db, "d")
    assert texts(slow) == ["d"]


def test_commits_of_many_workers_only_go_forward(db: Database, opening: Opening) -> None:
    def place() -> str:
        (mark,) = [item for item in opening.raw(blog) if "order" in item]
        return str(mark["order"]["S"])

    note(db, *"abcdefgh")
    workers = [db.changes(consumer="mail") for _ in range(4)]
    loops = [iter(worker) for worker in workers]
    for steps, worker in zip((5, 2, 7, 1), (0, 1, 2, 3), strict=True):
        for _ in range(steps):
            next(loops[worker])
    workers[0].commit()
    places = [place()]
    for worker in (1, 2, 3):
        workers[worker].commit()
        places.append(place())
    assert places == sorted(places)
    assert texts(db.changes(consumer="mail")) == ["h"]


def test_the_latest_begins_with_what_comes(db: Database) -> None:
    note(db, "before")
    feed = db.changes(since="latest")
    assert texts(feed) == []
    note(db, "after")
    assert texts(feed) == ["after"]


def test_a_checkpoint_can_be_kept_as_text(db: Database) -> None:
    note(db, "a", "b")
    feed = db.changes()
    assert next(iter(feed)).current.text == "a"  # type: ignore[attr-defined]
    kept = feed.checkpoint.render()
    assert texts(db.changes(since=Checkpoint.parse(kept))) == ["b"]
    with pytest.raises(DataError):
        Checkpoint.parse("[]")


def test_a_tag_that_no_entity_has_is_refused_until_it_is_skipped(db: Database, opening: Opening) -> None:
    note(db, "a")
    opening.plant(blog, {"PK": {"S": "x"}, "SK": {"S": "x"}, "_type": {"S": "Stranger"}})
    note(db, "b")
    feed = db.changes(consumer="mail")
    for _ in range(2):
        with pytest.raises(UnknownEntity, match="skip"):
            list(feed)
        feed.commit()
    assert texts(db.changes(consumer="mail", unknown="skip")) == ["b"]


def test_a_feed_needs_a_stream_a_consumer_for_commits_and_no_tenant(db: Database, opening: Opening) -> None:
    with pytest.raises(TenantViolation):
        db.tenant("acme").changes()
    with pytest.raises(DeclarationError, match="consumer"):
        db.changes().commit()
    with pytest.raises(DeclarationError, match="stream=True"):
        opening(surveyor).changes()
    with pytest.raises(DataError, match="time zone"):
        list(db.changes(since=datetime(2030, 1, 1)))


@pytest.mark.in_process
def test_since_a_moment(db: Database, opening: Opening) -> None:
    opening.clock.seconds += 1
    note(db, "a")
    opening.clock.seconds += 7
    note(db, "b")
    assert texts(db.changes(since=opening.clock.at(5))) == ["b"]
    opening.clock.seconds += 30 * HOUR
    with pytest.raises(FeedTrimmed, match="24 hours"):
        list(db.changes(since=opening.clock.at(5)))


@pytest.mark.in_process
def test_the_latest_of_a_consumer_that_read_nothing_yet_is_not_lost(db: Database, opening: Opening) -> None:
    opening.clock.seconds += 1
    note(db, "before")
    opening.clock.seconds += 60
    assert texts(db.changes(consumer="mail", since="latest")) == []
    opening.clock.seconds += 60
    note(db, "after")
    assert texts(db.changes(consumer="mail", since="latest")) == ["after"]


@pytest.mark.in_process
def test_removals_by_time_to_live_are_marked(db: Database, opening: Opening) -> None:
    feed = db.changes(Post)
    post = (
        Post(tenant_id="acme", post_id="p", title="One")
        .plan()
        .encode(Post(tenant_id="acme", post_id="p", title="One").__dict__)
    )
    opening.plant(blog, {**post, "expires_at": {"N": str(int(opening.clock()) + 10)}})
    opening.clock.seconds += 60
    opening.engine.sweep()  # type: ignore[attr-defined]  # the embedded engine's own
    assert [(change.kind, change.by_ttl) for change in feed] == [("inserted", False), ("removed", True)]


@pytest.mark.in_process
def test_an_expired_iterator_is_replaced(db: Database, opening: Opening) -> None:
    feed = db.changes(consumer="mail")
    note(db, "a")
    assert texts(feed) == ["a"]
    opening.clock.seconds += HOUR
    note(db, "b")
    assert texts(feed) == ["b"]


@pytest.mark.in_process
def test_an_expired_iterator_at_the_latest_loses_nothing(db: Database, opening: Opening) -> None:
    feed = db.changes(since="latest")
    assert texts(feed) == []
    opening.clock.seconds += HOUR
    note(db, "a")
    assert texts(feed) == ["a"]


@pytest.mark.in_process
def test_a_consumer_that_was_away_too_long_gets_feed_trimmed(db: Database, opening: Opening) -> None:
    note(db, "a")
    feed = db.changes(consumer="mail")
    assert texts(feed) == ["a"]
    feed.commit()
    read_at = opening.clock.at(0)
    opening.clock.seconds += HOUR
    note(db, "lost")
    opening.clock.seconds += 30 * HOUR
    note(db, "b")
    with pytest.raises(FeedTrimmed) as refused:
        list(db.changes(consumer="mail"))
    assert refused.value.consumer == "mail"
    assert refused.value.since is not None
    assert abs(refused.value.since - read_at) < timedelta(seconds=1)
    assert "restart=True" in str(refused.value)
    assert texts(db.changes(consumer="mail", since="earliest", restart=True)) == ["b"]


@pytest.mark.in_process
def test_silence_is_not_taken_for_a_loss(db: Database, opening: Opening) -> None:
    note(db, "a")
    feed = db.changes(consumer="mail")
    assert texts(feed) == ["a"]
    feed.commit()
    for _ in range(3):
        opening.clock.seconds += 20 * HOUR
        assert texts(db.changes(consumer="mail")) == []
    note(db, "b")
    assert texts(db.changes(consumer="mail")) == ["b"]


@pytest.mark.in_process
def test_a_consumer_of_what_hardly_changes_notes_its_place(db: Database, opening: Opening) -> None:
    feed = db.changes(Post, consumer="mail")
    assert list(feed) == []
    for hour in range(30):
        opening.clock.seconds += HOUR
        note(db, f"n{hour}")
        assert list(feed) == []
    opening.clock.seconds += 20 * HOUR
    assert list(db.changes(Post, consumer="mail")) == []


@pytest.mark.in_process
def test_a_stream_that_was_off_is_read_to_its_end_and_then_rejected(db: Database, opening: Opening) -> None:
    def turn(**stream: Any) -> None:
        members = {"TableName": opening.prefix + "Blog", "StreamSpecification": stream}
        opening.engine.handle(Control(operation="UpdateTable", members=members))

    feed = db.changes(consumer="mail")
    note(db, "a")
    assert texts(feed) == ["a"]
    feed.commit()
    note(db, "b")
    turn(StreamEnabled=False)
    note(db, "lost")
    turn(StreamEnabled=True, StreamViewType="NEW_AND_OLD_IMAGES")
    note(db, "c")
    with pytest.raises(FeedTrimmed, match="disabled"):
        texts(db.changes(consumer="mail"))
    rest = iter(db.changes(consumer="mail"))
    assert next(rest).current.text == "b"  # type: ignore[attr-defined]
    with pytest.raises(FeedTrimmed):
        next(rest)
    assert texts(db.changes(consumer="mail", restart=True)) == ["c"]


@pytest.mark.in_process
def test_a_table_that_lacks_its_stream_gets_it_when_it_is_opened(opening: Opening) -> None:
    opening(Table("Plain"))
    opening(Table("Plain", stream=True))
    told = opening.engine.handle(
        Control(operation="DescribeTable", members={"TableName": opening.prefix + "Plain"})
    )
    assert told["Table"]["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"


def test_following_waits_for_more(db: Database, opening: Opening) -> None:
    note(db, "a")
    looks = 0

    def sleep(_seconds: float) -> None:
        nonlocal looks
        looks += 1
        opening.beside(blog).tenant("acme").put(Note(note_id=f"n{looks}", text=f"n{looks}"))

    opening.spy.sleep = sleep
    feed = iter(db.changes(follow=True))
    assert [next(feed).current.text for _ in range(3)] == ["a", "n1", "n2"]  # type: ignore[attr-defined]
