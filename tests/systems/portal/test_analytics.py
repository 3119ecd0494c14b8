"""Analytics of the portal: kept numbers that count each event once, and are read without the events."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from solotable import Database
from solotable.flow.feed import Record
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.events.analytics import MOST_DAYS, Analytics
from solotable.systems.portal.events.counting import TOTALS, aggregate, is_event
from solotable.systems.portal.events.recording import EventDraft, EventLog

from .studio import Studio


def record(portal: Studio, name: str, **fields: object) -> None:
    portal.run(EventLog(portal.db).record(name, **fields))  # type: ignore[arg-type]  # fields of a test


def play(portal: Studio) -> int:
    """Record the events of three days, the third one today; count them every day, and return how many."""
    record(portal, "content_view", user_id="vic", content_id="c1")
    count = aggregate(portal.blocking).records
    portal.pass_time(days=1)
    record(portal, "content_view", user_id="vic", content_id="c1")
    record(portal, "content_download", user_id="ann", content_id="c1")
    count += aggregate(portal.blocking).records
    portal.pass_time(days=1)
    record(portal, "content_view", user_id="vic", content_id="c2")
    record(portal, "search", user_id="vic", metadata={"query": "Refunds  FAQ", "results": 0})
    record(portal, "search", user_id="vic", metadata={"query": "pricing", "results": 3})
    record(portal, "job.ran")
    return count + aggregate(portal.blocking).records


def test_s3_23_the_overview_has_a_period_its_days_and_the_period_before(portal: Studio) -> None:
    assert play(portal) == 7
    found = portal.run(Analytics(portal.db).overview(2))
    assert found.current.model_dump(
        include={"events", "views", "downloads", "searches", "empty_searches"}
    ) == {
        "events": 6,
        "views": 2,
        "downloads": 1,
        "searches": 2,
        "empty_searches": 1,
    }
    assert found.current.active_users == 2  # vic on both days is one user
    assert (found.previous.events, found.previous.active_users) == (1, 1)
    assert [(day.events, day.active_users) for day in found.by_day] == [(2, 2), (4, 1)]
    assert found.by_day[1].day == portal.now().date()


def test_s3_23_content_users_and_texts_that_were_not_found_are_ranked(portal: Studio) -> None:
    play(portal)
    analytics = Analytics(portal.db)
    content = portal.run(analytics.content(3))
    assert [(each.content_id, each.views, each.downloads) for each in content] == [("c1", 2, 1), ("c2", 1, 0)]
    users = portal.run(analytics.users(3))
    assert [(each.user_id, each.events, each.active_days) for each in users] == [("vic", 5, 3), ("ann", 1, 1)]
    assert users[1].last_day == portal.now().date() - timedelta(days=1)
    texts = portal.run(analytics.not_found(3))
    assert [(each.text, each.searches) for each in texts] == [("refunds faq", 1)]


def test_c3_9_analytics_read_rows_of_days_and_never_the_events(portal: Studio) -> None:
    for _ in range(30):
        record(portal, "content_view", user_id="vic", content_id="c1")
    aggregate(portal.blocking)
    portal.sent()
    _, used = portal.measured(Analytics(portal.db).content(1))
    assert portal.sent() == ["Query"] * 4  # one of each shard of the day
    assert used.rcu <= 2.0  # not the 30 events


def test_s3_23_an_event_counts_once_however_often_the_job_runs(portal: Studio) -> None:
    for number in range(7):
        record(portal, "content_view", user_id=f"u{number}")
    assert aggregate(portal.blocking).records == 7
    assert aggregate(portal.blocking).records == 0
    # Another consumer reads the same stream again, as after a lost checkpoint: the rows know what they have.
    again = aggregate(portal.blocking, consumer="other")
    assert (again.records, again.skipped) == (0, 7)
    assert portal.run(Analytics(portal.db).overview(1)).current.events == 7


def test_s3_23_jobs_at_the_same_time_count_each_event_once(portal: Studio) -> None:
    drafts = [EventDraft(event_name="content_view", content_id=f"c{n % 7}") for n in range(50)]
    for user in ("vic", "ann"):
        portal.run(EventLog(portal.db).record_many(drafts, user_id=user))
    stores = [Database(portal.engine, portal.blocking.scope) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda number: aggregate(stores[number], consumer=f"job{number}"), range(3)))
    assert sum(each.records for each in done) == 100
    found = portal.run(Analytics(portal.db).overview(1)).current
    assert (found.events, found.views, found.active_users) == (100, 100, 2)
    assert sum(each.views for each in portal.run(Analytics(portal.db).content(1))) == 100


def test_s3_23_numbers_stay_when_their_events_have_expired(portal: Studio) -> None:
    record(portal, "content_view", user_id="vic", content_id="c1")
    aggregate(portal.blocking)
    removed = next(iter(portal.blocking.changes()))
    gone = Record(
        table=TOTALS.table,
        shard="s",
        sequence="1",
        at=removed.time,
        kind="removed",
        before={},
        after=None,
        by_ttl=True,
    )
    assert not is_event(gone)


@pytest.mark.parametrize("days", [0, -1, MOST_DAYS + 1])
def test_s3_23_a_period_has_limits(portal: Studio, days: int) -> None:
    with pytest.raises(InvalidInput, match="days"):
        portal.run(Analytics(portal.db).overview(days))
