"""The audit trail, and the record that something was erased.

Corrections of the written design, and why:

- C0.12: an event published beside the write is lost, doubled, or tells of a write that failed. Here it is an
  item of the write's own transaction (`Outbox` on the entities); delivery makes an `AuditEvent` of it whose
  key follows from the event alone, so that an event delivered twice is kept once.
- C0.14: the trail is kept for 400 days. It carries no address of a visitor, so an erasure leaves it whole.
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
    Json,
    Key,
    Outbox,
    Query,
    Retention,
    Version,
    new_id,
    pattern,
)
from solotable._entities.traits.events import EventVerb, Target
from solotable.systems.cms.table import OF_TENANT, cms

KEPT = timedelta(days=400)


class AuditEvent(Entity, table=cms):
    """Who did what to what, readable without another query."""

    key = Key(OF_TENANT, "AUDIT#{at:us}#{event_id}")
    retention = Retention(KEPT, since="at")

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
        """The trail of a tenant, newest first."""
        return cls.key.query().descending().select(AuditSummary)

    @classmethod
    def of(cls, event: Event) -> AuditEvent:
        """Return the record of an event; what is done to a tenant itself is in that tenant's own trail."""
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
    """What a list shows of an event: all of it but where it is kept, and for how long."""

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
    """That somebody's data was erased: what kind and how much, and a digest instead of who it was."""

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
        """What was erased for a tenant, the latest first."""
        return cls.key.query().descending().select(ErasureSummary)


class ErasureSummary(BaseModel):
    """What a list shows of an erasure."""

    at: datetime
    erasure_id: str
    subject: Literal["lead", "visitor"]
    digest: str
    removed: dict[str, int] = {}
