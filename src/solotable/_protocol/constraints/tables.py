"""Constraints of operations on tables, tags, time to live, backups and streams."""

from __future__ import annotations

from typing import Final

from solotable._values.limits import (
    LONGEST_TABLE_ARN,
    LONGEST_TABLE_NAME,
    MOST_LISTED_BACKUPS,
    MOST_LISTED_STREAMS,
    MOST_LISTED_TABLES,
    MOST_STREAM_RECORDS,
    SHORTEST_TABLE_NAME,
)

from .kinds import NAME_PATTERN, Constraint, Flag, ListOf, Real, Struct, Text, Unsupported, Whole
from .resources import DEMANDED_TABLE, INSIGHTS, POLICIES, make_transfers

_INDEX = Text(required=True, pattern=NAME_PATTERN, shortest=SHORTEST_TABLE_NAME, longest=LONGEST_TABLE_NAME)
_FLAG = Flag()
_TEXT = Text()
_ATTRIBUTE = Text(required=True, shortest=1, longest=255)
_BILLING = Text(enum=("PROVISIONED", "PAY_PER_REQUEST"))

_KEY_ELEMENT = Struct(
    java="KeySchemaElement",
    members={"AttributeName": _ATTRIBUTE, "KeyType": Text(required=True, enum=("HASH", "RANGE"))},
)
_KEY_SCHEMA = ListOf(member=_KEY_ELEMENT, required=True, shortest=1, longest=2)
# DynamoDB: a global index may have up to four partition and four sort attributes.
_INDEX_KEY_SCHEMA = ListOf(member=_KEY_ELEMENT, required=True, shortest=1, longest=8)
_DEFINITION = Struct(
    java="AttributeDefinition",
    members={"AttributeType": Text(required=True, enum=("B", "N", "S")), "AttributeName": _ATTRIBUTE},
)
_PROJECTION = Struct(
    java="Projection",
    required=True,
    members={
        "ProjectionType": Text(enum=("ALL", "INCLUDE", "KEYS_ONLY")),
        "NonKeyAttributes": ListOf(member=Text(shortest=1, longest=255), shortest=1),
    },
)
_UNITS = Whole(java="Long", required=True, least=1)
_THROUGHPUT = Struct(
    java="ProvisionedThroughput", members={"WriteCapacityUnits": _UNITS, "ReadCapacityUnits": _UNITS}
)
_LONG = Whole(java="Long")
_ON_DEMAND = Struct(
    java="OnDemandThroughput", members={"MaxReadRequestUnits": _LONG, "MaxWriteRequestUnits": _LONG}
)
_WARM = Struct(java="WarmThroughput", members={"ReadUnitsPerSecond": _LONG, "WriteUnitsPerSecond": _LONG})
_STREAM = Struct(
    java="StreamSpecification",
    members={
        "StreamEnabled": Flag(required=True),
        "StreamViewType": Text(enum=("OLD_IMAGE", "KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE")),
    },
)
_ENCRYPTION = Struct(
    java="SSESpecification",
    members={"Enabled": _FLAG, "SSEType": Text(enum=("AES256", "KMS")), "KMSMasterKeyId": Text(shortest=1)},
)
_TAGS = ListOf(
    member=Struct(
        java="Tag",
        members={
            "Key": _TEXT,
            "Value": _TEXT,
        },
    )
)
_GLOBAL: dict[str, Constraint] = {
    "IndexName": _INDEX,
    "KeySchema": _INDEX_KEY_SCHEMA,
    "Projection": _PROJECTION,
    "ProvisionedThroughput": _THROUGHPUT,
    "OnDemandThroughput": _ON_DEMAND,
    "WarmThroughput": _WARM,
}
_LOCAL = Struct(
    java="LocalSecondaryIndex",
    members={"IndexName": _INDEX, "KeySchema": _KEY_SCHEMA, "Projection": _PROJECTION},
)
_TABLE_SETTINGS: dict[str, Constraint] = {
    "BillingMode": _BILLING,
    "ProvisionedThroughput": _THROUGHPUT,
    "StreamSpecification": _STREAM,
    "SSESpecification": _ENCRYPTION,
    "TableClass": _TEXT,
    "DeletionProtectionEnabled": _FLAG,
    "OnDemandThroughput": _ON_DEMAND,
    "WarmThroughput": _WARM,
}


def _unsupported(*names: str) -> dict[str, Constraint]:
    return {name: Unsupported(name=name) for name in names}


