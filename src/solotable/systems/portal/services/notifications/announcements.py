"""The worker: it notifies each recipient of an announcement exactly once, and removes files.

One transaction writes the notifications of up to 49 users, their numbers of unread ones, and the checkpoint
of the announcement under its version. So a worker that is killed repeats nothing, and of two workers one
commits. A lease keeps the second one from trying. No request waits for the worker. An announcement that
cannot be read or delivered stays, and the others are delivered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
    AnnouncementReference,
    FileReference,
    FileRemoval,
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
    """What a run delivered; `errors` is the number of announcements and files that stay for the next run."""

    announcements: int = 0
    notified: int = 0
    removed_files: int = 0
    errors: int = 0


class Announcer:
    """Delivers the announcements that wait, and removes the files that no content has any more."""

    def __init__(self, db: Database, storage: Storage) -> None:
        self._db = db
        self._storage = storage
        #: What failed before: a log has its traceback once.
        self._failed: set[str] = set()

    def run_once(self, *, progress: Callable[[Announcement], None] | None = None) -> Announced:
        """Deliver what waits now, the oldest first; deliver nothing while another worker does.

        `progress` is called with the announcement after each transaction.
        """
        waiting = list(self._db.all(Announcement.waiting().consistent(), unknown="skip"))
        files = list(self._db.all(FileRemoval.waiting().consistent(), unknown="skip"))
        if not waiting and not files:
            return Announced()
        steps: _Steps | None = None
        try:
            with self._db.lease("announcements", seconds=_LEASE_SECONDS, table=notifications) as lease:
                steps = _Steps(lease, progress)
                return self._run_all(waiting, files, steps)
        except LeaseHeld:
            return Announced()
        except LeaseLost:
            # Another worker continues behind the checkpoint.
            return Announced(notified=0 if steps is None else steps.notified)

    def _run_all(
        self, waiting: list[AnnouncementReference], files: list[FileReference], steps: _Steps
    ) -> Announced:
        done: Counter[str] = Counter()
        for each in waiting:
            subject = f"cannot announce {each.kind} of content {each.content_id}"
            done[self._try("announcements", subject, steps, partial(self._deliver, each, steps))] += 1
        for file in files:
            subject = f"cannot remove the file {file.s3_key}"
            done[self._try("removed_files", subject, steps, partial(self._remove, file))] += 1
        return Announced(
            announcements=done["announcements"],
            notified=steps.notified,
            removed_files=done["removed_files"],
            errors=done["errors"],
        )

    def _try(self, name: str, subject: str, steps: _Steps, act: Callable[[], None]) -> str:
        """Do one thing of the queue, and return under which name it counts."""
        steps.renew_in_time()
        try:
            act()
        except (VersionConflict, NotFound):
            # A worker whose lease had ended delivered it; this one read it before.
            return "overtaken"
        except (SolotableError, OSError) as error:
            if isinstance(error, LeaseLost):
                raise
            _log.error(subject, exc_info=None if subject in self._failed else error)
            self._failed.add(subject)
            return "errors"
        self._failed.discard(subject)
        return name

    def _deliver(self, reference: AnnouncementReference, steps: _Steps) -> None:
        """Notify the recipients behind the checkpoint, then delete the announcement."""
        announcement = self._db.require(Announcement, **dict(reference), consistent=True)
        users = recipients(self._db, announcement)
        while chunk := list(islice(users, _USERS_AT_ONCE)):
            steps.renew_in_time()
            announcement, added = self._notify(announcement, chunk)
            steps.report(announcement, added)
        self._db.delete(announcement)

    def _remove(self, file: FileReference) -> None:
        """Remove a file, then its removal: until then the key cannot be attached again."""
        asyncio.run(self._storage.delete(file.s3_key))
        self._db.delete(FileRemoval, s3_key=file.s3_key)

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
