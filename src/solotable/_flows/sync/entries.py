"""Log entries: what a change of a synced entity means to its clients. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.keys.parts.codecs import unescape
from solotable._entities.synced import SPACE_VERSION, Synced
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._flows.scope import Scope
from solotable._values import AttributeValue, Item
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError

from .spaces import TAG, VERSION_DIGITS, Space

if TYPE_CHECKING:
    from solotable._flows.transactions.write import Change, Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One change of a client's key, to be logged in the transaction that causes it."""

    space: Space
    key: str
    #: The new value as JSON; None for a deleted key.
    value: str | None
    #: The primary key of the item that gets the version of the space; None for a deleted item.
    item_key: Item | None = None
    log_days: int = 30


def entries(scope: Scope, _trait: Synced, change: Change) -> Iterator[LogEntry]:
    """Yield the log entries of a write, unless the caller logs its writes itself."""
    if not scope.logs_later:
        yield from _entries(change)


def _entries(change: Change) -> Iterator[LogEntry]:
    """Yield a put or a delete, or both if the key of the client changes."""
    before, after = change.before, change.after
    old = None if before is None else deletion_entry(change.plan, before.entity.__dict__)
    new = None if after is None else put_entry(change.plan, after)
    if old is not None and before is not None and change.soft:
        # The item stays, so it gets the version of its deletion.
        old = replace(old, item_key=change.plan.key_of(before.entity.__dict__))
    if old is not None and (new is None or (old.space, old.key) != (new.space, new.key)):
        yield old
    if new is not None:
        yield new


def put_entry(plan: Plan, stored: Stored) -> LogEntry:
    """Return the entry of a stored entity."""
    trait = _synced(plan)
    values = stored.entity.__dict__
    return LogEntry(
        space=space_of(plan, values),
        key=trait.key_template.format(values),
        value=client_value(plan, stored.entity),
        item_key=plan.key_of(values),
        log_days=trait.log_days,
    )


def deletion_entry(plan: Plan, values: Mapping[str, Any]) -> LogEntry:
    """Return the entry of a deleted entity, given the fields of its key."""
    trait = _synced(plan)
    return LogEntry(
        space=space_of(plan, values),
        key=trait.key_template.format(values),
        value=None,
        log_days=trait.log_days,
    )


def item_entries(plan: Plan, before: Item | None, after: Item | None) -> Iterator[LogEntry]:
    """Yield the log entries of a changed item; a soft-deleted item does not exist for clients."""
    from solotable._flows.transactions.write import Change, Stored

    def stored(item: Item | None) -> Stored | None:
        return None if item is None or is_deleted(plan, item) else Stored(item, plan.decode(item))

    soft = after is not None and is_deleted(plan, after)
    yield from _entries(Change(plan, stored(before), stored(after), soft=soft))


def is_deleted(plan: Plan, item: Item) -> bool:
    """Return whether an item is soft-deleted."""
    return plan.deletion is not None and DELETED_AT in item


def client_value(plan: Plan, entity: Any) -> str:
    """Return the JSON that clients see of an entity."""
    text: bytes = entity.__pydantic_serializer__.to_json(entity, include=set(_synced(plan).visible))
    return text.decode()


def space_of(plan: Plan, values: Mapping[str, Any]) -> Space:
    """Return the space of an entity with these fields."""
    tenant = None if plan.tenant is None else str(values[plan.tenant])
    return Space(plan.table, tenant, _synced(plan).space_template.format(values))


def find_space(table: Table, item: Item) -> Space | None:
    """Return the space of a synced item, or of an item of its log; None for others."""
    partition = item[table.partition.name].get("S", "")
    if item.get(table.internal_tag) == {"S": TAG} and partition.startswith("SYNC#"):
        _, tenant, name = partition.split("#")
        return Space(table, unescape(tenant) or None, unescape(name))
    plan = table.recognise(item)
    arguments = None if plan is None or plan.synced is None else plan.arguments_of(item)
    if plan is None or arguments is None:
        return None
    try:
        return space_of(plan, arguments)
    except DataError:
        # An item of another program, without a value for the space's name.
        return None


def space_version(item: Item | None) -> int:
    """Return the version of the space at the last write of an item; 0 for an item of another program."""
    text = "0" if item is None else item.get(SPACE_VERSION, {}).get("N", "0")
    return int(text) if text.isdigit() and len(text) < VERSION_DIGITS else 0


def guarded_version(plan: Plan, item: Item) -> dict[str, AttributeValue | None]:
    """Return the attribute that must be unchanged when a write that read this item commits."""
    return {} if plan.synced is None else {SPACE_VERSION: item.get(SPACE_VERSION)}


def _synced(plan: Plan) -> Synced:
    assert plan.synced is not None
    return plan.synced
