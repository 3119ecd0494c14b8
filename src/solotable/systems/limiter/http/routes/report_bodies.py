"""The bodies of usage, the audit trail and namespaces, each with an example."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from solotable.systems.limiter.admin.namespaces import Namespace

from .bodies import EXAMPLE_AT, EXAMPLE_ID, Number, answered, sent
from .dependencies import NAMESPACE


class UsageOut(BaseModel):
    """What an entity used of a resource in one window."""

    model_config = answered(
        {
            "entity": "user-1",
            "resource": "gpt-4",
            "window": "hour",
            "start": "2026-11-15T09:00:00Z",
            "end": "2026-11-15T10:00:00Z",
            "events": 3,
            "tokens": {"rpm": 3, "tpm": 1720},
        }
    )

    entity: str
    resource: str
    window: str
    start: datetime
    end: datetime
    events: int
    tokens: dict[str, Number]


class LimitUsageOut(BaseModel):
    """What was used of one limit: in all, on average, and at most in one window."""

    model_config = answered({"total": 1720, "mean": 860.0, "peak": 1000, "peak_at": EXAMPLE_AT})

    total: Number
    mean: float
    peak: Number
    peak_at: datetime


class SummaryOut(BaseModel):
    """What rows of usage come to."""

    model_config = answered(
        {"window": "hour", "since": None, "until": None, "windows": 0, "events": 0, "limits": {}}
    )

    window: str
    since: datetime | None = None
    until: datetime | None = None
    windows: int
    events: int
    limits: dict[str, LimitUsageOut]


class AuditOut(BaseModel):
    """Who changed what, and when."""

    model_config = answered(
        {
            "at": EXAMPLE_AT,
            "event_id": EXAMPLE_ID,
            "action": "limits_set",
            "entity": "user-1",
            "title": "user-1",
            "actor_id": "ops",
            "snapshot": {"rules": "rpm=60/60"},
            "changes": {},
        }
    )

    at: datetime
    event_id: str
    action: str
    entity: str | None = None
    resource: str | None = None
    title: str
    actor_id: str | None = None
    actor_name: str | None = None
    actor_email: str | None = None
    request_id: str | None = None
    snapshot: dict[str, Any]
    changes: dict[str, Any]


class NamespaceBody(BaseModel):
    """A namespace that is to be."""

    model_config = sent({"name": "acme"})

    name: Annotated[str, Field(pattern=NAMESPACE)]


class NamespaceOut(BaseModel):
    """A namespace; `id` is what its items are kept under."""

    model_config = answered(
        {"name": "acme", "id": EXAMPLE_ID, "status": "active", "deleted": None, "created": EXAMPLE_AT}
    )

    name: str
    id: str
    status: Literal["active", "deleted", "purging"]
    deleted: datetime | None = None
    created: datetime | None = None

    @classmethod
    def of(cls, namespace: Namespace) -> Self:
        """Return a namespace as it is answered."""
        return cls(**namespace.model_dump(include=set(cls.model_fields)))


class PurgeOut(BaseModel):
    """How far a purge is; ask again until it is done."""

    model_config = answered({"namespace": "acme", "looked_at": 1000, "removed": 12, "done": False})

    namespace: str
    looked_at: int
    removed: int
    done: bool
