"""DeleteTable: the table is deleted at once; its stream stays readable for a day.

A table with continuous backups becomes a backup, which expires.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from solotable.engines.sqlite.items import streams
from solotable.engines.sqlite.recovery import backups
from solotable.engines.sqlite.tables import catalog, windows
from solotable.engines.sqlite.tables.catalog import Table
from solotable.engines.sqlite.tables.definitions import load_current_table, read_table
from solotable.engines.sqlite.tables.descriptions import describe_deleted
from solotable.errors import ServiceError, invalid

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_PROTECTED = (
    "Resource cannot be deleted as it is currently protected against deletion. "
    "Disable deletion protection first."
)


def delete_table(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Delete a table with its items and indexes."""
    name = members["TableName"]
    table = load_current_table(engine, name, creating=True)
    _check(table)
    size = engine.pending_counts.read(table)[0]
    description = describe_deleted(engine, table)

    def run(connection: sqlite3.Connection) -> None:
        table = read_table(connection, name)
        _check(table)
        if table.stream_enabled:
            streams.disable(connection, table.definition, engine.now_micros())
        windows.close_window(connection, table.definition["TableId"])
        if table.recoverable:
            backups.keep_deleted(connection, table, engine.now_micros(), size)
        else:
            catalog.drop(connection, table)

    try:
        engine.database.write(run)
    finally:
        engine.catalog.forget(name)
    return {"TableDescription": description}


def _check(table: Table) -> None:
    if not table.is_ready:
        raise _in_use(f"Table is being created: {table.name}")
    if table.definition.get("Copies"):
        # A restore or a backup still reads the table.
        raise _in_use(f"Table is being copied: {table.name}")
    if table.definition["DeletionProtectionEnabled"]:
        raise invalid(_PROTECTED)


def _in_use(reason: str) -> ServiceError:
    return ServiceError(
        "ResourceInUseException", f"Attempt to change a resource which is still in use: {reason}"
    )
