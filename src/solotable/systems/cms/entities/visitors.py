"""Data of visitors: comments, leads with their messages, and consents.

Corrections of the written design:

- C0.4: `COMMENT#<page>#<timestamp>` and `CONSENT#<visitor>#<timestamp>` are the same key for two events of
  one millisecond, so the second would replace the first. Keys have an id after the time, and writes only
  create. A consent's time is the server's; the time that the browser claims is another field.
- C0.13: `LEAD#<email>` would put an address into keys, cursors, logs and traces. The key is `LEAD#<digest>`,
  made from the tenant and the normalised address, so there is still one lead per address. Events hold
  `label`, the masked address, so that the audit trail survives an erasure.
- The two indexes hold no address; public lists read only these.
- A message of the contact form is a separate item that is created and never changed, so the number of
  messages has no limit. An erasure of the lead removes them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from solotable import FROM_SCOPE, Created, Entity, Json, Key, Outbox, Query, Updated, Version, new_id, pattern
from solotable.systems.cms.table import OF_TENANT, cms
from solotable.systems.formats.json_sizes import max_json_bytes

#: The bytes of a lead's JSON data.
MAX_DATA = 20_000
CommentStatus = Literal["pending", "approved", "rejected", "spam"]
LeadStatus = Literal["new", "contacted", "qualified", "closed"]


class Comment(Entity, table=cms):
    """A comment on a page."""

    key = Key(OF_TENANT, "COMMENT#{page_id}#{at:ms}#{comment_id}")
    by_status = Key(
        "TENANT#{tenant_id}#STATUS#{status}", "COMMENT#{page_id}#{at:ms}#{comment_id}", index="GSI_Status"
    )
    by_author = Key(
        "TENANT#{tenant_id}#TYPE#COMMENT#AUTHOR#{author_id}", "{at:ms}#{comment_id}", index="GSI_Type"
    )
    events = Outbox(title="page_title", snapshot=("page_id", "page_title", "status"))

    tenant_id: str = FROM_SCOPE
    page_id: str
    at: datetime
    comment_id: str = Field(default_factory=new_id)
    page_title: str = ""
    status: CommentStatus = "pending"
    author_id: str | None = None
    author_name: Annotated[str, Field(min_length=1, max_length=100)]
    author_email: str | None = None
    body: Annotated[str, Field(min_length=1, max_length=4000)]
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_page(cls, page_id: str) -> Query[CommentDetail]:
        """The comments on a page, the oldest first, with addresses, for editors."""
        return cls.key.query(page_id=page_id).select(CommentDetail)

    @pattern
    @classmethod
    def in_status(cls, status: CommentStatus) -> Query[CommentSummary]:
        """The comments in a status, for moderation."""
        return cls.by_status.query(status=status).select(CommentSummary)

    @pattern
    @classmethod
    def shown(cls, page_id: str) -> Query[CommentSummary]:
        """The approved comments on a page, the oldest first, without addresses."""
        return cls.by_status.query(status="approved", page_id=page_id).select(CommentSummary)

    @pattern
    @classmethod
    def of_author(cls, author_id: str) -> Query[Self]:
        """The comments of one author, for an erasure."""
        return cls.by_author.query(author_id=author_id)


class CommentSummary(BaseModel):
    """A comment without its author's address."""

    page_id: str
    at: datetime
    comment_id: str
    status: CommentStatus
    author_name: str
    body: str


class CommentDetail(CommentSummary):
    """A comment with its author's address."""

    author_email: str | None = None
    page_title: str = ""
    version: int = 0


