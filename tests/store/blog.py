"""A table with a stream, whose entities leave events."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from solotable import FROM_SCOPE, Entity, Event, Key, Outbox, SoftDelete, Table, Version

blog = Table("Blog", tenant="tenant_id", ttl="expires_at", stream=True)


class Post(Entity, table=blog):
    """Leaves an event of every change."""

    key = Key("TENANT#{tenant_id}", "POST#{post_id}")
    events = Outbox(title="title")
    tenant_id: str = FROM_SCOPE
    post_id: str
    title: str
    status: str = "draft"
    tags: set[str] = Field(default_factory=set)
    secret: str | None = None
    version: Annotated[int, Version()] = 0


class Member(Entity, table=blog):
    """Leaves events of some fields, and only for somebody."""

    key = Key("TENANT#{tenant_id}", "MEMBER#{member_id}")
    events = Outbox(title="name", snapshot=("name",), actor_required=True, days=30)
    tenant_id: str = FROM_SCOPE
    member_id: str
    name: str
    password_hash: str = ""
    version: Annotated[int, Version()] = 0


class Note(Entity, table=blog):
    """Leaves nothing."""

    key = Key("TENANT#{tenant_id}", "NOTE#{note_id}")
    tenant_id: str = FROM_SCOPE
    note_id: str
    text: str = ""


class AuditRecord(Entity, table=blog):
    """An audit trail of one's own: newest last by its key, read backwards."""

    key = Key("TENANT#{tenant_id}", "AUDIT#{at}#{event_id}")
    tenant_id: str = FROM_SCOPE
    at: str
    event_id: str
    email: str | None = None
    title: str | None = None

    @classmethod
    def of(cls, event: Event) -> AuditRecord:
        return cls(
            tenant_id=event.tenant or "",
            at=event.at.isoformat(),
            event_id=event.id,
            email=None if event.actor is None else event.actor.email,
            title=event.target.title,
        )


class Draft(Entity, table=blog):
    """Can be had back after it was deleted."""

    key = Key("TENANT#{tenant_id}", "DRAFT#{draft_id}")
    events = Outbox()
    deletion = SoftDelete(grace=timedelta(days=3))
    tenant_id: str = FROM_SCOPE
    draft_id: str
    version: Annotated[int, Version()] = 0
