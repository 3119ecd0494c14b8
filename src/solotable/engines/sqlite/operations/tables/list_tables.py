"""ListTables: pages of names in byte order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solotable._values.limits import MOST_LISTED_TABLES
from solotable.engines.sqlite.tables import catalog

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine


def list_tables(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """List the names of tables."""
    limit = members.get("Limit", MOST_LISTED_TABLES)
    with engine.database.read() as connection:
        found = catalog.list_names(
            connection, after=members.get("ExclusiveStartTableName", ""), limit=limit + 1, backups=False
        )
    answer: dict[str, Any] = {"TableNames": found[:limit]}
    if len(found) > limit:
        answer["LastEvaluatedTableName"] = found[limit - 1]
    return answer
