"""Unique fields: a lock item for each value in use, written in the transaction of its entity.

The key of a lock has the tenant, the entity, the field and the value; the lock names its holder. Locks are
never read: the condition of their put decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.keys.parts.codecs import escape
from solotable._entities.traits.unique import UniqueRule
from solotable._expressions.ast import Attr, Compare, Condition, Const, Exists, Not, Or
from solotable._flows.scope import Scope
from solotable._flows.transactions.write import Change, DerivedWrite
from solotable._protocol.requests import DeleteItem, PutItem
from solotable._values import Item
from solotable.errors import NotUnique, SolotableError

#: The type tag of locks.
TAG = "_unique"
_HOLDER = "holder"
_LONGEST_VALUE = 512


def locks(scope: Scope, rule: UniqueRule, change: Change) -> Iterator[DerivedWrite]:
    """Yield the puts and deletes of the locks that a change acquires and releases."""
    plan = change.plan
    if change.soft:
        return
    old = None if change.before is None else _name(plan, rule, change.before.entity)
    new = None if change.after is None else _name(plan, rule, change.after.entity)
    if old == new and not _is_renamed(change) and not _changes_ttl(change):
        return
    if old == new and new is not None and change.before is not None and change.after is not None:
        yield _put_lock(scope, plan, rule, new, change.after.entity, _holder(plan, change.before.entity))
        return
    if old is not None and change.before is not None:
        yield _delete_lock(scope, plan, rule, old, change.before.entity)
    if new is not None and change.after is not None:
        yield _put_lock(scope, plan, rule, new, change.after.entity)


def _is_renamed(change: Change) -> bool:
    """Return whether the change renames the entity, so that its key differs."""
    if change.before is None or change.after is None:
        return False
    return _holder(change.plan, change.before.entity) != _holder(change.plan, change.after.entity)


def _changes_ttl(change: Change) -> bool:
    """Return whether the change sets another time to live, which its lock must share."""
    end = change.plan.ttl
    if end is None or change.before is None or change.after is None:
        return False
    return bool(getattr(change.before.entity, end) != getattr(change.after.entity, end))


def _put_lock(
    scope: Scope,
    plan: Plan,
    rule: UniqueRule,
    name: str,
    after: Any,
    former: dict[str, Any] | None = None,
) -> DerivedWrite:
    item, holder = _lock_item(plan, rule, name, after), _holder(plan, after)
    free: list[Condition] = [
        Not(Exists((plan.table.partition.name,))),
        Compare("=", Attr((_HOLDER,)), Const(former or holder)),
    ]
    if plan.ttl is not None:
        now = Const({"N": str(int(scope.clock()))})
        free.append(Compare("<=", Attr((plan.attributes[plan.ttl].wire,)), now))

    def explain(found: Item | None) -> SolotableError:
        return _not_unique(plan, rule, after, found)

    action = PutItem(
        table=scope.table(plan.table), item=item, condition=Or(tuple(free)), returns_on_failure=True
    )
    return DerivedWrite(action=action, title=f"the lock of {plan.name}.{rule.field}", explain=explain)


def _lock_item(plan: Plan, rule: UniqueRule, name: str, entity: Any) -> Item:
    item: Item = {
        **_key(plan, name),
        plan.table.internal_tag: {"S": TAG},
        "entity": {"S": plan.tag},
        "field": {"S": rule.field},
        _HOLDER: _holder(plan, entity),
    }
    if plan.ttl is not None:
        attribute = plan.attributes[plan.ttl]
        until = attribute.encode(getattr(entity, plan.ttl))
        if until is not None:
            # The lock expires together with its holder.
            item[attribute.wire] = until
    return item


def _delete_lock(scope: Scope, plan: Plan, rule: UniqueRule, name: str, before: Any) -> DerivedWrite:
    holder = _holder(plan, before)
    mine: Condition = Or(
        (Not(Exists((plan.table.partition.name,))), Compare("=", Attr((_HOLDER,)), Const(holder)))
    )

    def explain(found: Item | None) -> SolotableError:
        return _not_unique(plan, rule, before, found)

    action = DeleteItem(
        table=scope.table(plan.table), key=_key(plan, name), condition=mine, returns_on_failure=True
    )
    return DerivedWrite(action=action, title=f"the lock of {plan.name}.{rule.field}", explain=explain)


def _name(plan: Plan, rule: UniqueRule, entity: Any) -> str | None:
    """Return the partition key of the lock on an entity's value; None without a value."""
    parts = rule.key_of(entity.__dict__)
    if parts is None:
        return None
    *within, text = parts
    if len(text.encode()) > _LONGEST_VALUE:
        text = sha256(text.encode()).hexdigest()
    tenant = [] if plan.tenant is None else [getattr(entity, plan.tenant)]
    return "#".join(("UNIQUE", *map(escape, (*tenant, plan.tag, rule.field, *within, text))))


def _key(plan: Plan, name: str) -> Item:
    key: Item = {plan.table.partition.name: {"S": name}}
    if plan.table.sort is not None:
        key[plan.table.sort.name] = {"S": "UNIQUE"}
    return key


def _holder(plan: Plan, entity: Any) -> dict[str, Any]:
    key = plan.key_of(entity.__dict__)
    return {"M": {name: key[name] for name in plan.primary.names}}


def _not_unique(plan: Plan, rule: UniqueRule, entity: Any, found: Item | None) -> SolotableError:
    value = getattr(entity, rule.field)
    key: Item = {} if found is None else found.get(_HOLDER, {}).get("M", {})
    holder = plan.arguments_of(key)
    parts = {name: part for name, part in (holder or {}).items() if name != plan.tenant}
    shown = ", ".join(f"{name}={part!r}" for name, part in parts.items()) or str(key)
    return NotUnique(
        f"{plan.name}.{rule.field} = {value!r} is already used by {plan.name} {shown}; choose another value.",
        field=rule.field,
        value=value,
        holder=holder,
    )


def lock_key(plan: Plan, rule: UniqueRule, entity: Any) -> Item | None:
    """Return the key of the lock that an entity holds; None if its field has no value."""
    name = _name(plan, rule, entity)
    return None if name is None else _key(plan, name)


def lock_items(plan: Plan, entity: Any) -> Iterator[Item]:
    """Yield the locks that an entity holds, as a migration writes them."""
    for rule in plan.traits:
        if isinstance(rule, UniqueRule) and (name := _name(plan, rule, entity)) is not None:
            yield _lock_item(plan, rule, name, entity)


def lock_puts(scope: Scope, plan: Plan, entity: Any) -> Iterator[DerivedWrite]:
    """Yield the puts of the locks that a stored entity must hold; a repeated put changes nothing."""
    for rule in plan.traits:
        if isinstance(rule, UniqueRule) and (name := _name(plan, rule, entity)) is not None:
            yield _put_lock(scope, plan, rule, name, entity)
