"""AWS's operations by name: those of streams, those without a reply, those that solotable lacks.

A test compares them with the API model in the installed botocore. `constraints` has the operations that
solotable supports.
"""

from __future__ import annotations

from typing import Final

#: Operations of the streams endpoint.
STREAM_OPERATIONS: Final = frozenset({"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"})

#: AWS answers them with an empty body instead of a JSON object.
WITHOUT_REPLY: Final = frozenset({"TagResource", "UntagResource"})

#: The operation of solotable's server that AWS lacks, and its X-Amz-Target.
DESCRIBE_HEAT: Final = "DescribeHeat"
HEAT_TARGET: Final = f"Solotable_20261118.{DESCRIBE_HEAT}"

#: Operations of AWS that solotable lacks; each is rejected by its name.
UNSUPPORTED: Final = frozenset(
    {
        # Bulk operations
        "CancelBulkOperation",
        "DescribeBulkOperation",
        "ListBulkOperations",
        "StartBulkPutItems",
        # Global tables and their auto scaling
        "CreateGlobalTable",
        "DescribeGlobalTable",
        "DescribeGlobalTableSettings",
        "DescribeTableReplicaAutoScaling",
        "ListGlobalTables",
        "UpdateGlobalTable",
        "UpdateGlobalTableSettings",
        "UpdateTableReplicaAutoScaling",
        # Kinesis
        "DescribeKinesisStreamingDestination",
        "DisableKinesisStreamingDestination",
        "EnableKinesisStreamingDestination",
        "UpdateKinesisStreamingDestination",
        # Vector search
        "SearchVectors",
    }
)
