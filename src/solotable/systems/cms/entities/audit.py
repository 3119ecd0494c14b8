"""The audit trail, and the records of erasures.

Corrections of the written design:

- C0.12: an event published beside a write can be lost or doubled, or report a write that failed. Here the
  write's transaction stores it (`Outbox` on the entities). Delivery turns it into an `AuditEvent` whose key
  is made from the event alone, so that an event delivered twice is stored once.
- C0.14: the trail is stored for 400 days. It holds no address of a visitor, so an erasure does not change it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from solotable import (
    FROM_SCOPE,
    TTL,
    Actor,
    Entity,
    Event,
    EventVerb,
    Json,
    Key,
    Outbox,
    Query,
    Retention,
    Target,
    Version,
    new_id,
    pattern,
)
from solotable.systems.cms.table import OF_TENANT, cms

AUDIT_RETENTION = timedelta(days=400)


class AuditEvent(Entity, table=cms):
    """One change: the actor, the verb and the target, with enough data to show without another query."""

    key = Key(OF_TENANT, "AUDIT#{at:us}#{event_id}")
    retention = Retention(AUDIT_RETENTION, since="at")

    tenant_id: str = FROM_SCOPE
    at: datetime
    event_id: str
    verb: EventVerb
    actor: Actor | None = None
    target: Target
    target_version: int | None = None
    snapshot: Annotated[dict[str, Any], Json()] = Field(default_factory=dict)
    changes: Annotated[dict[str, Any], Json()] = Field(default_factory=dict)
    request_id: str | None = None
    expires_at: Annotated[datetime | None, TTL()] = None

    @pattern
    @classmethod
    def of_tenant(cls) -> Query[AuditSummary]:
        """The audit trail of a tenant, newest first."""
        return cls.key.query().descending().select(AuditSummary)

    @classmethod
    def of(cls, event: Event) -> AuditEvent:
        """Return the record of an event; a change of a tenant is in the trail of that tenant."""
        shown = event.model_dump(mode="json", include={"snapshot", "changes"})
        return cls(
            tenant_id=event.tenant or str(event.target.key["id"]),
            at=event.at,
            event_id=event.id,
            verb=event.verb,
            actor=event.actor,
            target=event.target,
            target_version=event.version,
            snapshot=shown["snapshot"],
            changes=shown["changes"],
            request_id=event.request_id,
        )


class AuditSummary(BaseModel):
    """An audit event in a list, without its key and its expiry."""

    at: datetime
    event_id: str
    verb: EventVerb
    actor: Actor | None = None
    target: Target
    target_version: int | None = None
    snapshot: dict[str, Any] = {}
    changes: dict[str, Any] = {}
    request_id: str | None = None


class Erasure(Entity, table=cms):
    """The record of an erasure: what was removed, and a digest instead of the person."""

    key = Key(OF_TENANT, "ERASURE#{at:ms}#{erasure_id}")
    events = Outbox(title="subject", snapshot=("subject", "removed"))

    tenant_id: str = FROM_SCOPE
    at: datetime
    erasure_id: str = Field(default_factory=new_id)
    subject: Literal["lead", "visitor"]
    digest: str
    removed: dict[str, int] = Field(default_factory=dict)
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_tenant(cls) -> Query[ErasureSummary]:
        """The erasures of a tenant, the latest first."""
        return cls.key.query().descending().select(ErasureSummary)


class ErasureSummary(BaseModel):
    """An erasure in a list."""

    at: datetime
    erasure_id: str
    subject: Literal["lead", "visitor"]
    digest: str
    removed: dict[str, int] = {}
