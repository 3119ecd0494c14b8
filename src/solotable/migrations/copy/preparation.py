"""Prepare a copy: positions in the streams first, then a cursor for each segment; each once in a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from solotable.migrations.apply.applier import start_positions
from solotable.migrations.apply.direction import Direction, forward
from solotable.migrations.workflow import cursors
from solotable.migrations.workflow.control import ControlRecord
from solotable.migrations.workflow.cursors import Cursor
from solotable.migrations.workflow.sides import ensure_stream

from .segment import first_position, segment_kind

if TYPE_CHECKING:
    from solotable.migrations.migration import Migration


def prepare_copy(migration: Migration, record: ControlRecord, cursor: Cursor) -> tuple[Cursor, ControlRecord]:
    """Save the positions in the streams with the leader's cursor, then create the segments."""
    side, name, direction = migration.target, migration.name, forward(migration)
    if cursor.data.get("generation") != record.generation:
        record = _enable_streams(migration, record, direction)
        position = {"positions": start_positions(direction), "generation": record.generation}
        cursor = side.run(cursors.write(side, cursor, [], drained_at=None, **position)).cursor
    existing = {each.kind: each for each in side.run(cursors.load_cursors(side, name, "SEGMENT#"))}
    for source in direction.origin.tables:
        for number in range(record.segments):
            kind = segment_kind(source, number)
            found = existing.get(kind)
            if found is None or found.data.get("generation") != record.generation:
                start = first_position(source, number, record)
                side.run(cursors.create(side, name, kind, state="Copying", window=record.window, **start))
    return cursor, record


def _enable_streams(migration: Migration, record: ControlRecord, direction: Direction) -> ControlRecord:
    enabled = [
        f"{direction.origin.name}:{table}"
        for table in direction.origin.names.values()
        if direction.origin.run(ensure_stream(direction.origin, table))
    ]
    if not enabled:
        return record
    return migration.transition(record, streams=[*record.streams, *enabled])
