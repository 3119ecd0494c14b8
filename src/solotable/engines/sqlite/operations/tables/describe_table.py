"""DescribeTable; it also resumes the backfill of an index that was interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solotable.engines.sqlite.maintenance import index_backfill
from solotable.engines.sqlite.tables.definitions import load_current_table
from solotable.engines.sqlite.tables.descriptions import describe

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine


def describe_table(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Describe a table."""
    table = load_current_table(engine, members["TableName"], creating=True)
    index_backfill.resume(engine, table)
    return {"Table": describe(engine, table)}
