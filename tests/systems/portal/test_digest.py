"""Digests by e-mail: what is unread since the last one, at most one e-mail a period."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from solotable import Database
from solotable.systems.mail.port import MailMessage, MailOutcomeUnknown, MailRejected
from solotable.systems.mail.smtp import SmtpMailer
from solotable.systems.portal.entities.digests import DigestState
from solotable.systems.portal.entities.notifications import Notification, notification_id
from solotable.systems.portal.mail.digest import (
    DigestReport,
    DigestSettings,
    Recipient,
    period_of,
    send_digests,
    set_digest,
)
from solotable.systems.portal.mail.digest_text import MOST_SHOWN

from .smtp_server import serve_smtp
from .studio import Studio

VIC = Recipient(user_id="vic", email="vic@example.org", name="Vic")
ANN = Recipient(user_id="ann", email="ann@example.org")
SETTINGS = DigestSettings(base_url="https://portal.example.org")


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Outbox:
    """A mailer that keeps messages, and may end the process before or after it sends one."""

    sent: list[MailMessage] = field(default_factory=list)
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None

    def send(self, message: MailMessage) -> None:
        self.before()
        self.sent.append(message)
        self.after()


def raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def notify(portal: Studio, user_id: str = "vic", **fields: object) -> Notification:
    portal.pass_time(minutes=1)
    at = portal.now()
    values = {"title": "New content", "content_id": "c1", **fields}
    made = Notification(
        user_id=user_id,
        notification_id=notification_id("approved", "c1", user_id, at),
        created_at=at,
        **values,  # type: ignore[arg-type]  # fields of a test
    )
    return portal.blocking.create(made)


def send(portal: Studio, outbox: Outbox, *recipients: Recipient) -> DigestReport:
    return send_digests(portal.blocking, outbox, recipients or (VIC,), SETTINGS)


def test_b3_9_unread_notifications_are_one_e_mail(portal: Studio) -> None:
    notify(portal, title="Pricing <101>", message='Say "hi" & read')
    notify(portal, title="Read already", read=True)
    notify(portal, title="Refunds", content_id=None)
    outbox = Outbox()
    assert send(portal, outbox) == DigestReport(sent=1)
    [mail] = outbox.sent
    assert (mail.to, mail.subject) == ("vic@example.org", "2 unread notifications")
    assert "Pricing <101>" in mail.text
    assert "https://portal.example.org/content/c1" in mail.text
    assert mail.html is not None
    assert "Pricing &lt;101&gt;" in mail.html
    assert "Say &quot;hi&quot; &amp; read" in mail.html
    assert mail.text.index("Refunds") < mail.text.index("Pricing")
    assert "Read already" not in mail.text


def test_b3_9_a_period_has_one_e_mail_and_the_next_has_what_is_new(portal: Studio) -> None:
    notify(portal, title="First")
    outbox = Outbox()
    assert send(portal, outbox).sent == 1
    notify(portal, title="Second")
    assert send(portal, outbox) == DigestReport(skipped=1)
    portal.pass_time(days=1)
    assert send(portal, outbox).sent == 1
    assert "Second" in outbox.sent[1].text
    assert "First" not in outbox.sent[1].text
    portal.pass_time(days=1)
    assert send(portal, outbox) == DigestReport(skipped=1)  # nothing is new


def test_b3_9_users_without_news_or_who_opted_out_get_nothing(portal: Studio) -> None:
    notify(portal)
    set_digest(portal.blocking, "vic", enabled=False)
    outbox = Outbox()
    assert send(portal, outbox, VIC, ANN) == DigestReport(skipped=2)
    assert outbox.sent == []
    set_digest(portal.blocking, "vic", enabled=True)
    assert send(portal, outbox).sent == 1


def test_b3_9_a_job_that_is_killed_after_the_send_sends_no_second_e_mail(portal: Studio) -> None:
    notify(portal, title="First")
    outbox = Outbox(after=raising(Killed()))
    with pytest.raises(Killed):
        send(portal, outbox)
    again = Outbox(outbox.sent)
    assert send(portal, again) == DigestReport(skipped=1)
    assert len(again.sent) == 1
    # What the e-mail had is not lost if it did not arrive: it is in the next period, while it is unread.
    portal.pass_time(days=1)
    assert send(portal, again).sent == 1
    assert "First" in again.sent[1].text


def test_b3_9_a_job_that_is_killed_before_the_send_loses_no_notification(portal: Studio) -> None:
    notify(portal, title="First")
    with pytest.raises(Killed):
        send(portal, Outbox(before=raising(Killed())))
    outbox = Outbox()
    assert send(portal, outbox) == DigestReport(skipped=1)
    portal.pass_time(days=1)
    assert send(portal, outbox).sent == 1
    assert "First" in outbox.sent[0].text


def test_b3_9_an_unknown_outcome_is_not_repeated_and_a_rejection_is(portal: Studio) -> None:
    notify(portal)
    assert send(portal, Outbox(before=raising(MailRejected("no")))) == DigestReport(failed=1)
    assert send(portal, Outbox(after=raising(MailOutcomeUnknown("who knows")))) == DigestReport(unknown=1)
    assert send(portal, Outbox()) == DigestReport(skipped=1)


def test_b3_9_jobs_at_the_same_time_send_one_e_mail(portal: Studio) -> None:
    notify(portal)
    outbox = Outbox()
    stores = [Database(portal.engine, portal.blocking.scope) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda db: send_digests(db, outbox, (VIC,), SETTINGS), stores))
    assert len(outbox.sent) == 1
    assert sum(report.sent for report in reports) == 1


def test_b3_9_an_opt_out_during_the_send_stays(portal: Studio) -> None:
    notify(portal)

    def opt_out() -> None:
        set_digest(Database(portal.engine, portal.blocking.scope), "vic", enabled=False)

    assert send(portal, Outbox(before=opt_out)).sent == 1
    state = portal.blocking.require(DigestState, user_id="vic")
    assert state.opted_out
    assert state.covered_until is not None


def test_b3_9_many_notifications_are_a_short_list(portal: Studio) -> None:
    for number in range(MOST_SHOWN + 3):
        notify(portal, title=f"Title {number}.")
    outbox = Outbox()
    send(portal, outbox)
    [mail] = outbox.sent
    assert mail.subject == f"{MOST_SHOWN + 3} unread notifications"
    assert "And 3 more" in mail.text
    assert "Title 0." not in mail.text


def test_b3_9_a_digest_leaves_the_inbox_as_it_is(portal: Studio) -> None:
    notify(portal)
    send(portal, Outbox())
    listed = list(portal.blocking.page(Notification.of_user("vic")))
    assert [each.read for each in listed] == [False]


def test_b3_9_a_digest_arrives_by_smtp(portal: Studio) -> None:
    notify(portal, title="Grüße")
    with serve_smtp() as box:
        mailer = SmtpMailer(host="127.0.0.1", port=box.port, sender="portal@example.org", security="none")
        assert send_digests(portal.blocking, mailer, (VIC,), SETTINGS).sent == 1
        [mail] = box.mails
    assert mail["Subject"] == "1 unread notification"
    assert mail["Message-ID"].strip().startswith("<digest.")
    html = mail.get_body(("html",))
    assert html is not None
    assert "Grüße" in html.get_content()


@pytest.mark.parametrize(("every", "day"), [("day", 18), ("week", 16)])
def test_b3_9_a_period_is_a_day_or_a_week_from_monday(every: str, day: int) -> None:
    now = datetime(2026, 11, 18, 23, 59, tzinfo=UTC)
    assert period_of(now, every).day == day  # type: ignore[arg-type]  # one of the two
