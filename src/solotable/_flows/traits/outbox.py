"""Outbox events in the transaction of their write, and the audit trail. Delivers nothing.

An event's id is fixed when it is written: a hash of the table, the key, the version and the verb, and
of the moment and a nonce, because a key that is created again restarts its versions. Values are kept
as they are stored, so that an event costs no conversion in the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.traits.events import Event, EventVerb
from solotable._entities.traits.outbox import Outbox
from solotable._expressions.ast import Exists, Not
from solotable._flows.internal_items import internal_key, internal_partition, only_table, partition_terms
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.transactions.write import Change, DerivedWrite, Stored
from solotable._flows.verbs.query import FilledPage
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import PutItem, Query
from solotable._values import Item, item_size
from solotable._values.codec import dump, load
from solotable._values.limits import LARGEST_ITEM
from solotable.errors import ConditionFailed, DataError, SolotableError

#: The type tags of events that wait for delivery, and of those that were delivered to the audit trail.
OUTBOX, AUDIT = "_outbox", "_audit"
#: The attribute that holds the event, apart from the names of any table's keys.
EVENT = "event"
_DAY = timedelta(days=1)


def event(scope: Scope, trait: Outbox, change: Change) -> Iterator[DerivedWrite]:
    """Yield the event of a change, to be put with it."""
    plan = change.plan
    stands = change.after or change.before
    if stands is None:
        return
    verb: EventVerb = "created" if change.before is None else "deleted" if change.after is None else "updated"
    if change.soft and change.before is None:
        verb = "undeleted"
    if scope.actor is None and trait.actor_required:
        raise DataError(
            f"{plan.name} keeps an audit trail that needs an actor; write through db.acting(Actor(id=...))."
        )
    now = scope.now()
    tenant = None if plan.tenant is None else str(getattr(stands.entity, plan.tenant))
    version = None if plan.version is None else int(getattr(stands.entity, plan.version))
    key = {name: stands.item[name] for name in plan.primary.names}
    facts = (plan.table.name, sorted(key.items()), version, verb, now, scope.tokens())
    name = blake2b(repr(facts).encode(), digest_size=16).hexdigest()
    content: Item = {
        "id": {"S": name},
        "at": {"S": stamp(now)},
        "verb": {"S": verb},
        "target": {"M": _target(trait, plan, stands)},
        "snapshot": {"M": _snapshot(trait, plan, stands.item)},
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
        **internal_key(plan.table, internal_partition("OUTBOX", tenant), f"{stamp(now)}#{name}"),
        plan.table.tag: {"S": OUTBOX},
        EVENT: {"M": content},
    }
    if trait.days is not None and plan.table.ttl is not None:
        item[plan.table.ttl] = {"N": str(int((now + trait.days * _DAY).timestamp()))}
    if (size := item_size(item)) > LARGEST_ITEM:
        raise DataError(
            f"The event of {plan.name} has {size:,} bytes and DynamoDB takes {LARGEST_ITEM:,}; "
            f"name the fields that matter: Outbox(snapshot=(...))."
        )
    yield DerivedWrite(
        action=PutItem(table=scope.table(plan.table), item=item),
        title=f"the event of {plan.name}",
        explain=lambda _: _refused(plan),
    )


def load_event(table: Table, item: Item) -> Event:
    """Return the event that an item of the outbox or of the audit trail holds."""
    values = load(item[EVENT])
    return Event.model_validate({**values, "at": read_stamp(values["at"]), "table": table.name})


def audit_item(table: Table, item: Item, *, days: int | None) -> Item:
    """Return an event of the outbox as an item of the audit trail: `AUDIT#<time>#<id>` in its tenant's."""
    content = item[EVENT]["M"]
    partition = internal_partition("AUDIT", content.get("tenant", {}).get("S"))
    sort = f"AUDIT#{content['at']['S']}#{content['id']['S']}"
    found: Item = {**internal_key(table, partition, sort), table.tag: {"S": AUDIT}, EVENT: item[EVENT]}
    if days is not None and table.ttl is not None:
        until = read_stamp(content["at"]["S"]) + days * _DAY
        found[table.ttl] = {"N": str(int(until.timestamp()))}
    return found


