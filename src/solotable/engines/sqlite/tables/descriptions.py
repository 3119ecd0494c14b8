"""Build TableDescription from the stored definition of a table, its ARNs and its counts.

The counts are exact and are stored, so describing a table reads no items: see `counts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solotable.engines.sqlite.counts.counts import Count, Counts

from .catalog import Table
from .definitions import table_arn

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: The warm throughput of a new on-demand table, in units per second.
_WARM_READS, _WARM_WRITES = 12_000, 4_000


def describe(engine: SqliteEngine, table: Table) -> dict[str, Any]:
    """Return the TableDescription."""
    definition = table.definition
    counts = engine.pending_counts.read(table)
    whole = counts.get(0, Count())
    arn = table_arn(table.name)
    described: dict[str, Any] = {
        "AttributeDefinitions": definition["AttributeDefinitions"],
        "TableName": table.name,
        "KeySchema": definition["KeySchema"],
        "TableStatus": "ACTIVE",
        "CreationDateTime": definition["CreationDateTime"],
        "ProvisionedThroughput": definition["ProvisionedThroughput"],
        "TableSizeBytes": whole.bytes,
        "ItemCount": whole.items,
        "TableArn": arn,
        "TableId": definition["TableId"],
        "DeletionProtectionEnabled": definition["DeletionProtectionEnabled"],
        "WarmThroughput": _warm(definition),
    }
    for member in _AS_STORED:
        if member in definition:
            described[member] = definition[member]
    if "Import" in definition:
        described["TableStatus"] = "CREATING"
    if "Copy" in definition:
        # DynamoDB: an ACTIVE table does not say that it was restored.
        described["TableStatus"] = "CREATING"
        described["RestoreSummary"] = definition["Copy"].get("Summary", {}) | {"RestoreInProgress": True}
    if "LatestStreamLabel" in definition:
        described["LatestStreamLabel"] = definition["LatestStreamLabel"]
        described["LatestStreamArn"] = f"{arn}/stream/{definition['LatestStreamLabel']}"
    for member in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if member in definition:
            described[member] = [_index(entry, arn, counts) for entry in definition[member]]
    return described


def describe_deleted(engine: SqliteEngine, table: Table) -> dict[str, Any]:
    """Return the TableDescription of a table that is being deleted; it has fewer members."""
    members = (
        "TableName",
        "ProvisionedThroughput",
        "TableSizeBytes",
        "ItemCount",
        "TableArn",
        "TableId",
        "BillingModeSummary",
        "TableClassSummary",
        "DeletionProtectionEnabled",
        "StreamSpecification",
        "LatestStreamLabel",
        "LatestStreamArn",
    )
    described = describe(engine, table)
    return {member: described[member] for member in members if member in described} | {
        "TableStatus": "DELETING"
    }


_AS_STORED = (
    "BillingModeSummary",
    "StreamSpecification",
    "SSEDescription",
    "TableClassSummary",
    "OnDemandThroughput",
)


def _index(entry: dict[str, Any], table_arn: str, counts: Counts) -> dict[str, Any]:
    count = counts.get(entry["Id"], Count())
    described = {member: value for member, value in entry.items() if member != "Id"}
    described["IndexSizeBytes"] = count.bytes
    described["ItemCount"] = count.items
    described["IndexArn"] = f"{table_arn}/index/{entry['IndexName']}"
    if "IndexStatus" in entry:
        described["WarmThroughput"] = _warm(entry)
    return described


def _warm(settings: dict[str, Any]) -> dict[str, Any]:
    throughput = settings["ProvisionedThroughput"]
    return {
        "ReadUnitsPerSecond": throughput["ReadCapacityUnits"] or _WARM_READS,
        "WriteUnitsPerSecond": throughput["WriteCapacityUnits"] or _WARM_WRITES,
        **settings.get("WarmThroughput", {}),
        "Status": "ACTIVE",
    }
