"""Subscriptions, and who downloaded content lately (S3.17, S3.18).

C3.11: a subscription without a suite matches every suite, and without a concept every concept. The index
`by_match` has `*` in their place, so the subscribers of content are found by at most four queries and no
scan (C3.9). Its partitions have shards, because one product may have many subscribers.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Self

from pydantic import BaseModel, Field, computed_field

from solotable import TTL, Attr, Created, Entity, Key, Query, SoftDelete, new_id, pattern
from solotable.systems.portal.tables import subscriptions

from .values import ANY_PRODUCT, ContentId, ProductName, Tags, Time, UserId

MATCH_SHARDS = 8
#: How long a stopped subscription can be restored.
UNDO_DAYS = 30
#: How long a download counts as interest in the end of the content (3b).
DOWNLOADER_DAYS = 30


class Subscription(Entity, table=subscriptions):
    """What a user wants to hear of: a suite, a concept, tags; what is absent matches everything."""

    key = Key(("user_id",), ("subscription_id",))
    by_match = Key(
        "{match_suite}#{match_concept}",
        "{user_id}#{subscription_id}",
        index="by_match",
        shards=MATCH_SHARDS,
    )
    deletion = SoftDelete(grace=timedelta(days=UNDO_DAYS))

    user_id: UserId
    subscription_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")] = Field(default_factory=new_id)
    product_suite: ProductName | None = None
    product_concept: ProductName | None = None
    tags: Tags = Field(default_factory=list)
    created_at: Annotated[datetime | None, Created()] = None

    @computed_field  # type: ignore[prop-decorator]  # Pydantic's documented form
    @property
    def match_suite(self) -> str:
        """The suite, or `*`."""
        return self.product_suite or ANY_PRODUCT

    @computed_field  # type: ignore[prop-decorator]  # Pydantic's documented form
    @property
    def match_concept(self) -> str:
        """The concept, or `*`."""
        return self.product_concept or ANY_PRODUCT

    def matches_tags(self, tags: Iterable[str]) -> bool:
        """Whether it has no tags, or one in common with the content; upper and lower case differ."""
        return not self.tags or not set(self.tags).isdisjoint(tags)

    @pattern
    @classmethod
    def of_user(cls, user_id: str) -> Query[Self]:
        """The subscriptions of a user, newest first."""
        return cls.key.query(user_id=user_id).descending()

    @pattern
    @classmethod
    def matching(cls, match_suite: str, match_concept: str) -> Query[Self]:
        """The subscriptions to exactly this suite and concept, or `*`, in the order of their users."""
        return cls.by_match.query(match_suite=match_suite, match_concept=match_concept)


class SubscriptionReference(BaseModel):
    """The key of a subscription."""

    user_id: str
    subscription_id: str


class Downloader(Entity, table=subscriptions):
    """A user who downloaded content in the last 30 days, in the order of the users (3b)."""

    key = Key("downloads#{content_id}", "{user_id}")

    content_id: ContentId
    user_id: Annotated[UserId, Attr("downloader")]
    last_at: Time
    expires_at: Annotated[datetime | None, TTL()] = None

    @pattern
    @classmethod
    def of_content(cls, content_id: str) -> Query[Self]:
        """Who downloaded content in the last 30 days."""
        return cls.key.query(content_id=content_id)


class DownloaderReference(BaseModel):
    """The key of a downloader."""

    content_id: str
    user_id: str
