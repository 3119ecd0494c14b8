"""Exports to S3 and imports from it: what they answer, and what they reject.

The texts and the order of the checks are those that ack-api-quirks (services/dynamodb, 2026-10-09) captured on AWS:
DDB-EXPORT-001 to 026 and DDB-IMPORT-001 to 020. DynamoDB Local implements none of the operations.
"""

from __future__ import annotations

from typing import Any

from ..harness import Case, Fails, Json, Step, case, invalid
from .backups import switch

UNSUPPORTED = "does not implement the operation"
TABLE = "arn:aws:dynamodb:us-east-1:000000000000:table/{}"
HASH = TABLE.format("Hash")
JOB = "01489173575360-b308cd7d"
NEVER = {"ExportFromTime": 1_000_000_000}
UNREADABLE_TOKEN = "00" * 56
LACKS = "{} is not supported by solotable; docs/reference/differences.md lists what is."


def export(expect: Any = None, arn: str = HASH, **members: Any) -> Step:
    return Step("ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": "vault", **members}, expect)


def incremental(expect: Any, **specification: Any) -> Step:
    return export(expect, ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=specification)


def imported(expect: Any = None, **members: Any) -> Step:
    table: Json = {
        "TableName": "Imported",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    }
    asked = {
        "S3BucketSource": {"S3Bucket": "vault"},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": table,
    }
    return Step("ImportTable", asked | members, expect)


def started(reply: Json) -> None:
    described = reply["ExportDescription"]
    assert set(described) == {
        "ClientToken",
        "ExportArn",
        "ExportFormat",
        "ExportStatus",
        "ExportTime",
        "S3Bucket",
        "S3Prefix",
        "S3SseAlgorithm",
        "StartTime",
        "TableArn",
        "TableId",
    }
    assert described["ExportStatus"] == "IN_PROGRESS"
    assert (described["ExportFormat"], described["S3SseAlgorithm"]) == ("DYNAMODB_JSON", "AES256")
    assert described["ExportTime"] == described["StartTime"]
    assert ":table/Hash/export/" in described["ExportArn"]


def listed(reply: Json) -> None:
    (summary,) = reply["ExportSummaries"]
    assert set(summary) == {"ExportArn", "ExportStatus", "ExportType"}
    assert summary["ExportType"] == "FULL_EXPORT"


def import_started(reply: Json) -> None:
    described = reply["ImportTableDescription"]
    assert described["ImportStatus"] == "IN_PROGRESS"
    assert described["S3BucketSource"] == {"S3BucketOwner": "000000000000", "S3Bucket": "vault"}
    assert described["InputCompressionType"] == "NONE"
    assert described["CloudWatchLogGroupArn"].endswith(":log-group:/aws-dynamodb/imports:*")
    assert described["TableArn"] == TABLE.format("Imported")
    assert described["TableId"]


CONFLICT = Fails(
    "ExportConflictException", "Export conflict: Duplicate request detected with conflicting parameters"
)
NO_FROM = invalid("Invalid Request: ExportFromTime must be provided in IncrementalExportSpecification")
DENIED = Fails("AccessDeniedException", "Access is denied")


def enum(member: str, value: str, *values: str) -> Fails:
    return invalid(
        f"1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: Member must "
        f"satisfy enum value set: [{', '.join(values)}]"
    )


def rejected(name: str, *steps: Step) -> Case:
    return case(name, *steps, tables="Hash", local=UNSUPPORTED)


