"""RestoreTableToPointInTime and RestoreTableFromBackup: checks in AWS's order, then a copy."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from solotable._protocol.decode.table_names import plain_name, table_name
from solotable.engines.sqlite.recovery import backups, positions, targets
from solotable.engines.sqlite.recovery.positions import Position
from solotable.engines.sqlite.recovery.scopes import Scope
from solotable.engines.sqlite.tables.catalog import Catalog, Table
from solotable.engines.sqlite.tables.definitions import read_definitions, read_table, table_arn
from solotable.engines.sqlite.tables.descriptions import describe
from solotable.errors import RecoveryError, ServiceError, TableNotFound, invalid

from .continuous import missing_table
from .overrides import apply_overrides

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_SECOND = 1_000_000
_BOTH_TIMES = (
    "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set for point-in-time "
    "restore request. Please specify either RestoreDateTime time or UseLatestRestorableTime"
)
_NO_TIME = (
    "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be specified, "
    "but not both"
)


def restore_table_to_point_in_time(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Restore a table to a second of its window, as another table."""
    name = _source_name(members)
    _check_time(members)
    target = members["TargetTableName"]

    def run(connection: sqlite3.Connection) -> Table:
        try:
            source = read_table(connection, name)
        except TableNotFound:
            raise missing_table(name) from None
        if not source.is_ready:
            raise missing_table(name)
        position = _position(engine, connection, source, members)
        check_target(connection, target)
        definition = backups.restored_definition(
            source.definition,
            target,
            engine.now_micros(),
            {
                "SourceTableArn": table_arn(source.name),
                "RestoreDateTime": position.at_micros // _SECOND,
            },
        )
        apply_overrides(definition, members)
        definition["Copy"] |= targets.describe_copy(source, position.sequence, Scope())
        return targets.add_target(connection, source, target, definition)

    return _restore(engine, run, target)


def restore_table_from_backup(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Restore a backup as a table."""
    arn, target = members["BackupArn"], members["TargetTableName"]
    backups.check_arn(arn)

    def run(connection: sqlite3.Connection) -> Table:
        backup = backups.find(connection, arn)
        check_target(connection, target, arn)
        if "Copy" in backup.definition:
            raise ServiceError("BackupInUseException", f"Backup is being created: {arn}")
        if backup_is_used(connection, arn):
            raise ServiceError(
                "BackupInUseException", f"Backup is being used to restore another table: {arn}"
            )
        stored = backup.definition["Backup"]
        definition = backups.restored_definition(
            stored["Table"],
            target,
            engine.now_micros(),
            {
                "SourceBackupArn": arn,
                "SourceTableArn": table_arn(stored["Table"]["TableName"]),
                "RestoreDateTime": stored["CreationMicros"] // 1000 / 1000,
            },
        )
        apply_overrides(definition, members)
        definition["Copy"] |= targets.describe_copy(backup, None, Scope())
        return targets.add_target(connection, backup, target, definition)

    return _restore(engine, run, target)


def check_target(connection: sqlite3.Connection, name: str, arn: str | None = None) -> None:
    """Reject the name of an existing table."""
    existing = Catalog().load(connection, name)
    if existing is None:
        return
    if not existing.is_ready:
        origin = f" from backup: {arn}" if arn is not None else ""
        raise ServiceError("TableInUseException", f"Table: {name} is already being restored{origin}")
    raise ServiceError("TableAlreadyExistsException", f"Table already exists: {name}")


def backup_is_used(connection: sqlite3.Connection, arn: str) -> bool:
    """Say whether a restore reads a backup."""
    return any(
        definition.get("Copy", {}).get("Source") == arn for _, definition in read_definitions(connection)
    )


def _restore(engine: SqliteEngine, run: Any, target: str) -> dict[str, Any]:
    try:
        table: Table = engine.database.write(run)
    finally:
        engine.catalog.forget()
    with engine.database.read() as connection:
        source = read_table(connection, table.definition["Copy"]["Source"])
    items = engine.pending_counts.read(source)[0].items
    # Before the copy: afterwards the table is ACTIVE, and the reply must say CREATING.
    description = describe(engine, table)
    targets.start(engine, target, items)
    return {"TableDescription": description}


def _source_name(members: dict[str, Any]) -> str:
    arn, name = members.get("SourceTableArn"), members.get("SourceTableName")
    if arn is not None and name is not None:
        raise invalid("Must provide exactly one of: sourceTableArn, sourceTableName")
    if arn is None and name is None:
        raise invalid("The parameter 'TableName' is required but was not present in the request")
    return str(name) if arn is None else plain_name(table_name(arn))


def _check_time(members: dict[str, Any]) -> None:
    is_latest, has_time = members.get("UseLatestRestorableTime", False), "RestoreDateTime" in members
    if is_latest and has_time:
        raise invalid(_BOTH_TIMES)
    if not is_latest and not has_time:
        raise invalid(_NO_TIME)


def _position(
    engine: SqliteEngine, connection: sqlite3.Connection, table: Table, members: dict[str, Any]
) -> Position:
    try:
        window = positions.require_window(connection, table)
    except RecoveryError:
        raise ServiceError(
            "PointInTimeRecoveryUnavailableException",
            f"Point in time recovery is not enabled for table '{table.name}'",
        ) from None
    now = engine.now_micros()
    newest = positions.latest(connection, now)
    if "RestoreDateTime" not in members:
        return newest
    asked = int(members["RestoreDateTime"] * _SECOND)
    days = table.definition["PointInTimeRecovery"]["RecoveryPeriodInDays"]
    earliest = window.start_micros(now, days)
    # DynamoDB: times are whole seconds, also those that boto3 sends.
    if not earliest // _SECOND <= asked // _SECOND <= newest.at_micros // _SECOND:
        raise ServiceError(
            "InvalidRestoreTimeException",
            f"RestoreDateTime '{_text(asked)}' must be within EarliestRestorableDateTime '{_text(earliest)}' "
            f"and LatestRestorableDateTime '{_text(newest.at_micros)}'",
        )
    return positions.at_time(connection, window, max(asked, earliest))


def _text(micros: int) -> str:
    # A client may send any number.
    seconds = max(0, min(micros // _SECOND, 253_402_300_799))
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
