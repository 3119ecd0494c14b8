"""Events of the portal: append-only, by day and by user, at the server's time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from solotable.errors import CursorRejected
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.entities.events import DAY_SHARDS, EVENT_DAYS, ActivityEvent
from solotable.systems.portal.errors import Forbidden
from solotable.systems.portal.events.recording import MOST_EVENTS, EventDraft, EventLog
from solotable.systems.portal.tables import events

from .studio import Studio


def record(portal: Studio, count: int, *, user_id: str = "vic", **fields: Any) -> list[ActivityEvent]:
    """Record events, one a minute."""
    made = []
    for _ in range(count):
        portal.pass_time(minutes=1)
        made.append(portal.run(EventLog(portal.db).record("content_view", user_id=user_id, **fields)))
    return made


def ids(found: Iterable[ActivityEvent]) -> list[str]:
    return [event.event_id for event in found]


def follow(portal: Studio, day: date, limit: int) -> list[list[str]]:
    """Return the ids of each page of a day."""
    pages, cursor = [], None
    while True:
        page = portal.run(EventLog(portal.db).of_day(day, limit=limit, cursor=cursor))
        pages.append(ids(page))
        cursor = page.cursor
        if cursor is None:
            return pages


def test_s3_19_an_event_is_in_the_partition_of_its_day_under_its_time_and_id(portal: Studio) -> None:
    [event] = record(portal, 1, content_id="c1")
    [item] = [item for item in portal.raw(events) if "event_name" in item]
    day = f"{event.timestamp:%Y-%m-%d}"
    assert item["date_bucket"]["S"].startswith(f"{day}#")
    assert item["ts#event_id"]["S"] == f"{event.timestamp:%Y-%m-%dT%H:%M:%S.%fZ}#{event.event_id}"
    assert item["timestamp"]["S"].startswith(day)
    assert (item["user_id"]["S"], item["content_id"]["S"]) == ("vic", "c1")


def test_s3_19_an_event_needs_neither_a_user_nor_content(portal: Studio) -> None:
    event = portal.run(EventLog(portal.db).record("job.ran"))
    [stored] = portal.run(EventLog(portal.db).of_day(event.timestamp.date()))
    assert stored == event
    assert stored.user_id is None


def test_s3_20_c3_8_the_events_of_a_day_come_newest_first_over_its_shards(portal: Studio) -> None:
    made = record(portal, 23)
    day = made[0].timestamp.date()
    pages = follow(portal, day, 5)
    assert [each for page in pages for each in page] == ids(reversed(made))
    assert [len(page) for page in pages] == [5, 5, 5, 5, 3]
    buckets = {item["date_bucket"]["S"] for item in portal.raw(events) if "event_name" in item}
    assert 1 < len(buckets) <= DAY_SHARDS


def test_s3_20_a_cursor_of_one_day_is_rejected_for_another(portal: Studio) -> None:
    made = record(portal, 3)
    day = made[0].timestamp.date()
    cursor = portal.run(EventLog(portal.db).of_day(day, limit=2)).cursor
    assert cursor is not None
    with pytest.raises(CursorRejected):
        portal.run(EventLog(portal.db).of_day(day - timedelta(days=1), cursor=cursor))


def test_s3_21_c3_9_the_events_of_a_user_are_one_query_of_the_index(portal: Studio) -> None:
    made = record(portal, 4)
    record(portal, 2, user_id="ann")
    portal.sent()
    page = portal.run(EventLog(portal.db).of_user("vic", limit=3))
    assert ids(page) == ids(reversed(made))[:3]
    assert portal.sent() == ["Query"]
    rest = portal.run(EventLog(portal.db).of_user("vic", limit=3, cursor=page.cursor))
    assert ids(rest) == [made[0].event_id]
    assert rest.cursor is None


def test_s3_22_an_event_is_neither_changed_nor_replaced_nor_deleted(portal: Studio) -> None:
    [event] = record(portal, 1)
    portal.sent()
    key: dict[str, Any] = {"timestamp": event.timestamp, "event_id": event.event_id}
    for write in (
        portal.db.put(event),
        portal.db.update(event, set={"event_name": "other"}),
        portal.db.update(ActivityEvent, **key, set={"event_name": "other"}),
        portal.db.delete(event),
        portal.db.delete(ActivityEvent, **key),
    ):
        with pytest.raises(Forbidden, match="append-only"):
            portal.run(write)
    assert portal.sent() == []
    [stored] = portal.run(EventLog(portal.db).of_day(event.timestamp.date()))
    assert stored == event


def test_s3_22_a_transaction_rejects_changes_of_events_too(portal: Studio) -> None:
    [event] = record(portal, 1)

    async def delete() -> None:
        async with portal.db.transaction() as tx:
            tx.delete(event)

    with pytest.raises(Forbidden):
        portal.run(delete())


def test_s3_22_two_events_of_one_moment_are_both_stored(portal: Studio) -> None:
    log = EventLog(portal.db)
    made = [portal.run(log.record("content_view", user_id="vic")) for _ in range(5)]
    assert len({event.timestamp for event in made}) == 1
    stored = portal.run(log.of_day(made[0].timestamp.date()))
    assert sorted(ids(stored)) == sorted(ids(made))


def test_s3_23_an_event_ends_with_its_time_to_live(portal: Studio) -> None:
    [event] = record(portal, 1)
    assert event.expires_at == event.timestamp.replace(microsecond=0) + timedelta(days=EVENT_DAYS)
    [item] = [item for item in portal.raw(events) if "event_name" in item]
    assert item["expires_at"] == {"N": str(int(event.expires_at.timestamp()))}
    portal.pass_time(days=EVENT_DAYS + 1)
    assert list(portal.run(EventLog(portal.db).of_user("vic"))) == []


@pytest.mark.parametrize("field", ["timestamp", "user_id", "event_id", "date_bucket", "expires_at"])
def test_c3_10_a_client_gives_neither_the_time_nor_the_user_of_an_event(field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        EventDraft.model_validate({"event_name": "content_view", field: "2020-01-01T00:00:00Z"})


def test_c3_10_the_time_of_an_event_is_the_servers_in_one_form(portal: Studio) -> None:
    portal.clock.seconds = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()  # no fraction
    [event] = portal.run(
        EventLog(portal.db).record_many([EventDraft(event_name="content_view")], user_id="vic")
    )
    assert event.timestamp == portal.now()
    [item] = [item for item in portal.raw(events) if "event_name" in item]
    assert item["ts#event_id"]["S"].startswith("2026-03-01T12:00:00.000000Z#")


def test_s3_20_a_batch_is_stored_whole_or_not_at_all(portal: Studio) -> None:
    drafts = [EventDraft(event_name="content_view", metadata={"n": n}) for n in range(MOST_EVENTS)]
    portal.sent()
    made = portal.run(EventLog(portal.db).record_many(drafts, user_id="vic"))
    assert portal.sent() == ["TransactWriteItems"]
    assert [event.metadata["n"] for event in made] == list(range(MOST_EVENTS))
    for count in (0, MOST_EVENTS + 1):
        with pytest.raises(InvalidInput, match="1 to 50"):
            portal.run(EventLog(portal.db).record_many(drafts[:1] * count, user_id="vic"))


def test_s3_20_a_repeated_batch_with_a_token_records_nothing(portal: Studio) -> None:
    log = EventLog(portal.db)
    drafts = [EventDraft(event_name="content_view"), EventDraft(event_name="search")]
    made = portal.run(log.record_many(drafts, user_id="vic", token="t-1"))
    portal.pass_time(minutes=5)
    again = portal.run(log.record_many(drafts, user_id="vic", token="t-1"))
    assert again == made
    assert len(list(portal.run(log.of_user("vic")))) == 2
    with pytest.raises(InvalidInput, match="another request"):
        portal.run(log.record_many(drafts[:1], user_id="vic", token="t-1"))
    # A token belongs to its user.
    portal.run(log.record_many(drafts, user_id="ann", token="t-1"))
    assert len(list(portal.run(log.of_user("ann")))) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"event_name": ""},
        {"event_name": "Has Spaces"},
        {"event_name": "x" * 65},
        {"event_name": "ok", "content_id": "a#b"},
        {"event_name": "ok", "metadata": {"text": "x" * 5000}},
        {"event_name": "ok", "metadata": {"a": {"b": {"c": {"d": {"e": 1}}}}}},
        {"event_name": "ok", "metadata": {"a": float("nan")}},
        {"event_name": "ok", "metadata": ["a"]},
    ],
)
def test_s3_19_bad_events_are_rejected(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EventDraft.model_validate(fields)


def test_s3_19_metadata_comes_back_as_it_was_given(portal: Studio) -> None:
    metadata = {
        "query": "naïve \N{HOT BEVERAGE}",
        "ratio": 0.25,
        "n": 3,
        "ok": True,
        "none": None,
        "list": [1, "a"],
    }
    event = portal.run(EventLog(portal.db).record("search", metadata=metadata))
    [stored] = portal.run(EventLog(portal.db).of_day(event.timestamp.date()))
    assert stored.metadata == metadata
