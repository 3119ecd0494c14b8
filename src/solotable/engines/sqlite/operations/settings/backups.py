"""DescribeContinuousBackups and UpdateContinuousBackups: read and change the setting.

The table `changes` has the change records. These operations do not restore a table.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from solotable.engines.sqlite.items.streams import DAY_MICROS
from solotable.engines.sqlite.tables.catalog import Definition, Table
from solotable.engines.sqlite.tables.definitions import change_definition, load_current_table
from solotable.errors import ServiceError, TableNotFound, invalid

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

LONGEST_RECOVERY_DAYS = 35


def describe_continuous_backups(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Return whether continuous backups are enabled, and the times to which a table can be restored."""
    try:
        table = load_current_table(engine, members["TableName"])
    except TableNotFound:
        raise _missing(members["TableName"]) from None
    return _description(engine, table)


def update_continuous_backups(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Start or stop recording changes for a restore."""
    wanted = members["PointInTimeRecoverySpecification"]
    enabled, days = wanted["PointInTimeRecoveryEnabled"], wanted.get("RecoveryPeriodInDays")
    if not enabled and days is not None:
        raise invalid(
            "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery."
        )

    def action(_connection: sqlite3.Connection, _table: Table, definition: Definition) -> None:
        setting = definition.get("PointInTimeRecovery")
        if not enabled:
            definition.pop("PointInTimeRecovery", None)
        elif setting is None:
            definition["PointInTimeRecovery"] = {
                "SinceMicros": engine.now_micros(),
                "RecoveryPeriodInDays": days or LONGEST_RECOVERY_DAYS,
            }
        elif days is not None:
            setting["RecoveryPeriodInDays"] = days

    try:
        table = change_definition(engine, members["TableName"], action)
    except TableNotFound:
        raise _missing(members["TableName"]) from None
    return _description(engine, table)


def _missing(name: str) -> ServiceError:
    # DynamoDB: operations on backups have a separate error for a missing table.
    return ServiceError("TableNotFoundException", f"Table not found: {name}")


def _description(engine: SqliteEngine, table: Table) -> dict[str, Any]:
    setting = table.definition.get("PointInTimeRecovery")
    recovery: dict[str, Any] = {"PointInTimeRecoveryStatus": "DISABLED"}
    if setting is not None:
        now = engine.now_micros()
        days = setting["RecoveryPeriodInDays"]
        earliest = max(setting["SinceMicros"], now - days * DAY_MICROS)
        recovery = {
            "PointInTimeRecoveryStatus": "ENABLED",
            "RecoveryPeriodInDays": days,
            "EarliestRestorableDateTime": earliest / 1_000_000,
            "LatestRestorableDateTime": max(now, earliest) / 1_000_000,
        }
    return {
        "ContinuousBackupsDescription": {
            "ContinuousBackupsStatus": "ENABLED",
            "PointInTimeRecoveryDescription": recovery,
        }
    }
