"""Restore a former version as a new version with the old content.

The replaced version gets a snapshot like any other, and the other traits apply to the restored content.
A deleted entity is restored with the version after its last one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solotable._entities.declare.entity import Entity
from solotable._flows.reads.get import not_found
from solotable._flows.retry import Flow
from solotable._flows.transactions.write import DerivedWrite, Stored, Write, load_stored
from solotable._flows.writes.put import plan_put, prepare_put
from solotable.errors import DataError, VersionConflict

from .history import HistoryLocation, delete_marker, deleted_at, is_marker, missing, snapshot_at


def plan_restore(location: HistoryLocation, version: int, *, over: int | None = None) -> Flow[Write]:
    """Return the write that makes a former version the current one; `over` is the version to replace."""
    plan, scope = location.plan, location.scope
    current = yield from load_stored(scope, plan, location.key)
    number = None if current is None else int(getattr(current.entity, plan.version or ""))
    if over is not None and number != over:
        state = "it does not exist" if number is None else f"found version {number}"
        raise VersionConflict(
            f"Restore {location.title}: expected version {over}, {state}; read it again and repeat it.",
            item=None,
            mine=None,
            theirs=None if current is None else current.entity,
        )
    if number == version:
        raise DataError(f"Cannot restore version {version} of {location.title}: it is the current version.")
    old = yield from snapshot_at(location, version)
    if current is not None:
        if old is None:
            raise missing(location, version)
        return (
            yield from plan_put(scope, prepare_put(scope, _restored(location, old, version, current, number)))
        )
    last = yield from deleted_at(location)
    if last is None:
        raise not_found(plan, location.values)
    if old is None:
        raise missing(location, version)
    if scope.has_passed(plan, old.item):
        raise DataError(
            f"Cannot restore version {version} of {location.title}: its time to live passed at "
            f"{getattr(old.entity, plan.ttl or '')}, so it would expire at once."
        )
    prepared = prepare_put(scope, _restored(location, old, version, None, last))
    write = yield from plan_put(scope, prepared, create=True)
    derived = (
        delete_marker(location, last)
        if isinstance(each, DerivedWrite) and is_marker(location, each)
        else each
        for each in write.derived_writes
    )
    # Report a conflict as that of a put: the caller does not create an entity.
    return replace(write, verb="put", derived_writes=tuple(derived))


def _restored(
    location: HistoryLocation, old: Stored, version: int, current: Stored | None, number: int | None
) -> Entity:
    """Return the old content as a change of the current entity."""
    plan = location.plan
    update: dict[str, Any] = {plan.version or "": number}
    if current is not None and plan.created is not None:
        update[plan.created] = getattr(current.entity, plan.created)
    if current is not None and plan.ttl is not None and location.scope.has_passed(plan, old.item):
        # The old time to live has passed: with it the entity would expire at once.
        update[plan.ttl] = getattr(current.entity, plan.ttl)
    if location.trait.restored_from is not None:
        update[location.trait.restored_from] = version
    entity: Entity = old.entity.model_copy(update=update)
    return entity
