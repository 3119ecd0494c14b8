"""Activity events: append-only, by day and by user (S3.19 to S3.23)."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, NoReturn, Self

from pydantic import BeforeValidator, Field

from solotable import TTL, Entity, Key, Query, Retention, hook, new_id, pattern
from solotable.systems.portal.errors import Forbidden
from solotable.systems.portal.tables import events

from .values import ContentId, Time, UserId

#: Of each day (C3.8). One takes 1,000 writes a second.
DAY_SHARDS = 4
EVENT_DAYS = 400


def plain_numbers(value: Any) -> Any:
    """Return JSON values with numbers as JSON has them: stored fractions are Decimals.

    >>> plain_numbers({"ratio": Decimal("0.25"), "list": [Decimal(3)]})
    {'ratio': 0.25, 'list': [3]}
    """
    match value:
        case dict():
            return {name: plain_numbers(each) for name, each in value.items()}
        case list():
            return [plain_numbers(each) for each in value]
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
    return value


class ActivityEvent(Entity, table=events):
    """Something that a user did. The server sets the time and the user (C3.10)."""

    key = Key("{timestamp:day}", "{timestamp:us}#{event_id}", shards=DAY_SHARDS)
    by_user = Key(("user_id",), "{timestamp:us}#{event_id}", index="by_user")
    retention = Retention(timedelta(days=EVENT_DAYS), since="timestamp")

    event_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")] = Field(default_factory=new_id)
    event_name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.]{0,63}$")]
    user_id: UserId | None = None
    content_id: ContentId | None = None
    metadata: Annotated[dict[str, Any], BeforeValidator(plain_numbers)] = Field(default_factory=dict)
    timestamp: Time
    expires_at: Annotated[datetime | None, TTL()] = None

    @hook("before_put")
    def _reject_put(self) -> NoReturn:
        raise Forbidden("Events are append-only: create() stores an event, and no call replaces one.")

    @hook("before_update")
    @classmethod
    def _reject_update(cls, changes: dict[str, Any]) -> NoReturn:
        raise Forbidden("Events are append-only: an event cannot be changed.")

    @hook("before_delete")
    @classmethod
    def _reject_delete(cls, key: dict[str, Any]) -> NoReturn:
        raise Forbidden("Events are append-only: an event ends with its time to live.")

    @pattern
    @classmethod
    def of_day(cls, day: date) -> Query[Self]:
        """The events of a day, newest first (S3.20)."""
        return cls.key.query(timestamp=day).descending()

    @pattern
    @classmethod
    def of_user(cls, user_id: str) -> Query[Self]:
        """The events of a user, newest first (S3.21)."""
        return cls.by_user.query(user_id=user_id).descending()
