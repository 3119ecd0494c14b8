"""Digests: the unread notifications of a user since the last one, in one e-mail a period.

A period has at most one e-mail for each user, however often the job runs, fails or is killed: a run claims
the period by a conditional write before it sends. An e-mail whose outcome is unknown is not sent again in
its period; its notifications, if they are still unread, are in the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import Literal

from solotable import ANY, Database
from solotable.errors import AlreadyExists, ConditionFailed, VersionConflict
from solotable.flow import scope_of
from solotable.systems.mail.port import Mailer, MailOutcomeUnknown, MailRejected
from solotable.systems.portal.entities.digests import DigestState
from solotable.systems.portal.entities.notifications import Notification

from .digest_text import MOST_SHOWN, digest_message

Every = Literal["day", "week"]
#: How far back the first digest of a user looks.
_FIRST_DAYS = 7
_log = logging.getLogger("solotable.portal.digest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """A user and their address, as the identity provider has them."""

    user_id: str
    email: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestReport:
    """How many users got an e-mail, had nothing to read or no wish, and why others got none."""

    sent: int = 0
    #: Nothing unread, opted out, or already claimed in this period.
    skipped: int = 0
    #: Rejected: the next run tries again.
    failed: int = 0
    #: Perhaps sent: the next period tries again.
    unknown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestSettings:
    """How often, and where the portal is."""

    base_url: str
    every: Every = "day"


def send_digests(
    db: Database, mailer: Mailer, recipients: Iterable[Recipient], settings: DigestSettings
) -> DigestReport:
    """Send the digest of the current period to each recipient who has not had it."""
    now = datetime.fromtimestamp(scope_of(db).clock(), UTC)
    counts = {"sent": 0, "skipped": 0, "failed": 0, "unknown": 0}
    for recipient in recipients:
        counts[_send(db, mailer, recipient, settings, now)] += 1
    return DigestReport(**counts)


def set_digest(db: Database, user_id: str, *, enabled: bool) -> DigestState:
    """Store whether a user wants digests. Users want them unless they opt out."""
    return db.upsert(DigestState, user_id=user_id, set={"opted_out": not enabled})


def period_of(now: datetime, every: Every) -> date:
    """Return the first day of a period, in UTC; a week begins on Monday."""
    day = now.astimezone(UTC).date()
    return day if every == "day" else day - timedelta(days=day.weekday())


def _send(
    db: Database, mailer: Mailer, recipient: Recipient, settings: DigestSettings, now: datetime
) -> Literal["sent", "skipped", "failed", "unknown"]:
    period = period_of(now, settings.every)
    state = db.get(DigestState, user_id=recipient.user_id, consistent=True)
    if state is not None and (state.opted_out or (state.claimed_period or date.min) >= period):
        return "skipped"
    since = state.covered_until if state is not None else None
    unread, more = _unread(db, recipient.user_id, since or now - timedelta(days=_FIRST_DAYS))
    if not unread:
        return "skipped"
    claimed = _claim(db, state or DigestState(user_id=recipient.user_id), period)
    if claimed is None:
        return "skipped"
    try:
        mailer.send(
            digest_message(recipient.email, recipient.name, unread, more, settings.base_url, _id(claimed))
        )
    except MailOutcomeUnknown:
        _log.exception("the outcome of a digest is unknown; it is not sent again in this period")
        return "unknown"
    except MailRejected:
        _log.exception("a digest was not sent; the next run tries again")
        _settle(db, claimed, {"claimed_period": None if state is None else state.claimed_period})
        return "failed"
    _settle(db, claimed, {"sent_period": period, "covered_until": unread[0].created_at})
    return "sent"


def _unread(db: Database, user_id: str, since: datetime) -> tuple[Sequence[Notification], int]:
    """Return the newest unread notifications after a time, and how many more there are."""
    query = Notification.key.query(user_id=user_id).after(created_at=since).descending()
    found = [each for each in db.all(query) if not each.read]
    return found[:MOST_SHOWN], len(found[MOST_SHOWN:])


def _claim(db: Database, state: DigestState, period: date) -> DigestState | None:
    """Claim a period; None if another run has it, or the user has just opted out."""
    try:
        return db.put(state.model_copy(update={"claimed_period": period}))
    except (AlreadyExists, ConditionFailed):
        return None


def _settle(db: Database, claimed: DigestState, changes: dict[str, object]) -> None:
    """Store the outcome of a claim, unless another writer has changed the state since."""
    try:
        db.put(claimed.model_copy(update=changes))
    except VersionConflict:
        # The user has changed a setting during the send: theirs stays, and the outcome is added to it.
        db.update(DigestState, user_id=claimed.user_id, set=changes, version=ANY)


def _id(claimed: DigestState) -> str:
    """Return the id of a user's e-mail of a period: a mail system can recognise a second one."""
    digest = sha256(f"{claimed.user_id} {claimed.claimed_period}".encode()).hexdigest()[:32]
    return f"<digest.{claimed.claimed_period}.{digest}@portal.invalid>"
