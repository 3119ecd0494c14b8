"""Update fields of an entity with one UpdateItem, and recompute its index keys.

An index key with a changed field is computed from the caller's values. If it needs other fields, they are
read from the stored item, and the update requires that they have not changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._expressions.ast import (
    Action,
    Arithmetic,
    Assign,
    Condition,
    Const,
    Delete,
    IfNotExists,
    Remove,
    Update,
)
from solotable._expressions.evaluate import evaluate, paths_of
from solotable._expressions.update import apply_update
from solotable._flows.jobs.reencode import difference, is_current, origins, reencoded, update_of
from solotable._flows.reads.get import not_found
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.subject_keys import ensure_keys
from solotable._flows.sync.entries import guarded_version
from solotable._flows.transactions.derived_writes import (
    derived_writes_of,
    needs_derived_writes,
    source_fields,
)
from solotable._flows.transactions.write import (
    Change,
    ExpectedVersion,
    Stored,
    Write,
    all_of,
    attributes_unchanged,
    capitalize,
    condition_error,
    expected_version,
    fields_unchanged,
    load_stored,
    version_is,
)
from solotable._protocol.requests import UpdateItem
from solotable._values import AttributeValue, Item
from solotable.errors import DataError, ServiceError, StoredDataError

from .changes import Changes, ResolvedChanges, resolve_changes
from .update_check import (
    apply_checked,
    changed_value,
    changes_of_validators,
    explain_misfit,
)


def plan_update(  # noqa: PLR0913 - the parts of an update, by name
    scope: Scope,
    plan: Plan,
    given: Mapping[str, Any],
    changes: Changes,
    *,
    version: ExpectedVersion = None,
    mine: Entity | None = None,
    where: Condition | None = None,
    reencodes: bool = False,
    before: Stored | None = None,
    resolved: ResolvedChanges | None = None,
) -> Flow[Write]:
    """Return the write of an update; read the item first only if its stored values are needed.

    An item of another schema version is never updated partially: it is read, upgraded and written with the
    change. `reencodes` requests that; an entity with downgrades always does it. `before` is the stored
    entity if the caller has read it. `resolved` are the changes with those of the model's validators.
    """
    arguments = scope.bind(plan, given)
    expected = expected_version(plan, version, "update")
    key = plan.key_from(arguments)
    now = scope.now()
    validated = resolved is not None
    resolved = resolved or with_managed_fields(plan, resolve_changes(plan, changes), now)
    plain = resolved
    if plan.cipher is not None:
        yield from ensure_keys(plan, arguments, resolved.changed)
        resolved = with_encrypted_fields(plan, resolved, arguments)
    values = {name: arguments[name] for name in plan.known_parts} | dict(resolved.known)
    conditions: list[Condition] = [scope.present(plan)]
    if expected is not None:
        conditions.append(version_is(plan, expected))
    if where is not None:
        conditions.append(where)
    versions = plan.schema_versions
    reencodes = reencodes or bool(versions.downgrades)
    needed = _unknown_parts(plan, resolved, values)
    ending = _ttl_actions(plan, resolved)
    derives = needs_derived_writes(plan, (*resolved.changed, plan.ttl or "") if ending else resolved.changed)
    derived_from: dict[str, AttributeValue | None] = {}
    carried: dict[str, AttributeValue | None] = {}
    if before is not None or needed or derives or reencodes or resolved.checked:
        if before is None:
            before = yield from load_stored(scope, plan, key)
        if before is None:
            raise not_found(plan, arguments)
        if reencodes or versions.differs(before.item):
            target = _Target(arguments, key, expected, mine, where, derives)
            return _reencode(scope, plan, target, resolved, before, now)
        derived_from = before.wire_values(
            plan, sorted({*needed, *resolved.checked, *(source_fields(plan) if derives else ())})
        )
        for name in needed:
            values[name] = getattr(before.entity, name)
            if name in resolved.added and plan.attributes[name].kind == "N":
                # DynamoDB: ADD to an absent number starts at 0, not at the model's default.
                current = 0 if derived_from[name] is None else values[name]
                values[name] = current + resolved.added[name]
            elif name in resolved.if_missing:
                if derived_from[name] is None:
                    values[name] = resolved.if_missing[name]
            elif name in resolved.changed:
                # A computed field reads a list, set or model that changes in place.
                values[name] = changed_value(plan, resolved.actions, before, name)
        carried = guarded_version(plan, before.item)
        conditions += (*fields_unchanged(plan, derived_from), *attributes_unchanged(carried))
    if versions.declared:
        conditions.append(is_current(plan))
    actions = (
        *resolved.actions,
        *_index_actions(plan, resolved, values),
        *managed_actions(plan, now),
        *ending,
    )
    # DynamoDB: an update that only removes does not create an item; the condition rejects a missing one.
    change = Update(actions, creates=not all(isinstance(one, (Remove, Delete)) for one in actions))
    condition = all_of(conditions)
    action = UpdateItem(
        table=scope.table(plan.table),
        key=key,
        update=change,
        condition=condition,
        returns="ALL_NEW",
        returns_on_failure=True,
    )
    write = Write(
        plan=plan,
        verb="update",
        given=arguments,
        action=action,
        mine=mine,
        needs_item=True,
        expected_version=expected,
        where=where,
        derived_from=derived_from,
        carried=carried,
        instead=partial(
            plan_update, scope, plan, given, changes, version=version, mine=mine, where=where, reencodes=True
        )
        if versions.declared
        else None,
    )
    if before is None or not (derives or resolved.checked):
        return write
    after = apply_checked(scope, write, change, before, condition)
    more = None if validated else changes_of_validators(plan, plain, after)
    if more is not None:
        again = partial(plan_update, scope, plan, given, changes, version=version, mine=mine, where=where)
        return (yield from again(before=before, resolved=more))
    derived_writes = derived_writes_of(scope, Change(plan, before, after)) if derives else ()
    return replace(write, derived_writes=derived_writes, after=after.entity)


@dataclass(frozen=True, slots=True)
class _Target:
    """The entity to update, and the expectations of the caller."""

    arguments: Mapping[str, Any]
    key: Item
    expected: int | None
    mine: Entity | None
    where: Condition | None
    derives: bool


def _reencode(
    scope: Scope, plan: Plan, target: _Target, resolved: ResolvedChanges, before: Stored, now: datetime
) -> Write:
    """Return the write that upgrades an item to the current schema version and includes the change."""
    if plan.schema_versions.is_newer(before.item):
        raise plan.schema_versions.newer_error(before.item)
    base = reencoded(plan, before.item)
    action = UpdateItem(table=scope.table(plan.table), key=target.key, returns="ALL_NEW")
    write = Write(
        plan=plan,
        verb="update",
        given=target.arguments,
        action=action,
        mine=target.mine,
        needs_item=True,
        expected_version=target.expected,
        where=target.where,
    )
    where = target.where
    # The caller's condition applies to the upgraded item, not to the stored layout.
    if where is not None and not evaluate(where, base.item):
        raise condition_error(scope, write, base.item)
    actions = (*resolved.actions, *managed_actions(plan, now), *_ttl_actions(plan, resolved))
    try:
        changed = apply_update(Update(actions, creates=True), base.item)
    except ServiceError as error:
        raise DataError(f"{capitalize(write.title)}: {error.message}.") from error
    try:
        entity = plan.decode(changed)
    except StoredDataError as error:  # The stored item was valid, so the change is not.
        raise explain_misfit(write, error) from error
    item = plan.encode(entity.__dict__, plan.kept(entity, entity.__dict__))
    touched = difference(before.item, item)
    named = () if where is None else [str(path[0]) for path in paths_of(where)]
    origin = origins(plan, before.item, (*touched, *named, *_source_attributes(plan, target)))
    origin |= guarded_version(plan, before.item)
    conditions = [scope.present(plan), *attributes_unchanged(origin)]
    if target.expected is not None:
        conditions.append(version_is(plan, target.expected))
    after = Stored(item, entity)
    return replace(
        write,
        action=replace(
            action, update=update_of(touched), condition=all_of(conditions), returns_on_failure=True
        ),
        derived_writes=derived_writes_of(scope, Change(plan, before, after)) if target.derives else (),
        after=entity,
        carried=origin,
    )


def _source_attributes(plan: Plan, target: _Target) -> list[str]:
    """Return the attributes that the derived writes are computed from."""
    return [plan.attributes[name].wire for name in source_fields(plan)] if target.derives else []


def _unknown_parts(plan: Plan, resolved: ResolvedChanges, values: Mapping[str, Any]) -> set[str]:
    """Return the fields that an affected index key needs and the caller has not given."""
    return {
        name
        for path in plan.indexes
        if path.sources & resolved.changed
        for name in path.sources
        if name not in values
    }


def _index_actions(plan: Plan, resolved: ResolvedChanges, values: Mapping[str, Any]) -> list[Action]:
    # An item that leaves an index loses all attributes of its key, so that no partial key remains.
    return [
        Remove((name,)) if value is None else Assign((name,), Const(value))
        for name, value in plan.index_keys(values, resolved.changed).items()
    ]


def with_managed_fields(plan: Plan, resolved: ResolvedChanges, now: datetime) -> ResolvedChanges:
    """Add the store's changes of version and timestamp if they are part of an index key."""
    indexed = {name for path in plan.indexes for name in path.sources}
    if plan.updated in indexed:
        known = {**resolved.known, plan.updated: plan.stamp(plan.updated, now)}
        resolved = replace(resolved, known=known, changed=resolved.changed | {plan.updated})
    if plan.version in indexed:
        added = {**resolved.added, plan.version: 1}
        resolved = replace(resolved, added=added, changed=resolved.changed | {plan.version})
    return resolved


