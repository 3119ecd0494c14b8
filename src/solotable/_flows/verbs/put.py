"""Putting and removing whole entities, and requiring that one is there.

An entity with traits (unique fields and the like) is read first, and what follows from it is written
in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._expressions.ast import Condition
from solotable._flows.jobs.reencode import is_known
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.traits.soft_delete import carried_by, plan_soft_delete
from solotable._flows.transactions.derived_writes import companions_of, depends_on
from solotable._flows.transactions.write import (
    Change,
    ExpectedVersion,
    Stored,
    Write,
    all_of,
    as_stored,
    conflict,
    expected_version,
    required_version,
    stored,
    unchanged,
    version_is,
    version_of,
)
from solotable._protocol.requests import ConditionCheck, DeleteItem, PutItem
from solotable._values import AttributeValue, Item
from solotable.errors import DataError


@dataclass(frozen=True, slots=True)
class Intent:
    """An entity that is to be stored: as the caller has it, and as it will be."""

    mine: Entity
    after: Entity
    values: Mapping[str, Any]
    item: Item
    #: The version that the caller read; None without one.
    version: int | None


def intend(scope: Scope, entity: Entity) -> Intent:
    """Return an entity as it will be stored: tenant, version and stamps filled in, within the limits."""
    given: object = entity
    if not isinstance(given, Entity):
        raise DataError(f"put() takes an Entity instance, got {type(given).__name__}.")
    plan = entity.plan()
    values = dict(scope.bind(plan, entity.__dict__))
    version = None if plan.version is None else int(values[plan.version])
    if plan.version is not None and version is not None:
        values[plan.version] = version + 1
    _stamp(scope, plan, values)
    changed = {name: value for name, value in values.items() if entity.__dict__.get(name) is not value}
    item = plan.dump(values, entity.unknown_attributes)
    plan.check(values)
    return Intent(entity, entity.model_copy(update=changed), values, item, version)


def put_over(scope: Scope, entity: Entity) -> Write:
    """Return the write that puts an entity over whatever is stored; it has no condition."""
    intent = intend(scope, entity)
    plan = entity.plan()
    action = PutItem(table=scope.table(plan.table), item=intent.item)
    return Write(plan=plan, verb="put", given=intent.values, action=action, mine=entity, after=intent.after)


def plan_put(
    scope: Scope, intent: Intent, *, create: bool = False, where: Condition | None = None
) -> Flow[Write]:
    """Return the write that makes an entity or replaces the stored one."""
    plan = intent.mine.plan()
    creates = create or intent.version == 0
    expected = None if creates else intent.version
    before: Stored | None = None
    derived_from: dict[str, AttributeValue | None] = {}
    derived_absent = False
    if (plan.traits or plan.counters) and not creates:
        before = yield from stored(scope, plan, plan.key_of(intent.values))
        derived_absent = before is None and expected is None
        if before is not None:
            guarded = plan.counters if expected is not None else (*depends_on(plan), *plan.counters)
            derived_from = before.facts(plan, guarded)
    intent = _carrying(_counting(intent, before), before)
    carried = {} if before is None else carried_by(plan, before)
    conditions = [*unchanged(plan, derived_from), *as_stored(carried)]
    if creates or derived_absent:
        conditions.append(scope.absent(plan))
    if expected is not None:
        conditions.append(version_is(plan, expected))
    if where is not None:
        conditions.append(where)
    if plan.shapes.declared and not creates:
        conditions.append(is_known(plan))
    condition = all_of(conditions)
    there = before and before.entity
    write = Write(
        plan=plan,
        verb="create" if create else "put",
        given=intent.values,
        action=PutItem(
            table=scope.table(plan.table),
            item=intent.item,
            condition=condition,
            returns_on_failure=condition is not None,
        ),
        companions=companions_of(scope, Change(plan, before, Stored(intent.item, intent.after))),
        mine=intent.mine,
        after=intent.after,
        creates=creates,
        expected_version=expected,
        where=where,
        derived_from=derived_from,
        derived_absent=derived_absent,
        carried=carried,
    )
    if plan.traits and expected is not None and version_of(plan, there) != expected:
        raise conflict(write, None, there, expected)
    return write


def _carrying(intent: Intent, before: Stored | None) -> Intent:
    """Return an intent with the attributes that are the traits' own as they are stored."""
    plan = intent.mine.plan()
    names = {name for trait in plan.traits for name in trait.carries}
    given = intent.mine.unknown_attributes
    kept = {} if before is None else {name: before.item[name] for name in names if name in before.item}
    if kept == {name: given[name] for name in names if name in given}:
        return intent
    unknown = {name: value for name, value in given.items() if name not in names} | kept
    after = intent.after.model_copy()
    after.keep_unknown(unknown)
    return replace(intent, after=after, item=plan.dump(intent.values, unknown))


