"""Encode what a rule yields: entities with their locks, snapshots, parts of entities, and wire items.

A migrated item has what its rule gives. The clock, hooks and the outbox take no part: a rule sets the times,
and a migrated entity causes no event. A version of 0 becomes 1, because the item is stored. An encrypted
field has another ciphertext each time, so compare items in the form of `comparable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.fields import is_from_scope
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.recognition import tag_of
from solotable._entities.declare.table import Table
from solotable._entities.traits.history import History
from solotable._entities.traits.unique import UniqueRule
from solotable._flows.traits.unique import TAG as LOCK_TAG
from solotable._flows.traits.unique import lock_items
from solotable._values import Item, canonical_item
from solotable.errors import DataError, DeclarationError

from .outputs import Output, Part, Snapshot, check_item
from .parts import PartFields


def encode_yielded(target: Table, parts: Mapping[type[Entity], PartFields], yielded: Any) -> Iterable[Output]:
    """Return the outputs of one thing that a rule yields."""
    if isinstance(yielded, Entity):
        return _encode_entity(target, yielded)
    if isinstance(yielded, dict):
        item = canonical_item(yielded)
        key = check_item(target.key_names, item)
        return (Output(target.name, key, item, tag_of(target, item) or ""),)
    if isinstance(yielded, Snapshot):
        return (_encode_snapshot(target, yielded.entity),)
    if not isinstance(yielded, Part):
        raise DeclarationError(
            f"A rule yields entities, Part, Snapshot or wire items, got {type(yielded).__name__}."
        )
    if yielded.entity not in parts:
        raise DeclarationError(
            f"A rule yields a Part of {yielded.entity.__name__}, which it does not declare; "
            f"write parts={{{yielded.entity.__name__}: (...)}}."
        )
    return (_encode_part(target, parts[yielded.entity], yielded),)


def stored_values(plan: Plan, entity: Entity) -> dict[str, Any]:
    """Return the field values of an entity as they are stored."""
    values = dict(entity.__dict__)
    if plan.tenant is not None and is_from_scope(values[plan.tenant]):
        raise DataError(f"{plan.name} has no {plan.tenant}; the rule sets it, because no store fills it in.")
    if plan.version is not None and values[plan.version] == 0:
        values[plan.version] = 1
    if plan.retention is not None and plan.ttl is not None:
        values[plan.ttl] = plan.retention.end_of(values) or values[plan.ttl]
    return values


def _encode_entity(target: Table, entity: Entity) -> Iterable[Output]:
    plan = _plan_of(type(entity), target)
    item, size = plan.encode_sized(stored_values(plan, entity), entity.unknown_attributes)
    names = target.key_names
    output = Output(target.name, check_item(names, item, sized=True), item, plan.tag, size=size)
    if not _has_locks(type(entity)):
        return (output,)
    locks = lock_items(plan, entity)
    return (
        output,
        *(Output(target.name, {name: lock[name] for name in names}, lock, LOCK_TAG) for lock in locks),
    )


def _encode_snapshot(target: Table, entity: Entity) -> Output:
    plan = _plan_of(type(entity), target)
    trait = next((each for each in plan.traits if isinstance(each, History)), None)
    if trait is None or plan.version is None:
        raise DeclarationError(f"A rule yields a Snapshot of {plan.name}, which has no History.")
    values = stored_values(plan, entity)
    key = trait.key_of(plan.key_of(values), values, int(values[plan.version]))
    item = trait.snapshot(plan.encode(values, entity.unknown_attributes), key)
    key = check_item(target.key_names, item, sized=True)
    return Output(target.name, key, item, trait.tag_value["S"])


def _encode_part(target: Table, fields: PartFields, part: Part) -> Output:
    _plan_of(fields.plan.entity, target)
    item = fields.encode(part)
    key = check_item(target.key_names, item)
    return Output(target.name, key, item, fields.plan.tag, "part", fields.owned)


@lru_cache(1024)
def _has_locks(entity: type[Entity]) -> bool:
    return any(isinstance(trait, UniqueRule) for trait in entity.plan().traits)


@lru_cache(1024)
def _plan_of(entity: type[Entity], target: Table) -> Plan:
    """Return the plan of an entity, or raise DeclarationError if a migration cannot write it."""
    plan: Plan = entity.plan()
    if plan.table is not target:
        raise DeclarationError(
            f"{plan.name} is an entity of table {plan.table.name!r}, but the mapping writes {target.name!r}."
        )
    if plan.blobs is not None:
        raise DeclarationError(
            f"{plan.name} has offloaded fields, whose objects a migration does not write; migrate the field "
            f"without Offloaded(), and run a backfill after the migration."
        )
    return plan


def comparable(table: Table, item: Item, ignored: Mapping[str, frozenset[str]]) -> Item:
    """Return an item of a table in the form in which two are compared: decrypted, without ignored attributes.

    `ignored` has the attributes by the entity's tag.
    """
    plan = table.plans.get(tag_of(table, item) or "")
    if plan is None or (plan.cipher is None and plan.tag not in ignored):
        return item
    if plan.cipher is not None:
        item = plan.cipher.decrypt(item)
    left_out = ignored.get(plan.tag)
    return item if left_out is None else {name: value for name, value in item.items() if name not in left_out}
