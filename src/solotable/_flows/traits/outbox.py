"""Outbox events in the transaction of their write, and the audit trail. Delivers nothing.

The id of an event is a hash of the table, the key, the version, the verb, the time and a nonce, because an
entity that is created again restarts its versions. Events hold values in wire form, so that a request does
not pay for a conversion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

from solotable._entities.codecs.opaque.frames import expand
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.traits.events import Event, EventVerb
from solotable._entities.traits.outbox import Outbox
from solotable._expressions.ast import Exists, Not
from solotable._flows.consumption import measured
from solotable._flows.internal_items import internal_key, internal_partition, only_table, partition_terms
from solotable._flows.reads.query import FilledPage
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.transactions.write import Change, DerivedWrite, Stored
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import PutItem, Query
from solotable._values import Item, item_size
from solotable._values.codec import dump, load
from solotable._values.limits import LARGEST_ITEM
from solotable.errors import ConditionFailed, DataError, SolotableError

#: The type tags of events that wait for delivery, and of delivered events in the audit trail.
OUTBOX, AUDIT = "_outbox", "_audit"
#: The attribute that holds the event; one attribute cannot collide with a table's key names.
EVENT = "event"
_DAY = timedelta(days=1)


def event(scope: Scope, trait: Outbox, change: Change) -> Iterator[DerivedWrite]:
    """Yield the put of the event of a change."""
    plan = change.plan
    current = change.after or change.before
    if current is None:
        return
    verb: EventVerb = "created" if change.before is None else "deleted" if change.after is None else "updated"
    if change.soft and change.before is None:
        verb = "undeleted"
    if scope.actor is None and trait.actor_required:
        raise DataError(
            f"Writes of {plan.name} need an actor for its audit trail; use db.acting(Actor(id=...))."
        )
    now = scope.now()
    tenant = None if plan.tenant is None else str(getattr(current.entity, plan.tenant))
    version = None if plan.version is None else int(getattr(current.entity, plan.version))
    key = {name: current.item[name] for name in plan.primary.names}
    identity = (plan.table.name, sorted(key.items()), version, verb, now, scope.tokens())
    event_id = blake2b(repr(identity).encode(), digest_size=16).hexdigest()
    content: Item = {
        "id": {"S": event_id},
        "at": {"S": stamp(now)},
        "verb": {"S": verb},
        "target": {"M": _target(trait, plan, current)},
        "snapshot": {"M": _snapshot(trait, plan, current.item)},
    }
    texts = (("tenant", tenant), ("request_id", scope.request_id))
    content |= {each: {"S": text} for each, text in texts if text}
    if version is not None:
        content["version"] = {"N": str(version)}
    if scope.actor is not None:
        content["actor"] = dump(scope.actor.model_dump(exclude_none=True))
    if change.before is not None and change.after is not None:
        content["changes"] = {"M": _differences(trait, plan, change.before.item, change.after.item)}
    item: Item = {
        **internal_key(plan.table, internal_partition("OUTBOX", tenant), f"{stamp(now)}#{event_id}"),
        plan.table.internal_tag: {"S": OUTBOX},
        EVENT: {"M": content},
    }
    if trait.days is not None and plan.table.ttl is not None:
        item[plan.table.ttl] = {"N": str(int((now + trait.days * _DAY).timestamp()))}
    if (size := item_size(item)) > LARGEST_ITEM:
        raise DataError(
            f"The event of {plan.name} has {size:,} bytes, and DynamoDB accepts {LARGEST_ITEM:,}; "
            f"limit its fields with Outbox(snapshot=(...))."
        )
    yield DerivedWrite(
        action=PutItem(table=scope.table(plan.table), item=item),
        title=f"the event of {plan.name}",
        explain=lambda _: _event_error(plan),
    )


def load_event(table: Table, item: Item) -> Event:
    """Return the event that an item of the outbox or of the audit trail holds."""
    values = load(item[EVENT])
    return Event.model_validate({**values, "at": read_stamp(values["at"]), "table": table.name})


def audit_item(table: Table, item: Item, *, days: int | None) -> Item:
    """Return the audit item of an outbox event: `AUDIT#<time>#<id>` in the partition of its tenant."""
    content = item[EVENT]["M"]
    partition = internal_partition("AUDIT", content.get("tenant", {}).get("S"))
    sort = f"AUDIT#{content['at']['S']}#{content['id']['S']}"
    found: Item = {
        **internal_key(table, partition, sort),
        table.internal_tag: {"S": AUDIT},
        EVENT: item[EVENT],
    }
    if days is not None and table.ttl is not None:
        until = read_stamp(content["at"]["S"]) + days * _DAY
        found[table.ttl] = {"N": str(int(until.timestamp()))}
    return found


def keep_audit(scope: Scope, table: Table, item: Item, *, days: int | None = None) -> Flow[bool]:
    """Put an event into the audit trail unless it exists; return whether it was new."""
    absent = Not(Exists((table.partition.name,)))
    request = PutItem(table=scope.table(table), item=audit_item(table, item, days=days), condition=absent)
    try:
        yield from send(request, scope.retries)
    except ConditionFailed:
        return False
    return True


@measured
def audit_page(scope: Scope, table: Table | None, *, limit: int, cursor: str | None) -> Flow[FilledPage]:
    """Return a page of the scope's audit trail, newest first, with one Query."""
    if limit < 1:
        raise DataError(f"limit= must be at least 1, got {limit}.")
    chosen = only_table(scope, table, "has the audit trail")
    name = internal_partition("AUDIT", scope.tenant)
    bound_to = repr(("audit", chosen.name, scope.tenant)).encode()
    request = Query(
        table=scope.table(chosen),
        key=partition_terms(chosen, name),
        forward=False,
        limit=limit,
        start=None if cursor is None else scope.cursor_signer.verify(cursor, bound_to),
    )
    reply = yield from send(request, scope.retries)
    events = [load_event(chosen, item) for item in decode_items(reply.items or ())]
    next_cursor = scope.cursor_signer.sign(reply.last_key, bound_to) if reply.last_key else None
    return FilledPage(events, next_cursor, reply.scanned)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An event that a sink has rejected in every attempt, and its last error."""

    event: Event
    sink: str
    error: str
    attempts: int


#: The type tag of events that could not be delivered.
DEAD = "_dead"


def bury(
    scope: Scope, table: Table, item: Item, *, consumer: str, sink: str, error: str, attempts: int
) -> Flow[None]:
    """Store an event that a sink has rejected in every attempt; a repetition overwrites it."""
    content = item[EVENT]["M"]
    sort = f"{content['at']['S']}#{content['id']['S']}#{sink}"
    letter: Item = {
        **internal_key(table, internal_partition("DEAD", consumer), sort),
        table.internal_tag: {"S": DEAD},
        "sink": {"S": sink},
        "error": {"S": error},
        "attempts": {"N": str(attempts)},
        EVENT: item[EVENT],
    }
    yield from send(PutItem(table=scope.table(table), item=letter), scope.retries)


def dead_letters(scope: Scope, table: Table, consumer: str) -> Flow[list[tuple[Item, DeadLetter]]]:
    """Return the dead letters of a consumer with their items, oldest first."""
    found: list[tuple[Item, DeadLetter]] = []
    start = None
    while True:
        key = partition_terms(table, internal_partition("DEAD", consumer))
        reply = yield from send(Query(table=scope.table(table), key=key, start=start), scope.retries)
        for item in decode_items(reply.items or ()):
            letter = DeadLetter(
                event=load_event(table, item),
                sink=item["sink"]["S"],
                error=item["error"]["S"],
                attempts=int(item["attempts"]["N"]),
            )
            found.append((item, letter))
        start = reply.last_key
        if not start:
            return found


def stamp(moment: datetime) -> str:
    """Return a timestamp as text that sorts by time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_stamp(text: str) -> datetime:
    """Parse the text of `stamp`."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def _target(trait: Outbox, plan: Plan, current: Stored) -> Item:
    parts = (part for part in plan.primary.parts if part != plan.tenant)
    key = {part: value for part in parts if (value := _wire_value(plan, part, current.item)) is not None}
    title = None if trait.title is None else getattr(current.entity, trait.title)
    shown: Item = {"entity": {"S": plan.name}, "key": {"M": key}}
    return shown if title is None else {**shown, "title": {"S": str(title)}}


def _snapshot(trait: Outbox, plan: Plan, item: Item) -> Item:
    return {
        name: value for name in _fields(trait, plan) if (value := _wire_value(plan, name, item)) is not None
    }


def _differences(trait: Outbox, plan: Plan, before: Item, after: Item) -> Item:
    found: Item = {}
    for name in _fields(trait, plan):
        old, new = _wire_value(plan, name, before), _wire_value(plan, name, after)
        if old != new and name != plan.version:
            states = (("before", old), ("after", new))
            found[name] = {"M": {state: value for state, value in states if value is not None}}
    return found


def _fields(trait: Outbox, plan: Plan) -> Iterable[str]:
    if trait.snapshot is not None:
        return trait.snapshot
    # An event leaves the table, so it has no encrypted values.
    return [name for name, attribute in plan.attributes.items() if attribute.encrypted is None]


def _wire_value(plan: Plan, field: str, item: Item) -> Any:
    attribute = plan.attributes[field]
    value = item.get(attribute.wire)
    if value is None or attribute.compressed is None:
        return value
    return expand(value, f"{plan.name}.{field}", attribute.compressed.max_bytes)


def _event_error(plan: Plan) -> SolotableError:
    return DataError(f"DynamoDB rejected the event of {plan.name}; nothing was written.")
