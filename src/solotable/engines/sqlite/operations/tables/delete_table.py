"""DeleteTable: the table is deleted at once; its stream stays readable for a day."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from solotable.engines.sqlite.items import streams
from solotable.engines.sqlite.tables import catalog
from solotable.engines.sqlite.tables.catalog import Table
from solotable.engines.sqlite.tables.definitions import load_current_table, read_table
from solotable.engines.sqlite.tables.descriptions import describe_deleted
from solotable.errors import invalid

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_PROTECTED = (
    "Resource cannot be deleted as it is currently protected against deletion. "
    "Disable deletion protection first."
)


def delete_table(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Delete a table with its items and indexes."""
    name = members["TableName"]
    table = load_current_table(engine, name)
    _check(table)
    description = describe_deleted(engine, table)

    def run(connection: sqlite3.Connection) -> None:
        table = read_table(connection, name)
        _check(table)
        if table.stream_enabled:
            streams.disable(connection, table.definition, engine.now_micros())
        catalog.drop(connection, table)

    try:
        engine.database.write(run)
    finally:
        engine.catalog.forget(name)
    return {"TableDescription": description}


def _check(table: Table) -> None:
    if table.definition["DeletionProtectionEnabled"]:
        raise invalid(_PROTECTED)
