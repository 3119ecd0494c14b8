"""The verbs that write, with the hooks of the entity before and after. The runner calls the hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._expressions.ast import Condition
from solotable._flows.hooks import call, check_runner, instance_of
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.transactions.commit import perform
from solotable._flows.transactions.write import ExpectedVersion
from solotable.errors import DataError

from .changes import Changes
from .put import delete_entity, put_entity
from .update import plan_update
from .upsert import plan_upsert

EntityT = TypeVar("EntityT", bound=Entity)


def put(
    scope: Scope, entity: EntityT, *, create: bool = False, where: Condition | None = None
) -> Flow[EntityT]:
    """Create an entity or replace the stored one, and return the stored entity."""
    plan = entity.plan()
    if plan.hooks is None:
        return put_entity(scope, entity, create=create, where=where)
    return _hooked_put(scope, plan, entity, create=create, where=where)


def _hooked_put(
    scope: Scope, plan: Plan, entity: EntityT, *, create: bool, where: Condition | None
) -> Flow[EntityT]:
    verb = "create" if create else "put"
    changed = yield from before_put(plan, verb, entity)
    stored = yield from put_entity(scope, changed, create=create, where=where)
    yield from after(plan, verb, stored)
    return stored


def update(
    scope: Scope,
    plan: Plan,
    given: Mapping[str, Any],
    changes: Changes,
    *,
    version: ExpectedVersion = None,
    mine: Entity | None = None,
    where: Condition | None = None,
) -> Flow[Any]:
    """Change fields of a stored entity and return the stored result."""

    def change(changes: Changes) -> Flow[Any]:
        return perform(
            scope,
            lambda: plan_update(scope, plan, given, changes, version=version, mine=mine, where=where),
        )

    return change(changes) if plan.hooks is None else _hooked_update(plan, changes, change)


def upsert(scope: Scope, plan: Plan, given: Mapping[str, Any], changes: Changes) -> Flow[Any]:
    """Change fields of a stored entity, or create it; return the stored result."""

    def change(changes: Changes) -> Flow[Any]:
        return perform(scope, lambda: plan_upsert(scope, plan, given, changes))

    return change(changes) if plan.hooks is None else _hooked_update(plan, changes, change)


def _hooked_update(plan: Plan, changes: Changes, change: Callable[[Changes], Flow[Any]]) -> Flow[Any]:
    changes = yield from before_update(plan, changes)
    stored = yield from change(changes)
    yield from after(plan, "update", stored)
    return stored


def delete(
    scope: Scope,
    plan: Plan,
    given: Mapping[str, Any],
    *,
    version: ExpectedVersion = None,
    mine: Entity | None = None,
    where: Condition | None = None,
) -> Flow[Any]:
    """Delete an entity and return it; None if it did not exist."""
    flow = delete_entity(scope, plan, given, version=version, mine=mine, where=where)
    return flow if plan.hooks is None else _hooked_delete(plan, scope.bind(plan, given), flow)


def _hooked_delete(plan: Plan, key: Mapping[str, Any], flow: Flow[Any]) -> Flow[Any]:
    yield from before_delete(plan, key)
    deleted = yield from flow
    yield from after(plan, "delete", deleted)
    return deleted


def before_put(plan: Plan, verb: str, entity: EntityT) -> Flow[EntityT]:
    """Call the hooks before a create or a put; return the entity to store."""
    if plan.hooks is None:
        return entity
    yield from check_runner(plan, plan.hooks)
    names = plan.hooks.at(f"before_{verb}")
    if not names:
        return entity
    # The caller's object does not change.
    changed = entity.model_copy(deep=True)
    for name in names:
        answer = yield call(plan, plan.hooks, name, getattr(changed, name))
        if answer is not None:
            changed = instance_of(plan, name, answer, f"before {verb}")
    return changed


def before_update(plan: Plan, changes: Changes) -> Flow[Changes]:
    """Call the hooks before an update; return its changes."""
    if plan.hooks is None:
        return changes
    yield from check_runner(plan, plan.hooks)
    names = plan.hooks.at("before_update")
    if not names:
        return changes
    given: dict[str, Any] = changes.copies
    kinds = tuple(given)
    for name in names:
        answer = yield call(plan, plan.hooks, name, getattr(plan.entity, name), given)
        _check_answer(plan, name, answer, "change the changes that it gets")
        unknown = [kind for kind in given if kind not in kinds]
        if unknown:
            raise DataError(
                f"{plan.name}.{name}: a hook before update got the changes {', '.join(kinds)}, "
                f"and added {', '.join(map(repr, unknown))}; use one of them."
            )
    return Changes.of(**given)


def before_delete(plan: Plan, key: Mapping[str, Any]) -> Flow[None]:
    """Call the hooks before a delete."""
    if plan.hooks is None:
        return
    yield from check_runner(plan, plan.hooks)
    for name in plan.hooks.at("before_delete"):
        answer = yield call(plan, plan.hooks, name, getattr(plan.entity, name), dict(key))
        _check_answer(plan, name, answer, "raise an error to reject the delete")


def after(plan: Plan, verb: str, entity: Any) -> Flow[None]:
    """Call the hooks after a write, with a copy of the stored or the deleted entity."""
    return after_all([(plan, verb, entity)])


def after_all(writes: Iterable[tuple[Plan, str, Any]]) -> Flow[None]:
    """Call the hooks after these writes, also if some of them raise; then raise the first error."""
    first: Exception | None = None
    for plan, verb, entity in writes:
        hooks = plan.hooks
        names = () if hooks is None or entity is None else hooks.at(f"after_{verb}")
        # The call returns what is stored, whatever a hook changes.
        copy = entity.model_copy(deep=True) if names else None
        for name in names:
            assert hooks is not None
            try:
                yield call(plan, hooks, name, getattr(copy, name))
            except Exception as error:  # noqa: BLE001 - a hook may raise anything
                if first is None:
                    first = error
                else:
                    first.add_note(f"{plan.name}.{name}, which ran next, raised {error!r}.")
    if first is not None:
        raise first


def _check_answer(plan: Plan, name: str, answer: object, instead: str) -> None:
    if answer is not None:
        raise DataError(
            f"{plan.name}.{name}: this hook returns None, got {type(answer).__name__}; {instead}."
        )
