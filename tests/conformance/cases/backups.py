"""Backups and restores: what they answer, and what they reject.

The texts and the order of the checks are those that ack-api-quirks (services/dynamodb, 2026-10-09) captured on AWS:
DDB-BACKUP-001 to 027 and DDB-TABLE-086 to 463. DynamoDB Local implements none of the operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..harness import Case, Fails, Json, Step, case, invalid

UNSUPPORTED = "does not implement the operation"
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/{}/backup/01489173575360-b308cd7d"
ABSENT = ARN.format("Hash")
MISSING = Fails("TableNotFoundException", "Table not found: Nowhere")
NOT_FOUND = Fails("BackupNotFoundException", f"Backup not found: {ABSENT}")
NO_TIME = invalid(
    "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not both"
)


def switch(name: str = "Hash") -> Step:
    recovery = {"PointInTimeRecoveryEnabled": True}
    return Step("UpdateContinuousBackups", {"TableName": name, "PointInTimeRecoverySpecification": recovery})


def restore(expect: Any = None, target: str = "Restored", **members: Any) -> Step:
    asked: Json = {"SourceTableName": "Hash", "TargetTableName": target, **members}
    return Step(
        "RestoreTableToPointInTime",
        {name: value for name, value in asked.items() if value is not None},
        expect,
    )


def latest(expect: Any = None, **members: Any) -> Step:
    return restore(expect, UseLatestRestorableTime=True, **members)


def created(reply: Json) -> None:
    details = reply["BackupDetails"]
    assert set(details) == {
        "BackupArn",
        "BackupName",
        "BackupSizeBytes",
        "BackupStatus",
        "BackupType",
        "BackupCreationDateTime",
    }
    assert details["BackupStatus"] == "CREATING"
    assert (details["BackupName"], details["BackupType"]) == ("daily", "USER")
    assert ":table/Hash/backup/" in details["BackupArn"]


# Backups outlive their tables, so those of earlier cases are listed too, before the newest.
def one_backup(reply: Json) -> None:
    summary = reply["BackupSummaries"][-1]
    assert (summary["TableName"], summary["BackupName"], summary["BackupStatus"]) == (
        "Hash",
        "daily",
        "AVAILABLE",
    )


def two_backups(reply: Json) -> None:
    first, second = reply["BackupSummaries"][-2:]
    assert first["BackupName"] == second["BackupName"] == "daily"
    assert first["BackupArn"] != second["BackupArn"]


def first_page(reply: Json) -> None:
    (summary,) = reply["BackupSummaries"]
    assert reply["LastEvaluatedBackupArn"] == summary["BackupArn"]


def of_users(reply: Json) -> None:
    assert {summary["BackupType"] for summary in reply["BackupSummaries"]} <= {"USER"}


def kept_after_deletion(reply: Json) -> None:
    summary = reply["BackupSummaries"][-1]
    assert (summary["BackupName"], summary["BackupType"]) == ("Hash$DeletedTableBackup", "SYSTEM")
    assert summary["BackupArn"].endswith("-00000000")
    lifetime = summary["BackupExpiryDateTime"] - summary["BackupCreationDateTime"]
    assert lifetime == 35 * 86_400 or lifetime.days == 35


def restoring(reply: Json) -> None:
    description = reply["TableDescription"]
    assert description["TableStatus"] == "CREATING"
    summary = description["RestoreSummary"]
    assert summary["RestoreInProgress"] is True
    assert summary["SourceTableArn"].endswith(":table/Hash")


def without_lost_settings(reply: Json) -> None:
    table = reply["Table"]
    assert table["TableStatus"] == "ACTIVE"
    assert table["DeletionProtectionEnabled"] is False
    lost = ("RestoreSummary", "StreamSpecification", "LatestStreamArn", "TableClassSummary")
    assert [member for member in lost if member in table] == []


def indexes(*names: str) -> Callable[[Json], None]:
    def check(reply: Json) -> None:
        found = reply["Table"].get("GlobalSecondaryIndexes", [])
        assert sorted(index["IndexName"] for index in found) == sorted(names)

    return check


def provisioned(reply: Json) -> None:
    throughput = reply["Table"]["ProvisionedThroughput"]
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (5, 6)


BACKUP = Step("CreateBackup", {"TableName": "Hash", "BackupName": "daily"})
FEATURES: Json = {
    "TableName": "Full",
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "g", "AttributeType": "S"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-g",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    "TableClass": "STANDARD_INFREQUENT_ACCESS",
    "Tags": [{"Key": "owner", "Value": "shop"}],
}
UNITS = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}


def full(name: str, *steps: Step) -> Case:
    return case(name, Step("CreateTable", FEATURES), switch("Full"), *steps, local=UNSUPPORTED)


def hash_case(name: str, *steps: Step) -> Case:
    return case(name, *steps, tables="Hash", local=UNSUPPORTED)


CASES: list[Case] = [
    hash_case(
        "a backup is being created",
        Step("CreateBackup", {"TableName": "Hash", "BackupName": "daily"}, created),
    ),
    hash_case("a backup is listed", BACKUP, Step("ListBackups", {"TableName": "Hash"}, one_backup)),
    hash_case(
        "two backups may have one name",
        BACKUP,
        BACKUP,
        Step("ListBackups", {"TableName": "Hash"}, two_backups),
    ),
    hash_case("a list of backups has pages", BACKUP, BACKUP, Step("ListBackups", {"Limit": 1}, first_page)),
    hash_case(
        "a list has the backups of users only",
        switch(),
        Step("DeleteTable", {"TableName": "Hash"}),
        Step("ListBackups", {"TableName": "Hash"}, of_users),
        Step("ListBackups", {"TableName": "Hash", "BackupType": "SYSTEM"}, kept_after_deletion),
        Step("ListBackups", {"TableName": "Hash", "BackupType": "ALL"}, kept_after_deletion),
    ),
    hash_case(
        "a backup outlives its table",
        BACKUP,
        Step("DeleteTable", {"TableName": "Hash"}),
        Step("ListBackups", {"TableName": "Hash"}, one_backup),
    ),
    case(
        "a missing table has no backups",
        Step("ListBackups", {"TableName": "Nowhere"}, {"BackupSummaries": []}),
        local=UNSUPPORTED,
    ),
    case(
        "the bounds of a list are in order",
        Step(
            "ListBackups",
            {"TimeRangeLowerBound": 2, "TimeRangeUpperBound": 1},
            invalid("Time range lower bound must be less than or equal to upper bound"),
        ),
        local=UNSUPPORTED,
    ),
    case(
        "a missing table cannot be backed up",
        Step("CreateBackup", {"TableName": "Nowhere", "BackupName": "daily"}, MISSING),
        local=UNSUPPORTED,
    ),
    *(
        case(
            f"{operation} does not find a backup",
            Step(operation, {"BackupArn": ABSENT}, NOT_FOUND),
            local=UNSUPPORTED,
        )
        for operation in ("DescribeBackup", "DeleteBackup")
    ),
    *(
        case(
            f"{operation} rejects the ARN of a table",
            Step(
                operation,
                {"BackupArn": "arn:aws:dynamodb:us-east-1:000000000000:table/Hash"},
                invalid("Invalid Backup ARN"),
            ),
            local=UNSUPPORTED,
        )
        for operation in ("DescribeBackup", "DeleteBackup")
    ),
    case(
        "a missing backup cannot be restored",
        Step("RestoreTableFromBackup", {"BackupArn": ABSENT, "TargetTableName": "Restored"}, NOT_FOUND),
        local=UNSUPPORTED,
    ),
    hash_case("a restore is being made", switch(), latest(restoring)),
    hash_case(
        "a restored table has the items",
        switch(),
        Step("PutItem", {"TableName": "Hash", "Item": {"pk": {"S": "a"}}}),
        latest(),
        Step(
            "Scan", {"TableName": "Restored"}, {"Items": [{"pk": {"S": "a"}}], "Count": 1, "ScannedCount": 1}
        ),
    ),
    full(
        "a restored table lacks what DynamoDB does not restore",
        latest(SourceTableName="Full"),
        Step("DescribeTable", {"TableName": "Restored"}, without_lost_settings),
        Step(
            "ListTagsOfResource",
            {"ResourceArn": "arn:aws:dynamodb:us-east-1:000000000000:table/Restored"},
            {"Tags": []},
        ),
        Step(
            "DescribeTimeToLive",
            {"TableName": "Restored"},
            {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}},
        ),
        Step(
            "DescribeContinuousBackups",
            {"TableName": "Restored"},
            {
                "ContinuousBackupsDescription": {
                    "ContinuousBackupsStatus": "ENABLED",
                    "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"},
                }
            },
        ),
    ),
    full(
        "a restored table has the indexes",
        latest(SourceTableName="Full"),
        Step("DescribeTable", {"TableName": "Restored"}, indexes("by-g")),
    ),
    full(
        "an empty override restores no index",
        latest(SourceTableName="Full", GlobalSecondaryIndexOverride=[]),
        Step("DescribeTable", {"TableName": "Restored"}, indexes()),
    ),
    full(
        "an override may rename an index",
        latest(
            SourceTableName="Full",
            GlobalSecondaryIndexOverride=[FEATURES["GlobalSecondaryIndexes"][0] | {"IndexName": "renamed"}],
        ),
        Step("DescribeTable", {"TableName": "Restored"}, indexes("renamed")),
    ),
    full(
        "an override cannot add an index",
        latest(
            invalid(
                "Index other does not match a secondary index that existed in the source table and cannot be "
                "created during the restore operation"
            ),
            SourceTableName="Full",
            GlobalSecondaryIndexOverride=[
                {
                    "IndexName": "other",
                    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        ),
    ),
    hash_case(
        "a restore may change the billing mode",
        switch(),
        latest(BillingModeOverride="PROVISIONED", ProvisionedThroughputOverride=UNITS),
        Step("DescribeTable", {"TableName": "Restored"}, provisioned),
    ),
    hash_case(
        "throughput needs the billing mode PROVISIONED",
        switch(),
        latest(
            invalid("Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED"),
            ProvisionedThroughputOverride=UNITS,
        ),
    ),
    hash_case(
        "the billing mode PROVISIONED needs throughput",
        switch(),
        latest(
            invalid("Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED"),
            BillingModeOverride="PROVISIONED",
        ),
    ),
    hash_case(
        "a table without point in time recovery cannot be restored",
        latest(
            Fails(
                "PointInTimeRecoveryUnavailableException",
                "Point in time recovery is not enabled for table 'Hash'",
            )
        ),
    ),
    hash_case(
        "a missing table cannot be restored", latest(MISSING, SourceTableName="Nowhere", target="Hash")
    ),
    hash_case(
        "a restore does not replace a table",
        switch(),
        latest(Fails("TableAlreadyExistsException", "Table already exists: Hash"), target="Hash"),
    ),
    hash_case("a restore needs a time", restore(NO_TIME)),
    hash_case(
        "a restore not to the latest time needs a time", restore(NO_TIME, UseLatestRestorableTime=False)
    ),
    hash_case(
        "a restore has one time",
        latest(
            invalid(
                "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set for "
                "point-in-time restore request. Please specify either RestoreDateTime time or "
                "UseLatestRestorableTime"
            ),
            RestoreDateTime=1_700_000_000,
        ),
    ),
    hash_case(
        "a restore has one source",
        latest(
            invalid("Must provide exactly one of: sourceTableArn, sourceTableName"),
            SourceTableArn="arn:aws:dynamodb:us-east-1:000000000000:table/Hash",
        ),
    ),
    hash_case(
        "a restore needs a source",
        latest(
            invalid("The parameter 'TableName' is required but was not present in the request"),
            SourceTableName=None,
        ),
    ),
    hash_case(
        "a time before the window is rejected before the target",
        switch(),
        restore(Fails("InvalidRestoreTimeException"), target="Hash", RestoreDateTime=0),
    ),
    hash_case(
        "a time in the future is rejected",
        switch(),
        restore(Fails("InvalidRestoreTimeException"), RestoreDateTime=4_000_000_000),
    ),
    hash_case(
        "a restore takes the source's ARN",
        switch(),
        latest(
            restoring,
            SourceTableName=None,
            SourceTableArn="arn:aws:dynamodb:us-east-1:000000000000:table/Hash",
        ),
    ),
]
