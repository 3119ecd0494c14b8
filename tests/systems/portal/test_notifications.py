"""The inbox: keys, reads by id, marks, the exact number of unread notifications, and retention."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from solotable import Database
from solotable._protocol.requests import TransactWriteItems
from solotable.errors import AlreadyExists, CursorRejected, NotFound
from solotable.systems.portal.entities.notifications import (
    Notification,
    UnreadCount,
    notification_id,
    time_of,
)
from solotable.systems.portal.tables import notifications

from .studio import ANN, BEN, VIC, Studio


def send(portal: Studio, count: int = 1, user: str = "vic") -> list[Notification]:
    """Notify a user, a minute apart, and return the notifications newest first."""
    made = []
    for number in range(count):
        portal.pass_time(minutes=1)
        made.append(
            portal.run(portal.inbox.send(user, kind="note", subject=f"n{number}", title=f"Note {number}"))
        )
    return made[::-1]


def test_s3_12_the_sort_key_has_the_time_and_the_id(portal: Studio) -> None:
    (made,) = send(portal)
    (item,) = [item for item in portal.raw(notifications) if item["_type"] == {"S": "Notification"}]
    assert item["user_id"] == {"S": "vic"}
    assert item["created_at#notification_id"] == {"S": f"2035-01-01T00:01:00.000000Z#{made.notification_id}"}


def test_s3_13_a_notification_has_its_type_from_the_list() -> None:
    at = datetime(2026, 11, 17, tzinfo=UTC)
    fields = {"user_id": "vic", "notification_id": notification_id("note", "n1", "vic", at)}
    made = Notification(**fields, title="Hello", created_at=at)  # type: ignore[arg-type]
    assert (made.type, made.read, made.content_id) == ("info", False, None)
    with pytest.raises(ValidationError, match="type"):
        Notification(**fields, title="Hello", created_at=at, type="fatal")  # type: ignore[arg-type]


def test_s3_14_the_list_of_a_user_is_one_query_newest_first(portal: Studio) -> None:
    made = send(portal, 5)
    send(portal, 1, user="ben")
    portal.sent()
    page, used = portal.measured(portal.inbox.list(VIC, limit=3))
    assert page.items == made[:3]
    assert portal.sent() == ["Query"]
    assert used.rcu <= 0.5
    rest = portal.run(portal.inbox.list(VIC, limit=3, cursor=page.cursor))
    assert rest.items == made[3:]
    with pytest.raises(CursorRejected):
        portal.run(portal.inbox.list(BEN, limit=3, cursor=page.cursor))


def test_s3_15_a_notification_is_found_by_its_id(portal: Studio) -> None:
    made = send(portal, 3)[1]
    portal.sent()
    assert portal.run(portal.inbox.get(VIC, made.notification_id)) == made
    assert portal.sent() == ["GetItem"]


def test_c3_7_a_read_by_id_costs_the_same_in_a_full_inbox(portal: Studio) -> None:
    made = send(portal, 30)
    for each in (made[0], made[-1]):
        _, used = portal.measured(portal.inbox.get(VIC, each.notification_id))
        assert (used.requests, used.rcu) == (1, 0.5)
    for unknown in ("x", "note:n1:vic:1", "note:n1:vic:" + "9" * 30, "note:n1:vic:١٢"):
        with pytest.raises(NotFound):
            portal.run(portal.inbox.get(VIC, unknown))
    with pytest.raises(NotFound):
        portal.run(portal.inbox.get(BEN, made[0].notification_id))


def test_c3_7_one_id_is_one_item_however_many_writers_create_it(portal: Studio) -> None:
    (made,) = send(portal)
    with pytest.raises(AlreadyExists):
        portal.blocking.create(made)
    # The time of an id is that of the key, so no other key can have the id.
    with pytest.raises(ValidationError, match="must end with created_at"):
        Notification(**{**dict(made), "created_at": made.created_at + timedelta(seconds=1)})
    assert time_of(made.notification_id) == made.created_at


def test_s3_16_a_notification_is_marked_as_read(portal: Studio) -> None:
    made = send(portal, 3)
    assert portal.unread(VIC) == 3
    portal.sent()
    assert portal.run(portal.inbox.mark_read(VIC, made[1].notification_id)).read
    assert portal.sent() == ["GetItem", "TransactWriteItems"]
    assert [each.read for each in portal.inbox_of(VIC)] == [False, True, False]
    assert portal.unread(VIC) == 2


def test_c3_11_marking_twice_counts_once(portal: Studio) -> None:
    (made,) = send(portal)
    first = portal.run(portal.inbox.mark_read(VIC, made.notification_id))
    assert portal.run(portal.inbox.mark_read(VIC, made.notification_id)) == first
    assert portal.unread(VIC) == 0


def test_c3_11_two_requests_that_mark_at_the_same_time_count_once(portal: Studio) -> None:
    (made, *_) = send(portal, 2)

    def mark_beside() -> None:
        with portal.blocking.transaction() as tx:
            tx.put(made.model_copy(update={"read": True}))
            tx.update(UnreadCount, user_id="vic", day=made.created_at.date(), add={"unread": -1})

    portal.watched.slip_in(TransactWriteItems, mark_beside)
    assert portal.run(portal.inbox.mark_read(VIC, made.notification_id)).read
    assert portal.unread(VIC) == 1


def test_c3_11_marking_what_does_not_exist_creates_nothing(portal: Studio) -> None:
    (made,) = send(portal)
    before = portal.raw(notifications)
    ghost = notification_id("note", "other", "vic", made.created_at)
    for caller, unknown in ((VIC, ghost), (BEN, made.notification_id), (VIC, "nonsense")):
        with pytest.raises(NotFound):
            portal.run(portal.inbox.mark_read(caller, unknown))
    assert portal.raw(notifications) == before


def test_c3_11_a_notification_that_goes_while_it_is_marked_leaves_no_ghost(portal: Studio) -> None:
    (made,) = send(portal)
    portal.watched.slip_in(TransactWriteItems, lambda: portal.blocking.delete(made))
    with pytest.raises(NotFound):
        portal.run(portal.inbox.mark_read(VIC, made.notification_id))
    assert [each for each in portal.raw(notifications) if each["_type"] == {"S": "Notification"}] == []


def test_marking_all_marks_every_page_and_leaves_none(portal: Studio) -> None:
    made = send(portal, 3)
    portal.pass_time(days=1)
    made = send(portal, 60) + made
    portal.run(portal.inbox.mark_read(VIC, made[5].notification_id))
    assert portal.run(portal.inbox.mark_all_read(VIC)) == 62
    assert portal.unread(VIC) == 0
    assert portal.run(portal.inbox.mark_all_read(VIC)) == 0
    assert list(portal.run(portal.inbox.list(VIC, unread_only=True))) == []


def test_marking_all_counts_what_another_request_did_not_mark(portal: Studio) -> None:
    made = send(portal, 4)

    def mark_beside() -> None:
        with portal.blocking.transaction() as tx:
            tx.put(made[2].model_copy(update={"read": True}))
            tx.update(UnreadCount, user_id="vic", day=made[2].created_at.date(), add={"unread": -1})

    portal.watched.slip_in(TransactWriteItems, mark_beside)
    assert portal.run(portal.inbox.mark_all_read(VIC)) == 3
    assert portal.unread(VIC) == 0


def test_c3_12_notifications_and_their_number_end_at_the_same_moment(portal: Studio) -> None:
    (old,) = send(portal)
    portal.pass_time(days=1)
    send(portal)
    portal.clock.seconds = datetime(2035, 4, 2, tzinfo=UTC).timestamp() - 1
    assert (len(portal.inbox_of(VIC)), portal.unread(VIC)) == (2, 2)
    portal.pass_time(seconds=1)
    assert (len(portal.inbox_of(VIC)), portal.unread(VIC)) == (1, 1)
    with pytest.raises(NotFound):
        portal.run(portal.inbox.mark_read(VIC, old.notification_id))
    assert {item["expires_at"]["N"] for item in portal.raw(notifications)} == {
        f"{datetime(2035, 4, day, tzinfo=UTC).timestamp():.0f}" for day in (2, 3)
    }


def test_the_number_of_unread_notifications_is_one_query(portal: Studio) -> None:
    for _ in range(10):
        send(portal, 3)
        portal.pass_time(days=1)
    portal.sent()
    number, used = portal.measured(portal.inbox.unread(VIC))
    assert (number, used.requests, used.rcu) == (30, 1, 1.0)


def test_the_number_is_exact_while_threads_send_and_mark(portal: Studio) -> None:
    made = send(portal, 8)
    store = Database(portal.engine, portal.blocking.scope)

    def mark(each: Notification) -> None:
        with store.transaction() as tx:
            tx.put(each.model_copy(update={"read": True}), where=lambda stored: ~stored.read)
            tx.update(UnreadCount, user_id="vic", day=each.created_at.date(), add={"unread": -1})

    threads = [threading.Thread(target=mark, args=(each,)) for each in made[:5]]
    for thread in threads:
        thread.start()
    send(portal, 3)
    for thread in threads:
        thread.join()
    assert portal.unread(VIC) == 6 == sum(not each.read for each in portal.inbox_of(VIC))
    assert portal.unread(ANN) == 0
