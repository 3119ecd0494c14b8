"""Jobs of a process that is killed, of an engine that is closed, and files of other layouts."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite.transfers import jobs
from solotable.errors import Corrupt
from solotable.locations import FolderBuckets, Location
from tests.waiting import HANG_SECONDS, wait_until

from .shop import ARN, KEYS, open_shop


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the locks that tell who is dead")
def test_jobs_of_a_killed_process_are_failed_when_the_file_is_opened_again(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with open_shop(tmp_path, path) as shop:
        shop.put("a", n=1)
        (tmp_path / "vault" / "1.json").write_text('{"Item": {"id": {"S": "a"}}}\n')
    module = "tests.unit.engines.sqlite.transfers.blocked"
    process = subprocess.Popen(  # noqa: S603  # our own module
        [sys.executable, "-m", module, path, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "CREATING\n"
        with sqlite.open(path) as other:
            # The process that runs the jobs lives.
            assert other.call("ListExports", {})["ExportSummaries"][0]["ExportStatus"] == "IN_PROGRESS"
    finally:
        process.kill()
        process.communicate(timeout=HANG_SECONDS)
    with sqlite.open(path) as engine:
        arn = engine.call("ListExports", {})["ExportSummaries"][0]["ExportArn"]
        export = engine.call("DescribeExport", {"ExportArn": arn})["ExportDescription"]
        assert (export["ExportStatus"], export["FailureCode"]) == ("FAILED", "InternalServerError")
        arn = engine.call("ListImports", {})["ImportSummaryList"][0]["ImportArn"]
        imported = engine.call("DescribeImport", {"ImportArn": arn})["ImportTableDescription"]
        assert (imported["ImportStatus"], imported["FailureCode"]) == ("FAILED", "InternalServerError")
        assert engine.call("DescribeTable", {"TableName": "Copy"})["Table"]["TableStatus"] == "ACTIVE"


class GatedBuckets(FolderBuckets):
    """Buckets that open when the test says so."""

    is_local = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.reached = threading.Event()
        self.gate = threading.Event()

    def open_bucket(self, name: str) -> Any:
        """Wait for the gate."""
        self.reached.set()
        assert self.gate.wait(HANG_SECONDS)
        found: Location = super().open_bucket(name)
        return found


def test_an_engine_that_is_closed_ends_its_jobs_as_failed(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with open_shop(tmp_path, path) as shop:
        shop.put("a", n=1)
    buckets = GatedBuckets(tmp_path)
    engine = sqlite.open(path, buckets=buckets)
    started = engine.call("ExportTableToPointInTime", {"TableArn": ARN, "S3Bucket": "vault"})
    assert started["ExportDescription"]["ExportStatus"] == "IN_PROGRESS"
    assert buckets.reached.wait(HANG_SECONDS)
    closing = threading.Thread(target=engine.close)
    closing.start()
    wait_until(jobs._threads[engine].stopped.is_set)
    buckets.gate.set()
    closing.join(HANG_SECONDS)
    with sqlite.open(path) as again:
        arn = started["ExportDescription"]["ExportArn"]
        described = again.call("DescribeExport", {"ExportArn": arn})["ExportDescription"]
        assert described["FailureMessage"] == "The engine was closed before the job was complete."
    # Without a summary, readers reject what was written.
    assert list((tmp_path / "vault").rglob("manifest-summary.json")) == []


def test_a_table_that_is_imported_takes_no_requests(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    buckets = GatedBuckets(tmp_path)
    asked = {
        "S3BucketSource": {"S3Bucket": "vault"},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": {"TableName": "Copy", **KEYS},
    }
    with sqlite.open(":memory:", buckets=buckets) as engine:
        first = engine.call("ImportTable", asked)["ImportTableDescription"]["ImportArn"]
        second = engine.call("ImportTable", asked)["ImportTableDescription"]["ImportArn"]
        assert "Copy" not in engine.call("ListTables", {})["TableNames"]
        buckets.gate.set()

        def ended() -> list[Any]:
            found = [
                engine.call("DescribeImport", {"ImportArn": arn})["ImportTableDescription"]
                for arn in (first, second)
            ]
            return found if all(each["ImportStatus"] != "IN_PROGRESS" for each in found) else []

        results = wait_until(ended)
        codes = sorted((each["ImportStatus"], each.get("FailureCode")) for each in results)
        assert codes == [("COMPLETED", None), ("FAILED", "TableAlreadyExists")]


def test_a_damaged_record_is_corrupt(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with open_shop(tmp_path, path) as shop:
        shop.export()
        shop.engine.database.write(
            lambda connection: connection.execute(
                "UPDATE transfers SET record = replace(record, 'vault', 'other')"
            )
        )
        with pytest.raises(Corrupt, match="does not match its checksum"):
            shop.call("ListExports")


def test_a_file_of_layout_3_has_no_jobs_and_is_upgraded(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with open_shop(tmp_path, path):
        pass
    file = sqlite3.connect(path)
    file.executescript("DROP TABLE transfers; PRAGMA user_version = 3")
    file.close()
    with sqlite.open(path, read_only=True) as engine:
        assert engine.call("ListExports", {}) == {"ExportSummaries": []}
    with sqlite.open(path, buckets=tmp_path) as engine:
        reply = engine.call("ExportTableToPointInTime", {"TableArn": ARN, "S3Bucket": "vault"})
        arn = reply["ExportDescription"]["ExportArn"]
        described = engine.call("DescribeExport", {"ExportArn": arn})["ExportDescription"]
        assert described["ExportStatus"] == "COMPLETED"