class Lead(Entity, table=cms):
    """A visitor who left an address; one lead per address."""

    key = Key(OF_TENANT, "LEAD#{lead_id}")
    by_status = Key("TENANT#{tenant_id}#STATUS#{status}", "LEAD#{lead_id}", index="GSI_Status")
    events = Outbox(title="label", snapshot=("label", "status", "source"))

    tenant_id: str = FROM_SCOPE
    lead_id: str
    email: str
    label: str
    name: Annotated[str, Field(max_length=200)] = ""
    status: LeadStatus = "new"
    source: Annotated[str, Field(max_length=200)] = ""
    data: Annotated[dict[str, Any], max_json_bytes(MAX_DATA), Json()] = Field(default_factory=dict)
    submissions: int = 1
    last_submitted: datetime | None = None
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_tenant(cls) -> Query[LeadDetail]:
        """The leads of a tenant, with their addresses and without their data."""
        return cls.key.query().select(LeadDetail)

    @pattern
    @classmethod
    def in_status(cls, status: LeadStatus) -> Query[LeadSummary]:
        """The leads in a status, without addresses."""
        return cls.by_status.query(status=status).select(LeadSummary)


class LeadSummary(BaseModel):
    """A lead without the address."""

    lead_id: str
    label: str
    status: LeadStatus
    source: str = ""
    created: datetime | None = None


class LeadDetail(LeadSummary):
    """A lead with the address."""

    email: str
    name: str = ""
    submissions: int = 1
    last_submitted: datetime | None = None
    updated: datetime | None = None
    version: int = 0


class Message(Entity, table=cms):
    """A message of a lead from the contact form. Created, never changed."""

    key = Key(OF_TENANT, "MESSAGE#{lead_id}#{at:ms}#{message_id}")
    by_type = Key("TENANT#{tenant_id}#TYPE#MESSAGE", "{at:ms}#{message_id}", index="GSI_Type")

    tenant_id: str = FROM_SCOPE
    lead_id: str
    at: datetime
    message_id: str = Field(default_factory=new_id)
    label: str
    name: Annotated[str, Field(max_length=200)] = ""
    body: Annotated[str, Field(min_length=1, max_length=4000)]

    @pattern
    @classmethod
    def of_lead(cls, lead_id: str) -> Query[MessageSummary]:
        """The messages of a lead, the latest first."""
        return cls.key.query(lead_id=lead_id).descending().select(MessageSummary)

    @pattern
    @classmethod
    def all_of_lead(cls, lead_id: str) -> Query[Self]:
        """The messages of a lead, for an erasure."""
        return cls.key.query(lead_id=lead_id)

    @pattern
    @classmethod
    def listed(cls) -> Query[MessageSummary]:
        """The messages of a tenant, the latest first."""
        return cls.by_type.query().descending().select(MessageSummary)


class MessageSummary(BaseModel):
    """A message in a list."""

    lead_id: str
    at: datetime
    message_id: str
    label: str
    name: str = ""
    body: str


class Consent(Entity, table=cms):
    """The choices of a visitor, and the policy version that was shown. Created, never changed."""

    key = Key(OF_TENANT, "CONSENT#{visitor_id}#{at:ms}#{consent_id}")

    tenant_id: str = FROM_SCOPE
    visitor_id: Annotated[str, Field(min_length=1, max_length=128)]
    at: datetime
    consent_id: str = Field(default_factory=new_id)
    choices: dict[str, bool]
    policy_version: Annotated[str, Field(min_length=1, max_length=100)]
    claimed_at: datetime | None = None
    user_agent: Annotated[str, Field(max_length=400)] = ""

    @pattern
    @classmethod
    def of_visitor(cls, visitor_id: str) -> Query[Self]:
        """The decisions of a visitor with all attributes, the latest first."""
        return cls.key.query(visitor_id=visitor_id).descending()

    @pattern
    @classmethod
    def listed(cls, visitor_id: str) -> Query[ConsentSummary]:
        """The decisions of a visitor, the latest first."""
        return cls.key.query(visitor_id=visitor_id).descending().select(ConsentSummary)


class ConsentSummary(BaseModel):
    """A consent in a list."""

    visitor_id: str
    at: datetime
    consent_id: str
    choices: dict[str, bool]
    policy_version: str
    claimed_at: datetime | None = None
    user_agent: str = ""
