"""Constraints of exports to and imports from S3."""

from __future__ import annotations

from typing import Final

from .kinds import Constraint, ListOf, Real, Struct, Text, Unsupported, Whole

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
