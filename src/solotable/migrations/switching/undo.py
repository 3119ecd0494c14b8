"""Undo a switch of the writes: the side that took writes before takes them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from solotable.errors import MigrationConflict
from solotable.migrations.workflow import fences
from solotable.migrations.workflow.control import ControlRecord

if TYPE_CHECKING:
    from solotable.migrations.migration import Migration


def undo_switch(migration: Migration, record: ControlRecord) -> ControlRecord:
    """Return to the state before the switch, and open the fences of the serving side.

    Raises MigrationConflict if the switch was completed or undone by another process.
    """
    assert record.resume is not None
    record = migration.transition(record, record.resume, resume=None, deadline=None)
    side = migration.side(record.writes)
    side.run(fences.set_fences(side, migration.name, is_open=True, epoch=record.epoch))
    return record


def open_serving_side(migration: Migration, record: ControlRecord) -> None:
    """Open the fences of the serving side: a switch, or its undo, may have been killed before it did."""
    side = migration.side(record.writes)
    opened = fences.set_fences(side, migration.name, is_open=True, epoch=record.epoch, creates=False)
    side.run(opened)


def undo_late_switch(migration: Migration, record: ControlRecord, seen_seconds: float) -> bool:
    """Undo a switch whose deadline has passed, as its process was killed; return whether it was undone.

    `seen_seconds` is how long the caller has observed the switch. The deadline is by the clock of another
    process, which may have leaped.
    """
    if record.state != "SwitchingWrites" or record.deadline is None:
        return False
    is_seen_long = record.switch_seconds is not None and seen_seconds > record.switch_seconds
    if migration.target.clock() <= record.deadline and not is_seen_long:
        return False
    try:
        undo_switch(migration, record)
    except MigrationConflict:
        return False
    return True
