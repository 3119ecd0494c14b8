"""Read an entity, change it and put it, under the condition that it is still as it was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._expressions.ast import Condition
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.transactions.conflicts import CONFLICT_ATTEMPTS, is_conflict, retry_conflicts
from solotable._flows.transactions.write import Stored, all_of, as_stored, stored
from solotable._values import AttributeValue
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    DataError,
    DeclarationError,
    SolotableError,
    TooManyConflicts,
)

from .get import not_found
from .put import put_entity

EntityT = TypeVar("EntityT", bound=Entity)
#: Gets a copy of the stored entity; returns the entity to store, or None to leave it as it is.
Change = Callable[[EntityT], EntityT | None]

#: DynamoDB: an expression has at most 300 operators; a comparison and its AND are two.
_MOST_COMPARISONS = 140


def modify(
    scope: Scope,
    entity: type[EntityT],
    change: Change[EntityT],
    given: Mapping[str, Any],
    *,
    default: EntityT | None = None,
) -> Flow[EntityT]:
    """Change a stored entity by a function and return it as stored; repeat both after a conflict.

    The put requires the version that was read, or without a Version field the same attributes.
    """
    plan = entity.plan()
    arguments = scope.bind(plan, given)
    key = plan.key_from(arguments)
    if default is not None:
        _check_key(scope, plan, key, default, "default")

    def attempt() -> Flow[EntityT]:
        before = yield from stored(scope, plan, key)
        if before is None and default is None:
            raise not_found(plan, arguments)
        current: Any = default if before is None else before.entity
        changed = change(current.model_copy(deep=True))
        if changed is None:
            return current  # type: ignore[no-any-return]  # `Stored.entity` is untyped
        if not isinstance(changed, entity):
            raise DataError(
                f"The function of modify() returns a {plan.name} or None, got {type(changed).__name__}."
            )
        _check_key(scope, plan, key, changed, "result")
        if before is None:
            return (yield from put_entity(scope, changed, create=True))
        where = None if plan.version is not None else _as_read(plan, before)
        found: EntityT = yield from put_entity(scope, _continued(plan, current, changed), where=where)
        return found

    may_repeat = partial(_may_repeat, plan)
    try:
        return (yield from retry_conflicts(scope, attempt, when=may_repeat))
    except ConditionFailed as error:
        if not may_repeat(error):
            raise
        raise TooManyConflicts(
            f"modify() of {plan.name} met another writer {CONFLICT_ATTEMPTS} times; call it again later, "
            f"or spread the writes over more items.",
            item=error.item,
            attempts=CONFLICT_ATTEMPTS,
        ) from error


def _may_repeat(plan: Plan, error: SolotableError) -> bool:
    """Return whether a new read can find something else than the item that refused the write."""
    item = getattr(error, "item", None)
    if item is not None and item.get(plan.table.tag) != plan.tag_value:
        return False
    # A deleted entity that can be restored keeps its key occupied.
    is_hidden = isinstance(error, AlreadyExists) and error.found is None
    return is_conflict(error) and not is_hidden


def _check_key(scope: Scope, plan: Plan, key: Mapping[str, Any], entity: Entity, what: str) -> None:
    found = plan.key_of(scope.bind(plan, entity.__dict__))
    if found != key:
        raise DataError(f"The {what} of modify() has another key than the {plan.name} that was asked for.")


def _continued(plan: Plan, current: EntityT, changed: EntityT) -> EntityT:
    """Return the changed entity with the version and the unknown attributes that were read."""
    if plan.version is not None:
        version = getattr(current, plan.version)
        if getattr(changed, plan.version) != version:
            changed = changed.model_copy(update={plan.version: version})
    if current.unknown_attributes and not changed.unknown_attributes:
        changed = changed.model_copy()
        changed.keep_unknown(dict(current.unknown_attributes))
    return changed


def _as_read(plan: Plan, before: Stored) -> Condition | None:
    """Return the condition that every attribute is as it was read, and that no declared one was added."""
    # A put does not change counters, so a change of one is not a conflict.
    left_out = {*plan.primary.names, *(plan.attributes[name].wire for name in plan.counters)}
    facts: dict[str, AttributeValue | None] = {each.wire: None for each in plan.attributes.values()}
    facts |= before.item
    compared = {name: value for name, value in facts.items() if name not in left_out}
    if len(compared) > _MOST_COMPARISONS:
        raise DeclarationError(
            f"{plan.name} has {len(compared)} attributes, too many to compare in one condition; "
            f"declare a Version field to modify() it."
        )
    return all_of(as_stored(compared))