def keep_audit(scope: Scope, table: Table, item: Item, *, days: int | None = None) -> Flow[bool]:
    """Put an event into the audit trail unless it is there; return whether it was new."""
    absent = Not(Exists((table.partition.name,)))
    request = PutItem(table=scope.table(table), item=audit_item(table, item, days=days), condition=absent)
    try:
        yield from send(request, scope.retries)
    except ConditionFailed:
        return False
    return True


def audit_page(scope: Scope, table: Table | None, *, limit: int, cursor: str | None) -> Flow[FilledPage]:
    """Return a page of the scope's audit trail, newest first, by one Query."""
    if limit < 1:
        raise DataError(f"A page has at least one row; limit={limit} was given.")
    chosen = only_table(scope, table, "has the audit trail")
    name = internal_partition("AUDIT", scope.tenant)
    bound_to = repr(("audit", chosen.name, scope.tenant)).encode()
    request = Query(
        table=scope.table(chosen),
        key=partition_terms(chosen, name),
        forward=False,
        limit=limit,
        start=None if cursor is None else scope.sealer.open(cursor, bound_to),
    )
    reply = yield from send(request, scope.retries)
    events = [load_event(chosen, item) for item in decode_items(reply.items or ())]
    sealed = scope.sealer.seal(reply.last_key, bound_to) if reply.last_key else None
    return FilledPage(events, sealed, reply.scanned)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An event that a sink has refused for good, and what it said."""

    event: Event
    sink: str
    error: str
    attempts: int


#: The type tag of events that could not be delivered.
DEAD = "_dead"


def bury(
    scope: Scope, table: Table, item: Item, *, consumer: str, sink: str, error: str, attempts: int
) -> Flow[None]:
    """Keep an event that a sink has refused for good; the same one twice is one letter."""
    content = item[EVENT]["M"]
    sort = f"{content['at']['S']}#{content['id']['S']}#{sink}"
    letter: Item = {
        **internal_key(table, internal_partition("DEAD", consumer), sort),
        table.tag: {"S": DEAD},
        "sink": {"S": sink},
        "error": {"S": error},
        "attempts": {"N": str(attempts)},
        EVENT: item[EVENT],
    }
    yield from send(PutItem(table=scope.table(table), item=letter), scope.retries)


def dead_letters(scope: Scope, table: Table, consumer: str) -> Flow[list[tuple[Item, DeadLetter]]]:
    """Return what could not be delivered for a consumer, oldest first, with the items."""
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
    """Return a moment as text that sorts by time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_stamp(text: str) -> datetime:
    """Return the moment of a stamp."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def _target(trait: Outbox, plan: Plan, stands: Stored) -> Item:
    parts = (part for part in plan.primary.parts if part != plan.tenant)
    key = {part: value for part in parts if (value := _kept(plan, part, stands.item)) is not None}
    title = None if trait.title is None else getattr(stands.entity, trait.title)
    shown: Item = {"entity": {"S": plan.name}, "key": {"M": key}}
    return shown if title is None else {**shown, "title": {"S": str(title)}}


def _snapshot(trait: Outbox, plan: Plan, item: Item) -> Item:
    return {name: value for name in _fields(trait, plan) if (value := _kept(plan, name, item)) is not None}


def _differences(trait: Outbox, plan: Plan, before: Item, after: Item) -> Item:
    found: Item = {}
    for name in _fields(trait, plan):
        old, new = _kept(plan, name, before), _kept(plan, name, after)
        if old != new and name != plan.version:
            sides = (("before", old), ("after", new))
            found[name] = {"M": {side: value for side, value in sides if value is not None}}
    return found


def _fields(trait: Outbox, plan: Plan) -> Iterable[str]:
    return plan.attributes if trait.snapshot is None else trait.snapshot


def _kept(plan: Plan, field: str, item: Item) -> Any:
    return item.get(plan.attributes[field].wire)


def _refused(plan: Plan) -> SolotableError:
    return DataError(f"The event of {plan.name} was refused; nothing was written.")
