"""Re-encode stored items in the current schema version. Sends nothing.

The difference is one update of the changed attributes, under the condition that its source attributes have
not changed. Attributes that other writers add stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from solotable._entities.codecs.opaque.frames import unframe
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
from solotable._flows.transactions.write import attributes_unchanged
from solotable._values import AttributeValue, Item
from solotable.errors import DataError, StoredDataError

#: The values of attributes; None: absent.
Attributes = Mapping[str, AttributeValue | None]
#: DynamoDB: an expression has up to 4 KB and 300 operators.
_MOST_COMPARISONS = 120


@dataclass(frozen=True, slots=True)
class Reencoded:
    """A stored item, and the same entity encoded in the current schema version."""

    plan: Plan
    before: Item
    item: Item
    entity: Entity


def reencoded(plan: Plan, before: Item) -> Reencoded:
    """Decode an item and encode it in the current schema version; raise the errors of decoding."""
    entity = plan.decode(before)
    item = plan.encode(entity.__dict__, plan.kept(entity, entity.__dict__))
    if plan.cipher is not None:
        plan.cipher.keep_unchanged(before, item)
    if any(item[name] != before[name] for name in plan.schema_versions.key_names):
        shown = {name: before[name] for name in plan.schema_versions.key_names}
        raise StoredDataError(
            f"Cannot upgrade the stored {plan.name} {shown}: its upgraded fields give another primary key; "
            f"put it under the new key and delete this item."
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
    """Return the correct values of an item's wrong index keys; None for a key that must be absent."""
    if DELETED_AT in item and plan.deletion is not None:
        # A delete by a release that does not know an index leaves its keys; undelete derives them again.
        return {name: None for path in plan.indexes for name in path.derived if name in item}
    keys = plan.index_keys(entity.__dict__)
    return {name: value for name, value in keys.items() if item.get(name) != value}


def outdated_fields(plan: Plan, item: Item, entity: Entity) -> dict[str, AttributeValue]:
    """Return fields to store again: compressed or offloaded if they are plain, or encrypted again."""
    found: dict[str, AttributeValue] = {} if plan.cipher is None else plan.cipher.outdated(item)
    for attribute in plan.reencoded:
        stored = item.get(attribute.wire)
        if stored is not None and unframe(stored) is None:
            encoded = attribute.encode(getattr(entity, attribute.field))
            if encoded is not None and encoded != stored and attribute.wire not in found:
                found[attribute.wire] = encoded
    return found


def difference(before: Item, after: Item) -> dict[str, AttributeValue | None]:
    """Return the new values of the attributes that differ; None for removed attributes."""
    changed: dict[str, AttributeValue | None] = {
        name: value for name, value in after.items() if before.get(name) != value
    }
    changed |= {name: None for name in before if name not in after}
    return changed


def update_of(changed: Attributes) -> Update:
    """Return the update that sets and removes these attributes."""
    actions: list[Action] = [
        Remove((name,)) if value is None else Assign((name,), Const(value)) for name, value in changed.items()
    ]
    return Update(tuple(actions), creates=any(value is not None for value in changed.values()))


def origins(plan: Plan, before: Item, touched: Iterable[str]) -> dict[str, AttributeValue | None]:
    """Return the source attributes of a re-encoded item, which must be unchanged when it is written.

    The version covers all attributes. Without a Version field, these are all attributes of the item and of
    its model, except those that are computed from others.
    """
    versions = plan.schema_versions
    names = {versions.attribute, *touched}
    version = None if plan.version is None else plan.attributes[plan.version].wire
    if version is not None and version in before:
        names.add(version)
    else:
        names |= {*before, *plan.by_wire, *(name for step in versions.upgrades for name in step.replaces)}
    names -= versions.implied
    if len(names) > _MOST_COMPARISONS:
        raise DataError(
            f"A stored {plan.name} has {len(names)} attributes, too many to compare in one condition; "
            f"declare a Version field."
        )
    return {name: before.get(name) for name in sorted(names)}


def is_current(plan: Plan) -> Condition:
    """Return the condition that an item is stored with the current schema version."""
    versions = plan.schema_versions
    if versions.current == 1:
        return Not(Exists((versions.attribute,)))
    current = {versions.oldest_attribute: None, **versions.attributes}
    return And(tuple(attributes_unchanged(current)))


def is_known(plan: Plan) -> Condition:
    """Return the condition that an item does not exist or has a schema version that this code knows."""
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
    """Reject an upgrade that changes a source of derived writes, because an upgrade has none."""
    plan = found.plan
    for trait in plan.traits:
        for name in trait.depends:
            wire = plan.attributes[name].wire
            if found.before.get(wire) != found.item.get(wire):
                raise StoredDataError(
                    f"An upgrade of {plan.name} changes {name}, which {plan.name}.{trait.name} depends on; "
                    f"leave the field out of the upgrade, and change it with an update of each entity."
                )
