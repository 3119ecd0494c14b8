"""Every operation that is not about items: which function answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from solotable.protocol.requests import Control

from .account import describe_endpoints, describe_limits
from .backups import describe_continuous_backups, update_continuous_backups
from .create_table import create_table
from .delete_table import delete_table
from .describe_table import describe_table
from .list_tables import list_tables
from .streams import describe_stream, get_records, get_shard_iterator, list_streams
from .tags import list_tags_of_resource, tag_resource, untag_resource
from .time_to_live import describe_time_to_live, update_time_to_live
from .update_table import update_table

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

CONTROL: dict[str, Callable[[SqliteEngine, dict[str, Any]], dict[str, Any]]] = {
    "CreateTable": create_table,
    "DeleteTable": delete_table,
    "DescribeContinuousBackups": describe_continuous_backups,
    "DescribeEndpoints": describe_endpoints,
    "DescribeLimits": describe_limits,
    "DescribeStream": describe_stream,
    "DescribeTable": describe_table,
    "DescribeTimeToLive": describe_time_to_live,
    "GetRecords": get_records,
    "GetShardIterator": get_shard_iterator,
    "ListStreams": list_streams,
    "ListTables": list_tables,
    "ListTagsOfResource": list_tags_of_resource,
    "TagResource": tag_resource,
    "UntagResource": untag_resource,
    "UpdateContinuousBackups": update_continuous_backups,
    "UpdateTable": update_table,
    "UpdateTimeToLive": update_time_to_live,
}


def control(engine: SqliteEngine, request: Control) -> dict[str, Any]:
    """Answer a control operation."""
    return CONTROL[request.operation](engine, request.members)
