"""The audit trail of entities, limits and namespaces: 90 days in the table, longer as an archive.

Writes record their events in their own transactions (`Outbox`). Delivery makes an audit record of each, with
a key that depends on the event alone, so that an event that is delivered twice is recorded once. Changes of
the registry of namespaces are in the trail of the reserved namespace `_`, which is never purged.

Acquires are not audited; usage counts them.
"""

from __future__ import annotations

import gzip
import json
from datetime import datetime, timedelta
from typing import Annotated, Any, BinaryIO, Literal, Self

from pydantic import Field

from solotable import FROM_SCOPE, TTL, Event, Json, Key, Page, Query, Retention, pattern
from solotable.errors import DataError
from solotable.flow import Flow, Scope, page
from solotable.jobs.sinks import AuditSink
from solotable.systems.limiter.table import limiter

from .entities import RESERVED, FlatEntity
from .names import DEFAULT, entity_name

RETENTION = timedelta(days=90)
_PAGE_RECORDS = 500

Action = Literal[
    "entity_created",
    "entity_updated",
    "entity_deleted",
    "limits_set",
    "limits_deleted",
    "limits_reset",
    "mode_set",
    "topped_up",
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
    retention = Retention(RETENTION, since="at")

    namespace: str = FROM_SCOPE
    at: datetime
    event_id: str
    action: Action
    #: The entity, None for resources, the system and namespaces.
    entity: str | None = None
    #: The resource, None for all resources.
    resource: str | None = None
    #: The name for users.
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
        content = event.model_dump(mode="json", include={"snapshot", "changes"})
        entity, resource, title = _subject(event, content["snapshot"])
        actor = {} if event.actor is None else event.actor.model_dump(include={"id", "name", "email"})
        return cls(
            namespace=event.tenant or RESERVED,
            at=event.at,
            event_id=event.id,
            action=action_of(event.target.entity, event.verb, **content),
            entity=entity,
            resource=resource,
            title=title,
            request_id=event.request_id,
            **{f"actor_{name}": value for name, value in actor.items()},
            **content,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON has it."""
        return self.model_dump(mode="json", exclude={"expires"}, exclude_none=True)


def audit_sink() -> AuditSink:
    """Return the sink that writes the trail: `deliver(db, [audit_sink()])`."""
    return AuditSink(AuditRecord.of)


def audit(
    scope: Scope, *, entity: str | None = None, limit: int = 50, cursor: str | None = None
) -> Flow[Page[AuditRecord]]:
    """Return a page of a namespace's trail, or of one entity's, newest first."""
    rows = AuditRecord.of_namespace() if entity is None else AuditRecord.of_entity(entity_name(entity))
    return (yield from page(scope, rows, limit=limit, cursor=cursor))


def registry_audit(scope: Scope, *, limit: int = 50, cursor: str | None = None) -> Flow[Page[AuditRecord]]:
    """Return a page of the changes of namespaces, newest first."""
    return audit(scope.of_tenant(RESERVED), limit=limit, cursor=cursor)


def archive(scope: Scope, file: BinaryIO, *, before: datetime, since: datetime | None = None) -> Flow[int]:
    """Write the trail of a namespace to a file as gzipped JSON lines, oldest first; return how many.

    The same records give the same bytes. Nothing is deleted: the time to live does that.
    """
    if since is not None and since >= before:
        raise DataError(f"An archive ends after it begins; got {since} to {before}.")
    rows = AuditRecord.key.query()
    rows = rows.before(at=before) if since is None else rows.between(at=(since, before))
    count, cursor = 0, None
    with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
        while True:
            found = yield from page(scope, rows, limit=_PAGE_RECORDS, cursor=cursor)
            for record in found:
                if record.at < before:
                    packed.write(json.dumps(record.as_dict(), sort_keys=True).encode() + b"\n")
                    count += 1
            cursor = found.cursor
            if cursor is None:
                return count


_ACTIONS: dict[tuple[str, str], Action] = {
    ("LimitedEntity", "created"): "entity_created",
    ("LimitedEntity", "updated"): "entity_updated",
    ("LimitedEntity", "deleted"): "entity_deleted",
    ("Namespace", "created"): "namespace_created",
    ("Namespace", "deleted"): "namespace_purged",
}
_STATUS_ACTIONS: dict[str, Action] = {"active": "namespace_recovered", "deleted": "namespace_deleted"}


def action_of(target: str, verb: str, snapshot: dict[str, Any], changes: dict[str, Any]) -> Action:
    """Return what an event was, in the limiter's words."""
    if target == "StoredLimits":
        return _level_action(snapshot, changes)
    if target == "TopUp":
        return "topped_up"
    if target == "Namespace" and verb == "updated":
        return _STATUS_ACTIONS.get(changes.get("status", {}).get("after"), "namespace_purging")
    return _ACTIONS[target, verb]


def _level_action(snapshot: dict[str, Any], changes: dict[str, Any]) -> Action:
    """Return what happened to a level; without changes it is new."""
    is_new = not changes
    if "rules" not in changes and "on_unavailable" not in changes:
        if "resets" in changes or (is_new and snapshot.get("resets")):
            return "limits_reset"
        if "mode" in changes or (is_new and snapshot.get("mode") and snapshot.get("rules") is None):
            return "mode_set"
    return "limits_set" if snapshot.get("rules") or snapshot.get("on_unavailable") else "limits_deleted"


def _subject(event: Event, snapshot: dict[str, Any]) -> tuple[str | None, str | None, str]:
    """Return the entity and the resource of an event, and their name for users."""
    title = event.target.title
    if event.target.entity == "StoredLimits":
        entity = None if snapshot["owner"] == DEFAULT else snapshot["owner"]
        resource = None if snapshot["resource"] == DEFAULT else snapshot["resource"]
        return entity, resource, " on ".join(filter(None, (entity, resource))) or "system"
    if event.target.entity == "TopUp":
        return snapshot["entity"], snapshot["resource"], f"{snapshot['entity']} on {snapshot['resource']}"
    if event.target.entity == "LimitedEntity":
        return snapshot["entity_id"], None, title or snapshot["entity_id"]
    return None, None, title or event.target.entity
