"""Restore a table, or a part of it, as another table of the same file or of another one."""

from __future__ import annotations

import re
import sqlite3
from datetime import datetime
from typing import TYPE_CHECKING

from solotable.engines.sqlite.tables import catalog
from solotable.engines.sqlite.tables.catalog import Catalog, Definition, Table
from solotable.engines.sqlite.tables.definitions import read_table
from solotable.errors import RecoveryError

from . import targets
from .backups import restored_definition
from .copying import CopySource, Progress, copy_items
from .positions import Position, find_position
from .scopes import Scope
from .undo import UndoIndex

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")


def restore_table(
    engine: SqliteEngine,
    name: str,
    at: datetime | int | None,
    target: str,
    *,
    scope: Scope,
    progress: Progress | None = None,
) -> Position:
    """Restore into another table of the same file; return the position once it is complete."""
    check_name(target)

    def run(connection: sqlite3.Connection) -> Position:
        source, position = _source(engine, connection, name, at, scope)
        _check_free(connection, target)
        definition = _definition(engine, source, target, position, scope)
        targets.add_target(connection, source, target, definition)
        return position

    try:
        position = engine.database.write(run)
    finally:
        engine.catalog.forget()
    targets.fill(engine, target, progress)
    return position


def restore_to_file(
    engine: SqliteEngine,
    name: str,
    at: datetime | int | None,
    into: SqliteEngine,
    target: str,
    *,
    scope: Scope,
    progress: Progress | None = None,
) -> Position:
    """Restore into a table of another file; the same call continues one that was interrupted."""
    check_name(target)

    with engine.database.snapshot() as connection:
        source, position = _source(engine, connection, name, at, scope)
    definition = _definition(engine, source, target, position, scope)
    # Another engine that opens the file must not look for the source in it.
    definition["Copy"]["External"] = True

    def add(connection: sqlite3.Connection) -> None:
        existing = Catalog().load(connection, target)
        if existing is None:
            catalog.add(connection, target, definition)
        elif existing.definition.get("Copy") != definition["Copy"]:
            raise RecoveryError(f"Table {target} exists already in {into.database.path}.")

    into.database.write(add)
    undo = UndoIndex(source.definition["TableId"], position.sequence)
    try:
        copy_items(
            CopySource(
                engine=engine, name=name, table_id=source.definition["TableId"], undo=undo, scope=scope
            ),
            into,
            target,
            progress,
        )
    finally:
        undo.close()
    into.database.write(lambda connection: targets.end(connection, target, complete=True))
    into.catalog.forget()
    return position


def _source(
    engine: SqliteEngine,
    connection: sqlite3.Connection,
    name: str,
    at: datetime | int | None,
    scope: Scope,
) -> tuple[Table, Position]:
    source = read_table(connection, name)
    scope.check(source.schema)
    return source, find_position(engine, connection, source, at)


def _definition(
    engine: SqliteEngine, source: Table, target: str, position: Position, scope: Scope
) -> Definition:
    definition = restored_definition(source.definition, target, engine.now_micros())
    definition["Copy"] = targets.describe_copy(source, position.sequence, scope)
    return definition


def check_name(target: str) -> None:
    """Raise RecoveryError if a table cannot have this name."""
    if _NAME.fullmatch(target) is None:
        raise RecoveryError(
            f"{target[:300]!r} is not the name of a table: use 3 to 255 letters, digits, '_', '-' and '.'."
        )


def _check_free(connection: sqlite3.Connection, target: str) -> None:
    if Catalog().load(connection, target) is not None:
        raise RecoveryError(f"Table {target} exists already; choose another name for the restored table.")
