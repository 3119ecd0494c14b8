"""Content: its metadata, its status and its file (S3.2 to S3.10).

`version` is the free text of the written design. `revision` is the optimistic lock that it lacks (C3.12).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, Field

from solotable import Created, Entity, Key, Query, Updated, Version, new_id, pattern
from solotable.systems.portal.tables import content_registry

from .values import ContentId, ExpiryPolicy, Line, ProductName, Status, Tags, Text, Time, UserId, VersionText

#: Of each status. One takes 1,000 writes a second.
STATUS_SHARDS = 4


class Content(Entity, table=content_registry):
    """An item of enablement content."""

    key = Key(("content_id",))
    by_status = Key(
        "{status}",
        "{status}#{last_updated:us}#{content_id}",
        index="by_status_updated",
        shards=STATUS_SHARDS,
    )
    by_product = Key(
        "{product_suite}#{product_concept}", "{last_updated:us}#{content_id}", index="by_product"
    )
    by_suite = Key(("product_suite",), ("last_updated",), index="by_suite")
    by_owner = Key(("owner_user_id",), ("last_updated",), index="by_owner")
    #: Only content that can expire: the expiry job reads what is due and nothing else (C3.9).
    by_expiry = Key(
        "EXPIRY",
        "{expiry_date:us}#{content_id}",
        index="by_expiry",
        shards=STATUS_SHARDS,
        when={"status": {"Draft", "Approved", "Deprecated"}},
    )

    content_id: ContentId = Field(default_factory=new_id)
    status: Status = "Draft"
    title: Line
    summary: Text = ""
    product_suite: ProductName | None = None
    product_concept: ProductName | None = None
    audience_role: Line | None = None
    lifecycle_stage: Line | None = None
    owner_user_id: UserId
    tags: Tags = Field(default_factory=list)
    version: VersionText = "1.0"
    created_at: Annotated[datetime | None, Created()] = None
    last_updated: Annotated[datetime | None, Updated()] = None
    #: When the status changed last. It increases with every change, so it numbers them.
    status_changed_at: Time | None = None
    #: Who changed it; None for the expiry job.
    status_changed_by: UserId | None = None
    review_due_date: Time | None = None
    effective_date: Time | None = None
    expiry_date: Time | None = None
    expiry_policy: ExpiryPolicy | None = None
    s3_uri: str | None = None
    file_name: Line | None = None
    content_type: str | None = None
    size_bytes: Annotated[int, Field(ge=0)] | None = None
    s3_bucket: str | None = None
    s3_key: str | None = None
    uploaded_at: Time | None = None
    revision: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def with_status(cls, status: Status) -> Query[ContentSummary]:
        """The content of a status, newest first (S3.7)."""
        return cls.by_status.query(status=status).descending().select(ContentSummary)

    @pattern
    @classmethod
    def of_product(cls, product_suite: str, product_concept: str) -> Query[ContentSummary]:
        """The content of a suite and a concept, newest first (S3.8)."""
        found = cls.by_product.query(product_suite=product_suite, product_concept=product_concept)
        return found.descending().select(ContentSummary)

    @pattern
    @classmethod
    def of_suite(cls, product_suite: str) -> Query[ContentSummary]:
        """The content of a suite, whatever its concept, newest first (C3.4)."""
        return cls.by_suite.query(product_suite=product_suite).descending().select(ContentSummary)

    @pattern
    @classmethod
    def of_owner(cls, owner_user_id: str) -> Query[ContentSummary]:
        """The content of a user, newest first."""
        return cls.by_owner.query(owner_user_id=owner_user_id).descending().select(ContentSummary)

    @pattern
    @classmethod
    def due(cls, now: datetime) -> Query[ContentReference]:
        """The content whose expiry date has passed and that is not Expired, the longest overdue first."""
        return cls.by_expiry.query().until(expiry_date=now).select(ContentReference)


class ContentReference(BaseModel):
    """The id of content."""

    content_id: str


class ContentSummary(BaseModel):
    """Content in a list."""

    content_id: str
    status: Status
    title: str
    summary: str = ""
    product_suite: str | None = None
    product_concept: str | None = None
    audience_role: str | None = None
    lifecycle_stage: str | None = None
    owner_user_id: str
    tags: list[str] = Field(default_factory=list)
    version: str = ""
    last_updated: datetime | None = None
    expiry_date: datetime | None = None
    file_name: str | None = None
    size_bytes: int | None = None
    revision: int = 0

    @classmethod
    def of(cls, content: Content) -> Self:
        """Return the summary of content."""
        return cls.model_validate(content, from_attributes=True)
