"""Rename an entity in one transaction, release former names, and resolve names.

The entity moves to its new name, its old one becomes a redirect, and its former ones lead to the new one.
A name that is taken, or leads to another entity, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from solotable._entities.declare.plan import Plan
from solotable._entities.patterns.query import Query
from solotable._entities.traits.names import ALIASES, Names, Redirect
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._expressions.ast import Assign, Attr, Condition, Const, Contains, Not, Or, Remove, Update
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.transactions.derived_writes import derived_writes_of
from solotable._flows.transactions.write import (
    Change,
    DerivedWrite,
    ExpectedVersion,
    Stored,
    Write,
    all_of,
    as_stored,
    expected_version,
    unchanged,
    version_is,
)
from solotable._flows.verbs.get import not_found
from solotable._flows.verbs.query import FilledPage, prepare
from solotable._protocol.replies import Page, decode_items
from solotable._protocol.requests import ConditionCheck, DeleteItem, GetItem, PutItem, UpdateItem
from solotable._values import Item
from solotable.errors import AlreadyExists, ConditionFailed, DataError, NotFound, SolotableError

from .names import key_at, leads_to, names_of, nothing
from .soft_delete import carried_by

#: How often a name is looked up while its entity is renamed.
_HOPS = 4


def plan_rename(
    scope: Scope, plan: Plan, given: Mapping[str, Any], *, to: str, version: ExpectedVersion = None
) -> Flow[Write]:
    """Return the write that gives an entity another name; its old one leads there from then on."""
    trait = names_of(plan)
    arguments = scope.bind(plan, given)
    expected = expected_version(plan, version, "rename")
    before = yield from _required(scope, plan, trait, arguments)
    name = str(getattr(before.entity, trait.field))
    if to == name:
        raise DataError(f"{plan.name} {trait.field}={name!r} has that name already.")
    aliases = (*(each for each in trait.aliases(before.item) if each != to), name)
    if len(aliases) > trait.most:
        raise DataError(
            f"{plan.name} {trait.field}={name!r} has {trait.most} former names, and that is the most; "
            f"release() one of them first: the oldest is {aliases[0]!r}."
        )
    after = _renamed(scope, plan, trait, before, to, aliases)
    facts = before.facts(plan, (trait.version, *plan.counters))
    carried = carried_by(plan, before)
    conditions = [*unchanged(plan, facts), *as_stored(carried)]
    if expected is not None:
        conditions.append(version_is(plan, expected))
    table = scope.table(plan.table)
    own = plan.key_of(before.entity.__dict__)
    action = PutItem(
        table=table,
        item=trait.redirect(own, to),
        condition=all_of(conditions),
        returns_on_failure=True,
    )
    return Write(
        plan=plan,
        verb="rename",
        given=arguments,
        action=action,
        derived_writes=(
            _arrival(table, plan, trait, after, name),
            *derived_writes_of(scope, Change(plan, before, after)),
        ),
        after=after.entity,
        expected_version=expected,
        derived_from=facts,
        carried=carried,
    )


def plan_release(scope: Scope, plan: Plan, given: Mapping[str, Any]) -> Flow[Write]:
    """Return the write that gives up a former name, so that another entity may have it."""
    trait = names_of(plan)
    arguments = scope.bind(plan, given)
    key, alias = plan.key_from(arguments), str(arguments[trait.field])
    table = scope.table(plan.table)
    item = yield from _item(scope, plan, key)
    if item is None or not trait.is_redirect(item):
        raise NotFound(f"{alias!r} is not a former name of a {plan.name}; nothing to release.")
    name = trait.target(item)
    freed = DeleteItem(table=table, key=key, condition=leads_to(plan, trait, name), returns_on_failure=True)
    holder = yield from _holder(scope, plan, trait, arguments, name)

    def explain(met: Item | None) -> SolotableError:
        message = f"Release {plan.name} {trait.field}={alias!r}: another writer renamed it; try again."
        refused = ConditionFailed(message, item=met)
        refused.args = (message,)
        return refused

    if holder is None:
        # The entity may have been renamed, and be back under this name before the write.
        unclaimed = ConditionCheck(
            table=table,
            key=key_at(plan, trait, arguments, name),
            condition=Not(Contains(Attr((ALIASES,)), Const({"S": alias}))),
            returns_on_failure=True,
        )
        check = DerivedWrite(action=unclaimed, title=f"{plan.name} {trait.field}={name!r}", explain=explain)
        return Write(plan=plan, verb="release", given=arguments, action=freed, derived_writes=(check,))
    left = tuple(each for each in trait.aliases(holder.item) if each != alias)
    facts = holder.facts(plan, (trait.version,))
    action, after = _without(scope, plan, trait, holder, left)
    return Write(
        plan=plan,
        verb="release",
        given=arguments,
        action=action,
        derived_writes=(
            DerivedWrite(action=freed, title=f"the redirect from {alias!r}", explain=explain),
            *derived_writes_of(scope, Change(plan, holder, after)),
        ),
        after=after.entity,
        needs_item=True,
        derived_from=facts,
        carried=carried_by(plan, holder),
    )


def _holder(
    scope: Scope, plan: Plan, trait: Names, arguments: Mapping[str, Any], name: str
) -> Flow[Stored | None]:
    """Return the entity that a former name leads to, also a soft-deleted one; None if it is gone."""
    item = yield from _item(scope, plan, key_at(plan, trait, arguments, name))
    entity = None if item is None else scope.admit(plan, item)
    if item is None or entity is not None:
        return None if item is None else Stored(item, entity)
    is_ours = plan.deletion is not None and item.get(plan.table.tag) == plan.tag_value
    if is_ours and DELETED_AT in item and not scope.has_passed(plan, item):
        raise DataError(
            f"Release {plan.name} {trait.field}={arguments[trait.field]!r}: it is a former name of {name!r}, "
            f"which was deleted and keeps its names until it is purged; undelete() it first."
        )
    return None


def resolve(
    scope: Scope, plan: Plan, given: Mapping[str, Any], *, follow: bool, consistent: bool
) -> Flow[Any]:
    """Return the entity of a name, where the name leads, or None; one read, and one more to follow."""
    trait = names_of(plan)
    arguments = scope.bind(plan, given)
    name = str(arguments[trait.field])
    item = yield from _item(scope, plan, plan.key_from(arguments), consistent=consistent)
    if item is None:
        return None
    if not trait.is_redirect(item):
        return scope.admit(plan, item)
    to = trait.target(item)
    if not follow:
        return Redirect(name=name, to=to)
    for _ in range(_HOPS):
        item = yield from _item(scope, plan, key_at(plan, trait, arguments, to), consistent=True)
        if item is None or not trait.is_redirect(item):
            break
        # It was renamed between the two readings.
        to = trait.target(item)
    entity = None if item is None else scope.admit(plan, item)
    return None if entity is None else Redirect(name=name, to=to, entity=entity)


def redirects(scope: Scope, query: Query[Any], *, limit: int, cursor: str | None) -> Flow[FilledPage]:
    """Return the redirects to the entities of a page of a query; there may be none before its end."""
    if limit < 1:
        raise DataError(f"A page has at least one row; limit={limit} was given.")
    plan, trait = query.plan, names_of(query.plan)
    prepared = prepare(scope, query)
    if prepared.request is None:
        return FilledPage([], None, 0)
    bound_to = b"redirects " + prepared.bound_to
    start = None if cursor is None else scope.sealer.open(cursor, bound_to)
    field = plan.attributes[trait.field]
    wanted = (*plan.primary.names, *query.path.names, plan.table.tag, field.wire, ALIASES)
    projection = tuple((name,) for name in dict.fromkeys(wanted))
    asked = replace(prepared.request, projection=projection, limit=limit, start=start)
    reply: Page = yield from send(asked, scope.retries)
    found: list[Redirect[Any]] = [
        Redirect(name=alias, to=str(field.decode(item[field.wire])))
        for item in decode_items(reply.items or ())
        if item.get(plan.table.tag) == plan.tag_value
        for alias in trait.aliases(item)
    ]
    sealed = None if not reply.last_key else scope.sealer.seal(reply.last_key, bound_to)
    return FilledPage(found, sealed, reply.scanned)


def aliases(scope: Scope, plan: Plan, given: Mapping[str, Any]) -> Flow[list[str]]:
    """Return the former names of an entity, the oldest first."""
    trait = names_of(plan)
    found = yield from _required(scope, plan, trait, scope.bind(plan, given))
    return list(trait.aliases(found.item))


def _renamed(
    scope: Scope, plan: Plan, trait: Names, before: Stored, to: str, aliases: tuple[str, ...]
) -> Stored:
    """Return an entity as it will be stored under its new name."""
    values = dict(before.entity.__dict__)
    values[trait.field] = to
    values[trait.version] += 1
    if plan.updated is not None:
        values[plan.updated] = plan.stamp(plan.updated, scope.now())
    try:
        entity = plan.entity.model_validate(values)
    except ValidationError as refused:
        first = refused.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or trait.field
        raise DataError(
            f"{plan.name}.{where} = {to!r}: {first['msg']}.",
            public_message=f"{plan.name}.{where}: {first['msg']}.",
        ) from refused
    unknown = trait.with_aliases(before.entity.unknown_attributes, aliases)
    entity.keep_unknown(unknown)
    return Stored(plan.encode(entity.__dict__, unknown), entity)


def _arrival(table: str, plan: Plan, trait: Names, after: Stored, name: str) -> DerivedWrite:
    to = str(getattr(after.entity, trait.field))
    # An entity may take back its former name, so a rename there and back works.
    free: Condition = Or((nothing(plan), leads_to(plan, trait, name)))

    def explain(met: Item | None) -> SolotableError:
        values = {trait.field: to}
        reason = None if met is None else trait.occupied(met, values)
        message = f"Rename {plan.name} {trait.field}={name!r}: {reason or f'{to!r} is taken'}."
        return AlreadyExists(message, item=met)

    action = PutItem(table=table, item=after.item, condition=free, returns_on_failure=True)
    return DerivedWrite(action=action, title=f"{plan.name} {trait.field}={to!r}", explain=explain)


def _without(
    scope: Scope, plan: Plan, trait: Names, holder: Stored, left: tuple[str, ...]
) -> tuple[UpdateItem, Stored]:
    """Return the update that leaves an entity these former names, and the entity as it will be."""
    number = {"N": str(getattr(holder.entity, trait.version) + 1)}
    version = plan.attributes[trait.version].wire
    kept = trait.aliases_attribute(left)
    action = UpdateItem(
        table=scope.table(plan.table),
        key=plan.key_of(holder.entity.__dict__),
        update=Update(
            (
                Assign((version,), Const(number)),
                Assign((ALIASES,), Const(kept[ALIASES])) if kept else Remove((ALIASES,)),
            ),
            creates=True,
        ),
        condition=all_of(
            [
                *unchanged(plan, holder.facts(plan, (trait.version,))),
                *as_stored(carried_by(plan, holder)),
            ]
        ),
        returns_on_failure=True,
    )
    item = {**trait.with_aliases(holder.item, left), version: number}
    return action, Stored(item, plan.decode(item))


def _required(scope: Scope, plan: Plan, trait: Names, arguments: Mapping[str, Any]) -> Flow[Stored]:
    """Return the entity of a name as it is stored; a former name is not enough."""
    item = yield from _item(scope, plan, plan.key_from(arguments))
    if item is not None and trait.is_redirect(item):
        name, to = arguments[trait.field], trait.target(item)
        raise NotFound(f"{plan.name} {trait.field}={name!r} is now {to!r}; use that name.")
    entity = None if item is None else scope.admit(plan, item)
    if item is None or entity is None:
        raise not_found(plan, arguments)
    return Stored(item, entity)


def _item(scope: Scope, plan: Plan, key: Item, *, consistent: bool = True) -> Flow[Item | None]:
    request = GetItem(table=scope.table(plan.table), key=key, consistent=consistent)
    reply = yield from send(request, scope.retries)
    return None if reply.item is None else decode_item(reply.item)
