"""Notifications, how many are unread, and what waits for the worker (S3.12 to S3.16).

- C3.7: an id ends with the time of its notification, so the id alone derives the sort key. A read by id is
  one GetItem, and two writers of one id write to one key.
- The number of unread notifications of each day is an item, changed in the transaction of the notification.
  Both expire at the same moment, so the number stays exact without a job.
- An announcement is written in the transaction of the status change. A worker delivers it. The removal of
  a file is written in the transaction that takes it from its content.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from solotable import TTL, Attr, Entity, Epoch, Key, Query, Version, pattern
from solotable.systems.portal.tables import notifications

from .values import ContentId, Line, ProductName, Tags, Text, Time, UserId

NotificationType = Literal["info", "success", "warning", "error"]
AnnouncementKind = Literal["approved", "deprecated", "expired"]
#: How long a notification is kept, from the end of its day.
RETENTION_DAYS = 90
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def notification_id(kind: str, subject: str, user_id: str, at: datetime) -> str:
    """Return the id of a notification, the same for the same change of the same content.

    >>> notification_id("approved", "c1", "ann", datetime(2026, 11, 17, tzinfo=UTC))
    'approved:c1:ann:1794873600000000'
    """
    return f"{kind}:{subject}:{user_id}:{(at - _EPOCH) // _MICROSECOND}"


def time_of(notification_id: str) -> datetime | None:
    """Return the time in the id of a notification; None if it has none."""
    digits = notification_id.rpartition(":")[2]
    # 17 digits are the year 5138; other digits than ASCII are not ours.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 17):
        return None
    return _EPOCH + int(digits) * _MICROSECOND


def end_of_retention(day: date) -> datetime:
    """Return when the notifications of a day expire."""
    return datetime.combine(day, time(), UTC) + timedelta(days=RETENTION_DAYS + 1)


class Notification(Entity, table=notifications):
    """A notification of a user."""

    key = Key(("user_id",), "{created_at:us}#{notification_id}")

    user_id: UserId
    notification_id: Annotated[str, Field(min_length=1, max_length=300, pattern=r"^[A-Za-z0-9_.@+:-]+$")]
    type: NotificationType = "info"
    title: Line
    message: Text = ""
    read: bool = False
    created_at: Time
    content_id: ContentId | None = None
    #: Why the user hears of it.
    reason: Text = ""
    expires_at: Annotated[datetime | None, TTL()] = None

    @model_validator(mode="after")
    def _check_id(self) -> Self:
        if time_of(self.notification_id) != self.created_at:
            raise ValueError("notification_id must end with created_at; use notification_id() to build it")
        return self

    @pattern
    @classmethod
    def of_user(cls, user_id: str) -> Query[Self]:
        """The notifications of a user, newest first (S3.14)."""
        return cls.key.query(user_id=user_id).descending()


class UnreadCount(Entity, table=notifications):
    """How many notifications of one day a user has not read."""

    key = Key("unread#{user_id}", "{day}")

    user_id: Annotated[UserId, Attr("inbox_user_id")]
    day: date
    unread: int = 0
    #: Not a TTL() field: an upsert of an entity with one reads it first. Reads give the first day instead.
    ends_at: Annotated[datetime, Epoch("s"), Attr("expires_at")]

    @pattern
    @classmethod
    def of_user(cls, user_id: str, since: date) -> Query[Self]:
        """The numbers of a user since a day."""
        return cls.key.query(user_id=user_id).since(day=since)


class Announcement(Entity, table=notifications):
    """A change of content that its subscribers hear of, until all of them did.

    It has what the delivery needs, so later changes of the content do not matter. `last_user` is the
    checkpoint: users up to it have their notification.
    """

    key = Key("announcement#queue", "{at:us}#{content_id}#{kind}")

    kind: AnnouncementKind
    content_id: ContentId
    at: Time
    title: Line
    product_suite: ProductName | None = None
    product_concept: ProductName | None = None
    tags: Tags = Field(default_factory=list)
    last_user: str = ""
    notified: int = 0
    revision: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def waiting(cls) -> Query[AnnouncementReference]:
        """The announcements that are not delivered, the oldest first."""
        return cls.key.query().select(AnnouncementReference)


class AnnouncementReference(BaseModel):
    """The key of an announcement: one that another program wrote wrongly does not hide the others."""

    at: Time
    content_id: str
    kind: str


class FileRemoval(Entity, table=notifications):
    """A file that no content has any more, until the worker has removed it from the storage."""

    key = Key("removal#queue", "{s3_key}")

    s3_key: str
    requested_at: Time

    @pattern
    @classmethod
    def waiting(cls) -> Query[FileReference]:
        """The files that are not removed."""
        return cls.key.query().select(FileReference)


class FileReference(BaseModel):
    """The storage key of a file."""

    s3_key: str
