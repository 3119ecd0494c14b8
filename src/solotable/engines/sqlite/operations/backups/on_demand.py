"""CreateBackup, DescribeBackup, ListBackups and DeleteBackup."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from solotable._values.limits import MOST_LISTED_BACKUPS
from solotable.engines.sqlite.recovery import backups, targets
from solotable.engines.sqlite.recovery.positions import to_datetime
from solotable.engines.sqlite.tables import catalog
from solotable.engines.sqlite.tables.catalog import Table
from solotable.engines.sqlite.tables.definitions import load_current_table, read_table, table_arn
from solotable.errors import ServiceError, TableNotFound, invalid

from .continuous import missing_table
from .restores import backup_is_used

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine


def create_backup(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Back up a table as it is now; the reply says CREATING, as AWS's does."""
    name = members["TableName"]
    try:
        size = engine.pending_counts.read(load_current_table(engine, name))[0]
    except TableNotFound:
        raise missing_table(name) from None

    def run(connection: sqlite3.Connection) -> Table:
        try:
            source = read_table(connection, name)
        except TableNotFound:
            raise missing_table(name) from None
        return backups.create(connection, source, members["BackupName"], engine.now_micros(), size)

    try:
        backup = engine.database.write(run)
    finally:
        engine.catalog.forget(name)
    details = _details(backup)
    targets.start(engine, backup.name, size.items)
    return {"BackupDetails": details}


def describe_backup(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Describe a backup and its source."""
    with engine.database.read() as connection:
        backup = backups.find(connection, members["BackupArn"])
    return {"BackupDescription": _description(backup)}


def delete_backup(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Delete a backup; that of a deleted table expires by itself."""
    arn = members["BackupArn"]

    def run(connection: sqlite3.Connection) -> Table:
        backup = backups.find(connection, arn)
        stored = backup.definition["Backup"]
        if stored["BackupType"] == "SYSTEM":
            expires = to_datetime(stored["ExpiryMicros"]).strftime("%Y-%m-%dT%H:%M:%SZ")
            raise invalid(
                f"User is not allowed to delete the system backup with arn {arn}. "
                f"It will automatically expire on {expires}"
            )
        if "Copy" in backup.definition:
            raise ServiceError("BackupInUseException", f"Backup is being created: {arn}")
        if backup_is_used(connection, arn):
            raise ServiceError("BackupInUseException", f"Backup is being used to restore table: {arn}")
        catalog.drop(connection, backup)
        return backup

    backup = engine.database.write(run)
    description = _description(backup)
    description["BackupDetails"]["BackupStatus"] = "DELETED"
    return {"BackupDescription": description}


def list_backups(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """List backups by their time, in pages; those that users made unless another type is asked for."""
    limit = members.get("Limit", MOST_LISTED_BACKUPS)
    lower, upper = members.get("TimeRangeLowerBound"), members.get("TimeRangeUpperBound")
    if lower is not None and upper is not None and lower > upper:
        raise invalid("Time range lower bound must be less than or equal to upper bound")
    after = members.get("ExclusiveStartBackupArn")
    if after is not None:
        backups.check_arn(after)
    kind = members.get("BackupType", "USER")
    with engine.database.snapshot() as connection:
        found = backups.list_all(connection)
    chosen = []
    for backup in found:
        stored = backup.definition["Backup"]
        at = stored["CreationMicros"] // 1000 / 1000
        if kind not in ("ALL", stored["BackupType"]) or members.get("TableName") not in (
            None,
            stored["Table"]["TableName"],
        ):
            continue
        if (lower is not None and at < lower) or (upper is not None and at >= upper):
            continue
        if after is None or _order(backup.name) > _order(after):
            chosen.append(backup)
    answer: dict[str, Any] = {"BackupSummaries": [_summary(backup) for backup in chosen[:limit]]}
    if len(chosen) > limit:
        answer["LastEvaluatedBackupArn"] = chosen[limit - 1].name
    return answer


def _order(arn: str) -> tuple[str, str]:
    # The id of a backup begins with its time. A cursor may name a backup that was deleted.
    return arn.rpartition("/")[2][:14], arn


def _details(backup: Table) -> dict[str, Any]:
    stored = backup.definition["Backup"]
    details = {
        "BackupArn": stored["BackupArn"],
        "BackupName": stored["BackupName"],
        "BackupSizeBytes": stored["Bytes"],
        "BackupStatus": "CREATING" if "Copy" in backup.definition else "AVAILABLE",
        "BackupType": stored["BackupType"],
        "BackupCreationDateTime": stored["CreationMicros"] // 1000 / 1000,
    }
    if "ExpiryMicros" in stored:
        details["BackupExpiryDateTime"] = stored["ExpiryMicros"] // 1000 / 1000
    return details


def _summary(backup: Table) -> dict[str, Any]:
    table = backup.definition["Backup"]["Table"]
    return {
        "TableName": table["TableName"],
        "TableId": table["TableId"],
        "TableArn": table_arn(table["TableName"]),
        **_details(backup),
    }


def _description(backup: Table) -> dict[str, Any]:
    stored = backup.definition["Backup"]
    table = stored["Table"]
    source = {
        "TableName": table["TableName"],
        "TableId": table["TableId"],
        "TableArn": table_arn(table["TableName"]),
        "TableSizeBytes": stored["Bytes"],
        "KeySchema": table["KeySchema"],
        "TableCreationDateTime": table["CreationDateTime"],
        "ProvisionedThroughput": backups.units(table["ProvisionedThroughput"]),
        "ItemCount": stored["Items"],
        "BillingMode": table.get("BillingModeSummary", {"BillingMode": "PROVISIONED"})["BillingMode"],
    }
    if "OnDemandThroughput" in table:
        source["OnDemandThroughput"] = table["OnDemandThroughput"]
    return {
        "BackupDetails": _details(backup),
        "SourceTableDetails": source,
        "SourceTableFeatureDetails": stored["Features"],
    }
