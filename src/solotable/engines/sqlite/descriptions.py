"""A table as DescribeTable and its kin show it: the stored definition, its ARNs, and counts of its items.

Counts of small tables are live. Those of larger ones are taken at most every six hours by each
engine, as AWS does, because they mean reading the whole table.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from solotable.protocol.text import loads
from solotable.values import item_size

from .catalog import Catalog, Index, Table
from .definitions import table_arn

if TYPE_CHECKING:
    from .engine import SqliteEngine

LIVE_ITEMS = 10_000
_KEPT_MICROS = 6 * 3600 * 1_000_000
#: What an on-demand table can serve from its first second, in units per second.
_WARM_READS, _WARM_WRITES = 12_000, 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Items and bytes of a table and of its indexes, by index id."""

    items: int
    size: int
    indexes: dict[int, tuple[int, int]]
    at_micros: int


_kept: WeakKeyDictionary[SqliteEngine, dict[int, Counts]] = WeakKeyDictionary()


def describe(engine: SqliteEngine, table: Table, *, empty: bool = False) -> dict[str, Any]:
    """Return the TableDescription; `empty` spares the counting of a table that is new."""
    definition = table.definition
    counts = _NO_COUNTS if empty else _counts(engine, table)
    arn = table_arn(table.name)
    described: dict[str, Any] = {
        "AttributeDefinitions": definition["AttributeDefinitions"],
        "TableName": table.name,
        "KeySchema": definition["KeySchema"],
        "TableStatus": "ACTIVE",
        "CreationDateTime": definition["CreationDateTime"],
        "ProvisionedThroughput": definition["ProvisionedThroughput"],
        "TableSizeBytes": counts.size,
        "ItemCount": counts.items,
        "TableArn": arn,
        "TableId": definition["TableId"],
        "DeletionProtectionEnabled": definition["DeletionProtectionEnabled"],
        "WarmThroughput": _warm(definition),
    }
    for member in _AS_STORED:
        if member in definition:
            described[member] = definition[member]
    if "LatestStreamLabel" in definition:
        described["LatestStreamLabel"] = definition["LatestStreamLabel"]
        described["LatestStreamArn"] = f"{arn}/stream/{definition['LatestStreamLabel']}"
    for member in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if member in definition:
            described[member] = [_index(entry, arn, counts) for entry in definition[member]]
    return described


def describe_deleted(engine: SqliteEngine, table: Table) -> dict[str, Any]:
    """Return the little that AWS tells of a table that is being deleted."""
    kept = (
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
    return {member: described[member] for member in kept if member in described} | {"TableStatus": "DELETING"}


_AS_STORED = (
    "BillingModeSummary",
    "StreamSpecification",
    "SSEDescription",
    "TableClassSummary",
    "OnDemandThroughput",
)
_NO_COUNTS = Counts(items=0, size=0, indexes={}, at_micros=0)


def _index(entry: dict[str, Any], table_arn: str, counts: Counts) -> dict[str, Any]:
    items, size = counts.indexes.get(entry.get("Id", 0), (0, 0))
    described = {member: value for member, value in entry.items() if member != "Id"}
    described["IndexSizeBytes"] = size
    described["ItemCount"] = items
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


def _counts(engine: SqliteEngine, table: Table) -> Counts:
    now = engine.now_micros()
    mine = _kept.setdefault(engine, {})
    kept = mine.get(table.id)
    if (
        kept is not None
        and kept.items > LIVE_ITEMS
        and now - kept.at_micros < _KEPT_MICROS
        and kept.indexes.keys() >= {index.id for index in table.indexes if index.status == "ACTIVE"}
    ):
        return kept
    with engine.database.snapshot() as connection:
        # The items may have moved to a later generation since the table was read.
        found = Catalog().load(connection, table.name)
        if found is None or found.id != table.id:
            return _NO_COUNTS
        counted = _count(connection, found, now)
    mine[table.id] = counted
    return counted


def _count(connection: sqlite3.Connection, table: Table, now: int) -> Counts:
    items, size = connection.execute(f"SELECT count(*), coalesce(sum(size), 0) FROM {table.items}").fetchone()
    return Counts(
        items=items,
        size=size,
        indexes={
            index.id: _count_index(connection, table, index)
            for index in table.indexes
            if index.status == "ACTIVE"
        },
        at_micros=now,
    )


def _count_index(connection: sqlite3.Connection, table: Table, index: Index) -> tuple[int, int]:
    joined = f"FROM x{index.id} AS x CROSS JOIN {table.items} AS i ON i.id = x.row"
    if index.projected is None:
        items, size = connection.execute(f"SELECT count(*), coalesce(sum(i.size), 0) {joined}").fetchone()
        return items, size
    (items,) = connection.execute(f"SELECT count(*) FROM x{index.id}").fetchone()
    seen = size = 0
    # Of an index with more entries than that, the size is an estimate.
    for (raw,) in connection.execute(f"SELECT i.item {joined} LIMIT {LIVE_ITEMS}"):
        seen += 1
        size += item_size(index.project(loads(raw)))
    return items, size if seen == items else size * items // seen
