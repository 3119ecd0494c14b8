"""The functions that answer control operations, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from solotable._protocol.requests import Control

from .backups.continuous import describe_continuous_backups, update_continuous_backups
from .backups.on_demand import create_backup, delete_backup, describe_backup, list_backups
from .backups.restores import restore_table_from_backup, restore_table_to_point_in_time
from .settings.account import describe_endpoints, describe_limits
from .settings.contributor_insights import (
    describe_contributor_insights,
    list_contributor_insights,
    update_contributor_insights,
)
from .settings.resource_policies import delete_resource_policy, get_resource_policy, put_resource_policy
from .settings.tags import list_tags_of_resource, tag_resource, untag_resource
from .settings.time_to_live import describe_time_to_live, update_time_to_live
from .streams import describe_stream, get_records, get_shard_iterator, list_streams
from .tables.create_table import create_table
from .tables.delete_table import delete_table
from .tables.describe_table import describe_table
from .tables.list_tables import list_tables
from .tables.update_table import update_table
from .transfers.exports import describe_export, export_table_to_point_in_time, list_exports
from .transfers.imports import describe_import, import_table, list_imports

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

CONTROL: dict[str, Callable[[SqliteEngine, dict[str, Any]], dict[str, Any]]] = {
    "CreateBackup": create_backup,
    "CreateTable": create_table,
    "DeleteBackup": delete_backup,
    "DeleteResourcePolicy": delete_resource_policy,
    "DeleteTable": delete_table,
    "DescribeBackup": describe_backup,
    "DescribeContinuousBackups": describe_continuous_backups,
    "DescribeContributorInsights": describe_contributor_insights,
    "DescribeEndpoints": describe_endpoints,
    "DescribeExport": describe_export,
    "DescribeImport": describe_import,
    "DescribeLimits": describe_limits,
    "DescribeStream": describe_stream,
    "DescribeTable": describe_table,
    "DescribeTimeToLive": describe_time_to_live,
    "ExportTableToPointInTime": export_table_to_point_in_time,
    "GetRecords": get_records,
    "GetResourcePolicy": get_resource_policy,
    "GetShardIterator": get_shard_iterator,
    "ImportTable": import_table,
    "ListBackups": list_backups,
    "ListContributorInsights": list_contributor_insights,
    "ListExports": list_exports,
    "ListImports": list_imports,
    "ListStreams": list_streams,
    "ListTables": list_tables,
    "ListTagsOfResource": list_tags_of_resource,
    "PutResourcePolicy": put_resource_policy,
    "RestoreTableFromBackup": restore_table_from_backup,
    "RestoreTableToPointInTime": restore_table_to_point_in_time,
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
