"""DescribeContinuousBackups and UpdateContinuousBackups: the setting, and the window of a table."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from solotable.engines.sqlite.tables import windows
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
        raise missing_table(members["TableName"]) from None
    return _description(engine, table)


def update_continuous_backups(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Start or stop recording changes for a restore."""
    wanted = members["PointInTimeRecoverySpecification"]
    enabled, days = wanted["PointInTimeRecoveryEnabled"], wanted.get("RecoveryPeriodInDays")
    if not enabled and days is not None:
        raise invalid(
            "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery."
        )

    def action(connection: sqlite3.Connection, table: Table, definition: Definition) -> None:
        setting = definition.get("PointInTimeRecovery")
        if not enabled:
            # DynamoDB: enabling it again starts another window.
            definition.pop("PointInTimeRecovery", None)
            windows.close_window(connection, definition["TableId"])
        elif setting is None:
            now = engine.now_micros()
            windows.open_window(connection, definition["TableId"], now)
            definition["PointInTimeRecovery"] = {
                "SinceMicros": now,
                "RecoveryPeriodInDays": days or LONGEST_RECOVERY_DAYS,
            }
        elif days is not None:
            setting["RecoveryPeriodInDays"] = days

    try:
        table = change_definition(engine, members["TableName"], action)
    except TableNotFound:
        raise missing_table(members["TableName"]) from None
    return _description(engine, table)


def missing_table(name: str) -> ServiceError:
    """Return the error of operations on backups for a table that does not exist."""
    # DynamoDB: operations on backups have a separate error for a missing table.
    return ServiceError("TableNotFoundException", f"Table not found: {name}")


def _description(engine: SqliteEngine, table: Table) -> dict[str, Any]:
    setting = table.definition.get("PointInTimeRecovery")
    recovery: dict[str, Any] = {"PointInTimeRecoveryStatus": "DISABLED"}
    if setting is not None:
        earliest, latest = restorable_micros(engine, table)
        recovery = {
            "PointInTimeRecoveryStatus": "ENABLED",
            "RecoveryPeriodInDays": setting["RecoveryPeriodInDays"],
            "EarliestRestorableDateTime": earliest / 1_000_000,
            "LatestRestorableDateTime": latest / 1_000_000,
        }
    return {
        "ContinuousBackupsDescription": {
            "ContinuousBackupsStatus": "ENABLED",
            "PointInTimeRecoveryDescription": recovery,
        }
    }


def restorable_micros(engine: SqliteEngine, table: Table) -> tuple[int, int]:
    """Return the first and the last time to which a table with continuous backups can be restored."""
    setting = table.definition["PointInTimeRecovery"]
    now, days = engine.now_micros(), setting["RecoveryPeriodInDays"]
    with engine.database.snapshot() as connection:
        window = windows.find(connection, table.definition["TableId"])
        latest = max(now, windows.newest_micros(connection))
    if window is None:
        # A file of an older layout, opened for reading only.
        earliest = max(setting["SinceMicros"], now - days * windows.DAY_MICROS)
    else:
        earliest = window.start_micros(now, days)
    return earliest, max(latest, earliest)
