"""Soft deletes: delete an entity, undelete it, and hold it against the purge.

A delete keeps the item, removes it from every index and adds an entry to the purge queue, in one
transaction. An undelete reverses that transaction. Neither changes the version: the item is restored byte
for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.traits.soft_delete import DELETED_AT, HELD, KEYS_ASIDE, PURGE_AT, PURGING
from solotable._expressions.ast import (
    Action,
    Assign,
    Condition,
    Const,
    Exists,
    Not,
    Or,
    Remove,
    Update,
)
from solotable._flows.jobs.purge_queue import QueueEntry, queue_delete, queue_put
from solotable._flows.jobs.reencode import stale_keys
from solotable._flows.reads.get import not_found
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.sync.entries import guarded_version
from solotable._flows.transactions.derived_writes import derived_writes_of, source_fields
from solotable._flows.transactions.write import (
    Change,
    Stored,
    Write,
    all_of,
    attributes_unchanged,
    condition_error,
    conflict,
    fields_unchanged,
    load_stored,
    version_is,
)
from solotable._protocol.requests import ConditionCheck, GetItem, UpdateItem
from solotable._values import AttributeValue, Item
from solotable.errors import ConditionFailed, DataError, DeclarationError, NotFound

from .history import title_of
from .outbox import stamp


def carried_by(plan: Plan, before: Stored) -> dict[str, AttributeValue | None]:
    """Return the internal attributes that must not change before a write: of soft deletes and of the sync."""
    guarded = guarded_version(plan, before.item)
    return guarded if plan.deletion is None else {DELETED_AT: None, HELD: before.item.get(HELD), **guarded}


def plan_soft_delete(
    scope: Scope,
    plan: Plan,
    arguments: Mapping[str, Any],
    expected: int | None,
    *,
    mine: Entity | None,
    where: Condition | None,
) -> Flow[Write]:
    """Return the write that soft-deletes an entity; for a missing entity it only checks."""
    assert plan.deletion is not None
    key = plan.key_from(arguments)
    before = yield from load_stored(scope, plan, key)
    if before is None:
        return _check_missing(scope, plan, arguments, expected, mine=mine, where=where)
    now = scope.now()
    entry = QueueEntry(
        entity=plan.tag,
        key=key,
        deleted_at=stamp(now),
        purge_at=ceil((now + plan.deletion.grace).timestamp()),
    )
    keys = {name: before.item.get(name) for path in plan.indexes for name in path.derived}
    derived_from = before.wire_values(plan, source_fields(plan))
    guarded = {**keys, **guarded_version(plan, before.item)}
    conditions = [scope.present(plan), *fields_unchanged(plan, derived_from), *attributes_unchanged(guarded)]
    if expected is not None:
        conditions.append(version_is(plan, expected))
    if where is not None:
        conditions.append(where)
    action = UpdateItem(
        table=scope.table(plan.table),
        key=key,
        update=Update(hide_actions(entry, keys), creates=True),
        condition=all_of(conditions),
        returns_on_failure=True,
    )
    return Write(
        plan=plan,
        verb="delete",
        given=arguments,
        action=action,
        derived_writes=(
            queue_put(scope, plan, entry),
            *derived_writes_of(scope, Change(plan, before, None, soft=True)),
        ),
        mine=mine,
        after=before.entity,
        expected_version=expected,
        where=where,
        derived_from=derived_from,
        carried={DELETED_AT: None, **guarded},
    )


def plan_undelete(scope: Scope, plan: Plan, given: Mapping[str, Any]) -> Flow[Write]:
    """Return the write that undeletes an entity; raise NotFound after its grace period."""
    require_soft_delete(plan, "undelete")
    arguments = scope.bind(plan, given)
    key = plan.key_from(arguments)
    request = GetItem(table=scope.table(plan.table), key=key, consistent=True)
    reply = yield from send(request, scope.retries)
    item = None if reply.item is None else decode_item(reply.item)
    if item is None or not plan.recognises(item) or scope.has_passed(plan, item):
        raise not_found(plan, arguments)
    if DELETED_AT not in item:
        raise NotFound(f"Cannot undelete {title_of(plan, arguments)}: it is not deleted.")
    purge_at = int(item[PURGE_AT]["N"])
    if purge_at <= scope.clock() or PURGING in item:
        raise NotFound(f"{not_found(plan, arguments)} It was deleted, and its grace period is over.")
    aside: Item = item.get(KEYS_ASIDE, {}).get("M", {})
    removed = [name for name in (DELETED_AT, PURGE_AT, KEYS_ASIDE) if name in item]
    bare = {name: value for name, value in item.items() if name not in removed}
    entity = plan.decode(bare | aside)
    if not plan.schema_versions.differs(item):
        # A backfill since the delete could not repair the saved index keys.
        fresh = aside | stale_keys(plan, bare | aside, entity)
        aside = {name: value for name, value in fresh.items() if value is not None}
    after = Stored(bare | aside, entity)
    scope.check_tenant(plan, after.entity)
    actions: list[Action] = [Assign((name,), Const(value)) for name, value in aside.items()]
    actions += [Remove((name,)) for name in removed]
    seen = {DELETED_AT: item[DELETED_AT], PURGE_AT: item[PURGE_AT], PURGING: None}
    seen |= guarded_version(plan, item)
    action = UpdateItem(
        table=request.table,
        key=key,
        # DynamoDB: an update that only removes attributes does not create an item.
        update=Update(tuple(actions), creates=bool(aside)),
        condition=all_of([scope.is_entity(plan), *attributes_unchanged(seen)]),
        returns_on_failure=True,
    )
    return Write(
        plan=plan,
        verb="undelete",
        given=arguments,
        action=action,
        derived_writes=(
            queue_delete(scope, plan, key, purge_at),
            *derived_writes_of(scope, Change(plan, None, after, soft=True)),
        ),
        after=after.entity,
        needs_item=True,
        carried=seen,
    )


def hold(scope: Scope, plan: Plan, given: Mapping[str, Any], reason: str) -> Flow[None]:
    """Prevent the purge of an entity, whether it is deleted or not."""
    require_soft_delete(plan, "hold")
    if not reason:
        raise DataError(f"hold() of {plan.name} takes a non-empty reason, got ''.")
    arguments = scope.bind(plan, given)
    conditions: list[Condition] = [scope.is_entity(plan), Not(Exists((PURGING,)))]
    if plan.ttl is not None:
        conditions.append(Not(Exists((plan.attributes[plan.ttl].wire,))))
    note: AttributeValue = {"M": {"reason": {"S": reason}, "at": {"S": stamp(scope.now())}}}
    action = UpdateItem(
        table=scope.table(plan.table),
        key=plan.key_from(arguments),
        update=Update((Assign((HELD,), Const(note)),), creates=True),
        condition=all_of(conditions),
        returns_on_failure=True,
    )
    try:
        yield from send(action, scope.retries)
    except ConditionFailed as error:
        item = error.item
        if item is None or not plan.recognises(item):
            raise not_found(plan, arguments) from error
        if PURGING in item:
            raise NotFound(f"{not_found(plan, arguments)} Its purge has already begun.") from error
        raise DataError(
            f"Cannot hold {plan.name}: its time to live {plan.ttl} removes it despite a hold; "
            f"set {plan.ttl} to None first."
        ) from error


def release_hold(scope: Scope, plan: Plan, given: Mapping[str, Any]) -> Flow[None]:
    """Release a hold, so that the entity can be purged when it is due."""
    require_soft_delete(plan, "release_hold")
    arguments = scope.bind(plan, given)
    action = UpdateItem(
        table=scope.table(plan.table),
        key=plan.key_from(arguments),
        update=Update((Remove((HELD,)),), creates=False),
        condition=all_of([scope.is_entity(plan), Exists((HELD,))]),
    )
    try:
        yield from send(action, scope.retries)
    except ConditionFailed as error:
        raise NotFound(f"{not_found(plan, arguments)} It has no hold to release.") from error


def require_soft_delete(plan: Plan, verb: str) -> None:
    """Raise DeclarationError for an entity without a soft delete."""
    if plan.deletion is None:
        raise DeclarationError(
            f"{verb}() needs an entity with soft deletes, but {plan.name} is deleted at once; "
            f"declare deletion = SoftDelete(grace=timedelta(days=30))."
        )


def hide_actions(entry: QueueEntry, keys: Mapping[str, AttributeValue | None]) -> tuple[Action, ...]:
    """Return the actions that hide an item: save and remove its index keys, and set its purge time."""
    actions: list[Action] = [Assign((name,), Const(value)) for name, value in entry.seen.items()]
    aside = {name: value for name, value in keys.items() if value is not None}
    if aside:
        actions.append(Assign((KEYS_ASIDE,), Const({"M": aside})))
    return (*actions, *(Remove((name,)) for name in aside))


def _check_missing(
    scope: Scope,
    plan: Plan,
    arguments: Mapping[str, Any],
    expected: int | None,
    *,
    mine: Entity | None,
    where: Condition | None,
) -> Write:
    """Return the write that only checks that the entity is still missing; raise if one was expected."""
    missing: list[Condition] = [scope.absent(plan), Exists((DELETED_AT,))]
    write = Write(
        plan=plan,
        verb="delete",
        given=arguments,
        action=ConditionCheck(
            table=scope.table(plan.table),
            key=plan.key_from(arguments),
            condition=Or(tuple(missing)),
            returns_on_failure=True,
        ),
        mine=mine,
        expected_version=expected,
        where=where,
        derived_absent=True,
    )
    if expected is not None:
        raise conflict(write, None, None, expected)
    if where is not None:
        raise condition_error(scope, write, None)
    return write
