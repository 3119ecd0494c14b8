"""DescribeLimits and DescribeEndpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solotable.engines.sqlite.tables.definitions import REGION

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine


def describe_limits(_engine: SqliteEngine, _members: dict[str, Any]) -> dict[str, Any]:
    """Return the quotas of a new account, which this engine does not enforce."""
    return {
        "AccountMaxReadCapacityUnits": 80_000,
        "AccountMaxWriteCapacityUnits": 80_000,
        "TableMaxReadCapacityUnits": 40_000,
        "TableMaxWriteCapacityUnits": 40_000,
    }


def describe_endpoints(_engine: SqliteEngine, _members: dict[str, Any]) -> dict[str, Any]:
    """Return the address of the region's endpoint on AWS."""
    return {"Endpoints": [{"Address": f"dynamodb.{REGION}.amazonaws.com", "CachePeriodInMinutes": 1440}]}
