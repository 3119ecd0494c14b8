"""Definitions of tables, read anew and changed in one transaction each, and the names that AWS gives them.

Control operations never trust what an engine remembers: another process may have changed it.
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

#: Changes a copy of a definition in place; raising leaves everything as it was.
Change = Callable[[sqlite3.Connection, Table, Definition], None]


def table_arn(name: str) -> str:
    """Return the ARN of a table."""
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"


def table_not_found(name: str) -> TableNotFound:
    """Return the error of control operations on a table that is not there."""
    # DynamoDB: operations on items say less.
    return TableNotFound(f"Requested resource not found: Table: {name} not found")


def load_current_table(engine: SqliteEngine, name: str) -> Table:
    """Return the table as the file has it now."""
    with engine.database.read() as connection:
        found = engine.catalog.load(connection, name)
    if found is None:
        raise table_not_found(name)
    return found


def read_table(connection: sqlite3.Connection, name: str) -> Table:
    """Return the table as this transaction sees it."""
    # The engine's own catalog must not learn what may yet be rolled back.
    found = Catalog().load(connection, name)
    if found is None:
        raise table_not_found(name)
    return found


def change_definition(engine: SqliteEngine, name: str, action: Change) -> Table:
    """Change a table's definition; one that comes out the same is not written."""

    def run(connection: sqlite3.Connection) -> Table:
        table = read_table(connection, name)
        definition = copy.deepcopy(table.definition)
        action(connection, table, definition)
        if definition == table.definition:
            return table
        return catalog.replace(connection, table, definition)

    try:
        return engine.database.write(run)
    finally:
        engine.catalog.forget(name)


def read_definitions(connection: sqlite3.Connection) -> list[tuple[str, Definition]]:
    """Return the names and definitions of all tables."""
    found: list[tuple[str, Definition]] = []
    for name, text, crc in connection.execute("SELECT name, definition, crc FROM catalog ORDER BY name"):
        catalog.check_definition(name, text, crc)
        found.append((name, json.loads(text)))
    return found
