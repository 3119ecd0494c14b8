"""Redirects from former names: update them when an entity is renamed, delete them with it.

The redirects are written in the transaction that renames or deletes their entity, each under the condition
that it is still a redirect to that entity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.traits.names import TO, Names
from solotable._expressions.ast import And, Attr, Compare, Condition, Const, Exists, Not, Or
from solotable._flows.scope import Scope
from solotable._flows.transactions.write import Change, DerivedWrite
from solotable._protocol.requests import DeleteItem, PutItem
from solotable._values import Item
from solotable.errors import ConditionFailed, DataError, DeclarationError, SolotableError


def names_of(plan: Plan) -> Names:
    """Return an entity's Names trait, or raise DeclarationError."""
    for trait in plan.traits:
        if isinstance(trait, Names):
            return trait
    raise DeclarationError(f"{plan.name} has no Names; declare them: names = Names('path').")


def redirects(scope: Scope, trait: Names, change: Change) -> Iterator[DerivedWrite]:
    """Yield the writes of the former names: puts for a rename, deletes for a delete."""
    if change.before is None:
        return
    plan, entity = change.plan, change.before.entity
    name = str(getattr(entity, trait.field))
    following = None if change.after is None else str(getattr(change.after.entity, trait.field))
    if following == name:
        return
    if name in trait.protected:
        verb = "deleted" if following is None else "renamed"
        raise DataError(
            f"{plan.name} {trait.field}={name!r} is protected and cannot be {verb}.",
            public_message=f"This {trait.field} is protected and cannot be {verb}.",
        )
    if change.soft:
        return
    for alias in trait.aliases(change.before.item):
        if alias == following:
            continue
        key = key_at(plan, trait, entity.__dict__, alias)
        condition: Condition = Or((nothing(plan), leads_to(plan, trait, name)))
        table = scope.table(plan.table)
        action: PutItem | DeleteItem
        if following is None:
            action = DeleteItem(table=table, key=key, condition=condition, returns_on_failure=True)
        else:
            item = trait.redirect(key, following)
            action = PutItem(table=table, item=item, condition=condition, returns_on_failure=True)
        yield DerivedWrite(
            action=action, title=f"the redirect from {alias!r}", explain=_explain_redirect(alias, name)
        )


def key_at(plan: Plan, trait: Names, values: Mapping[str, Any], name: str) -> Item:
    """Return the key that an entity would have under another name."""
    return plan.key_of({**values, trait.field: name})


def nothing(plan: Plan) -> Condition:
    """Return the condition that no item exists."""
    return Not(Exists((plan.table.partition.name,)))


def leads_to(plan: Plan, trait: Names, name: str) -> Condition:
    """Return the condition that the item is a redirect to a name."""
    is_redirect = Compare("=", Attr((plan.table.internal_tag,)), Const(trait.tag_value))
    return And((is_redirect, Compare("=", Attr((TO,)), Const({"S": name}))))


def _explain_redirect(alias: str, name: str) -> Any:
    def explain(found: Item | None) -> SolotableError:
        message = f"{alias!r} is a former name of {name!r}, but another item has its key; try again."
        error = ConditionFailed(message, item=found)
        error.args = (message,)
        return error

    return explain
