"""Events: what was done to an entity, by whom and when, readable without another query.

An event is written by the mutation itself and never changed; nothing here sends or stores one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

EventVerb = Literal["created", "updated", "deleted", "undeleted"]


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Actor(_Fact):
    """Who does something; a name or an address makes the record readable for people."""

    id: str
    name: str | None = None
    email: str | None = None


class Target(_Fact):
    """What something was done to: the entity's name, the parts of its key, and what people call it."""

    entity: str
    key: dict[str, Any]
    title: str | None = None


class Difference(_Fact):
    """A field as it was and as it is; None is absent."""

    before: Any = None
    after: Any = None


class Event(_Fact):
    """One mutation of one entity.

    `snapshot` has the fields after it, of a deleted entity those before; `changes` has what an update
    changed. `id` is the same however often the event is delivered.
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
    changes: dict[str, Difference] = {}
    request_id: str | None = None
