"""Put, delete and check whole entities.

An entity with traits, such as unique fields, is read first. Its derived writes are part of the same
transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from solotable._entities.declare.entity import Entity, copy_entity, set_private
from solotable._entities.declare.fields import truncate
from solotable._entities.declare.plan import Plan
from solotable._expressions.ast import Condition
from solotable._flows.jobs.reencode import is_known
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.subject_keys import ensure_keys
from solotable._flows.sync.entries import guarded_version
from solotable._flows.traits.soft_delete import carried_by, plan_soft_delete
from solotable._flows.transactions.commit import perform, send_write
from solotable._flows.transactions.derived_writes import derived_writes_of, source_fields
from solotable._flows.transactions.write import (
    Change,
    ExpectedVersion,
    Stored,
    Write,
    all_of,
    attributes_unchanged,
    conflict,
    expected_version,
    fields_unchanged,
    load_stored,
    required_version,
    version_is,
    version_of,
)
from solotable._protocol.requests import ConditionCheck, DeleteItem, PutItem
from solotable._values import AttributeValue, Item

EntityT = TypeVar("EntityT", bound=Entity)


@dataclass(slots=True)
class PreparedPut:
    """An entity to put: the caller's, and the one that will be stored. Not frozen, as `Write`."""

    plan: Plan
    mine: Entity
    after: Entity
    values: Mapping[str, Any]
    item: Item
    #: The bytes of the item.
    size: int
    #: The version that the caller read; None without a Version field.
    version: int | None


def prepare_put(scope: Scope, entity: Entity) -> PreparedPut:
    """Return the entity that will be stored, with tenant, version and timestamps, and check its limits."""
    plan = entity.plan()
    before = entity.__dict__
    values = dict(scope.bind(plan, before))
    version = None
    if plan.version is not None:
        version = int(values[plan.version])
        values[plan.version] = version + 1
    if plan.is_stamped:
        _stamp(scope, plan, values)
    changed: dict[str, Any] = {}
    if plan.tenant is not None or plan.version is not None or plan.is_stamped:
        changed = {name: value for name, value in values.items() if before.get(name) is not value}
    item, size = plan.encode_sized(values, plan.kept(entity, values))
    validated = plan.check(values)
    if validated is not None and validated != values:
        # The entity is a copy with changes, which has not run the validators.
        changed |= {name: value for name, value in validated.items() if values[name] != value}
        values = validated
        item, size = plan.encode_sized(values, plan.kept(entity, values))
    return PreparedPut(plan, entity, copy_entity(entity, changed), values, item, size, version)


def put_entity(
    scope: Scope, entity: EntityT, *, create: bool = False, where: Condition | None = None
) -> Flow[EntityT]:
    """Create an entity or replace the stored one, and return the stored entity."""
    if entity.plan().loads_keys:
        yield from ensure_keys(entity.plan(), scope.bind(entity.plan(), entity.__dict__))
    prepared = prepare_put(scope, entity)
    put: EntityT
    if prepared.plan.is_derived_from:
        put = yield from perform(scope, lambda: plan_put(scope, prepared, create=create, where=where))
    else:
        # Most puts have no derived writes and need one request.
        put = yield from send_write(scope, _plain_put(scope, prepared, create=create, where=where))
    return put


def put_unversioned(scope: Scope, entity: EntityT, *, where: Condition | None) -> Flow[EntityT]:
    """Replace a stored entity that has no version yet, under a condition instead of its version."""
    if entity.plan().loads_keys:
        yield from ensure_keys(entity.plan(), scope.bind(entity.plan(), entity.__dict__))
    prepared = replace(prepare_put(scope, entity), version=None)
    put: EntityT = yield from perform(scope, lambda: plan_put(scope, prepared, where=where))
    return put


def plan_unconditional_put(scope: Scope, entity: Entity) -> Write:
    """Return the write that puts an entity without a condition."""
    prepared = prepare_put(scope, entity)
    plan = prepared.plan
    action = PutItem(table=scope.table(plan.table), item=prepared.item, size=prepared.size)
    return Write(
        plan=plan, verb="put", given=prepared.values, action=action, mine=entity, after=prepared.after
    )


