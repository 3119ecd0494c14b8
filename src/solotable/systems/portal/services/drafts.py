"""Input of callers: new content and subscriptions, and patches that keep absent fields."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import Field

from solotable.systems.formats.inputs import Input
from solotable.systems.portal.entities.values import (
    ExpiryPolicy,
    Line,
    ProductFilter,
    ProductName,
    Tags,
    Text,
    Time,
    UserId,
    VersionText,
)


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


class ContentDraft(Input):
    """New content. Its owner is the caller, its status Draft."""

    title: Line
    summary: Text = ""
    product_suite: ProductName | None = None
    product_concept: ProductName | None = None
    audience_role: Line | None = None
    lifecycle_stage: Line | None = None
    tags: Tags = Field(default_factory=list)
    version: VersionText = "1.0"
    review_due_date: Time | None = None
    effective_date: Time | None = None
    expiry_date: Time | None = None
    expiry_policy: ExpiryPolicy | None = None


class ContentPatch(Input):
    """A change of content. None removes an optional field."""

    title: Line = "-"
    summary: Text = ""
    product_suite: ProductName | None = None
    product_concept: ProductName | None = None
    audience_role: Line | None = None
    lifecycle_stage: Line | None = None
    tags: Tags = Field(default_factory=list)
    version: VersionText = "1.0"
    review_due_date: Time | None = None
    effective_date: Time | None = None
    expiry_date: Time | None = None
    expiry_policy: ExpiryPolicy | None = None


class OwnerPatch(Input):
    """Another owner of content."""

    owner_user_id: UserId


class FileDetails(Input):
    """The name and the type of an uploaded file."""

    file_name: Line
    content_type: str


class SubscriptionDraft(Input):
    """A new subscription; what is absent, or `*`, matches everything."""

    product_suite: ProductFilter | None = None
    product_concept: ProductFilter | None = None
    tags: Tags = Field(default_factory=list)
