"""Constraints of operations on resource policies, Contributor Insights, exports and imports."""

from __future__ import annotations

from typing import Final

from solotable._values.limits import (
    LONGEST_RESOURCE_ARN,
    LONGEST_REVISION,
    LONGEST_TABLE_ARN,
    MOST_LISTED_INSIGHTS,
)

from .items import INDEX
from .kinds import Constraint, Flag, ListOf, Real, Struct, Text, Unsupported, Whole

# DynamoDB: control operations check that the table's name is there before all else.
DEMANDED_TABLE: Final = Text(demanded=True, longest=LONGEST_TABLE_ARN)

_RESOURCE = Text(required=True, shortest=1, longest=LONGEST_RESOURCE_ARN)
_REVISION = Text(shortest=1, longest=LONGEST_REVISION)

POLICIES: Final[dict[str, Struct]] = {
    "PutResourcePolicy": Struct(
        java="PutResourcePolicyInput",
        members={
            "ResourceArn": _RESOURCE,
            "Policy": Text(required=True),
            "ExpectedRevisionId": _REVISION,
            "ConfirmRemoveSelfResourceAccess": Flag(),
        },
    ),
    "GetResourcePolicy": Struct(java="GetResourcePolicyInput", members={"ResourceArn": _RESOURCE}),
    "DeleteResourcePolicy": Struct(
        java="DeleteResourcePolicyInput",
        members={"ResourceArn": _RESOURCE, "ExpectedRevisionId": _REVISION},
    ),
}

INSIGHTS: Final[dict[str, Struct]] = {
    "DescribeContributorInsights": Struct(
        java="DescribeContributorInsightsInput", members={"TableName": DEMANDED_TABLE, "IndexName": INDEX}
    ),
    "UpdateContributorInsights": Struct(
        java="UpdateContributorInsightsInput",
        members={
            "TableName": DEMANDED_TABLE,
            "IndexName": INDEX,
            "ContributorInsightsAction": Text(required=True, enum=("ENABLE", "DISABLE")),
            "ContributorInsightsMode": Text(enum=("ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS")),
        },
    ),
    "ListContributorInsights": Struct(
        java="ListContributorInsightsInput",
        members={
            "TableName": Text(shortest=1, longest=LONGEST_TABLE_ARN),
            "NextToken": Text(),
            "MaxResults": Whole(least=1, most=MOST_LISTED_INSIGHTS),
        },
    ),
}

MOST_LISTED_TRANSFERS: Final = 25

# AWS's pattern takes cubic time; the equivalent takes linear time.
_BUCKET = Text(
    required=True,
    longest=255,
    pattern=r"^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$",
    matcher=r"[a-z0-9A-Z][.\-a-zA-Z0-9_]*[a-z0-9A-Z]",
)
_OWNER = Text(pattern="[0-9]{12}")
_PREFIX = Text(longest=1_024)
_TOKEN = Text(pattern=r"^[^\$]+$")
_ARN = Text(required=True, shortest=37, longest=1_024)
_TABLE_ARN = Text(shortest=1, longest=1_024)


def make_transfers(table_members: dict[str, Constraint]) -> dict[str, Struct]:
    """Return the constraints of all operations; `table_members` are those of a new table."""
    return {
        "ExportTableToPointInTime": Struct(
            java="ExportTableToPointInTimeInput",
            members={
                "TableArn": Text(required=True, shortest=1, longest=1_024),
                "ExportTime": Real(),
                "ClientToken": _TOKEN,
                "S3Bucket": _BUCKET,
                "S3BucketOwner": _OWNER,
                "S3Prefix": _PREFIX,
                "S3SseAlgorithm": Text(enum=("AES256", "KMS")),
                "S3SseKmsKeyId": Text(shortest=1, longest=2_048),
                "ExportFormat": Text(enum=("ION", "DYNAMODB_JSON")),
                "ExportType": Text(enum=("INCREMENTAL_EXPORT", "FULL_EXPORT")),
                "IncrementalExportSpecification": Struct(
                    java="IncrementalExportSpecification",
                    members={
                        "ExportFromTime": Real(),
                        "ExportToTime": Real(),
                        "ExportViewType": Text(enum=("NEW_AND_OLD_IMAGES", "NEW_IMAGE")),
                    },
                ),
                "FilterSpecification": Unsupported(name="FilterSpecification"),
            },
        ),
        "DescribeExport": Struct(java="DescribeExportInput", members={"ExportArn": _ARN}),
        "ListExports": Struct(
            java="ListExportsInput",
            members={
                "TableArn": _TABLE_ARN,
                "MaxResults": Whole(least=1, most=MOST_LISTED_TRANSFERS),
                "NextToken": Text(),
            },
        ),
        "ImportTable": Struct(
            java="ImportTableInput",
            members={
                "ClientToken": _TOKEN,
                "S3BucketSource": Struct(
                    java="S3BucketSource",
                    required=True,
                    members={"S3BucketOwner": _OWNER, "S3Bucket": _BUCKET, "S3KeyPrefix": _PREFIX},
                ),
                "InputFormat": Text(required=True, enum=("ION", "CSV", "DYNAMODB_JSON")),
                "InputFormatOptions": Struct(java="InputFormatOptions", members={"Csv": _CSV}),
                "InputCompressionType": Text(enum=("ZSTD", "NONE", "GZIP")),
                "TableCreationParameters": Struct(
                    java="TableCreationParameters", required=True, members=table_members
                ),
            },
        ),
        "DescribeImport": Struct(java="DescribeImportInput", members={"ImportArn": _ARN}),
        "ListImports": Struct(
            java="ListImportsInput",
            members={
                "TableArn": _TABLE_ARN,
                "PageSize": Whole(least=1, most=MOST_LISTED_TRANSFERS),
                "NextToken": Text(shortest=112, longest=1_024, pattern="([0-9a-f]{16})+"),
            },
        ),
    }


_CSV = Struct(
    java="CsvOptions",
    members={
        "Delimiter": Text(pattern=r"[,;:|\t ]", shortest=1, longest=1),
        "HeaderList": ListOf(
            member=Text(pattern=r"[\x20-\x21\x23-\x2B\x2D-\x7E]*", shortest=1, longest=65_536),
            shortest=1,
            longest=255,
        ),
    },
)
