"""ExportTableToPointInTime: one state of a table, what changed in a period, and jobs that fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solotable._export_files.reader import open_export
from solotable.errors import ServiceError
from solotable.locations import FolderLocation

from .shop import ARN, START, Shop, enable, open_shop

PERIOD = 15 * 60


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with open_shop(tmp_path) as opened:
        yield opened


def exported(shop: Shop, prefix: str = "") -> dict[str, dict[str, Any]]:
    export = open_export(FolderLocation(shop.folder / "vault" / prefix))
    return {item["id"]["S"]: item for _, item in export.items()}


def changes(shop: Shop) -> dict[str, tuple[Any, Any, int]]:
    export = open_export(FolderLocation(shop.folder / "vault"))
    return {
        change.keys["id"]["S"]: (
            change.old and change.old["n"]["N"],
            change.new and change.new["n"]["N"],
            change.micros,
        )
        for _, change in export.changes()
    }


def reject(shop: Shop, code: str, **members: Any) -> str:
    with pytest.raises(ServiceError) as rejected:
        shop.export(**members)
    assert rejected.value.code == code
    return rejected.value.message


def test_an_export_has_the_state_of_its_time(shop: Shop) -> None:
    shop.put("a", n=1)
    shop.put("b", n=1)
    moment = shop.now
    shop.put("a", n=2)
    shop.remove("b")
    shop.put("c", n=1)
    described = shop.export(ExportTime=moment, S3Prefix="daily")
    assert (described["ExportStatus"], described["ItemCount"]) == ("COMPLETED", 2)
    assert described["ExportManifest"].startswith("daily/AWSDynamoDB/")
    assert (shop.folder / "vault" / described["ExportManifest"]).is_file()
    assert {key: item["n"]["N"] for key, item in exported(shop, "daily").items()} == {"a": "1", "b": "1"}


def test_an_export_without_a_time_has_the_present_state(shop: Shop) -> None:
    for number in range(1_200):
        shop.put(f"o{number}", n=number)
    described = shop.export()
    assert (described["ExportStatus"], described["ItemCount"]) == ("COMPLETED", 1_200)
    assert exported(shop) == shop.items("Shop")


def test_an_incremental_export_has_both_images_of_each_changed_item(shop: Shop) -> None:
    for name in ("changed", "removed", "untouched", "later"):
        shop.put(name, n=1)
    start = shop.now + 1
    shop.put("changed", n=2)
    shop.put("changed", n=3)
    changed = int(shop.now * 1_000_000)
    shop.remove("removed")
    shop.put("new", n=1)
    shop.put("passing", n=1)
    shop.remove("passing")
    shop.now = start + PERIOD
    shop.put("later", n=2)
    shop.put("changed", n=4)
    period = {"ExportFromTime": start, "ExportToTime": start + PERIOD}
    described = shop.export(ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=period)
    assert (described["ExportStatus"], described["ItemCount"]) == ("COMPLETED", 3)
    assert described["IncrementalExportSpecification"]["ExportViewType"] == "NEW_AND_OLD_IMAGES"
    found = changes(shop)
    assert {name: images[:2] for name, images in found.items()} == {
        "changed": ("1", "3"),
        "removed": ("1", None),
        "new": (None, "1"),
    }
    assert found["changed"][2] == changed


def test_an_incremental_export_of_new_images_has_no_old_ones(shop: Shop) -> None:
    shop.put("a", n=1)
    start = shop.now
    shop.put("a", n=2)
    shop.now = start + PERIOD
    period = {"ExportFromTime": start, "ExportViewType": "NEW_IMAGE"}
    shop.export(ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=period)
    assert {name: images[:2] for name, images in changes(shop).items()} == {"a": (None, "2")}


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        (-60, PERIOD, "from time cannot be less than the table creation time : 2026-09-21T14:12:20Z"),
        (0, 90_001, "to time cannot be greater than the current time : 2026-09-22T15:13:21Z"),
        (0, PERIOD - 1, "is less than 15 minutes"),
        (PERIOD, 0, "is less than 15 minutes"),
        (0, 86_401, "is greater than 24 hours"),
    ],
)
def test_a_wrong_period_is_rejected(shop: Shop, start: int, end: int, message: str) -> None:
    shop.now = START + 90_000
    period = {"ExportFromTime": START + start, "ExportToTime": START + end}
    kind = "INCREMENTAL_EXPORT"
    found = reject(shop, "InvalidExportTimeException", ExportType=kind, IncrementalExportSpecification=period)
    assert found.endswith(message)


def test_a_time_outside_the_window_is_rejected(shop: Shop) -> None:
    assert reject(shop, "InvalidExportTimeException", ExportTime=shop.now + 10) == "Export Time is invalid"
    assert reject(shop, "InvalidExportTimeException", ExportTime=START - 10) == "Export Time is invalid"
    enable(shop, on=False)
    shop.now += 100
    enable(shop)
    assert reject(shop, "InvalidExportTimeException", ExportTime=START + 10) == (
        "Point in Time Recovery is not available for specified export time"
    )


def test_a_client_token_starts_one_export(shop: Shop) -> None:
    first = shop.export(ClientToken="t")
    assert shop.export(ClientToken="t", S3Bucket="vault")["ExportArn"] == first["ExportArn"]
    shop.now += 7 * 3_600
    reject(shop, "ExportConflictException", ClientToken="t", S3Prefix="other")
    shop.now += 2 * 3_600
    assert shop.export(ClientToken="t", S3Prefix="other")["ExportArn"] != first["ExportArn"]


def test_a_bucket_that_does_not_exist_fails_the_export(shop: Shop) -> None:
    described = shop.export(S3Bucket="absent")
    assert (described["ExportStatus"], described["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert described["FailureMessage"].startswith("The specified bucket does not exist")
    assert "ItemCount" not in described
    (shop.folder / "linked").symlink_to(shop.folder / "vault")
    assert shop.export(S3Bucket="linked")["FailureCode"] == "S3NoSuchBucket"


def test_a_prefix_cannot_leave_the_bucket(shop: Shop) -> None:
    described = shop.export(S3Prefix="../outside")
    assert (described["ExportStatus"], described["FailureCode"]) == ("FAILED", "InternalServerError")
    assert not (shop.folder / "outside").exists()


def test_lists_are_newest_first_and_in_pages(shop: Shop) -> None:
    arns = []
    for _ in range(12):
        shop.now += 1
        arns.append(shop.export()["ExportArn"])
    page = shop.call("ListExports", TableArn=ARN)
    assert [each["ExportArn"] for each in page["ExportSummaries"]] == arns[:1:-1]
    rest = shop.call("ListExports", TableArn=ARN, NextToken=page["NextToken"])
    assert [each["ExportArn"] for each in rest["ExportSummaries"]] == arns[1::-1]
    assert "NextToken" not in rest
    with pytest.raises(ServiceError, match="Provided nextToken is invalid"):
        shop.call("ListImports", NextToken=page["NextToken"])


def test_exports_of_a_deleted_table_are_described_but_not_listed(shop: Shop) -> None:
    arn = shop.export()["ExportArn"]
    shop.call("DeleteTable", TableName="Shop")
    assert shop.ended("Export", arn)["ExportStatus"] == "COMPLETED"
    assert shop.call("ListExports", TableArn=ARN)["ExportSummaries"] == []
    assert len(shop.call("ListExports")["ExportSummaries"]) == 1