CREATE_TABLE = Struct(
    java="CreateTableInput",
    members={
        "AttributeDefinitions": ListOf(member=_DEFINITION, required=True),
        "TableName": DEMANDED_TABLE,
        **_TABLE_SETTINGS,
        "KeySchema": _KEY_SCHEMA,
        "GlobalSecondaryIndexes": ListOf(member=Struct(java="GlobalSecondaryIndex", members=_GLOBAL)),
        "LocalSecondaryIndexes": ListOf(member=_LOCAL),
        "Tags": _TAGS,
        "ResourcePolicy": _TEXT,
        **_unsupported("GlobalTableSourceArn", "GlobalTableSettingsReplicationMode", "VectorIndexes"),
    },
)
UPDATE_TABLE = Struct(
    java="UpdateTableInput",
    members={
        "AttributeDefinitions": ListOf(member=_DEFINITION),
        "TableName": DEMANDED_TABLE,
        **_TABLE_SETTINGS,
        "GlobalSecondaryIndexUpdates": ListOf(
            member=Struct(
                java="GlobalSecondaryIndexUpdate",
                members={
                    "Update": Struct(
                        java="UpdateGlobalSecondaryIndexAction",
                        members={
                            "IndexName": _INDEX,
                            "ProvisionedThroughput": _THROUGHPUT,
                            "OnDemandThroughput": _ON_DEMAND,
                            "WarmThroughput": _WARM,
                        },
                    ),
                    "Create": Struct(java="CreateGlobalSecondaryIndexAction", members=_GLOBAL),
                    "Delete": Struct(java="DeleteGlobalSecondaryIndexAction", members={"IndexName": _INDEX}),
                },
            )
        ),
        **_unsupported(
            "ReplicaUpdates",
            "MultiRegionConsistency",
            "GlobalTableWitnessUpdates",
            "GlobalTableSettingsReplicationMode",
            "DisassociationProtectionEnabled",
            "VectorIndexUpdates",
        ),
    },
)
LIST_TABLES = Struct(
    java="ListTablesInput",
    members={
        "ExclusiveStartTableName": Text(
            pattern=NAME_PATTERN, shortest=SHORTEST_TABLE_NAME, longest=LONGEST_TABLE_NAME
        ),
        "Limit": Whole(least=1, most=MOST_LISTED_TABLES),
    },
)

_ARN = Text()
_BACKUP_ARN = Text(required=True, shortest=37, longest=1_024)
_OVERRIDES: dict[str, Constraint] = {
    "TargetTableName": _INDEX,
    "BillingModeOverride": _BILLING,
    "GlobalSecondaryIndexOverride": ListOf(member=Struct(java="GlobalSecondaryIndex", members=_GLOBAL)),
    "LocalSecondaryIndexOverride": ListOf(member=_LOCAL),
    "ProvisionedThroughputOverride": _THROUGHPUT,
    "OnDemandThroughputOverride": _ON_DEMAND,
    "SSESpecificationOverride": _ENCRYPTION,
    **_unsupported("VectorIndexOverride"),
}
BACKUPS: Final[dict[str, Struct]] = {
    "CreateBackup": Struct(
        java="CreateBackupInput", members={"TableName": DEMANDED_TABLE, "BackupName": _INDEX}
    ),
    "DescribeBackup": Struct(java="DescribeBackupInput", members={"BackupArn": _BACKUP_ARN}),
    "DeleteBackup": Struct(java="DeleteBackupInput", members={"BackupArn": _BACKUP_ARN}),
    "ListBackups": Struct(
        java="ListBackupsInput",
        members={
            "TableName": Text(shortest=1, longest=LONGEST_TABLE_ARN),
            "Limit": Whole(least=1, most=MOST_LISTED_BACKUPS),
            "TimeRangeLowerBound": Real(),
            "TimeRangeUpperBound": Real(),
            "ExclusiveStartBackupArn": Text(shortest=37, longest=1_024),
            "BackupType": Text(enum=("USER", "SYSTEM", "AWS_BACKUP", "ALL")),
        },
    ),
    "RestoreTableFromBackup": Struct(
        java="RestoreTableFromBackupInput", members={**_OVERRIDES, "BackupArn": _BACKUP_ARN}
    ),
    "RestoreTableToPointInTime": Struct(
        java="RestoreTableToPointInTimeInput",
        members={
            **_OVERRIDES,
            "SourceTableArn": Text(shortest=1, longest=LONGEST_TABLE_ARN),
            "SourceTableName": Text(
                pattern=NAME_PATTERN, shortest=SHORTEST_TABLE_NAME, longest=LONGEST_TABLE_NAME
            ),
            "UseLatestRestorableTime": _FLAG,
            "RestoreDateTime": Real(),
        },
    ),
}
TRANSFERS: Final = make_transfers(
    {
        "AttributeDefinitions": ListOf(member=_DEFINITION, required=True),
        "TableName": _INDEX,
        "KeySchema": _KEY_SCHEMA,
        **{
            name: _TABLE_SETTINGS[name]
            for name in ("BillingMode", "ProvisionedThroughput", "SSESpecification", "OnDemandThroughput")
        },
        "GlobalSecondaryIndexes": ListOf(member=Struct(java="GlobalSecondaryIndex", members=_GLOBAL)),
        **_unsupported("VectorIndexes"),
    }
)


