"""A table with continuous backups on a clock that the test moves, and a folder with one bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from tests.waiting import wait_until

START = 1_790_000_000.0
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/Shop"
KEYS: dict[str, Any] = {
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@dataclass
class Shop:
    """An engine with the table Shop."""

    engine: SqliteEngine
    folder: Path
    now: float = START

    def call(self, operation: str, **members: Any) -> dict[str, Any]:
        """Send a request."""
        return self.engine.call(operation, members)

    def put(self, name: str, **numbers: int) -> None:
        """Put an item, a second after the last write."""
        self.now += 1
        item = {"id": {"S": name}} | {key: {"N": str(value)} for key, value in numbers.items()}
        self.call("PutItem", TableName="Shop", Item=item)

    def remove(self, name: str) -> None:
        """Delete an item, a second after the last write."""
        self.now += 1
        self.call("DeleteItem", TableName="Shop", Key={"id": {"S": name}})

    def export(self, **members: Any) -> dict[str, Any]:
        """Start an export, and return its description once it has ended."""
        reply = self.call("ExportTableToPointInTime", **{"TableArn": ARN, "S3Bucket": "vault"} | members)
        return self.ended("Export", reply["ExportDescription"]["ExportArn"])

    def import_(self, prefix: str, **members: Any) -> dict[str, Any]:
        """Start an import, and return its description once it has ended."""
        asked: dict[str, Any] = {
            "S3BucketSource": {"S3Bucket": "vault", "S3KeyPrefix": prefix},
            "InputFormat": "DYNAMODB_JSON",
            "TableCreationParameters": {"TableName": "Copy", **KEYS},
        } | members
        reply = self.call("ImportTable", **asked)["ImportTableDescription"]
        assert reply["ImportStatus"] == "IN_PROGRESS"
        return self.ended("Import", reply["ImportArn"])

    def ended(self, kind: str, arn: str) -> dict[str, Any]:
        """Wait until a job has ended, and return its description."""
        member = "ExportDescription" if kind == "Export" else "ImportTableDescription"

        def describe() -> dict[str, Any]:
            found: dict[str, Any] = self.call(f"Describe{kind}", **{f"{kind}Arn": arn})[member]
            return found

        wait_until(lambda: describe()[f"{kind}Status"] != "IN_PROGRESS")
        return describe()

    def items(self, table: str = "Copy") -> dict[str, dict[str, Any]]:
        """Return the items of a table by their id."""
        return {item["id"]["S"]: item for item in self.call("Scan", TableName=table)["Items"]}


@contextmanager
def open_shop(folder: Path, path: str = ":memory:") -> Iterator[Shop]:
    """Return a context with a shop whose bucket is `folder/vault`."""
    (folder / "vault").mkdir(exist_ok=True)
    moment = [START]

    class Clocked(Shop):
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "now":
                moment[0] = value
            super().__setattr__(name, value)

    with sqlite.open(path, clock=lambda: moment[0], buckets=folder, durability="relaxed") as engine:
        shop = Clocked(engine=engine, folder=folder)
        shop.call("CreateTable", TableName="Shop", **KEYS)
        enable(shop)
        yield shop


def enable(shop: Shop, *, on: bool = True) -> None:
    """Switch continuous backups."""
    recovery = {"PointInTimeRecoveryEnabled": on}
    shop.call("UpdateContinuousBackups", TableName="Shop", PointInTimeRecoverySpecification=recovery)