def plan_put(
    scope: Scope, prepared: PreparedPut, *, create: bool = False, where: Condition | None = None
) -> Flow[Write]:
    """Return the write that creates an entity or replaces the stored one, with its derived writes."""
    plan = prepared.plan
    if not plan.is_derived_from:
        return _plain_put(scope, prepared, create=create, where=where)
    creates = create or prepared.version == 0
    expected = None if creates else prepared.version
    before: Stored | None = None
    derived_from: dict[str, AttributeValue | None] = {}
    carried: dict[str, AttributeValue | None] = {}
    if not creates:
        before = yield from load_stored(scope, plan, plan.key_of(prepared.values))
    if before is not None:
        guarded = plan.counters if expected is not None else (*source_fields(plan), *plan.counters)
        derived_from = before.wire_values(plan, guarded)
        carried = carried_by(plan, before)
    derived_absent = before is None and not creates and expected is None
    if plan.counters:
        prepared = _with_counters(prepared, before)
    if plan.carried:
        prepared = _with_carried(prepared, before)
    conditions = [*fields_unchanged(plan, derived_from), *attributes_unchanged(carried)]
    if derived_absent:
        conditions.append(scope.absent(plan))
    write = replace(
        _plain_put(scope, prepared, create=create, where=where, also=conditions),
        derived_writes=derived_writes_of(scope, Change(plan, before, Stored(prepared.item, prepared.after))),
        derived_from=derived_from,
        derived_absent=derived_absent,
        carried=carried,
    )
    current = before and before.entity
    if plan.traits and expected is not None and version_of(plan, current) != expected:
        raise conflict(write, None, current, expected)
    return write


def _plain_put(
    scope: Scope,
    prepared: PreparedPut,
    *,
    create: bool,
    where: Condition | None,
    also: Sequence[Condition] = (),
) -> Write:
    """Return the write of an entity without its derived writes."""
    plan = prepared.plan
    creates = create or prepared.version == 0
    expected = None if creates else prepared.version
    conditions = [*also]
    if creates:
        conditions.append(scope.absent(plan))
    elif expected is not None:
        conditions += (scope.is_entity(plan), version_is(plan, expected))
    else:
        conditions.append(scope.replaceable(plan))
    if where is not None:
        conditions.append(where)
    if plan.schema_versions.declared and not creates:
        conditions.append(is_known(plan))
    return Write(
        plan=plan,
        verb="create" if create else "put",
        given=prepared.values,
        action=PutItem(
            table=scope.table(plan.table),
            item=prepared.item,
            condition=all_of(conditions),
            returns_on_failure=True,
            size=prepared.size,
        ),
        mine=prepared.mine,
        after=prepared.after,
        creates=creates,
        expected_version=expected,
        where=where,
    )


def _with_carried(prepared: PreparedPut, before: Stored | None) -> PreparedPut:
    """Return a put that keeps the stored attributes of the traits."""
    plan = prepared.plan
    given = prepared.mine.unknown_attributes
    carried = (
        {} if before is None else {name: before.item[name] for name in plan.carried if name in before.item}
    )
    if carried == {name: given[name] for name in plan.carried if name in given}:
        return prepared
    unknown = {name: value for name, value in given.items() if name not in plan.carried} | carried
    after = prepared.after.model_copy()
    set_private(after, "unknown", unknown)
    item, size = plan.encode_sized(prepared.values, plan.kept(after, prepared.values))
    return replace(prepared, after=after, item=item, size=size)


def _with_counters(prepared: PreparedPut, before: Stored | None) -> PreparedPut:
    """Return a put that keeps the stored counters."""
    plan = prepared.plan
    fields = plan.entity.model_fields
    counted = {
        name: fields[name].get_default() if before is None else getattr(before.entity, name)
        for name in plan.counters
    }
    values = {**prepared.values, **counted}
    item, size = plan.encode_sized(values, plan.kept(prepared.mine, values))
    after = prepared.after.model_copy(update=counted)
    return replace(prepared, after=after, values=values, item=item, size=size)


def delete_entity(
    scope: Scope,
    plan: Plan,
    given: Mapping[str, Any],
    *,
    version: ExpectedVersion = None,
    mine: Entity | None = None,
    where: Condition | None = None,
) -> Flow[Any]:
    """Delete an entity and return it; None if it did not exist."""
    if plan.traits:
        return (
            yield from perform(
                scope, lambda: plan_delete(scope, plan, given, version=version, mine=mine, where=where)
            )
        )
    write = yield from plan_delete(scope, plan, given, version=version, mine=mine, where=where)
    return (yield from send_write(scope, write))


