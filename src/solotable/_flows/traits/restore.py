"""Restoring a former version: always forward, as a new version with the old content.

What is replaced goes into the history like any version does, and the other traits of the entity follow
the restored content. A deleted entity is brought back with the number after its last one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solotable._entities.declare.entity import Entity
from solotable._flows.retry import Flow
from solotable._flows.transactions.write import Stored, Write, stored
from solotable._flows.verbs.get import not_found
from solotable._flows.verbs.put import intend, plan_put
from solotable.errors import DataError, VersionConflict

from .history import Place, deleted_at, is_marker, missing, revived, snapshot_at


def plan_restore(place: Place, version: int, *, over: int | None = None) -> Flow[Write]:
    """Return the write that makes a former version the current one; `over` is the version to replace."""
    plan, scope = place.plan, place.scope
    current = yield from stored(scope, plan, place.key)
    there = None if current is None else int(getattr(current.entity, plan.version or ""))
    if over is not None and there != over:
        stands = "it is gone" if there is None else f"found {there}"
        raise VersionConflict(
            f"Restore {place.title}: expected version {over}, {stands}; read it again and decide.",
            item=None,
            mine=None,
            theirs=None if current is None else current.entity,
        )
    if there == version:
        raise DataError(
            f"Version {version} of {place.title} is the current one; there is nothing to restore."
        )
    old = yield from snapshot_at(place, version)
    if current is not None:
        if old is None:
            raise missing(place, version)
        return (yield from plan_put(scope, intend(scope, _restored(place, old, version, current, there))))
    last = yield from deleted_at(place)
    if last is None:
        raise not_found(plan, place.values)
    if old is None:
        raise missing(place, version)
    if scope.has_passed(plan, old.item):
        raise DataError(
            f"Version {version} of {place.title} ended at {getattr(old.entity, plan.ttl or '')}; "
            f"restored, it would be gone at once."
        )
    intent = intend(scope, _restored(place, old, version, None, last))
    write = yield from plan_put(scope, intent, create=True)
    derived = (revived(place, last) if is_marker(place, each) else each for each in write.derived_writes)
    # Not a create to the caller: a faster writer stored another version.
    return replace(write, verb="put", derived_writes=tuple(derived))


def _restored(place: Place, old: Stored, version: int, current: Stored | None, number: int | None) -> Entity:
    """Return the old content as a change of the current entity."""
    plan = place.plan
    update: dict[str, Any] = {plan.version or "": number}
    if current is not None and plan.created is not None:
        update[plan.created] = getattr(current.entity, plan.created)
    if current is not None and plan.ttl is not None and place.scope.has_passed(plan, old.item):
        # The old end has passed: with it the entity would be gone at once.
        update[plan.ttl] = getattr(current.entity, plan.ttl)
    if place.trait.restored_from is not None:
        update[place.trait.restored_from] = version
    entity: Entity = old.entity.model_copy(update=update)
    return entity
