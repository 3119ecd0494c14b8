"""Decode stream records as changes of entities."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._flows.scope import Scope
from solotable._values import Item
from solotable.errors import DeclarationError

from .streams import Kind, Record

E_co = TypeVar("E_co", bound=Entity, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed(Generic[E_co]):
    """One change of one entity; repeated deliveries of a change have the same `sequence`."""

    entity: type[E_co]
    kind: Kind
    #: The entity before and after the change; None if it did not exist.
    before: E_co | None
    after: E_co | None
    sequence: str
    #: The time of the change, to the second.
    time: datetime
    #: Whether DynamoDB removed the item because its time to live had passed.
    by_ttl: bool
    tenant: str | None
    table: str

    @property
    def current(self) -> E_co:
        """The entity after the change, or the removed entity."""
        found = self.before if self.after is None else self.after
        assert found is not None
        return found


def changes_of(scope: Scope, wanted: Collection[Plan], record: Record) -> Iterator[Changed[Any]]:
    """Yield the changes of a record: none, one, or two if an item of another entity replaced the old one.

    An empty `wanted` selects all entities.
    """
    table = record.table
    before, after = (_plan(scope, table, item) for item in (record.before, record.after))
    for plan in (before,) if before is after else (before, after):
        if plan is None or (wanted and not any(each.covers(plan) for each in wanted)):
            continue
        old = plan.decode(record.before) if plan is before and record.before is not None else None
        new = plan.decode(record.after) if plan is after and record.after is not None else None
        current = old if new is None else new
        yield Changed(
            entity=plan.entity,
            kind="inserted" if old is None else "removed" if new is None else "modified",
            before=old,
            after=new,
            sequence=record.sequence,
            time=record.at,
            by_ttl=record.by_ttl,
            tenant=None if plan.tenant is None else str(getattr(current, plan.tenant)),
            table=table.name,
        )


def tables_of(scope: Scope, plans: Collection[Plan], table: Table | None) -> list[Table]:
    """Return the tables to read: the given one, those of the entities, or all tables with a stream."""
    if table is not None:
        return [table]
    found = list(dict.fromkeys(plan.table for plan in plans)) or list(scope.tables)
    streaming = [each for each in found if each.stream]
    if not streaming or (plans and len(streaming) < len(found)):
        names = ", ".join(repr(each.name) for each in found)
        raise DeclarationError(f"changes() needs tables with a stream; declare {names} with stream=True.")
    return streaming


def is_own(table: Table, item: Item | None, tag: str) -> bool:
    """Return whether an item is an internal item with this tag."""
    return item is not None and item.get(table.internal_tag) == {"S": tag}


def _plan(scope: Scope, table: Table, item: Item | None) -> Plan | None:
    if item is None:
        return None
    plan = scope.known(table, item)
    # Reads hide a soft-deleted entity, although its item exists until the purge.
    return None if plan is not None and plan.deletion is not None and DELETED_AT in item else plan
