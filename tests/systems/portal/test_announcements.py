"""Announcements: who hears of a change, exactly once, and what an approval costs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from solotable import Database, Table
from solotable._protocol.requests import PutItem
from solotable.systems.portal.entities.notifications import Announcement, Notification
from solotable.systems.portal.entities.subscriptions import Downloader, Subscription
from solotable.systems.portal.roles import Caller
from solotable.systems.portal.services.drafts import ContentPatch
from solotable.systems.portal.services.notifications.announcements import Announced, Announcer, _Steps
from solotable.systems.portal.tables import notifications, subscriptions

from .studio import ADA, ANN, BEN, EVA, VIC, Studio


def follow(portal: Studio, count: int, **fields: Any) -> list[str]:
    """Give users a subscription, 100 in a transaction, and return their ids."""
    users = [f"user{number:05}" for number in range(count)]
    for first in range(0, count, 100):
        with portal.blocking.transaction() as tx:
            for user in users[first : first + 100]:
                tx.create(Subscription(user_id=user, **fields))
    return users


def notified(portal: Studio) -> list[str]:
    """Return the users of all notifications, in order."""
    items = portal.raw(notifications)
    return sorted(item["user_id"]["S"] for item in items if item["_type"] == {"S": "Notification"})


def announcement_of(portal: Studio) -> Announcement:
    """Return the only announcement that waits."""
    (key,) = portal.blocking.all(Announcement.waiting())
    return portal.blocking.require(Announcement, **dict(key))


def write_raw(portal: Studio, table: Table, kind: str, **attributes: Any) -> None:
    """Change attributes of the first item of an entity, as another program does."""
    item = next(each for each in portal.raw(table) if each["_type"] == {"S": kind})
    portal.engine.handle(PutItem(table=portal.prefix + table.name, item={**item, **attributes}))


@pytest.mark.parametrize(
    ("filters", "hears"),
    [
        ({}, True),
        ({"product_suite": "Compass"}, True),
        ({"product_concept": "Billing"}, True),
        ({"product_suite": "Compass", "product_concept": "Billing"}, True),
        ({"product_suite": "*", "product_concept": "Billing"}, True),
        ({"product_suite": "compass"}, False),
        ({"product_suite": "Atlas", "product_concept": "Billing"}, False),
        ({"product_suite": "Compass", "product_concept": "Sales"}, False),
        ({"product_suite": "Compass#Billing"}, False),
        ({"tags": ["pricing", "other"]}, True),
        ({"tags": ["Pricing"]}, False),
        ({"product_suite": "Atlas", "tags": ["pricing"]}, False),
    ],
)
def test_c3_11_a_subscription_matches_by_suite_concept_and_tags(
    portal: Studio, filters: dict[str, Any], hears: bool
) -> None:
    portal.subscribe(VIC, **filters)
    portal.approved(product_suite="Compass", product_concept="Billing", tags=["pricing", "emea"])
    assert portal.announce() == Announced(announcements=1, notified=int(hears))
    assert portal.unread(VIC) == int(hears)


def test_c3_11_content_without_a_product_reaches_those_who_follow_everything(portal: Studio) -> None:
    portal.subscribe(VIC)
    portal.subscribe(BEN, product_suite="Compass")
    portal.approved()
    assert portal.announce().notified == 1
    assert [each.reason for each in portal.inbox_of(VIC)] == ["You follow all content."]


def test_a_user_with_several_matching_subscriptions_is_notified_once(portal: Studio) -> None:
    for filters in ({}, {"product_suite": "Compass"}, {"product_suite": "Compass"}, {"tags": ["a"]}):
        portal.subscribe(VIC, **filters)
    portal.approved(product_suite="Compass", tags=["a"])
    assert portal.announce().notified == 1
    assert portal.unread(VIC) == 1


def test_c3_11_each_change_notifies_and_an_approval_after_another_one_again(portal: Studio) -> None:
    portal.subscribe(VIC)
    made = portal.approved()
    for change in ("deprecate", "approve", "expire"):
        # The clock stands still: the ids differ nevertheless.
        portal.run(getattr(portal.lifecycle, change)(EVA, made.content_id))
    assert portal.announce() == Announced(announcements=4, notified=4)
    assert [each.title for each in portal.inbox_of(VIC)][::-1] == [
        "New enablement content available",
        "Content deprecated",
        "New enablement content available",
        "Content expired",
    ]
    ids = [each.notification_id for each in portal.inbox_of(VIC)]
    assert len(set(ids)) == 4
    assert ids[-1].startswith(f"approved:{made.content_id}:vic:")
    assert portal.unread(VIC) == 4


def test_on_expiry_users_who_downloaded_in_the_last_thirty_days_are_notified_too(portal: Studio) -> None:
    portal.subscribe(VIC)
    made = portal.approved()
    portal.announce()
    for user, days in (("vic", 1), ("old", 30), ("new", 29)):
        at = portal.now() - timedelta(days=days)
        portal.blocking.put(
            Downloader(
                content_id=made.content_id, user_id=user, last_at=at, expires_at=at + timedelta(days=30)
            )
        )
    portal.run(portal.lifecycle.expire(EVA, made.content_id))
    portal.sent()
    assert portal.announce().notified == 2
    assert "Scan" not in portal.sent()
    (found,) = portal.inbox_of(Caller(user_id="new", role="Viewer"))
    assert (found.title, found.reason) == ("Content expired", "You downloaded it on 3 December 2034.")
    assert notified(portal) == ["new", "vic", "vic"]


@pytest.mark.parametrize("policy", ["soft_expire", "hard_expire"])
@pytest.mark.parametrize("by_job", [True, False])
def test_c3_11_a_draft_that_expires_notifies_no_user(portal: Studio, policy: Any, by_job: bool) -> None:
    portal.subscribe(VIC, product_suite="Compass")
    made = portal.approved(product_suite="Compass", expiry_policy=policy)
    portal.run(portal.lifecycle.deprecate(EVA, made.content_id))
    portal.run(portal.lifecycle.expire(EVA, made.content_id))
    portal.announce()
    heard = portal.inbox_of(VIC)
    assert len(heard) == 3
    # Viewers see neither a new Draft nor one that was Approved before, which may have another title now.
    portal.run(portal.lifecycle.reopen(ADA, made.content_id))
    new = portal.draft(title="Secret", product_suite="Compass", expiry_policy=policy)
    at = portal.now()
    for each in (made, new):
        patch = ContentPatch(title="Secret", expiry_date=at)
        portal.run(portal.contents.update(ANN, each.content_id, patch))
        portal.blocking.put(
            Downloader(
                content_id=each.content_id, user_id="vic", last_at=at, expires_at=at + timedelta(days=30)
            )
        )
    if by_job:
        assert portal.expire_due().expired == 2
    else:
        for each in (made, new):
            portal.run(portal.lifecycle.expire(EVA, each.content_id))
    assert portal.announce().notified == 0
    assert portal.inbox_of(VIC) == heard


def test_a_second_run_creates_nothing(portal: Studio) -> None:
    follow(portal, 3)
    portal.approved()
    assert portal.announce().notified == 3
    before = portal.raw(notifications)
    assert portal.announce() == Announced()
    assert [each for each in portal.raw(notifications) if each["_type"] == {"S": "Notification"}] == [
        each for each in before if each["_type"] == {"S": "Notification"}
    ]


def test_a_run_of_an_announcement_that_was_delivered_before_notifies_only_the_others(portal: Studio) -> None:
    users = follow(portal, 60)
    portal.approved()
    waiting = announcement_of(portal)
    portal.announce()
    gone = portal.blocking.first(Notification.of_user(users[7]))
    assert gone is not None
    portal.blocking.delete(gone)
    portal.blocking.create(waiting.model_copy(update={"revision": 0}))
    assert portal.announce() == Announced(announcements=1, notified=1)
    assert notified(portal) == users
    assert portal.unread(Caller(user_id=users[0], role="Viewer")) == 1


def test_c3_9_an_approval_sends_the_same_requests_whatever_the_number_of_subscribers(portal: Studio) -> None:
    without = portal.draft(product_suite="Atlas")
    follow(portal, 300, product_suite="Compass")
    matched = portal.draft(product_suite="Compass")
    costs = []
    for content in (without, matched):
        portal.sent()
        _, used = portal.measured(portal.lifecycle.approve(EVA, content.content_id))
        costs.append((portal.sent(), used.rcu, used.wcu))
    assert costs[0] == costs[1]
    assert costs[0][0] == ["GetItem", "TransactWriteItems"]


def test_a_worker_that_fails_goes_on_behind_its_checkpoint(portal: Studio) -> None:
    users = follow(portal, 120)
    portal.approved()

    def fail(announcement: Announcement) -> None:
        raise OSError("the worker stops here")

    for done in (49, 98, 120):
        failed = Announcer(portal.blocking, portal.storage).run_once(progress=fail)
        assert (failed.announcements, failed.errors) == (0, 1)
        waiting = announcement_of(portal)
        assert (waiting.notified, waiting.last_user) == (done, users[done - 1])
    assert portal.announce() == Announced(announcements=1)
    assert notified(portal) == users
    assert all(portal.unread(Caller(user_id=user, role="Viewer")) == 1 for user in users[::20])


@pytest.mark.parametrize("is_slow", [False, True])
def test_two_workers_at_the_same_time_notify_each_user_once(
    portal: Studio, monkeypatch: pytest.MonkeyPatch, is_slow: bool
) -> None:
    """A slow worker finds out that it has lost the lease when it renews it; what it delivered counts."""
    if is_slow:
        monkeypatch.setattr(
            _Steps, "renew_in_time", lambda steps: steps._lease.renew() if steps.notified > 49 else None
        )
    users = follow(portal, 150)
    portal.approved()
    beside = Announcer(Database(portal.engine, portal.blocking.scope), portal.storage)
    done: list[Announced] = []

    def run_beside(announcement: Announcement) -> None:
        # The lease keeps it from trying; after the end of the lease, the version keeps it from committing.
        done.append(beside.run_once())
        portal.pass_time(seconds=30)

    first = Announcer(portal.blocking, portal.storage).run_once(progress=run_beside)
    total = first.notified + sum(each.notified for each in done)
    assert total == 150
    assert notified(portal) == users
    assert list(portal.blocking.all(Announcement.waiting())) == []


def test_while_a_worker_holds_the_lease_another_one_does_nothing(portal: Studio) -> None:
    follow(portal, 3)
    portal.approved()
    with portal.blocking.lease("announcements", table=notifications):
        assert portal.announce() == Announced()
    assert portal.announce().notified == 3


@pytest.mark.parametrize("tags", [{"L": [{"S": "x" * 99}]}, {"L": [{"N": "5"}]}, {"S": "none"}])
def test_an_invalid_subscription_of_another_program_stops_no_other_notification(
    portal: Studio, tags: Any, caplog: pytest.LogCaptureFixture
) -> None:
    users = follow(portal, 120)
    damaged = portal.raw(subscriptions)[0]["user_id"]["S"]
    write_raw(portal, subscriptions, "Subscription", tags=tags)
    portal.approved()
    others = [user for user in users if user != damaged]
    assert portal.announce() == Announced(announcements=1, notified=len(others))
    assert notified(portal) == others
    assert f"user '{damaged}' is not notified by an invalid Subscription" in caplog.text


def test_an_invalid_downloader_of_another_program_stops_no_other_notification(portal: Studio) -> None:
    made = portal.approved()
    at = portal.now()
    for user in ("ann", "ben", "vic"):
        portal.blocking.put(
            Downloader(
                content_id=made.content_id, user_id=user, last_at=at, expires_at=at + timedelta(days=30)
            )
        )
    write_raw(portal, subscriptions, "Downloader", last_at={"S": "yesterday"})
    portal.run(portal.lifecycle.expire(EVA, made.content_id))
    assert portal.announce() == Announced(announcements=2, notified=2)


def test_an_announcement_that_cannot_be_read_stays_and_the_others_are_delivered(
    portal: Studio, caplog: pytest.LogCaptureFixture
) -> None:
    portal.subscribe(VIC)
    portal.approved(title="One")
    write_raw(portal, notifications, "Announcement", title={"S": "x" * 300})
    foreign = {"user_id": {"S": "announcement#queue"}, "created_at#notification_id": {"S": "x"}}
    portal.engine.handle(PutItem(table=portal.prefix + notifications.name, item=foreign))
    portal.pass_time(seconds=1)
    portal.approved(title="Two")
    announcer = Announcer(portal.blocking, portal.storage)
    assert announcer.run_once() == Announced(announcements=1, notified=1, errors=1)
    assert announcer.run_once() == Announced(errors=1)
    assert [each.message for each in portal.inbox_of(VIC)] == ["Two"]
    # The log has the traceback once, and a line for each run.
    failures = [each for each in caplog.records if each.message.startswith("cannot announce approved")]
    assert [each.exc_info is not None for each in failures] == [True, False]


def test_announcements_are_delivered_in_their_order(portal: Studio) -> None:
    portal.subscribe(VIC)
    for title in ("One", "Two", "Three"):
        portal.pass_time(seconds=1)
        portal.approved(title=title)
    assert portal.announce() == Announced(announcements=3, notified=3)
    assert [each.message for each in portal.inbox_of(VIC)] == ["Three", "Two", "One"]


def test_users_of_all_lengths_are_notified_in_one_pass(portal: Studio) -> None:
    # The order of the index must be that of the merge: `a` before `a+b`, `a-b`, `a.b` and `ab`.
    users = ["a", "a+b", "a-b", "a.b", "a@b", "aB", "a_b", "ab", "b"]
    for user in users:
        for suite in (None, "Compass"):
            portal.subscribe(Caller(user_id=user, role="Viewer"), product_suite=suite)
    portal.approved(product_suite="Compass")
    assert portal.announce().notified == len(users)
    assert notified(portal) == sorted(users)


def test_the_text_of_a_notification_names_the_content(portal: Studio) -> None:
    portal.subscribe(VIC, product_suite="Compass", tags=["emea", "apac"])
    made = portal.approved(ANN, product_suite="Compass", product_concept="Billing", tags=["emea"])
    portal.announce()
    (found,) = portal.inbox_of(VIC)
    assert (found.type, found.message, found.content_id) == ("success", "Pricing 101", made.content_id)
    assert found.reason == "You follow Compass; emea."
    assert found.created_at == datetime(2035, 1, 1, tzinfo=UTC)
