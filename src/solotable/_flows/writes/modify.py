"""Read an entity, change it and put it, under the condition that it has not changed since the read."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from solotable._entities.declare.entity import Entity, set_private
from solotable._entities.declare.plan import Plan
from solotable._expressions.ast import Condition
from solotable._flows.reads.get import not_found
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.transactions.conflicts import CONFLICT_ATTEMPTS, is_conflict, retry_conflicts
from solotable._flows.transactions.write import (
    Stored,
    all_of,
    attributes_unchanged,
    load_stored,
)
from solotable._values import AttributeValue
from solotable._values.limits import MOST_COMPARISONS
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    DataError,
    DeclarationError,
    SolotableError,
    TooManyConflicts,
)

from .hooked import after, before_put
from .put import put_entity, put_unversioned

EntityT = TypeVar("EntityT", bound=Entity)
#: Takes a copy of the stored entity; returns the entity to store, or None to leave it unchanged.
Change = Callable[[EntityT], EntityT | None]


def modify(
    scope: Scope,
    entity: type[EntityT],
    change: Change[EntityT],
    given: Mapping[str, Any],
    *,
    default: EntityT | None = None,
) -> Flow[EntityT]:
    """Change a stored entity by a function and return the stored result; repeat both after a conflict.

    The put requires the version that was read; without a Version field, it requires the same attributes.
    """
    plan = entity.plan()
    arguments = scope.bind(plan, given)
    key = plan.key_from(arguments)
    if default is not None:
        default = _bound_default(scope, plan, key, default)
    #: An error that a repetition cannot change: of the function, a hook, or a condition on the item as read.
    final: SolotableError | None = None
    verb = ""

    def attempt() -> Flow[EntityT]:
        nonlocal final, verb
        before = yield from load_stored(scope, plan, key)
        if before is None and default is None:
            raise not_found(plan, arguments)
        current: Any = default if before is None else before.entity
        try:
            changed: Any = change(current.model_copy(deep=True))
        except SolotableError as error:
            final = error
            raise
        if changed is None:
            verb = ""
            return current  # type: ignore[no-any-return]  # `Stored.entity` is untyped
        if not isinstance(changed, entity):
            if isinstance(changed, Coroutine):
                changed.close()
                raise DeclarationError("The function of modify() must not be async.")
            raise DataError(
                f"The function of modify() returns a {plan.name} or None, got {type(changed).__name__}."
            )
        verb = "create" if before is None else "put"
        if plan.hooks is not None:
            try:
                changed = yield from before_put(plan, verb, changed)
            except SolotableError as error:
                final = error
                raise
        _check_key(scope, plan, key, changed, "result")
        changed = _with_stored_state(plan, current, changed)
        if before is None:
            created: EntityT = yield from put_entity(scope, changed, create=True)
            return created
        try:
            replaced: EntityT = yield from _replace(scope, plan, before, changed)
            return replaced
        except ConditionFailed as error:
            if error.item == before.item:
                final = error
            raise

    def may_repeat(error: SolotableError) -> bool:
        return error is not final and _may_repeat(plan, error)

    try:
        stored = yield from retry_conflicts(scope, attempt, when=may_repeat)
    except ConditionFailed as error:
        if not may_repeat(error):
            raise
        raise TooManyConflicts(
            f"modify() of {plan.name} had a conflict with another writer in {CONFLICT_ATTEMPTS} attempts; "
            f"call it again later, or distribute the writes over more items.",
            item=error.item,
            attempts=CONFLICT_ATTEMPTS,
        ) from error
    if verb:
        yield from after(plan, verb, stored)
    return stored


def _may_repeat(plan: Plan, error: SolotableError) -> bool:
    """Return whether a new read can find another state than the one that made the write fail."""
    item = getattr(error, "item", None)
    if item is not None and not plan.recognises(item):
        return False
    # A deleted entity that can be restored keeps its key occupied.
    is_hidden = isinstance(error, AlreadyExists) and error.found is None
    return is_conflict(error) and not is_hidden


def _replace(scope: Scope, plan: Plan, before: Stored, changed: EntityT) -> Flow[EntityT]:
    """Put the changed entity, under the condition that the stored one is as it was read."""
    if plan.version is None:
        return put_entity(scope, changed, where=_as_read(plan, before))
    # A put at version 0 requires that no item exists; a missing version equals none.
    if plan.attributes[plan.version].wire in before.item and getattr(before.entity, plan.version) != 0:
        return put_entity(scope, changed)
    return put_unversioned(scope, changed, where=_as_read(plan, before))


def _bound_default(scope: Scope, plan: Plan, key: Mapping[str, Any], default: EntityT) -> EntityT:
    """Return the default with the tenant of the scope, as the function sees a stored entity."""
    if not isinstance(default, plan.entity):
        raise DataError(f"The default of modify() is a {plan.name}, got {type(default).__name__}.")
    _check_key(scope, plan, key, default, "default")
    if plan.version is not None:
        version, new = getattr(default, plan.version), plan.entity.model_fields[plan.version].get_default()
        if version not in (0, new):
            raise DataError(
                f"The default of modify() is a new {plan.name}, so its version is 0, got {version}; pass an "
                f"entity that was not read from the table."
            )
    if plan.tenant is None:
        return default
    return default.model_copy(update={plan.tenant: scope.bind(plan, default.__dict__)[plan.tenant]})


def _check_key(scope: Scope, plan: Plan, key: Mapping[str, Any], entity: Entity, what: str) -> None:
    found = plan.key_of(scope.bind(plan, entity.__dict__))
    if found != key:
        raise DataError(
            f"The {what} of modify() must keep the key of the {plan.name}: expected {dict(key)}, got {found}."
        )


def _with_stored_state(plan: Plan, current: EntityT, changed: EntityT) -> EntityT:
    """Return the changed entity with the stored version and the stored attributes without a field."""
    if plan.version is not None:
        version = getattr(current, plan.version)
        if getattr(changed, plan.version) != version:
            changed = changed.model_copy(update={plan.version: version})
    private = current.__pydantic_private__ or {}
    for name in ("unknown", "index_keys"):
        if name in private and name not in (changed.__pydantic_private__ or {}):
            changed = changed.model_copy()
            set_private(changed, name, private[name])
    return changed


def _as_read(plan: Plan, before: Stored) -> Condition | None:
    """Return the condition that no attribute has changed since the read."""
    # A put does not change counters, so a changed counter is not a conflict.
    ignored = {*plan.primary.names, *(plan.attributes[name].wire for name in plan.counters)}
    values: dict[str, AttributeValue | None] = {each.wire: None for each in plan.attributes.values()}
    values |= before.item
    compared = {name: value for name, value in values.items() if name not in ignored}
    if len(compared) > MOST_COMPARISONS:
        raise DeclarationError(
            f"{plan.name} has {len(compared)} attributes, too many to compare in one condition; "
            f"declare a Version field to modify() it."
        )
    return all_of(attributes_unchanged(compared))
