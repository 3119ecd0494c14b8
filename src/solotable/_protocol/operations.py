"""AWS's operations as its API model lists them: those that solotable lacks, and those without a reply.

Data only; a test compares it with the model in the installed botocore. `shapes` has the operations that
solotable supports.
"""

from __future__ import annotations

from typing import Final

#: AWS answers them with an empty body instead of a JSON object.
WITHOUT_REPLY: Final = frozenset({"TagResource", "UntagResource"})

#: Operations of AWS that solotable lacks; each is rejected by its name.
UNSUPPORTED: Final = frozenset(
    {
        # Backups
        "CreateBackup",
        "DeleteBackup",
        "DescribeBackup",
        "ListBackups",
        "RestoreTableFromBackup",
        "RestoreTableToPointInTime",
        # Exports, imports and bulk operations
        "CancelBulkOperation",
        "DescribeBulkOperation",
        "DescribeExport",
        "DescribeImport",
        "ExportTableToPointInTime",
        "ImportTable",
        "ListBulkOperations",
        "ListExports",
        "ListImports",
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