def plan_delete(
    scope: Scope,
    plan: Plan,
    given: Mapping[str, Any],
    *,
    version: ExpectedVersion = None,
    mine: Entity | None = None,
    where: Condition | None = None,
) -> Flow[Write]:
    """Return the write that deletes an entity; without a condition, a missing entity is not an error."""
    arguments = scope.bind(plan, given)
    expected = expected_version(plan, version, "delete")
    if plan.deletion is not None:
        return (yield from plan_soft_delete(scope, plan, arguments, expected, mine=mine, where=where))
    key = plan.key_from(arguments)
    before: Stored | None = None
    derived_from: dict[str, AttributeValue | None] = {}
    derived_absent = False
    carried: dict[str, AttributeValue | None] = {}
    if plan.traits:
        before = yield from load_stored(scope, plan, key)
        derived_absent = before is None
        derived_from = {} if before is None else before.wire_values(plan, source_fields(plan))
        carried = {} if before is None else guarded_version(plan, before.item)
    conditions = [scope.replaceable(plan) if expected is None else scope.is_entity(plan)]
    if expected is not None:
        conditions.append(version_is(plan, expected))
    if derived_absent and expected is None:
        conditions.append(scope.absent(plan))
    conditions += (*fields_unchanged(plan, derived_from), *attributes_unchanged(carried))
    if where is not None:
        conditions.append(where)
    if plan.schema_versions.declared:
        conditions.append(is_known(plan))
    condition = all_of(conditions)
    action = DeleteItem(
        table=scope.table(plan.table),
        key=key,
        condition=condition,
        returns="ALL_OLD",
        returns_on_failure=True,
    )
    return Write(
        plan=plan,
        verb="delete",
        given=arguments,
        action=action,
        derived_writes=() if before is None else derived_writes_of(scope, Change(plan, before, None)),
        mine=mine,
        after=None if before is None else before.entity,
        expected_version=expected,
        where=where,
        derived_from=derived_from,
        derived_absent=derived_absent,
        carried=carried,
    )


def plan_unconditional_delete(
    scope: Scope, plan: Plan, given: Mapping[str, Any], *, mine: Entity | None = None
) -> Write:
    """Return the write that deletes the item under a key without a condition."""
    arguments = scope.bind(plan, given)
    action = DeleteItem(table=scope.table(plan.table), key=plan.key_from(arguments))
    return Write(plan=plan, verb="delete", given=arguments, action=action, mine=mine)


def plan_check(
    scope: Scope,
    plan: Plan,
    given: Mapping[str, Any],
    *,
    where: Condition | None,
    version: ExpectedVersion = None,
) -> Write:
    """Return the write that only checks, in a transaction, that the entity exists and meets a condition."""
    arguments = scope.bind(plan, given)
    conditions: list[Condition] = [scope.present(plan)]
    expected = required_version(plan, version, "check")
    if expected is not None:
        conditions.append(version_is(plan, expected))
    if where is not None:
        conditions.append(where)
    condition = all_of(conditions)
    assert condition is not None
    return Write(
        plan=plan,
        verb="check",
        given=arguments,
        action=ConditionCheck(
            table=scope.table(plan.table),
            key=plan.key_from(arguments),
            condition=condition,
            returns_on_failure=True,
        ),
        needs_item=True,
        expected_version=expected,
        where=where,
    )


def _stamp(scope: Scope, plan: Plan, values: dict[str, Any]) -> None:
    for name, step in plan.truncated:
        # Pydantic truncates what it validates; a copy can have other values.
        values[name] = truncate(values[name], step)
    if plan.created is not None or plan.updated is not None:
        now = scope.now()
        if plan.created is not None and values[plan.created] is None:
            values[plan.created] = plan.stamp(plan.created, now)
        if plan.updated is not None:
            values[plan.updated] = plan.stamp(plan.updated, now)
    if plan.retention is not None and plan.ttl is not None:
        values[plan.ttl] = plan.retention.end_of(values) or values[plan.ttl]
