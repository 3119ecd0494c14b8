"""Backups: tables that no request reaches, stored in the catalog under their ARN.

A backup has the items of its source without indexes. Its definition has the settings that a restore gives
back. Deleting a table with continuous backups turns it into a backup, without copying an item.
"""

from __future__ import annotations

import contextlib
import copy
import re
import sqlite3
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

from solotable._values.checksum import crc32
from solotable.engines.sqlite.counts.counts import Count
from solotable.engines.sqlite.tables import catalog, windows
from solotable.engines.sqlite.tables.catalog import Catalog, Definition, Table
from solotable.engines.sqlite.tables.definitions import read_definitions, table_arn
from solotable.errors import ServiceError, invalid

from .scopes import Scope
from .targets import add_target, describe_copy

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: How long the backup of a deleted table is kept.
SYSTEM_DAYS = 35
_IS_ARN = re.compile(
    r"arn:[^:]+:dynamodb:[^:]*:[^:]*:table/([a-zA-Z0-9_.-]{3,255})/backup/[0-9]{14}-[0-9a-f]{8}"
)
#: Settings that are not in a backup, and that a restore does not give back.
_LOST = (
    "Copies",
    "DeletionProtectionEnabled",
    "LatestStreamLabel",
    "PointInTimeRecovery",
    "ResourcePolicies",
    "StreamSpecification",
    "TableClassSummary",
    "Tags",
    "TimeToLive",
    "WarmThroughput",
    "ContributorInsights",
)


def check_arn(arn: str) -> None:
    """Reject a text that is not the ARN of a backup."""
    if not _IS_ARN.fullmatch(arn):
        raise invalid("Invalid Backup ARN")


def not_found(arn: str) -> ServiceError:
    """Return the error for a backup that does not exist."""
    return ServiceError("BackupNotFoundException", f"Backup not found: {arn}")


def restored_settings(definition: Definition) -> Definition:
    """Return the part of a definition that a restored table has: keys, indexes, capacity, encryption."""
    kept = {member: value for member, value in copy.deepcopy(definition).items() if member not in _LOST}
    for index in catalog.indexes_of(kept):
        index.pop("Id", None)
        index.pop("WarmThroughput", None)
        if "IndexStatus" in index:
            index["IndexStatus"] = "ACTIVE"
            index.pop("Backfilling", None)
    return kept


def restored_definition(
    source: Definition, target: str, now_micros: int, summary: dict[str, Any] | None = None
) -> Definition:
    """Return the definition of a restored table: what DynamoDB restores, and its defaults for the rest."""
    definition = restored_settings(source)
    definition |= {
        "TableName": target,
        "TableId": str(uuid.uuid4()),
        "CreationDateTime": now_micros // 1000 / 1000,
        "DeletionProtectionEnabled": False,
        "Tags": [],
        "Copy": {} if summary is None else {"Summary": summary},
    }
    return definition


def create(connection: sqlite3.Connection, source: Table, name: str, now_micros: int, size: Count) -> Table:
    """Add a backup of a table's current state; the copy is still to be made."""
    number = crc32(f"{source.definition['TableName']} {name} {now_micros}".encode())
    arn = _new_arn(source.name, now_micros, f"{number:08x}")
    while Catalog().load(connection, arn) is not None:
        number = (number + 1) % 2**32
        arn = _new_arn(source.name, now_micros, f"{number:08x}")
    definition = _definition(source, arn, name, "USER", now_micros, size)
    definition["Copy"] = describe_copy(source, windows.newest_sequence(connection), Scope())
    return add_target(connection, source, arn, definition)


