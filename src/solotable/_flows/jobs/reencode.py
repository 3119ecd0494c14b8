"""Recasting: from an item as it is stored to the item that its entity would be stored as today.

The difference is one update of the attributes that change, under the condition that nothing it was
made from has changed since; what other writers add stays. Nothing is read or sent here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.traits.soft_delete import DELETED_AT, HIDING
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
    Or,
    Remove,
    Update,
)
from solotable._flows.transactions.write import as_stored
from solotable._values import AttributeValue, Item
from solotable.errors import DataError, StoredDataError

#: The attributes of an item as they were read; None: absent.
Facts = Mapping[str, AttributeValue | None]
#: DynamoDB: an expression has up to 4 KB and 300 operators.
_MOST_FACTS = 120


@dataclass(frozen=True, slots=True)
class Reencoded:
    """A stored item, and the same as it would be stored today."""

    plan: Plan
    before: Item
    item: Item
    entity: Entity


def reencoded(plan: Plan, before: Item) -> Reencoded:
    """Return an item as its entity is stored today; raises what reading it does."""
    entity = plan.decode(before)
    item = plan.encode(entity.__dict__, entity.unknown_attributes)
    if any(item[name] != before[name] for name in plan.schema_versions.key_names):
        shown = {name: before[name] for name in plan.schema_versions.key_names}
        raise StoredDataError(
            f"The stored {plan.name} {shown} has fields that make another key; an upgrade changes no part "
            f"of the key: put it again and delete this one."
        )
    if DELETED_AT in before and plan.deletion is not None:
        # A soft-deleted entity stays out of the indexes until it is restored.
        keys = {name for path in plan.indexes for name in path.derived}
        item = {name: value for name, value in item.items() if name not in keys}
        item |= {name: value for name, value in before.items() if name in HIDING}
    found = Reencoded(plan, before, item, entity)
    _check_traits(found)
    return found


def stale_keys(plan: Plan, item: Item, entity: Entity) -> dict[str, AttributeValue | None]:
    """Return the index keys that an item should have and has not; None for what should be absent."""
    if DELETED_AT in item and plan.deletion is not None:
        return {}
    stale: dict[str, AttributeValue | None] = {}
    for path in plan.indexes:
        derived = path.encode(entity.__dict__) or {}
        for name in path.derived:
            if item.get(name) != derived.get(name):
                stale[name] = derived.get(name)
    return stale


def difference(before: Item, after: Item) -> dict[str, AttributeValue | None]:
    """Return the attributes that one item has otherwise than another; None for what goes."""
    changed: dict[str, AttributeValue | None] = {
        name: value for name, value in after.items() if before.get(name) != value
    }
    changed |= {name: None for name in before if name not in after}
    return changed


def update_of(changed: Facts) -> Update:
    """Return the update that makes such a difference."""
    actions: list[Action] = [
        Remove((name,)) if value is None else Assign((name,), Const(value)) for name, value in changed.items()
    ]
    return Update(tuple(actions), creates=any(value is not None for value in changed.values()))


def origins(plan: Plan, before: Item, touched: Iterable[str]) -> dict[str, AttributeValue | None]:
    """Return what an item's reencoded was made of, to be required unchanged when it is written.

    The version stands for all that is under it; without one it is every attribute that the item has, or
    that its model knows. What follows from others need not be named.
    """
    versions = plan.schema_versions
    names = {versions.attribute, *touched}
    version = None if plan.version is None else plan.attributes[plan.version].wire
    if version is not None and version in before:
        names.add(version)
    else:
        names |= {*before, *plan.by_wire, *(name for step in versions.upgrades for name in step.replaces)}
    names -= versions.implied
    if len(names) > _MOST_FACTS:
        raise DataError(
            f"A stored {plan.name} has {len(names)} attributes, too many to require all of them unchanged; "
            f"give the entity a version."
        )
    return {name: before.get(name) for name in sorted(names)}


def is_current(plan: Plan) -> Condition:
    """Return the condition that an item is stored with the current schema version."""
    versions = plan.schema_versions
    if versions.current == 1:
        return Not(Exists((versions.attribute,)))
    mark = {versions.oldest_attribute: None, **versions.attributes}
    return And(tuple(as_stored(mark)))


def is_known(plan: Plan) -> Condition:
    """Return the condition that an item is absent, or of a schema version that this code knows."""
    versions = plan.schema_versions
    newest = Const({"N": str(versions.current)})
    return Or(
        (
            Not(Exists((versions.attribute,))),
            Compare("<=", Attr((versions.attribute,)), newest),
            Compare("<=", Attr((versions.oldest_attribute,)), newest),
        )
    )


def _check_traits(found: Reencoded) -> None:
    """Refuse to change what others follow from: an upgrade writes nothing along."""
    plan = found.plan
    for trait in plan.traits:
        for name in trait.depends:
            wire = plan.attributes[name].wire
            if found.before.get(wire) != found.item.get(wire):
                raise StoredDataError(
                    f"An upgrade of {plan.name} changes {name}, which {plan.name}.{trait.name} follows from; "
                    f"upgrades leave such fields alone: change it by an update of each entity instead."
                )
