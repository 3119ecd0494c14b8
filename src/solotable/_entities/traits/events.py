"""Event: one change of an entity, with actor, time and fields. An event is immutable."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

EventVerb = Literal["created", "updated", "deleted", "undeleted"]


class _FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Actor(_FrozenModel):
    """The user or program that makes a change; name and email are for readers of audit events."""

    id: str
    name: str | None = None
    email: str | None = None


class Target(_FrozenModel):
    """The changed entity: its class name, the parts of its key, and its title."""

    entity: str
    key: dict[str, Any]
    title: str | None = None


class EventChange(_FrozenModel):
    """A field before and after a change; None means absent."""

    before: Any = None
    after: Any = None


class Event(_FrozenModel):
    """One change of one entity.

    `snapshot` has the fields after the change, or before a delete. `changes` has the fields that an update
    changed. `id` stays the same when the event is delivered more than once.
    """

    id: str
    at: datetime
    table: str
    verb: EventVerb
    tenant: str | None = None
    actor: Actor | None = None
    target: Target
    version: int | None = None
    snapshot: dict[str, Any]
    changes: dict[str, EventChange] = {}
    request_id: str | None = None
