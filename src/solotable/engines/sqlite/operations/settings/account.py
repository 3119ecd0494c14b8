"""DescribeLimits and DescribeEndpoints: what an account is told of the service as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solotable.engines.sqlite.tables.definitions import REGION

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine


def describe_limits(_engine: SqliteEngine, _members: dict[str, Any]) -> dict[str, Any]:
    """Tell the quotas that a new account has; nothing here enforces them."""
    return {
        "AccountMaxReadCapacityUnits": 80_000,
        "AccountMaxWriteCapacityUnits": 80_000,
        "TableMaxReadCapacityUnits": 40_000,
        "TableMaxWriteCapacityUnits": 40_000,
    }


def describe_endpoints(_engine: SqliteEngine, _members: dict[str, Any]) -> dict[str, Any]:
    """Tell the address of the region's endpoint, as AWS would."""
    return {"Endpoints": [{"Address": f"dynamodb.{REGION}.amazonaws.com", "CachePeriodInMinutes": 1440}]}