CASES: list[Case] = [
    rejected(
        "an export starts, and its token is replayed",
        switch(),
        export(started, S3Prefix="daily", ClientToken="conformance-1"),
        export(None, S3Prefix="daily", ClientToken="conformance-1"),
        export(CONFLICT, S3Prefix="other", ClientToken="conformance-1"),
        Step("ListExports", {"TableArn": HASH}, listed),
    ),
    rejected(
        "an export needs continuous backups, before its bucket is looked at",
        export(
            Fails(
                "PointInTimeRecoveryUnavailableException",
                "Point in time recovery is not enabled for table 'Hash'",
            )
        ),
    ),
    rejected(
        "an export needs the ARN of a table",
        export(
            Fails("TableNotFoundException", f"Table not found: {TABLE.format('Nowhere')}"),
            TABLE.format("Nowhere"),
        ),
        export(invalid("One or more parameter values were invalid: tableArn is not a valid ARN"), "Hash"),
        export(invalid("Invalid Request: Table ARN is invalid."), f"{HASH}/index/by-g"),
        export(DENIED, HASH.replace("000000000000", "111122223333")),
        export(
            Fails("TableNotFoundException", f"Table not found: {HASH.replace('us-east-1', 'us-west-2')}"),
            HASH.replace("us-east-1", "us-west-2"),
        ),
    ),
    rejected(
        "the time of an export is in the life of its table",
        switch(),
        export(Fails("InvalidExportTimeException", "Export Time is invalid"), ExportTime=1_000_000_000),
        export(Fails("InvalidExportTimeException", "Export Time is invalid"), ExportTime=32_000_000_000),
    ),
    rejected(
        "the type of an export and its specification go together",
        switch(),
        export(
            invalid(
                "Invalid Request: Export Type expected to be Incremental Export when incremental export "
                "specification is provided"
            ),
            IncrementalExportSpecification=NEVER,
        ),
        export(
            invalid(
                "Invalid Request: When Export Type is Full Export , Incremental Export Specification should not "
                "be provided"
            ),
            ExportType="FULL_EXPORT",
            IncrementalExportSpecification=NEVER,
        ),
        export(
            invalid(
                "Invalid Request: Incremental Export Specification expected when export type is set as "
                "Incremental Export"
            ),
            ExportType="INCREMENTAL_EXPORT",
        ),
        incremental(NO_FROM),
        incremental(NO_FROM, ExportViewType="NEW_IMAGE"),
    ),
    rejected(
        "the period of an export begins after its table",
        incremental(
            Fails(
                "InvalidExportTimeException",
                "Incremental export period from time cannot be less than the table creation time : "
                "2001-09-09T01:46:40Z",
            ),
            **NEVER,
        ),
    ),
    rejected(
        "a key of KMS needs its algorithm",
        switch(),
        export(
            invalid("Invalid Request: KMS Key Id is not supported for this encryption type"),
            S3SseKmsKeyId="alias/aws/s3",
        ),
    ),
    rejected(
        "members of an export have values",
        export(enum("exportFormat", "QWERTY", "ION", "DYNAMODB_JSON"), ExportFormat="QWERTY"),
        export(enum("exportFormat", "", "ION", "DYNAMODB_JSON"), ExportFormat=""),
        imported(enum("inputCompressionType", "BZIP2", "ZSTD", "NONE", "GZIP"), InputCompressionType="BZIP2"),
    ),
    rejected(
        "an export is found by its ARN",
        Step(
            "DescribeExport",
            {"ExportArn": f"{HASH}/export/{JOB}"},
            Fails("ExportNotFoundException", f"Export not found: Export not found: {HASH}/export/{JOB}"),
        ),
        Step("DescribeExport", {"ExportArn": HASH}, invalid("Invalid Export ARN")),
        Step("DescribeExport", {"ExportArn": f"{HASH}/import/{JOB}"}, invalid("Invalid Export ARN")),
        Step(
            "DescribeExport",
            {"ExportArn": f"{HASH}/export/{JOB}".replace("000000000000", "111122223333")},
            DENIED,
        ),
    ),
    rejected(
        "an import is found by its ARN",
        Step("DescribeImport", {"ImportArn": f"{HASH}/import/{JOB}"}, Fails("ImportNotFoundException")),
        Step("DescribeImport", {"ImportArn": HASH}, invalid("Invalid Import ARN")),
        Step("DescribeImport", {"ImportArn": f"{HASH}/export/{JOB}"}, invalid("Invalid Import ARN")),
    ),
    rejected(
        "a token of a list is one that a list returned",
        Step(
            "ListImports",
            {"NextToken": UNREADABLE_TOKEN},
            invalid(f"Invalid Request: Provided nextToken is invalid: {UNREADABLE_TOKEN}"),
        ),
        Step(
            "ListExports",
            {"NextToken": UNREADABLE_TOKEN},
            invalid(f"Invalid Request: Provided nextToken is invalid: {UNREADABLE_TOKEN}"),
        ),
    ),
    rejected("an import starts", imported(import_started)),
    rejected(
        "an import creates its table",
        imported(
            Fails("ResourceInUseException", "Table already exists: Hash"),
            TableCreationParameters={
                "TableName": "Hash",
                "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            },
        ),
        imported(
            invalid(
                "One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must both "
                "be specified when BillingMode is PROVISIONED"
            ),
            TableCreationParameters={
                "TableName": "Imported",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            },
        ),
    ),
    rejected(
        "options of CSV are for CSV",
        imported(
            invalid(
                "Invalid Request: Unsupported InputFormatOptions for the given input format: DYNAMODB_JSON."
            ),
            InputFormatOptions={"Csv": {"Delimiter": ";"}},
        ),
    ),
    # AWS has both; solotable says that it does not.
    rejected(
        "Ion and Zstandard are not supported",
        export(invalid(LACKS.format("ExportFormat ION")), ExportFormat="ION"),
        imported(invalid(LACKS.format("InputFormat ION")), InputFormat="ION"),
        imported(invalid(LACKS.format("InputCompressionType ZSTD")), InputCompressionType="ZSTD"),
        export(invalid(LACKS.format("FilterSpecification")), FilterSpecification={"FilterExpression": "x"}),
    ),
]
