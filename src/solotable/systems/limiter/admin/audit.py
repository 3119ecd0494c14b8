"""The audit trail: who changed which entity, limits or namespace; 90 days in the table, longer as an archive.

Writes leave their events in their own transactions (`Outbox`); delivery makes a record of each, under a key
that follows from the event alone, so that one delivered twice is kept once. What is done to the registry of
namespaces is in the trail of the reserved namespace `_`, which outlives every other.

Acquires are not in here: they are counted by usage.
"""

from __future__ import annotations

import gzip
import json
from datetime import datetime, timedelta
from typing import Annotated, Any, BinaryIO, Literal, Self

from pydantic import Field

from solotable._entities.declare.fields import FROM_SCOPE, TTL, Json
from solotable._entities.keys.key import Key
from solotable._entities.patterns.pattern import pattern
from solotable._entities.patterns.query import Query
from solotable._entities.traits.events import Event, EventVerb
from solotable._entities.traits.retention import Retention
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.verbs import query
from solotable._store.page import Page
from solotable.errors import DataError
from solotable.jobs.sinks import AuditSink
from solotable.systems.limiter.table import limiter

from .entities import RESERVED, FlatEntity
from .names import DEFAULT, entity_name

KEPT = timedelta(days=90)
_AT_ONCE = 500

Action = Literal[
    "entity_created",
    "entity_updated",
    "entity_deleted",
    "limits_set",
    "limits_deleted",
    "namespace_created",
    "namespace_purging",
    "namespace_deleted",
    "namespace_recovered",
    "namespace_purged",
]


class AuditRecord(FlatEntity, table=limiter):
    """One change, readable without another query."""

    key = Key("{namespace}#AUDIT", "AUDIT#{at:us}#{event_id}")
    by_entity = Key("{namespace}#AUDIT#{entity}", "{at:us}#{event_id}", index="GSI1")
    retention = Retention(KEPT, since="at")

    namespace: str = FROM_SCOPE
    at: datetime
    event_id: str
    action: Action
    #: The entity that it is about, None for resources, the system and namespaces.
    entity: str | None = None
    #: The resource, None for all of them.
    resource: str | None = None
    #: What people call it.
    title: str
    actor_id: str | None = None
    actor_name: str | None = None
    actor_email: str | None = None
    request_id: str | None = None
    snapshot: Annotated[dict[str, Any], Json()] = Field(default_factory=dict)
    changes: Annotated[dict[str, Any], Json()] = Field(default_factory=dict)
    expires: Annotated[datetime | None, TTL()] = None

    @pattern
    @classmethod
    def of_namespace(cls) -> Query[Self]:
        """The trail of a namespace, newest first."""
        return cls.key.query().descending()

    @pattern
    @classmethod
    def of_entity(cls, entity: str) -> Query[Self]:
        """The trail of an entity and its limits, newest first."""
        return cls.by_entity.query(entity=entity).descending()

    @classmethod
    def of(cls, event: Event) -> AuditRecord:
        """Return the record of an event."""
        shown = event.model_dump(mode="json", include={"snapshot", "changes"})
        actor, snapshot = event.actor, shown["snapshot"]
        entity, resource, title = _about(event, snapshot)
        return cls(
            namespace=event.tenant or RESERVED,
            at=event.at,
            event_id=event.id,
            action=action_of(event.target.entity, event.verb, snapshot, shown["changes"]),
            entity=entity,
            resource=resource,
            title=title,
            actor_id=None if actor is None else actor.id,
            actor_name=None if actor is None else actor.name,
            actor_email=None if actor is None else actor.email,
            request_id=event.request_id,
            snapshot=snapshot,
            changes=shown["changes"],
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON has it."""
        return self.model_dump(mode="json", exclude={"expires"}, exclude_none=True)


def audit_sink() -> AuditSink:
    """Return the sink that keeps the trail: `deliver(db, [audit_sink()])`."""
    return AuditSink(AuditRecord.of)


def audit(
    scope: Scope, *, entity: str | None = None, limit: int = 50, cursor: str | None = None
) -> Flow[Page[AuditRecord]]:
    """Return a page of a namespace's trail, or of one entity's, newest first."""
    asked = AuditRecord.of_namespace() if entity is None else AuditRecord.of_entity(entity_name(entity))
    return Page.of((yield from query.page(scope, asked, limit=limit, cursor=cursor)))


def registry_audit(scope: Scope, *, limit: int = 50, cursor: str | None = None) -> Flow[Page[AuditRecord]]:
    """Return a page of what was done to namespaces themselves, newest first."""
    return (yield from audit(scope.of_tenant(RESERVED), limit=limit, cursor=cursor))


def archive(scope: Scope, file: BinaryIO, *, before: datetime, since: datetime | None = None) -> Flow[int]:
    """Write the trail of a namespace into a file as gzip of JSON lines, oldest first; return how many.

    The same records give the same bytes. Nothing is removed: the time to live does that.
    """
    if since is not None and since >= before:
        raise DataError(f"An archive ends after it begins; {since} to {before} was given.")
    asked = AuditRecord.key.query()
    asked = asked.before(at=before) if since is None else asked.between(at=(since, before))
    prepared = query.prepare(scope, asked)
    count, start = 0, None
    with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
        while True:
            some = yield from query.rows(scope, prepared, start, _AT_ONCE)
            for record in some.rows:
                if record.at < before:
                    packed.write(json.dumps(record.as_dict(), sort_keys=True).encode() + b"\n")
                    count += 1
            start = some.last_key
            if start is None:
                return count


def action_of(target: str, verb: EventVerb, snapshot: dict[str, Any], changes: dict[str, Any]) -> Action:
    """Return what an event was, in the limiter's words."""
    if target == "StoredLimits":
        return "limits_set" if snapshot.get("state") else "limits_deleted"
    if target == "Namespace":
        if verb == "deleted":
            return "namespace_purged"
        status = changes.get("status", {}).get("after")
        if status == "active":
            return "namespace_recovered"
        return "namespace_deleted" if status == "deleted" else _PLAIN["namespace", verb]
    return _PLAIN["entity", verb]


_PLAIN: dict[tuple[str, str], Action] = {
    ("entity", "created"): "entity_created",
    ("entity", "updated"): "entity_updated",
    ("entity", "deleted"): "entity_deleted",
    ("namespace", "created"): "namespace_created",
    ("namespace", "updated"): "namespace_purging",
}


def _about(event: Event, snapshot: dict[str, Any]) -> tuple[str | None, str | None, str]:
    """Return the entity and the resource that an event is about, and what people call it."""
    if event.target.entity == "StoredLimits":
        owner, resource = snapshot["owner"], snapshot["resource"]
        entity = None if owner == DEFAULT else owner
        on = None if resource == DEFAULT else resource
        return entity, on, " on ".join(filter(None, (entity, on))) or "system"
    title = event.target.title
    if event.target.entity == "LimitedEntity":
        return snapshot["entity_id"], None, title or snapshot["entity_id"]
    return None, None, title or event.target.entity
