"""Kept numbers of events by day: in all, by content, by user, and of searches without a result.

They are items of the events table, in partitions that no day has. Only the ledger in `events.counting` writes
them, by ADD; the fields of a row are what it can add. They stay longer than the events.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Self

from pydantic import Field

from solotable import TTL, Attr, Entity, Key, Query, pattern
from solotable.systems.portal.tables import events

from .values import ContentId, UserId

#: Of the contents, the users and the texts of one day (C3.8).
ROW_SHARDS = 4
#: How long the numbers of a day are kept.
TOTALS_DAYS = 800


class DayTotals(Entity, table=events):
    """The events of one day."""

    key = Key("stats#days", "{day}")

    day: date
    events: int = 0
    views: int = 0
    downloads: int = 0
    searches: int = 0
    #: Searches that found nothing.
    empty_searches: int = 0
    expires_at: Annotated[datetime | None, TTL()] = None

    @pattern
    @classmethod
    def of_days(cls, first: date, last: date) -> Query[Self]:
        """The numbers of some days, the oldest first; a day without events has none."""
        return cls.key.query().between(day=(first, last))


class ContentTotals(Entity, table=events):
    """The events of one content item on one day."""

    key = Key("stats#content#{day}", "{content_id}", shards=ROW_SHARDS)

    day: date
    content_id: ContentId
    events: int = 0
    views: int = 0
    downloads: int = 0
    expires_at: Annotated[datetime | None, TTL()] = None

    @pattern
    @classmethod
    def of_day(cls, day: date) -> Query[Self]:
        """The numbers of all content that had events on a day."""
        return cls.key.query(day=day)


class UserTotals(Entity, table=events):
    """The events of one user on one day."""

    key = Key("stats#users#{day}", "{user_id}", shards=ROW_SHARDS)

    day: date
    # The index by user has events only.
    user_id: Annotated[UserId, Attr("active_user_id")]
    events: int = 0
    views: int = 0
    downloads: int = 0
    searches: int = 0
    expires_at: Annotated[datetime | None, TTL()] = None

    @pattern
    @classmethod
    def of_day(cls, day: date) -> Query[Self]:
        """The numbers of all users who did something on a day."""
        return cls.key.query(day=day)


class EmptySearch(Entity, table=events):
    """How often a text was searched and not found on one day."""

    key = Key("stats#not-found#{day}", "{text}", shards=ROW_SHARDS)

    day: date
    text: Annotated[str, Field(min_length=1, max_length=100)]
    searches: int = 0
    expires_at: Annotated[datetime | None, TTL()] = None

    @pattern
    @classmethod
    def of_day(cls, day: date) -> Query[Self]:
        """The texts that were not found on a day."""
        return cls.key.query(day=day)


class EventToken(Entity, table=events):
    """What a request with an idempotency token has recorded, so that its repetition records nothing."""

    key = Key("token#{user_id}", "{token}")

    user_id: Annotated[UserId, Attr("token_user_id")]
    token: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    #: A digest of the request; another one under the same token is an error.
    digest: str
    timestamp: datetime
    event_ids: list[str]
    expires_at: Annotated[datetime | None, TTL()] = None
