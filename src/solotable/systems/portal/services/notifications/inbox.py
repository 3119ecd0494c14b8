"""The inbox of a user: list, read and mark notifications; the number of unread ones stays exact.

A notification and the number of its day change in one transaction (C3.11): marking one twice counts once,
and marking one that does not exist creates nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from solotable import AsyncDatabase, Page
from solotable.errors import NotFound, TransactionFailed
from solotable.systems.errors import unwrap_failure, validate
from solotable.systems.portal.entities.notifications import (
    RETENTION_DAYS,
    Notification,
    NotificationType,
    UnreadCount,
    end_of_retention,
    notification_id,
    time_of,
)
from solotable.systems.portal.roles import Caller
from solotable.systems.portal.services.drafts import utc_now
from solotable.systems.portal.services.pages import page_with_rows

#: Notifications that one transaction marks: with the numbers of their days at most 100 actions.
_MARKED_AT_ONCE = 49


class Inbox:
    """The notifications of the caller; a caller reaches no other user's."""

    def __init__(self, db: AsyncDatabase, *, now: Callable[[], datetime] = utc_now) -> None:
        self._db = db
        self._now = now

    async def list(
        self, caller: Caller, *, unread_only: bool = False, limit: int = 50, cursor: str | None = None
    ) -> Page[Notification]:
        """Return notifications, newest first: one Query (S3.14)."""
        query = Notification.of_user(caller.user_id)
        if unread_only:
            query = query.where(lambda each: ~each.read)
        return await page_with_rows(self._db, query, limit=limit, cursor=cursor)

    async def get(self, caller: Caller, notification_id: str, *, consistent: bool = False) -> Notification:
        """Return a notification by its id, with one GetItem, or raise NotFound (C3.7)."""
        at = time_of(notification_id)
        found = None
        if at is not None:
            found = await self._db.get(
                Notification,
                user_id=caller.user_id,
                created_at=at,
                notification_id=notification_id,
                consistent=consistent,
            )
        if found is None:
            raise NotFound(f"Notification not found: notification_id={notification_id!r}.")
        return found

    async def unread(self, caller: Caller) -> int:
        """Return how many notifications are unread: one Query of at most 91 numbers."""
        since = self._now().date() - timedelta(days=RETENTION_DAYS)
        days = self._db.all(UnreadCount.of_user(caller.user_id, since).consistent())
        return sum([each.unread async for each in days])

    async def mark_read(self, caller: Caller, notification_id: str) -> Notification:
        """Mark a notification as read, or raise NotFound; a second call changes nothing."""
        found = await self.get(caller, notification_id, consistent=True)
        if found.read:
            return found
        try:
            await self._mark([found])
        except TransactionFailed:
            # Another request marked it first, or its time ended.
            return await self.get(caller, notification_id, consistent=True)
        return found.model_copy(update={"read": True})

    async def mark_all_read(self, caller: Caller) -> int:
        """Mark all notifications as read, and return how many were not."""
        query = Notification.of_user(caller.user_id).where(lambda each: ~each.read).consistent()
        count = 0
        waiting: list[Notification] = []
        async for each in self._db.all(query):
            waiting.append(each)
            if len(waiting) == _MARKED_AT_ONCE:
                count += await self._mark_each(waiting)
                waiting = []
        return count + await self._mark_each(waiting)

    async def send(
        self,
        user_id: str,
        *,
        kind: str,
        subject: str,
        title: str,
        message: str = "",
        type: NotificationType = "info",  # noqa: A002 - the name of the attribute (S3.13)
    ) -> Notification:
        """Notify one user of something that is not a change of content."""
        at = self._now()
        notification = validate(
            Notification,
            user_id=user_id,
            notification_id=notification_id(kind, subject, user_id, at),
            type=type,
            title=title,
            message=message,
            created_at=at,
            expires_at=end_of_retention(at.date()),
        )
        with unwrap_failure():
            async with self._db.transaction() as tx:
                created = tx.create(notification)
                tx.upsert(
                    UnreadCount,
                    user_id=user_id,
                    day=at.date(),
                    add={"unread": 1},
                    set={"ends_at": end_of_retention(at.date())},
                )
        return created

    async def _mark_each(self, found: Sequence[Notification]) -> int:
        """Mark notifications in one transaction, or one by one if another request marked some of them."""
        try:
            await self._mark(found)
        except TransactionFailed:
            if len(found) == 1:
                return 0
            return sum([await self._mark_each([each]) for each in found])
        return len(found)

    async def _mark(self, found: Sequence[Notification]) -> None:
        if not found:
            return
        days = Counter(each.created_at.date() for each in found)
        async with self._db.transaction() as tx:
            for each in found:
                # Not `~stored.read`, which holds for an item that does not exist.
                tx.put(
                    each.model_copy(update={"read": True}),
                    where=lambda stored: stored.read == False,  # noqa: E712 - an expression
                )
            for day, marked in days.items():
                tx.update(UnreadCount, user_id=found[0].user_id, day=day, add={"unread": -marked})
