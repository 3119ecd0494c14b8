"""Exports to and imports from a real S3 endpoint."""

from __future__ import annotations

from solotable.engines import sqlite
from solotable.locations import S3Buckets
from tests.s3_server import new_bucket, s3_client
from tests.waiting import wait_until

from .shop import ARN, KEYS


def test_an_export_to_s3_is_imported_again(s3_endpoint: str) -> None:
    bucket = new_bucket(s3_endpoint)
    with sqlite.open(":memory:", buckets=S3Buckets(s3_client(s3_endpoint))) as engine:
        engine.call("CreateTable", {"TableName": "Shop", **KEYS})
        recovery = {"PointInTimeRecoveryEnabled": True}
        engine.call(
            "UpdateContinuousBackups", {"TableName": "Shop", "PointInTimeRecoverySpecification": recovery}
        )
        engine.call("PutItem", {"TableName": "Shop", "Item": {"id": {"S": "a"}}})

        def export(name: str) -> dict[str, str]:
            asked = {"TableArn": ARN, "S3Bucket": name, "S3Prefix": "daily"}
            arn = engine.call("ExportTableToPointInTime", asked)["ExportDescription"]["ExportArn"]

            def described() -> dict[str, str]:
                found: dict[str, str] = engine.call("DescribeExport", {"ExportArn": arn})["ExportDescription"]
                return found if found["ExportStatus"] != "IN_PROGRESS" else {}

            return wait_until(described)

        done = export(bucket)
        assert done["ExportStatus"] == "COMPLETED", done
        assert export("absent-bucket")["FailureCode"] == "S3NoSuchBucket"
        prefix = done["ExportManifest"].rpartition("/")[0]
        asked = {
            "S3BucketSource": {"S3Bucket": bucket, "S3KeyPrefix": f"{prefix}/data/"},
            "InputFormat": "DYNAMODB_JSON",
            "InputCompressionType": "GZIP",
            "TableCreationParameters": {"TableName": "Copy", **KEYS},
        }
        arn = engine.call("ImportTable", asked)["ImportTableDescription"]["ImportArn"]

        def imported() -> str:
            found = engine.call("DescribeImport", {"ImportArn": arn})["ImportTableDescription"]
            return "" if found["ImportStatus"] == "IN_PROGRESS" else str(found["ImportStatus"])

        assert wait_until(imported) == "COMPLETED"
        assert engine.call("Scan", {"TableName": "Copy"})["Items"] == [{"id": {"S": "a"}}]
