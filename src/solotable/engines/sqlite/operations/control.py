"""Every operation that is not about items: which function answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from solotable.protocol.requests import Control

from .account import describe_endpoints, describe_limits
from .backups import describe_continuous_backups, update_continuous_backups
from .contributor_insights import (
    describe_contributor_insights,
    list_contributor_insights,
    update_contributor_insights,
)
from .create_table import create_table
from .delete_table import delete_table
from .describe_table import describe_table
from .list_tables import list_tables
from .resource_policies import delete_resource_policy, get_resource_policy, put_resource_policy
from .streams import describe_stream, get_records, get_shard_iterator, list_streams
from .tags import list_tags_of_resource, tag_resource, untag_resource
from .time_to_live import describe_time_to_live, update_time_to_live
from .update_table import update_table

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

CONTROL: dict[str, Callable[[SqliteEngine, dict[str, Any]], dict[str, Any]]] = {
    "CreateTable": create_table,
    "DeleteResourcePolicy": delete_resource_policy,
    "DeleteTable": delete_table,
    "DescribeContinuousBackups": describe_continuous_backups,
    "DescribeContributorInsights": describe_contributor_insights,
    "DescribeEndpoints": describe_endpoints,
    "DescribeLimits": describe_limits,
    "DescribeStream": describe_stream,
    "DescribeTable": describe_table,
    "DescribeTimeToLive": describe_time_to_live,
    "GetRecords": get_records,
    "GetResourcePolicy": get_resource_policy,
    "GetShardIterator": get_shard_iterator,
    "ListContributorInsights": list_contributor_insights,
    "ListStreams": list_streams,
    "ListTables": list_tables,
    "ListTagsOfResource": list_tags_of_resource,
    "PutResourcePolicy": put_resource_policy,
    "TagResource": tag_resource,
    "UntagResource": untag_resource,
    "UpdateContinuousBackups": update_continuous_backups,
    "UpdateContributorInsights": update_contributor_insights,
    "UpdateTable": update_table,
    "UpdateTimeToLive": update_time_to_live,
}


def control(engine: SqliteEngine, request: Control) -> dict[str, Any]:
    """Answer a control operation."""
    return CONTROL[request.operation](engine, request.members)
