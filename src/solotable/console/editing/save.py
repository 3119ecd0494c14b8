"""Save and delete items that are still as they were read; through the model if there is one."""

from __future__ import annotations

from dataclasses import dataclass

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._expressions.ast import (
    Action,
    And,
    Assign,
    Attr,
    Compare,
    Condition,
    Const,
    Exists,
    Not,
    Remove,
    Update,
)
from solotable._flows.scope import Scope
from solotable._flows.writes import hooked
from solotable._flows.writes.put import prepare_put
from solotable._protocol.requests import DeleteItem, UpdateItem
from solotable._store.runner import run
from solotable._values import Item
from solotable.console.data.catalog import Facet, LiveTable
from solotable.console.state import Console
from solotable.errors import ConditionFailed, DataError, SolotableError, TransactionCancelled

#: DynamoDB: an expression has at most 300 operators. Beyond it, only changed attributes are compared.
_MOST_COMPARED = 100


class Conflict(SolotableError):
    """Another writer changed the item after it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """How the model sees an item; `problem` says why it cannot save it."""

    plan: Plan | None
    entity: Entity | None
    problem: str = ""


def locked_names(table: LiveTable, plan: Plan | None) -> tuple[str, ...]:
    """Return the attributes that a user does not write: the key, and what solotable derives."""
    keys = tuple(part.name for part in table.keys)
    if plan is None:
        return keys
    own = [plan.table.internal_tag, plan.table.schema_version]
    own += [plan.attributes[name].wire for name in (plan.version, plan.created, plan.updated) if name]
    own += [plan.attributes[name].wire for name in plan.primary.parts if name in plan.attributes]
    own += [name for path in plan.indexes for name in path.derived]
    own += [each.wire for each in plan.attributes.values() if each.encrypted is not None]
    return tuple(dict.fromkeys((*keys, *own)))


def view_through(facet: Facet, item: Item) -> ModelView:
    """Return the entity of an item, or why the model cannot decode it."""
    plan = facet.plan
    if plan is None:
        return ModelView(plan=None, entity=None)
    try:
        entity = plan.decode(item)
        plan.check_key(item, entity)
    except SolotableError as error:
        return ModelView(plan=plan, entity=None, problem=str(error))
    return ModelView(plan=plan, entity=entity)


def scope_of(console: Console, plan: Plan, item: Item) -> Scope:
    """Return the scope of an item: its tenant, or the global entities."""
    assert console.database is not None
    tenant = plan.tenant_of(item)
    return console.database.scope if tenant is None else console.database.scope.of_tenant(tenant)


def save_entity(console: Console, plan: Plan, read: Item, item: Item) -> int | None:
    """Put the entity of an edited item; return its new version. Raises Conflict and DataError."""
    scope = scope_of(console, plan, read)
    entity = plan.decode(item)
    prepared = prepare_put(scope, entity)
    check_unaltered(plan, item, prepared.item)
    where = None if plan.version is not None else unchanged(read, read)
    try:
        stored = run(hooked.put(scope, entity, where=where), console.engine)
    except (ConditionFailed, TransactionCancelled) as error:
        raise Conflict(str(error)) from error
    return None if plan.version is None else int(getattr(stored, plan.version))


def check_unaltered(plan: Plan, item: Item, encoded: Item) -> None:
    """Reject values that the model would store in another way: a save must not change them silently."""
    written = {plan.attributes[name].wire for name in (plan.version, plan.created, plan.updated) if name}
    written |= {name for path in plan.indexes for name in path.derived} | {plan.table.schema_version}
    written |= {each.wire for each in plan.attributes.values() if each.encrypted is not None}
    for name in dict.fromkeys((*item, *encoded)):
        if name in written or item.get(name) == encoded.get(name):
            continue
        if name not in item and name in plan.by_wire:
            continue  # the model's default
        shown = "nothing" if name not in encoded else str(encoded[name])[:80]
        raise DataError(
            f"{name}: the model {plan.name} would store {shown} instead of {str(item.get(name))[:80]}; "
            f"write the value as the model does, or edit the raw item."
        )


def save_raw(console: Console, table: LiveTable, read: Item, item: Item) -> None:
    """Update the attributes that differ, if the item is still as it was read. Raises Conflict."""
    names = {part.name for part in table.keys}
    changed = [name for name in item if name not in names and item[name] != read.get(name)]
    removed = [name for name in read if name not in names and name not in item]
    actions: tuple[Action, ...] = (
        *(Assign((name,), Const(item[name])) for name in changed),
        *(Remove((name,)) for name in removed),
    )
    others = {name: value for name, value in read.items() if name not in names}
    compared = (
        others
        if len(others) <= _MOST_COMPARED
        else {name: value for name, value in others.items() if name in {*changed, *removed}}
    )
    added = [name for name in changed if name not in read]
    request = UpdateItem(
        table=table.name,
        key=table.key_of(read),
        update=Update(actions, creates=bool(changed)),
        condition=unchanged(compared, {table.partition.name: read[table.partition.name]}, absent=added),
    )
    try:
        console.engine.handle(request)
    except ConditionFailed as error:
        raise Conflict(str(error)) from error


def delete_item(console: Console, table: LiveTable, plan: Plan | None, read: Item) -> None:
    """Delete an item that is still as it was read; through the model if given. Raises Conflict."""
    try:
        if plan is not None:
            scope, entity = scope_of(console, plan, read), plan.decode(read)
            version = None if plan.version is None else int(getattr(entity, plan.version))
            key = {name: getattr(entity, name) for name in plan.primary.parts}
            where = None if version is not None else unchanged(read, read)
            found: object = run(
                hooked.delete(scope, plan, key, version=version, mine=entity, where=where), console.engine
            )
            del found
            return
        compared = dict(list(read.items())[:_MOST_COMPARED])
        request = DeleteItem(table=table.name, key=table.key_of(read), condition=unchanged(compared, read))
        console.engine.handle(request)
    except (ConditionFailed, TransactionCancelled) as error:
        raise Conflict(str(error)) from error


def unchanged(compared: Item, exists: Item, absent: list[str] | None = None) -> Condition:
    """Return the condition that an item exists and has these values, and none of the absent attributes."""
    terms: list[Condition] = [Exists((next(iter(exists)),))]
    terms += [
        Compare("=", Attr((name,)), Const(value)) for name, value in list(compared.items())[:_MOST_COMPARED]
    ]
    terms += [Not(Exists((name,))) for name in absent or ()]
    return And(tuple(terms)) if len(terms) > 1 else terms[0]
