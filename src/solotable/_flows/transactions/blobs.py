"""Store the blobs of writes before the writes are sent, so that no item refers to a missing object.

A reference that a write repeats, also in a snapshot, gets a new time: `collect_blobs` then keeps its object
until the write is visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._flows.retry import Flow, SaveBlobs
from solotable._protocol.requests import PutItem, UpdateItem, WriteAction

from .write import DerivedWrite, Write


def save_blobs(writes: Iterable[Write]) -> Flow[None]:
    """Store the blobs of these writes and of their derived writes."""
    found: dict[tuple[int, str], Any] = {}
    for write in writes:
        plan = write.plan
        if plan.blobs is None:
            continue
        tenant = None if plan.tenant is None else write.given.get(plan.tenant) or plan.tenant_of(write.key)
        derived = (each.action for each in write.derived_writes if isinstance(each, DerivedWrite))
        for action in (write.action, *derived):
            found |= _blobs_of(plan, action, tenant)
    if found:
        yield SaveBlobs(tuple(found.values()))


def save_blobs_of(plan: Plan, action: UpdateItem) -> Flow[None]:
    """Store the blobs of an update that a job sends."""
    found = _blobs_of(plan, action, plan.tenant_of(action.key))
    if found:
        yield SaveBlobs(tuple(found.values()))


def _blobs_of(plan: Plan, action: WriteAction, tenant: str | None) -> dict[tuple[int, str], Any]:
    return {(id(each[1]), each[2]): each for each in _stored(plan, action, tenant)}


def _stored(plan: Plan, action: WriteAction, tenant: str | None) -> Iterator[tuple[Any, Any, str]]:
    assert plan.blobs is not None
    if isinstance(action, PutItem):
        yield from plan.blobs.stored(action.item, None, tenant)
    elif isinstance(action, UpdateItem):
        yield from plan.blobs.stored({}, action.update, tenant)
