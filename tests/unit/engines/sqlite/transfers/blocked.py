"""Start an export and an import on a file, with a bucket that blocks; the test kills this process."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from solotable.engines import sqlite
from solotable.locations import FolderBuckets
from tests.waiting import wait_until

from .shop import ARN, KEYS


class BlockedBuckets(FolderBuckets):
    """Buckets of a network that never answers, once a table is being imported."""

    is_local = False

    def open_bucket(self, name: str) -> Any:
        """Return the bucket of the import; the export blocks earlier."""
        if name == "blocked":
            threading.Event().wait()
        found: Any = super().open_bucket(name)
        found.open = lambda _name: threading.Event().wait()
        return found


def main(path: str, folder: str) -> None:
    """Start both jobs, say so, and wait to be killed."""
    engine = sqlite.open(path, buckets=BlockedBuckets(Path(folder)))
    engine.call("ExportTableToPointInTime", {"TableArn": ARN, "S3Bucket": "blocked"})
    engine.call(
        "ImportTable",
        {
            "S3BucketSource": {"S3Bucket": "vault"},
            "InputFormat": "DYNAMODB_JSON",
            "TableCreationParameters": {"TableName": "Copy", **KEYS},
        },
    )
    wait_until(lambda: engine.call("ListTables", {})["TableNames"] == ["Copy", "Shop"])
    print(engine.call("DescribeTable", {"TableName": "Copy"})["Table"]["TableStatus"], flush=True)  # noqa: T201
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