def keep_deleted(connection: sqlite3.Connection, source: Table, now_micros: int, size: Count) -> None:
    """Turn a table that is being deleted into a backup."""
    arn = _new_arn(source.name, now_micros, "00000000")
    definition = _definition(source, arn, f"{source.name}$DeletedTableBackup", "SYSTEM", now_micros, size)
    definition["Backup"]["ExpiryMicros"] = now_micros + SYSTEM_DAYS * windows.DAY_MICROS
    # DynamoDB: a system backup shows no features of its table.
    definition["Backup"]["Features"] = {}
    while Catalog().load(connection, arn) is not None:
        now_micros += 1_000
        arn = _new_arn(source.name, now_micros, "00000000")
    definition["TableName"] = definition["Backup"]["BackupArn"] = arn
    catalog.rename(connection, source, arn, definition)


def find(connection: sqlite3.Connection, arn: str) -> Table:
    """Return a backup, or raise BackupNotFoundException."""
    check_arn(arn)
    found = Catalog().load(connection, arn)
    if found is None or "Backup" not in found.definition:
        raise not_found(arn)
    return found


def list_all(connection: sqlite3.Connection) -> list[Table]:
    """Return all backups by their time of creation."""
    found = [
        find(connection, name)
        for name, definition in read_definitions(connection, backups=True)
        if "Backup" in definition
    ]
    return sorted(found, key=lambda backup: (backup.definition["Backup"]["CreationMicros"], backup.name))


def expire(engine: SqliteEngine, definitions: list[tuple[str, Definition]]) -> None:
    """Remove the backups of deleted tables whose time has passed."""
    now = engine.now_micros()
    for arn, definition in definitions:
        if definition.get("Backup", {}).get("ExpiryMicros", now) < now:
            engine.database.write(partial(_drop, arn=arn))


def _drop(connection: sqlite3.Connection, arn: str) -> None:
    with contextlib.suppress(ServiceError):
        catalog.drop(connection, find(connection, arn))


def _new_arn(table_name: str, now_micros: int, suffix: str) -> str:
    return f"{table_arn(table_name)}/backup/{now_micros // 1000:014d}-{suffix}"


def _definition(
    source: Table, arn: str, name: str, kind: str, now_micros: int, size: Count
) -> dict[str, Any]:
    settings = restored_settings(source.definition)
    return {
        "TableName": arn,
        "TableId": str(uuid.uuid4()),
        "CreationDateTime": now_micros // 1000 / 1000,
        "AttributeDefinitions": settings["AttributeDefinitions"],
        "KeySchema": settings["KeySchema"],
        "ProvisionedThroughput": settings["ProvisionedThroughput"],
        "DeletionProtectionEnabled": False,
        "Tags": [],
        "Backup": {
            "BackupArn": arn,
            "BackupName": name,
            "BackupType": kind,
            "CreationMicros": now_micros,
            "Bytes": size.bytes,
            "Items": size.items,
            "Table": settings,
            "Features": _features(source.definition, settings),
        },
    }


def _features(definition: Definition, settings: Definition) -> dict[str, Any]:
    """Return SourceTableFeatureDetails: indexes and settings that the table has."""
    found: dict[str, Any] = {}
    for member, names in (
        ("LocalSecondaryIndexes", ("IndexName", "KeySchema", "Projection")),
        ("GlobalSecondaryIndexes", ("IndexName", "KeySchema", "Projection", "ProvisionedThroughput")),
    ):
        if settings.get(member):
            found[member] = [{name: index[name] for name in names} for index in settings[member]]
    for index in found.get("GlobalSecondaryIndexes", ()):
        index["ProvisionedThroughput"] = units(index["ProvisionedThroughput"])
    if definition.get("StreamSpecification"):
        found["StreamDescription"] = definition["StreamSpecification"]
    if definition.get("TimeToLive"):
        found["TimeToLiveDescription"] = {
            "TimeToLiveStatus": "ENABLED",
            "AttributeName": definition["TimeToLive"]["AttributeName"],
        }
    if definition.get("SSEDescription"):
        found["SSEDescription"] = definition["SSEDescription"]
    return found


def units(throughput: dict[str, Any]) -> dict[str, int]:
    """Return the provisioned units without the times of their changes."""
    return {member: throughput[member] for member in ("ReadCapacityUnits", "WriteCapacityUnits")}
