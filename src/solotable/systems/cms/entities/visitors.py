"""What visitors leave: comments, leads with their messages, and consents.

Corrections of the written design, and why:

- C0.4: `COMMENT#<page>#<timestamp>` and `CONSENT#<visitor>#<timestamp>` are the same key for two events of
  one millisecond, and the second would replace the first. An id stands behind the time, and both are only
  ever created. A consent's time is the server's; what the browser claims is a field beside it.
- C0.13: `LEAD#<email>` had an address in keys, cursors, logs and traces. The key is `LEAD#<digest>`, which
  follows from the tenant and the normalised address, so there is one lead for an address all the same.
  Events carry `label`, the address with its name hidden, so that the audit trail survives an erasure.
- The two indexes hold no address: public lists are read from them alone.
- A message of the contact form is an item of its own, created and never changed: what somebody writes often
  has no limit but that of one message, and it is erased with the lead.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from solotable import FROM_SCOPE, Created, Entity, Json, Key, Outbox, Query, Updated, Version, new_id, pattern
from solotable.systems.cms.formats.json_sizes import at_most
from solotable.systems.cms.table import OF_TENANT, cms

#: Bytes of JSON that are kept with a lead.
MOST_DATA = 20_000
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
        """The comments on a page in the order of time, with addresses: for editors."""
        return cls.key.query(page_id=page_id).select(CommentDetail)

    @pattern
    @classmethod
    def in_status(cls, status: CommentStatus) -> Query[CommentSummary]:
        """The comments in a status, for moderation."""
        return cls.by_status.query(status=status).select(CommentSummary)

    @pattern
    @classmethod
    def shown(cls, page_id: str) -> Query[CommentSummary]:
        """The approved comments on a page in the order of time, without addresses: for everybody."""
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
    """Somebody who left their address; one for each address."""

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
    data: Annotated[dict[str, Any], at_most(MOST_DATA), Json()] = Field(default_factory=dict)
    submissions: int = 1
    last_submitted: datetime | None = None
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_tenant(cls) -> Query[LeadDetail]:
        """The leads of a tenant, with their addresses and without what was sent along."""
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
    """What a lead wrote in the contact form. Created, never changed."""

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
    def whole_of_lead(cls, lead_id: str) -> Query[Self]:
        """The messages of a lead, for an erasure."""
        return cls.key.query(lead_id=lead_id)

    @pattern
    @classmethod
    def listed(cls) -> Query[MessageSummary]:
        """The messages of a tenant, the latest first."""
        return cls.by_type.query().descending().select(MessageSummary)


class MessageSummary(BaseModel):
    """What a list shows of a message."""

    lead_id: str
    at: datetime
    message_id: str
    label: str
    name: str = ""
    body: str


class Consent(Entity, table=cms):
    """What a visitor agreed to, or refused, and the words that were shown. Created, never changed."""

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
        """What a visitor decided, the latest decision first, whole."""
        return cls.key.query(visitor_id=visitor_id).descending()

    @pattern
    @classmethod
    def listed(cls, visitor_id: str) -> Query[ConsentSummary]:
        """What a visitor decided, the latest decision first."""
        return cls.key.query(visitor_id=visitor_id).descending().select(ConsentSummary)


class ConsentSummary(BaseModel):
    """What a list shows of a consent."""

    visitor_id: str
    at: datetime
    consent_id: str
    choices: dict[str, bool]
    policy_version: str
    claimed_at: datetime | None = None
    user_agent: str = ""
