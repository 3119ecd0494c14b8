"""Read and change table definitions in the file, and build ARNs.

Control operations do not use the engine's cache: another process may have changed a definition.
"""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

from solotable.errors import TableNotFound

from . import catalog
from .catalog import Catalog, Definition, Table

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

REGION = "us-east-1"
ACCOUNT = "000000000000"

#: Changes a copy of a definition in place; if it raises, nothing is stored.
Change = Callable[[sqlite3.Connection, Table, Definition], None]


def table_arn(name: str) -> str:
    """Return the ARN of a table."""
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"


def table_not_found(name: str) -> TableNotFound:
    """Return the error of control operations on a table that does not exist."""
    # DynamoDB: operations on items have a shorter message.
    return TableNotFound(f"Requested resource not found: Table: {name} not found")


def load_current_table(engine: SqliteEngine, name: str, *, creating: bool = False) -> Table:
    """Read a table's definition from the file; with `creating`, also while a restore fills it."""
    with engine.database.read() as connection:
        found = engine.catalog.load(connection, name)
    # DynamoDB: most operations do not find a table that is being restored.
    if found is None or not (found.is_ready or creating):
        raise table_not_found(name)
    return found


def read_table(connection: sqlite3.Connection, name: str) -> Table:
    """Read a table's definition in the transaction of a connection."""
    # The engine's cache must not contain a definition that may be rolled back.
    found = Catalog().load(connection, name)
    if found is None:
        raise table_not_found(name)
    return found


def change_definition(engine: SqliteEngine, name: str, action: Change) -> Table:
    """Change a table's definition in one transaction; write it only if it changed."""

    def run(connection: sqlite3.Connection) -> Table:
        table = read_table(connection, name)
        if not table.is_ready:
            raise table_not_found(name)
        definition = copy.deepcopy(table.definition)
        action(connection, table, definition)
        if definition == table.definition:
            return table
        return catalog.replace(connection, table, definition)

    try:
        return engine.database.write(run)
    finally:
        engine.catalog.forget(name)


def read_definitions(
    connection: sqlite3.Connection, *, backups: bool = False
) -> list[tuple[str, Definition]]:
    """Return the names and definitions of all tables, or also of backups."""
    found: list[tuple[str, Definition]] = []
    for name, text, crc in connection.execute(
        "SELECT name, definition, crc FROM catalog WHERE ? OR NOT instr(name, ':') ORDER BY name", (backups,)
    ):
        catalog.check_definition(name, text, crc)
        found.append((name, json.loads(text)))
    return found
