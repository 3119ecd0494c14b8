"""UpdateTimeToLive and DescribeTimeToLive: the setting and its expiry index.

`ttl_sweeper` removes expired items. AWS rejects a second change within an hour; here every change takes
effect immediately.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from solotable.engines.sqlite.maintenance import index_backfill
from solotable.engines.sqlite.tables.catalog import Definition, Table
from solotable.engines.sqlite.tables.definitions import change_definition, load_current_table
from solotable.errors import invalid

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine


def describe_time_to_live(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Return whether items expire, and by which attribute."""
    setting = load_current_table(engine, members["TableName"]).definition.get("TimeToLive")
    if setting is None:
        return {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
    return {
        "TimeToLiveDescription": {
            "TimeToLiveStatus": "ENABLING" if setting.get("Status") == "CREATING" else "ENABLED",
            "AttributeName": setting["AttributeName"],
        }
    }


def update_time_to_live(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Enable or disable time to live."""
    wanted = members["TimeToLiveSpecification"]

    def action(_connection: sqlite3.Connection, _table: Table, definition: Definition) -> None:
        setting = definition.get("TimeToLive")
        if setting is None:
            if not wanted["Enabled"]:
                raise invalid("TimeToLive is already disabled")
            definition["TimeToLive"] = {"AttributeName": wanted["AttributeName"], "Status": "CREATING"}
            return
        if setting["AttributeName"] != wanted["AttributeName"]:
            raise invalid(
                "TimeToLive is active on a different AttributeName: "
                f"current AttributeName is {setting['AttributeName']}"
            )
        if wanted["Enabled"]:
            raise invalid("TimeToLive is already enabled")
        del definition["TimeToLive"]

    table = change_definition(engine, members["TableName"], action)
    if table.expiry is not None:
        index_backfill.start(engine, table.name, table.expiry.id)
    return {
        "TimeToLiveSpecification": {
            "AttributeName": wanted["AttributeName"],
            "Enabled": wanted["Enabled"],
        }
    }
