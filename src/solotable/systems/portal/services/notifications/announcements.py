"""The worker that delivers announcements: a notification for each recipient, exactly once.

One transaction writes the notifications of up to 49 users, their numbers of unread ones, and the checkpoint
of the announcement under its version. So a worker that is killed repeats nothing, and of two workers one
commits. A lease keeps the second one from trying. No request waits for the worker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from solotable import Database, Lease
from solotable.errors import (
    AlreadyExists,
    LeaseHeld,
    LeaseLost,
    NotFound,
    SolotableError,
    TransactionFailed,
    VersionConflict,
)
from solotable.systems.errors import first_error
from solotable.systems.portal.entities.notifications import (
    Announcement,
    AnnouncementKind,
    Notification,
    NotificationType,
    UnreadCount,
    end_of_retention,
    notification_id,
)
from solotable.systems.portal.tables import notifications
from solotable.systems.storage import Storage

from .recipients import NotifiedUser, recipients

#: Two writes for each user and one for the announcement: 99 of the 100 actions of a transaction.
_USERS_AT_ONCE = 49
_LEASE_SECONDS = 10.0
_log = logging.getLogger("solotable.portal")

_TEXTS: dict[AnnouncementKind, tuple[NotificationType, str]] = {
    "approved": ("success", "New enablement content available"),
    "deprecated": ("warning", "Content deprecated"),
    "expired": ("warning", "Content expired"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """What a run delivered; `errors` is the number of announcements that stay for the next run."""

    announcements: int = 0
    notified: int = 0
    errors: int = 0


class Announcer:
    """Delivers the announcements that wait."""

    def __init__(self, db: Database, storage: Storage) -> None:
        self._db = db
        self._storage = storage

    def run_once(self, *, progress: Callable[[Announcement], None] | None = None) -> Announced:
        """Deliver what waits now, the oldest first; deliver nothing while another worker does.

        `progress` is called with the announcement after each transaction.
        """
        waiting = list(self._db.all(Announcement.waiting().consistent()))
        if not waiting:
            return Announced()
        try:
            with self._db.lease("announcements", seconds=_LEASE_SECONDS, table=notifications) as lease:
                return self._deliver_all(waiting, _Steps(lease, progress))
        except (LeaseHeld, LeaseLost):
            return Announced()

    def _deliver_all(self, waiting: list[Announcement], steps: _Steps) -> Announced:
        announcements = errors = 0
        for each in waiting:
            steps.renew_in_time()
            try:
                self._deliver(each, steps)
            except (VersionConflict, NotFound):
                # A worker whose lease had ended delivered it; this one read it before.
                continue
            except (SolotableError, OSError) as error:
                if isinstance(error, LeaseLost):
                    raise
                _log.exception("cannot announce %s of content %s", each.kind, each.content_id)
                errors += 1
                continue
            announcements += 1
        return Announced(announcements=announcements, notified=steps.notified, errors=errors)

    def _deliver(self, announcement: Announcement, steps: _Steps) -> None:
        """Notify the recipients behind the checkpoint, then remove the file and the announcement."""
        if announcement.kind != "deleted":
            users = recipients(self._db, announcement)
            while chunk := list(islice(users, _USERS_AT_ONCE)):
                steps.renew_in_time()
                announcement, added = self._notify(announcement, chunk)
                steps.report(announcement, added)
        if announcement.removed_file is not None:
            asyncio.run(self._storage.delete(announcement.removed_file))
        self._db.delete(announcement)

    def _notify(self, announcement: Announcement, users: list[NotifiedUser]) -> tuple[Announcement, int]:
        """Write the notifications of some users and the checkpoint behind them, all or nothing."""
        while True:
            advanced = announcement.model_copy(
                update={"last_user": users[-1].user_id, "notified": announcement.notified + len(users)}
            )
            day = announcement.at.date()
            try:
                with self._db.transaction() as tx:
                    stored = tx.put(advanced)
                    for user in users:
                        tx.create(_notification(announcement, user))
                        tx.upsert(
                            UnreadCount,
                            user_id=user.user_id,
                            day=day,
                            add={"unread": 1},
                            set={"ends_at": end_of_retention(day)},
                        )
            except TransactionFailed as failed:
                known = {
                    failure.position
                    for failure in failed.failures
                    if isinstance(failure.error, AlreadyExists)
                }
                # Position 0 is the checkpoint; then a notification and a number for each user.
                if 0 in known or len(known) < len(failed.failures):
                    raise first_error(failed) from failed
                # A restored backup may hold the announcement again: these users have been notified.
                last = users[-1].user_id
                users = [user for index, user in enumerate(users) if 2 * index + 1 not in known]
                if not users:
                    moved = announcement.model_copy(update={"last_user": last})
                    return self._db.put(moved), 0
            else:
                return stored, len(users)


class _Steps:
    """Renews the lease of a run before it ends, and reports its progress."""

    def __init__(self, lease: Lease, progress: Callable[[Announcement], None] | None) -> None:
        self._lease = lease
        self._progress = progress
        self._renewed = time.monotonic()
        self.notified = 0

    def report(self, announcement: Announcement, notified: int) -> None:
        """Report that a transaction was committed."""
        self.notified += notified
        if self._progress is not None:
            self._progress(announcement)

    def renew_in_time(self) -> None:
        """Renew the lease if a third of it has passed, or raise LeaseLost."""
        if time.monotonic() - self._renewed > _LEASE_SECONDS / 3:
            self._lease.renew()
            self._renewed = time.monotonic()


def _notification(announcement: Announcement, recipient: NotifiedUser) -> Notification:
    kind, title = _TEXTS[announcement.kind]
    user = recipient.user_id
    return Notification(
        user_id=user,
        notification_id=notification_id(announcement.kind, announcement.content_id, user, announcement.at),
        type=kind,
        title=title,
        message=announcement.title,
        created_at=announcement.at,
        content_id=announcement.content_id,
        reason=recipient.reason,
        expires_at=end_of_retention(announcement.at.date()),
    )