def _of_table(java: str, **members: Constraint) -> Struct:
    return Struct(java=java, members={"TableName": DEMANDED_TABLE, **members})


TABLES: Final[dict[str, Struct]] = {
    "CreateTable": CREATE_TABLE,
    "DescribeTable": _of_table("DescribeTableInput"),
    "UpdateTable": UPDATE_TABLE,
    "DeleteTable": _of_table("DeleteTableInput"),
    "ListTables": LIST_TABLES,
    "TagResource": Struct(java="TagResourceInput", members={"ResourceArn": _ARN, "Tags": _TAGS}),
    "UntagResource": Struct(
        java="UntagResourceInput",
        members={"ResourceArn": _ARN, "TagKeys": ListOf(member=_TEXT)},
    ),
    "ListTagsOfResource": Struct(
        java="ListTagsOfResourceInput", members={"ResourceArn": _ARN, "NextToken": _TEXT}
    ),
    "DescribeLimits": Struct(java="DescribeLimitsInput", members={}),
    "DescribeEndpoints": Struct(java="DescribeEndpointsRequest", members={}),
    "DescribeTimeToLive": _of_table("DescribeTimeToLiveInput"),
    "UpdateTimeToLive": _of_table(
        "UpdateTimeToLiveInput",
        TimeToLiveSpecification=Struct(
            java="TimeToLiveSpecification",
            required=True,
            members={"Enabled": Flag(required=True), "AttributeName": _ATTRIBUTE},
        ),
    ),
    "DescribeContinuousBackups": _of_table("DescribeContinuousBackupsInput"),
    "UpdateContinuousBackups": _of_table(
        "UpdateContinuousBackupsInput",
        PointInTimeRecoverySpecification=Struct(
            java="PointInTimeRecoverySpecification",
            required=True,
            members={
                "PointInTimeRecoveryEnabled": Flag(required=True),
                "RecoveryPeriodInDays": Whole(least=1, most=35),
            },
        ),
    ),
    **BACKUPS,
    **TRANSFERS,
    **POLICIES,
    **INSIGHTS,
}

_STREAM_ARN = Text(required=True, shortest=37, longest=1_024)

STREAMS: Final[dict[str, Struct]] = {
    "ListStreams": Struct(
        java="ListStreamsInput",
        members={
            "TableName": Text(shortest=1, longest=LONGEST_TABLE_ARN),
            "Limit": Whole(least=1, most=MOST_LISTED_STREAMS),
            "ExclusiveStartStreamArn": Text(shortest=37, longest=1_024),
        },
    ),
    "DescribeStream": Struct(
        java="DescribeStreamInput",
        members={
            "StreamArn": _STREAM_ARN,
            "Limit": Whole(least=1, most=MOST_LISTED_STREAMS),
            "ExclusiveStartShardId": Text(shortest=28, longest=65),
            "ShardFilter": Struct(
                java="ShardFilter",
                members={
                    "Type": Text(required=True, enum=("CHILD_SHARDS",)),
                    "ShardId": Text(required=True, shortest=28, longest=65),
                },
            ),
        },
    ),
    "GetShardIterator": Struct(
        java="GetShardIteratorInput",
        members={
            "StreamArn": _STREAM_ARN,
            "ShardId": Text(required=True, shortest=28, longest=65),
            "ShardIteratorType": Text(
                required=True,
                enum=("AFTER_SEQUENCE_NUMBER", "LATEST", "AT_SEQUENCE_NUMBER", "TRIM_HORIZON"),
            ),
            "SequenceNumber": Text(shortest=21, longest=40),
            "Timestamp": Real(),
        },
    ),
    "GetRecords": Struct(
        java="GetRecordsInput",
        members={
            "ShardIterator": Text(required=True, shortest=1, longest=2_048),
            "Limit": Whole(least=1, most=MOST_STREAM_RECORDS),
        },
    ),
}
