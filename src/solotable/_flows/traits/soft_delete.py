"""Soft deletes: delete an entity, restore it, and hold it against the purge.

A delete leaves the item where it is, takes it out of every index and puts an entry on the list of what
waits for the purge, in one transaction; an undelete is that transaction turned round. Neither touches the
version: the item is the same one again, byte for byte.
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
from solotable._flows.jobs.purge_queue import QueueEntry, queue_delete, queue_put
from solotable._flows.jobs.reencode import stale_keys
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.transactions.derived_writes import depends_on, derived_writes_of
from solotable._flows.transactions.write import (
    Change,
    Stored,
    Write,
    all_of,
    as_stored,
    conflict,
    refusal,
    stored,
    unchanged,
    version_is,
)
from solotable._flows.verbs.get import not_found
from solotable._protocol.requests import ConditionCheck, GetItem, UpdateItem
from solotable._values import AttributeValue, Item
from solotable.errors import ConditionFailed, DataError, DeclarationError, NotFound

from .outbox import stamp


def carried_by(plan: Plan, before: Stored) -> dict[str, AttributeValue | None]:
    """Return what a write over a stored item has to find as it was: its hold, and that it is not deleted."""
    return {} if plan.deletion is None else {DELETED_AT: None, HELD: before.item.get(HELD)}


def plan_soft_delete(
    scope: Scope,
    plan: Plan,
    arguments: Mapping[str, Any],
    expected: int | None,
    *,
    mine: Entity | None,
    where: Condition | None,
) -> Flow[Write]:
    """Return the write that soft-deletes an entity; an absent one needs no write."""
    assert plan.deletion is not None
    key = plan.key_from(arguments)
    before = yield from stored(scope, plan, key)
    if before is None:
        return _nothing_there(scope, plan, arguments, expected, mine=mine, where=where)
    now = scope.now()
    entry = QueueEntry(
        entity=plan.tag,
        key=key,
        deleted_at=stamp(now),
        purge_at=ceil((now + plan.deletion.grace).timestamp()),
    )
    keys = {name: before.item.get(name) for path in plan.indexes for name in path.derived}
    facts = before.facts(plan, depends_on(plan))
    conditions = [scope.present(plan), *unchanged(plan, facts), *as_stored(keys)]
    if expected is not None:
        conditions.append(version_is(plan, expected))
    if where is not None:
        conditions.append(where)
    action = UpdateItem(
        table=scope.table(plan.table),
        key=key,
        update=Update(hiding(entry, keys), creates=True),
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
        derived_from=facts,
        carried={DELETED_AT: None, **keys},
    )


def plan_undelete(scope: Scope, plan: Plan, given: Mapping[str, Any]) -> Flow[Write]:
    """Return the write that gives a deleted entity back as it was; NotFound once its time is over."""
    require_soft_delete(plan, "undelete")
    arguments = scope.bind(plan, given)
    key = plan.key_from(arguments)
    request = GetItem(table=scope.table(plan.table), key=key, consistent=True)
    reply = yield from send(request, scope.retries)
    item = None if reply.item is None else decode_item(reply.item)
    if item is None or item.get(plan.table.tag) != plan.tag_value or scope.has_passed(plan, item):
        raise not_found(plan, arguments)
    if DELETED_AT not in item:
        raise NotFound(f"{not_found(plan, arguments)} Not among what was deleted: it is there.")
    purge_at = int(item[PURGE_AT]["N"])
    if purge_at <= scope.clock() or PURGING in item:
        raise NotFound(f"{not_found(plan, arguments)} It was deleted, and the time to undelete it is over.")
    aside: Item = item.get(KEYS_ASIDE, {}).get("M", {})
    gone = [name for name in (DELETED_AT, PURGE_AT, KEYS_ASIDE) if name in item]
    bare = {name: value for name, value in item.items() if name not in gone}
    entity = plan.decode(bare | aside)
    if not plan.schema_versions.differs(item):
        # A backfill since the delete could not repair keys that are set aside.
        fresh = aside | stale_keys(plan, bare | aside, entity)
        aside = {name: value for name, value in fresh.items() if value is not None}
    after = Stored(bare | aside, entity)
    scope.check_tenant(plan, after.entity)
    actions: list[Action] = [Assign((name,), Const(value)) for name, value in aside.items()]
    actions += [Remove((name,)) for name in gone]
    seen = {DELETED_AT: item[DELETED_AT], PURGE_AT: item[PURGE_AT], PURGING: None}
    action = UpdateItem(
        table=request.table,
        key=key,
        # DynamoDB: an update that only takes something away makes no item.
        update=Update(tuple(actions), creates=bool(aside)),
        condition=all_of(as_stored(seen)),
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
    """Keep an entity from being purged, whether it is deleted or not."""
    require_soft_delete(plan, "hold")
    if not reason:
        raise DataError(f"A hold of {plan.name} needs a reason, for those who ask why it is still there.")
    arguments = scope.bind(plan, given)
    conditions: list[Condition] = [_is_entity(plan), Not(Exists((PURGING,)))]
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
    except ConditionFailed as refused:
        item = refused.item
        if item is None or item.get(plan.table.tag) != plan.tag_value:
            raise not_found(plan, arguments) from refused
        if PURGING in item:
            raise NotFound(f"{not_found(plan, arguments)} Its purge has begun; it is too late.") from refused
        raise DataError(
            f"Hold {plan.name}: its {plan.ttl} ends it by the time to live, which no hold stops; "
            f"update it to None first."
        ) from refused


def release_hold(scope: Scope, plan: Plan, given: Mapping[str, Any]) -> Flow[None]:
    """Let an entity be purged again once its time has come."""
    require_soft_delete(plan, "release_hold")
    arguments = scope.bind(plan, given)
    action = UpdateItem(
        table=scope.table(plan.table),
        key=plan.key_from(arguments),
        update=Update((Remove((HELD,)),), creates=False),
        condition=all_of([_is_entity(plan), Exists((HELD,))]),
    )
    try:
        yield from send(action, scope.retries)
    except ConditionFailed as refused:
        raise NotFound(f"{not_found(plan, arguments)} It has no hold to release.") from refused


def require_soft_delete(plan: Plan, verb: str) -> None:
    """Raise DeclarationError for an entity without a soft delete."""
    if plan.deletion is None:
        raise DeclarationError(
            f"{plan.name} is gone when it is deleted, so there is nothing to {verb}; "
            f"declare it: deletion = SoftDelete(grace=timedelta(days=30))."
        )


def hiding(entry: QueueEntry, keys: Mapping[str, AttributeValue | None]) -> tuple[Action, ...]:
    """Return what a delete does to an item: the index keys go aside, and it says when it may be purged."""
    actions: list[Action] = [Assign((name,), Const(value)) for name, value in entry.seen.items()]
    aside = {name: value for name, value in keys.items() if value is not None}
    if aside:
        actions.append(Assign((KEYS_ASIDE,), Const({"M": aside})))
    return (*actions, *(Remove((name,)) for name in aside))


def _nothing_there(
    scope: Scope,
    plan: Plan,
    arguments: Mapping[str, Any],
    expected: int | None,
    *,
    mine: Entity | None,
    where: Condition | None,
) -> Write:
    """Return the write that only checks that there is still nothing to delete, or refuse the delete."""
    gone: list[Condition] = [scope.absent(plan), Exists((DELETED_AT,))]
    write = Write(
        plan=plan,
        verb="delete",
        given=arguments,
        action=ConditionCheck(
            table=scope.table(plan.table),
            key=plan.key_from(arguments),
            condition=Or(tuple(gone)),
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
        raise refusal(scope, write, None)
    return write


def _is_entity(plan: Plan) -> Condition:
    return Compare("=", Attr((plan.table.tag,)), Const(plan.tag_value))