def with_encrypted_fields(
    plan: Plan, resolved: ResolvedChanges, arguments: Mapping[str, Any]
) -> ResolvedChanges:
    """Encrypt the values of encrypted fields; the ciphertexts are bound to the item's key and tenant."""
    if plan.cipher is None:
        return resolved
    for name in plan.cipher.subjects & resolved.changed:
        raise DataError(
            f"{plan.name}.{name} is the subject of encrypted fields, which must be encrypted again when it "
            f"changes; use modify() or put()."
        )
    bound_to = {**plan.key_of(arguments), **plan.tenant_attribute(arguments)}
    return replace(resolved, actions=plan.cipher.encrypt_actions(resolved.actions, bound_to))


def managed_actions(plan: Plan, now: datetime) -> list[Action]:
    """Return the actions that set the version and the timestamp of an update."""
    actions: list[Action] = []
    if plan.version is not None:
        path = (plan.attributes[plan.version].wire,)
        incremented = Arithmetic("+", IfNotExists(path, Const({"N": "0"})), Const({"N": "1"}))
        actions.append(Assign(path, incremented))
    if plan.updated is not None:
        attribute = plan.attributes[plan.updated]
        stamp = attribute.encode(plan.stamp(plan.updated, now))
        assert stamp is not None
        actions.append(Assign((attribute.wire,), Const(stamp)))
    return actions


def _ttl_actions(plan: Plan, resolved: ResolvedChanges) -> list[Action]:
    """Return the action that sets the time to live if the retention begins with this update."""
    rule = plan.retention
    if rule is None or plan.ttl is None or plan.ttl in resolved.changed:
        return []
    end = rule.end_of(resolved.known)
    if end is None:
        return []
    attribute = plan.attributes[plan.ttl]
    value = attribute.encode(end)
    assert value is not None
    return [Assign((attribute.wire,), IfNotExists((attribute.wire,), Const(value)))]
