"""Repair: reconcile single items, in place of the apply worker."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from solotable._values import Item
from solotable.errors import LeaseLost
from solotable.migrations.workflow import cursors
from solotable.migrations.workflow.control import ControlRecord, conflict
from solotable.migrations.workflow.cursors import Cursor
from solotable.migrations.workflow.pace import Pacer
from solotable.migrations.workflow.states import State, check_state

from .applier import Applier
from .direction import Direction, forward, reverse
from .reconcile import Change

if TYPE_CHECKING:
    from solotable.migrations.migration import Migration

_REPAIRABLE: frozenset[State] = frozenset(
    {"CatchingUp", "Running", "Verified", "ReadsSwitched", "WritesSwitched"}
)


def reconcile(migration: Migration, keys: Sequence[tuple[str, Item]]) -> int:
    """Reconcile items by the name of their table and their key; return the number of writes."""
    return reconcile_changes(migration, [Change(source=source, key=key) for source, key in keys])


def reconcile_changes(migration: Migration, changes: Sequence[Change]) -> int:
    """Reconcile changes; the apply worker loses its cursor and takes it again afterwards."""
    record = migration.record()
    check_state(migration.name, record.state, _REPAIRABLE, "repair")
    direction = forward(migration) if record.writes == "source" else reverse(migration)
    side = direction.destination
    owner = f"repair-{secrets.token_hex(6)}"
    try:
        cursor = side.run(cursors.seize(side, migration.name, direction.cursor, owner=owner))
        return _reconcile(migration, record, direction, cursor, changes)
    except LeaseLost as error:
        raise conflict(record) from error


def _reconcile(
    migration: Migration,
    record: ControlRecord,
    direction: Direction,
    cursor: Cursor,
    changes: Sequence[Change],
) -> int:
    side = direction.destination
    pacer = Pacer(side.clock)
    pacer.limit(record.rate)
    applier = Applier(
        direction,
        cursor,
        pacer,
        control=migration.target,
        generation=record.generation,
        has_served=record.has_served,
    )
    try:
        return sum(applier.reconcile_changes(changes[at : at + 100]) for at in range(0, len(changes), 100))
    finally:
        side.run(cursors.release(side, applier.cursor))
