"""UpdateTable: the checks of a request, and each change of the definition.

The request is checked first alone, then against the table. A rejected request changes nothing. Every change
is in effect at once, except for the backfill of a new index.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from solotable.engines.sqlite.items import streams
from solotable.engines.sqlite.maintenance import index_backfill
from solotable.engines.sqlite.tables.catalog import Definition, Table
from solotable.engines.sqlite.tables.definitions import change_definition
from solotable.engines.sqlite.tables.descriptions import describe
from solotable.errors import invalid, invalid_parameter

from . import index_updates, key_schemas
from .create_table import NO_UNITS, check_class, check_encryption, encryption_description

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_CHANGES = (
    "ProvisionedThroughput",
    "BillingMode",
    "StreamSpecification",
    "GlobalSecondaryIndexUpdates",
    "SSESpecification",
    "DeletionProtectionEnabled",
    "OnDemandThroughput",
    "WarmThroughput",
    "TableClass",
)
_NOTHING = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, "
    "SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, "
    "MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass "
    "is required"
)
_ALONE = {
    "SSESpecification": "Server-Side Encryption modification",
    "TableClass": "TableClass modification",
    "DeletionProtectionEnabled": "DeletionProtection modification",
    "WarmThroughput": "WarmThroughput",
}


def update_table(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Change a table's settings, its stream, or one of its global indexes."""
    _check(members)
    now = engine.now_micros()

    def action(connection: sqlite3.Connection, table: Table, definition: Definition) -> None:
        _apply_billing(definition, members, now)
        index_updates.apply(definition, members)
        if "StreamSpecification" in members:
            _apply_stream(definition, members["StreamSpecification"], is_enabled=table.stream_enabled)
            (streams.disable if table.stream_enabled else streams.enable)(connection, definition, now)
        if "DeletionProtectionEnabled" in members:
            definition["DeletionProtectionEnabled"] = members["DeletionProtectionEnabled"]
        if "TableClass" in members:
            definition["TableClassSummary"] = {
                "TableClass": members["TableClass"],
                "LastUpdateDateTime": _seconds(now),
            }
        if "WarmThroughput" in members:
            definition["WarmThroughput"] = definition.get("WarmThroughput", {}) | members["WarmThroughput"]
        if "SSESpecification" in members:
            _apply_encryption(definition, members["SSESpecification"])

    table = change_definition(engine, members["TableName"], action)
    # Before the backfill: afterwards the index is ACTIVE, and the reply must say CREATING.
    description = describe(engine, table)
    if "OnDemandThroughput" in members:
        # DynamoDB: the reply still shows the -1 that removed a limit.
        description["OnDemandThroughput"] = (
            description.get("OnDemandThroughput", {}) | members["OnDemandThroughput"]
        )
    for update in members.get("GlobalSecondaryIndexUpdates", ()):
        if "Create" in update:
            index_backfill.start(engine, table.name, table.index(update["Create"]["IndexName"]).id)
    return {"TableDescription": description}


def _check(members: dict[str, Any]) -> None:
    """Reject a request that is invalid for any table."""
    asked = {member for member in _CHANGES if members.get(member) not in (None, [])}
    if not asked:
        raise invalid(_NOTHING)
    if members.get("GlobalSecondaryIndexUpdates") == []:
        raise invalid_parameter("List of GlobalSecondaryIndexUpdates is empty")
    check_class(members.get("TableClass"))
    throughput = members.get("ProvisionedThroughput")
    if members.get("BillingMode") == "PROVISIONED" and throughput is None:
        raise invalid_parameter("ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
    if throughput is not None:
        key_schemas.check_units(throughput)
    index_updates.check(members)
    for member, what in _ALONE.items():
        if member in asked and len(asked) > 1:
            raise invalid_parameter(f"{what} must be the only operation in the request")
    if "OnDemandThroughput" in asked and not asked <= {"OnDemandThroughput", "BillingMode"}:
        raise invalid_parameter(
            "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request"
        )
    moves_indexes = any("Update" not in update for update in members.get("GlobalSecondaryIndexUpdates", ()))
    if throughput is not None and "StreamSpecification" in asked:
        raise invalid_parameter("You cannot modify stream status while updating table IOPS")
    if throughput is not None and moves_indexes:
        raise invalid_parameter("You cannot create or delete index while updating table IOPS")
    if "StreamSpecification" in asked and moves_indexes:
        raise invalid_parameter("You cannot create or delete index while changing stream status")
    if "StreamSpecification" in asked:
        _check_stream(members["StreamSpecification"])
    check_encryption(members.get("SSESpecification"))


def _check_stream(stream: dict[str, Any]) -> None:
    if stream["StreamEnabled"] and "StreamViewType" not in stream:
        raise invalid_parameter("If stream is being enabled then UpdateViewType is required")
    if not stream["StreamEnabled"] and "StreamViewType" in stream:
        raise invalid_parameter("If stream is being disabled, then UpdateViewType must not be specified")


def _apply_billing(definition: Definition, members: dict[str, Any], now_micros: int) -> None:
    summary = definition.get("BillingModeSummary")
    before = "PROVISIONED" if summary is None else summary["BillingMode"]
    after = members.get("BillingMode", before)
    throughput = members.get("ProvisionedThroughput")
    if throughput is not None and after == "PAY_PER_REQUEST":
        raise invalid_parameter(
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
            "when BillingMode is PAY_PER_REQUEST"
        )
    if throughput is not None:
        index_updates.apply_units(definition["ProvisionedThroughput"], throughput, "table", now_micros)
    index_updates.apply_throughput(definition, members, after=after, before=before, now_micros=now_micros)
    if after != before:
        definition["BillingModeSummary"] = (summary or {}) | {"BillingMode": after}
    if after != before and after == "PAY_PER_REQUEST":
        definition["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"] = _seconds(now_micros)
        definition["ProvisionedThroughput"].update(NO_UNITS)
        for index in definition.get("GlobalSecondaryIndexes", ()):
            index["ProvisionedThroughput"].update(NO_UNITS)
    if "OnDemandThroughput" in members:
        key_schemas.check_on_demand(
            members["OnDemandThroughput"], "table", on_demand=after == "PAY_PER_REQUEST"
        )
        _apply_on_demand(definition, members["OnDemandThroughput"])
    elif after == "PROVISIONED":
        definition.pop("OnDemandThroughput", None)


def _apply_on_demand(definition: Definition, bounds: dict[str, int]) -> None:
    merged = definition.get("OnDemandThroughput", {}) | bounds
    definition["OnDemandThroughput"] = {member: units for member, units in merged.items() if units != -1}
    if not definition["OnDemandThroughput"]:
        del definition["OnDemandThroughput"]


def _apply_stream(definition: Definition, stream: dict[str, Any], *, is_enabled: bool) -> None:
    name = definition["TableName"]
    if stream["StreamEnabled"]:
        if is_enabled:
            raise invalid(f"Table already has an enabled stream: TableName: {name}")
        definition["StreamSpecification"] = stream
        return
    if not is_enabled:
        raise invalid(f"Table has no stream to disable: TableName: {name}")
    # DynamoDB: the label and ARN of the last stream stay in the description.
    del definition["StreamSpecification"]


def _apply_encryption(definition: Definition, encryption: dict[str, Any]) -> None:
    description = encryption_description(encryption)
    if description is not None:
        definition["SSEDescription"] = description
    elif definition.pop("SSEDescription", None) is None:
        raise invalid_parameter("Table is already encrypted by default")


def _seconds(micros: int) -> float:
    return micros // 1000 / 1000