def _counting(intent: Intent, before: Stored | None) -> Intent:
    """Return an intent with the counters as they are stored: a put does not change them."""
    plan = intent.mine.plan()
    if not plan.counters:
        return intent
    fields = plan.entity.model_fields
    kept = {
        name: fields[name].get_default() if before is None else getattr(before.entity, name)
        for name in plan.counters
    }
    values = {**intent.values, **kept}
    item = plan.dump(values, intent.mine.unknown_attributes)
    return Intent(intent.mine, intent.after.model_copy(update=kept), values, item, intent.version)


def plan_delete(
    scope: Scope,
    plan: Plan,
    given: Mapping[str, Any],
    *,
    version: ExpectedVersion = None,
    mine: Entity | None = None,
    where: Condition | None = None,
) -> Flow[Write]:
    """Return the write that removes an entity; removing what is not there is no error without a condition."""
    arguments = scope.bind(plan, given)
    expected = expected_version(plan, version, "delete")
    if plan.deletion is not None:
        return (yield from plan_soft_delete(scope, plan, arguments, expected, mine=mine, where=where))
    key = plan.key_from(arguments)
    before: Stored | None = None
    derived_from: dict[str, AttributeValue | None] = {}
    derived_absent = False
    if plan.traits:
        before = yield from stored(scope, plan, key)
        derived_absent = before is None
        derived_from = {} if before is None else before.facts(plan, depends_on(plan))
    conditions = [scope.not_anothers(plan) if expected is None else version_is(plan, expected)]
    if derived_absent and expected is None:
        conditions.append(scope.absent(plan))
    conditions += unchanged(plan, derived_from)
    if where is not None:
        conditions.append(where)
    if plan.shapes.declared:
        conditions.append(is_known(plan))
    condition = all_of(conditions)
    action = DeleteItem(
        table=scope.table(plan.table),
        key=key,
        condition=condition,
        returns="ALL_OLD",
        returns_on_failure=condition is not None,
    )
    return Write(
        plan=plan,
        verb="delete",
        given=arguments,
        action=action,
        companions=() if before is None else companions_of(scope, Change(plan, before, None)),
        mine=mine,
        after=None if before is None else before.entity,
        expected_version=expected,
        where=where,
        derived_from=derived_from,
        derived_absent=derived_absent,
    )


def delete_over(scope: Scope, plan: Plan, given: Mapping[str, Any], *, mine: Entity | None = None) -> Write:
    """Return the write that removes whatever is stored; it has no condition."""
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
    """Return the part of a transaction that only checks: that the entity is there, and the condition."""
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
    if plan.created is not None and values[plan.created] is None:
        values[plan.created] = plan.stamp(plan.created, scope.now())
    if plan.updated is not None:
        values[plan.updated] = plan.stamp(plan.updated, scope.now())
    if plan.retention is not None and plan.ttl is not None:
        values[plan.ttl] = plan.retention.end_of(values) or values[plan.ttl]
