"""Rename an entity in one transaction, release former names, and resolve names.

The entity moves to the key of its new name. Its old name becomes a redirect, and the redirects of its
former names point to the new one. A name that another entity has or had is rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from solotable._entities.declare.entity import set_private
from solotable._entities.declare.plan import Plan
from solotable._entities.patterns.query import Query
from solotable._entities.traits.names import ALIASES, Names, Redirect
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._expressions.ast import Assign, Attr, Condition, Const, Contains, Not, Or, Remove, Update
from solotable._flows.consumption import measured
from solotable._flows.reads.get import not_found
from solotable._flows.reads.query import FilledPage, prepare
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
    attributes_unchanged,
    expected_version,
    fields_unchanged,
    version_is,
)
from solotable._protocol.replies import Page, decode_items
from solotable._protocol.requests import ConditionCheck, DeleteItem, GetItem, PutItem, UpdateItem
from solotable._values import Item
from solotable.errors import AlreadyExists, ConditionFailed, DataError, NotFound, SolotableError

from .names import key_at, leads_to, names_of, nothing
from .soft_delete import carried_by

#: The number of redirects to follow while an entity is renamed concurrently.
_HOPS = 4


def plan_rename(
    scope: Scope, plan: Plan, given: Mapping[str, Any], *, to: str, version: ExpectedVersion = None
) -> Flow[Write]:
    """Return the write that renames an entity and turns its old name into a redirect."""
    trait = names_of(plan)
    arguments = scope.bind(plan, given)
    expected = expected_version(plan, version, "rename")
    before = yield from _required(scope, plan, trait, arguments)
    name = str(getattr(before.entity, trait.field))
    if to == name:
        raise DataError(
            f"{plan.name} {trait.field}={name!r} already has this name; rename it to another one."
        )
    aliases = (*(each for each in trait.aliases(before.item) if each != to), name)
    if len(aliases) > trait.most:
        raise DataError(
            f"{plan.name} {trait.field}={name!r} has {trait.most} former names, which is the maximum; "
            f"release() one of them first, such as the oldest, {aliases[0]!r}."
        )
    after = _rename(scope, plan, trait, before, to, aliases)
    derived_from = before.wire_values(plan, (trait.version, *plan.counters))
    carried = carried_by(plan, before)
    conditions = [
        scope.is_entity(plan),
        *fields_unchanged(plan, derived_from),
        *attributes_unchanged(carried),
    ]
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
            _put_renamed(table, plan, trait, after, name),
            *derived_writes_of(scope, Change(plan, before, after)),
        ),
        after=after.entity,
        expected_version=expected,
        derived_from=derived_from,
        carried=carried,
    )


def plan_release(scope: Scope, plan: Plan, given: Mapping[str, Any]) -> Flow[Write]:
    """Return the write that releases a former name, so that another entity can use it."""
    trait = names_of(plan)
    arguments = scope.bind(plan, given)
    key, alias = plan.key_from(arguments), str(arguments[trait.field])
    table = scope.table(plan.table)
    item = yield from _item(scope, plan, key)
    if item is None or not trait.is_redirect(item):
        raise NotFound(f"Cannot release {alias!r}: it is not a former name of a {plan.name}.")
    name = trait.target(item)
    freed = DeleteItem(table=table, key=key, condition=leads_to(plan, trait, name), returns_on_failure=True)
    holder = yield from _holder(scope, plan, trait, arguments, name)

    def explain(found: Item | None) -> SolotableError:
        message = f"Release {plan.name} {trait.field}={alias!r}: another writer renamed it; try again."
        error = ConditionFailed(message, item=found)
        error.args = (message,)
        return error

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
    derived_from = holder.wire_values(plan, (trait.version,))
    action, after = _set_aliases(scope, plan, trait, holder, left)
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
        derived_from=derived_from,
        carried=carried_by(plan, holder),
    )


def _holder(
    scope: Scope, plan: Plan, trait: Names, arguments: Mapping[str, Any], name: str
) -> Flow[Stored | None]:
    """Return the entity that a former name redirects to; None if it does not exist.

    Raises DataError for a soft-deleted entity, which keeps its names.
    """
    item = yield from _item(scope, plan, key_at(plan, trait, arguments, name))
    entity = None if item is None else scope.admit(plan, item)
    if item is None or entity is not None:
        return None if item is None else Stored(item, entity)
    is_ours = plan.deletion is not None and plan.recognises(item)
    if is_ours and DELETED_AT in item and not scope.has_passed(plan, item):
        raise DataError(
            f"Cannot release {plan.name} {trait.field}={arguments[trait.field]!r}: it is a former name of "
            f"{name!r}, which is deleted and keeps its names until its purge; undelete() it first."
        )
    return None


def resolve(
    scope: Scope, plan: Plan, given: Mapping[str, Any], *, follow: bool, consistent: bool
) -> Flow[Any]:
    """Return the entity of a name, a Redirect for a former name, or None.

    Takes one read, and one more to follow a redirect.
    """
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
        # The entity was renamed between the two reads.
        to = trait.target(item)
    entity = None if item is None else scope.admit(plan, item)
    return None if entity is None else Redirect(name=name, to=to, entity=entity)


@measured
def redirects(scope: Scope, query: Query[Any], *, limit: int, cursor: str | None) -> Flow[FilledPage]:
    """Return the redirects to the entities of a page of a query; a page may be empty before the end."""
    if limit < 1:
        raise DataError(f"limit= must be at least 1, got {limit}.")
    plan, trait = query.plan, names_of(query.plan)
    prepared = prepare(scope, query)
    if prepared.request is None:
        return FilledPage([], None, 0)
    bound_to = b"redirects " + prepared.bound_to
    start = None if cursor is None else scope.cursor_signer.verify(cursor, bound_to)
    field = plan.attributes[trait.field]
    wanted = (*plan.primary.names, *query.path.names, plan.table.internal_tag, field.wire, ALIASES)
    projection = tuple((name,) for name in dict.fromkeys(wanted))
    read = replace(prepared.request, projection=projection, limit=limit, start=start)
    reply: Page = yield from send(read, scope.retries)
    found: list[Redirect[Any]] = [
        Redirect(name=alias, to=str(field.decode(item[field.wire])))
        for item in decode_items(reply.items or ())
        if plan.recognises(item)
        for alias in trait.aliases(item)
    ]
    next_cursor = None if not reply.last_key else scope.cursor_signer.sign(reply.last_key, bound_to)
    return FilledPage(found, next_cursor, reply.scanned)


def aliases(scope: Scope, plan: Plan, given: Mapping[str, Any]) -> Flow[list[str]]:
    """Return the former names of an entity, the oldest first."""
    trait = names_of(plan)
    found = yield from _required(scope, plan, trait, scope.bind(plan, given))
    return list(trait.aliases(found.item))


def _rename(
    scope: Scope, plan: Plan, trait: Names, before: Stored, to: str, aliases: tuple[str, ...]
) -> Stored:
    """Return the entity that will be stored under the new name."""
    values = dict(before.entity.__dict__)
    values[trait.field] = to
    values[trait.version] += 1
    if plan.updated is not None:
        values[plan.updated] = plan.stamp(plan.updated, scope.now())
    try:
        entity = plan.entity.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or trait.field
        raise DataError(
            f"{plan.name}.{where} = {to!r}: {first['msg']}.",
            public_message=f"{plan.name}.{where}: {first['msg']}.",
        ) from error
    set_private(entity, "unknown", trait.with_aliases(before.entity.unknown_attributes, aliases))
    kept = trait.with_aliases(plan.kept(before.entity, before.entity.__dict__), aliases)
    return Stored(plan.encode(entity.__dict__, kept), entity)


def _put_renamed(table: str, plan: Plan, trait: Names, after: Stored, name: str) -> DerivedWrite:
    to = str(getattr(after.entity, trait.field))
    # An entity can return to its former name, whose redirect points to it.
    free: Condition = Or((nothing(plan), leads_to(plan, trait, name)))

    def explain(found: Item | None) -> SolotableError:
        values = {trait.field: to}
        reason = None if found is None else trait.occupied(found, values)
        message = f"Rename {plan.name} {trait.field}={name!r}: {reason or f'{to!r} is taken'}."
        return AlreadyExists(message, item=found)

    action = PutItem(table=table, item=after.item, condition=free, returns_on_failure=True)
    return DerivedWrite(action=action, title=f"{plan.name} {trait.field}={to!r}", explain=explain)


def _set_aliases(
    scope: Scope, plan: Plan, trait: Names, holder: Stored, left: tuple[str, ...]
) -> tuple[UpdateItem, Stored]:
    """Return the update that sets the former names of an entity, and the resulting entity."""
    number = {"N": str(getattr(holder.entity, trait.version) + 1)}
    version = plan.attributes[trait.version].wire
    attribute = trait.aliases_attribute(left)
    action = UpdateItem(
        table=scope.table(plan.table),
        key=plan.key_of(holder.entity.__dict__),
        update=Update(
            (
                Assign((version,), Const(number)),
                Assign((ALIASES,), Const(attribute[ALIASES])) if attribute else Remove((ALIASES,)),
            ),
            creates=True,
        ),
        condition=all_of(
            [
                scope.is_entity(plan),
                *fields_unchanged(plan, holder.wire_values(plan, (trait.version,))),
                *attributes_unchanged(carried_by(plan, holder)),
            ]
        ),
        returns_on_failure=True,
    )
    item = {**trait.with_aliases(holder.item, left), version: number}
    return action, Stored(item, plan.decode(item))


def _required(scope: Scope, plan: Plan, trait: Names, arguments: Mapping[str, Any]) -> Flow[Stored]:
    """Return the stored entity of a name; raise NotFound for a former name."""
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
