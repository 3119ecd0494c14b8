"""Backups on demand and restores in progress: what they contain, and what they refuse until then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.counts.counts import Count
from solotable.engines.sqlite.maintenance.checkup import examine
from solotable.engines.sqlite.recovery import backups, targets
from solotable.engines.sqlite.recovery.scopes import Scope
from solotable.engines.sqlite.tables import windows
from solotable.engines.sqlite.tables.definitions import read_table
from solotable.errors import ServiceError
from tests.conformance.tables import index
from tests.unit.engines.sqlite.clocked import DAY, Clock, create, keys, opened, put
from tests.unit.engines.sqlite.test_ttl_sweeper import changes
from tests.waiting import HANG_SECONDS

from .past import recovery

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/Restored"


def begin_backup(engine: SqliteEngine) -> str:
    """Begin a backup, as CreateBackup does, and return its ARN before anything is copied."""
    now = engine.now_micros()
    backup = engine.database.write(
        lambda connection: backups.create(connection, read_table(connection, "Things"), "daily", now, Count())
    )
    engine.catalog.forget()
    return backup.name


def begin_restore(engine: SqliteEngine) -> None:
    """Begin a restore of the newest state, and leave it to be copied."""

    def run(connection: Any) -> None:
        source = read_table(connection, "Things")
        definition = backups.restored_definition(source.definition, "Restored", engine.now_micros(), {})
        definition["Copy"] |= targets.describe_copy(source, windows.newest_sequence(connection), Scope())
        targets.add_target(connection, source, "Restored", definition)

    engine.database.write(run)
    engine.catalog.forget()


def items_of(engine: SqliteEngine, arn: str) -> list[str]:
    engine.call("RestoreTableFromBackup", {"BackupArn": arn, "TargetTableName": "Back"})
    targets.complete(engine, "Back")
    found = [item["pk"]["S"] for item in engine.call("Scan", {"TableName": "Back"})["Items"]]
    engine.call("DeleteTable", {"TableName": "Back"})
    return sorted(found)


def code(engine: SqliteEngine, operation: str, **members: Any) -> str:
    with pytest.raises(ServiceError) as caught:
        engine.call(operation, members)
    return caught.value.code


def test_a_backup_has_the_moment_of_its_request_although_writers_go_on() -> None:
    with opened() as engine:
        create(engine)
        for name in "123":
            put(engine, name)
        arn = begin_backup(engine)
        put(engine, "4")
        engine.call("DeleteItem", {"TableName": "Things", "Key": {"pk": {"S": "1"}}})
        put(engine, "2", text={"S": "changed"})
        assert code(engine, "DeleteTable", TableName="Things") == "ResourceInUseException"
        assert code(engine, "DeleteBackup", BackupArn=arn) == "BackupInUseException"
        assert (
            code(engine, "RestoreTableFromBackup", BackupArn=arn, TargetTableName="Bck")
            == "BackupInUseException"
        )
        targets.fill(engine, arn)
        assert items_of(engine, arn) == ["1", "2", "3"]
        assert keys(engine) == ["2", "3", "4"]


def test_a_table_without_continuous_backups_records_only_while_it_is_copied() -> None:
    with opened() as engine:
        create(engine)
        put(engine, "1")
        arn = begin_backup(engine)
        put(engine, "2")
        assert changes(engine) == 1
        targets.fill(engine, arn)
        put(engine, "3")
        assert changes(engine) == 1
        engine.sweep()
        assert changes(engine) == 0


def test_a_large_table_is_copied_in_a_thread(tmp_path: Path) -> None:
    path = tmp_path / "big.db"
    with opened(path) as engine:
        create(engine, types={"g": "S"}, gsi=[index("by-g", "g")])
        requests = [
            {"PutRequest": {"Item": {"pk": {"S": f"{n:05d}"}, "g": {"S": "x"}}}} for n in range(1_200)
        ]
        for start in range(0, 1_200, 25):
            engine.call("BatchWriteItem", {"RequestItems": {"Things": requests[start : start + 25]}})
        engine.call("UpdateContinuousBackups", recovery("Things"))
        arn = engine.call("CreateBackup", {"TableName": "Things", "BackupName": "one"})["BackupDetails"][
            "BackupArn"
        ]
        targets.wait(engine, HANG_SECONDS)
        details = engine.call("DescribeBackup", {"BackupArn": arn})["BackupDescription"]["BackupDetails"]
        assert details["BackupStatus"] == "AVAILABLE"
        asked = {"SourceTableName": "Things", "TargetTableName": "Restored", "UseLatestRestorableTime": True}
        engine.call("RestoreTableToPointInTime", asked)
        targets.wait(engine, HANG_SECONDS)
        described = engine.call("DescribeTable", {"TableName": "Restored"})["Table"]
        assert (described["TableStatus"], described["ItemCount"]) == ("ACTIVE", 1_200)
        assert described["GlobalSecondaryIndexes"][0]["ItemCount"] == 1_200
    assert examine(str(path)).problems == []


def test_a_table_that_is_being_restored_answers_as_awss_does() -> None:
    with opened() as engine:
        create(engine)
        put(engine, "1")
        engine.call("UpdateContinuousBackups", recovery("Things"))
        begin_restore(engine)
        described = engine.call("DescribeTable", {"TableName": "Restored"})["Table"]
        assert described["TableStatus"] == "CREATING"
        assert described["RestoreSummary"]["RestoreInProgress"] is True
        missing, absent = "ResourceNotFoundException", "TableNotFoundException"
        assert code(engine, "Scan", TableName="Restored") == missing
        assert code(engine, "PutItem", TableName="Restored", Item={"pk": {"S": "1"}}) == missing
        assert code(engine, "TagResource", ResourceArn=ARN, Tags=[{"Key": "a", "Value": "b"}]) == missing
        assert code(engine, "DescribeTimeToLive", TableName="Restored") == missing
        assert code(engine, "UpdateTable", TableName="Restored", DeletionProtectionEnabled=True) == missing
        assert code(engine, "DescribeContinuousBackups", TableName="Restored") == absent
        assert code(engine, "CreateBackup", TableName="Restored", BackupName="one") == absent
        assert code(engine, "UpdateContinuousBackups", **recovery("Restored")) == absent
        assert code(engine, "DeleteTable", TableName="Restored") == "ResourceInUseException"
        again = {"SourceTableName": "Things", "TargetTableName": "Restored", "UseLatestRestorableTime": True}
        assert code(engine, "RestoreTableToPointInTime", **again) == "TableInUseException"
        targets.fill(engine, "Restored")
        described = engine.call("DescribeTable", {"TableName": "Restored"})["Table"]
        assert described["TableStatus"] == "ACTIVE"
        assert "RestoreSummary" not in described


def test_disabling_continuous_backups_does_not_harm_a_restore_in_progress() -> None:
    with opened() as engine:
        create(engine)
        for name in "123":
            put(engine, name)
        engine.call("UpdateContinuousBackups", recovery("Things"))
        put(engine, "4")
        begin_restore(engine)
        engine.call("DeleteItem", {"TableName": "Things", "Key": {"pk": {"S": "1"}}})
        engine.call("UpdateContinuousBackups", recovery("Things", on=False))
        engine.call("DeleteItem", {"TableName": "Things", "Key": {"pk": {"S": "2"}}})
        engine.sweep()
        targets.fill(engine, "Restored")
        found = [item["pk"]["S"] for item in engine.call("Scan", {"TableName": "Restored"})["Items"]]
        assert sorted(found) == ["1", "2", "3", "4"]
        engine.sweep()
        assert changes(engine) == 0


def test_the_next_engine_continues_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "things.db"
    with opened(path) as engine:
        create(engine)
        for name in "123":
            put(engine, name)
        arn = begin_backup(engine)
        put(engine, "4")
    with opened(path) as engine:
        targets.wait(engine, HANG_SECONDS)
        assert items_of(engine, arn) == ["1", "2", "3"]


def test_a_deleted_table_comes_back_and_its_name_can_be_used_again() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine)
        engine.call("UpdateContinuousBackups", recovery("Things"))
        put(engine, "1")
        engine.call("DeleteTable", {"TableName": "Things"})
        create(engine)
        put(engine, "2")
        engine.call("UpdateContinuousBackups", recovery("Things"))
        engine.call("DeleteTable", {"TableName": "Things"})
        assert engine.call("ListTables", {})["TableNames"] == []
        found = engine.call("ListBackups", {"BackupType": "SYSTEM"})["BackupSummaries"]
        assert len({each["TableId"] for each in found}) == 2
        assert [items_of(engine, each["BackupArn"]) for each in found] == [["1"], ["2"]]
        arn = found[0]["BackupArn"]
        with pytest.raises(ServiceError, match="User is not allowed to delete the system backup"):
            engine.call("DeleteBackup", {"BackupArn": arn})
        clock.move(34 * DAY)
        engine.sweep()
        assert len(engine.call("ListBackups", {"BackupType": "ALL"})["BackupSummaries"]) == 2
        clock.move(2 * DAY)
        engine.sweep()
        assert engine.call("ListBackups", {"BackupType": "ALL"})["BackupSummaries"] == []


def test_a_table_without_continuous_backups_is_deleted_for_good() -> None:
    with opened() as engine:
        create(engine)
        engine.call("DeleteTable", {"TableName": "Things"})
        assert engine.call("ListBackups", {"BackupType": "ALL"})["BackupSummaries"] == []


def test_no_request_reaches_a_backup() -> None:
    with opened() as engine:
        create(engine)
        put(engine, "1")
        arn = engine.call("CreateBackup", {"TableName": "Things", "BackupName": "one"})["BackupDetails"][
            "BackupArn"
        ]
        assert engine.call("ListTables", {})["TableNames"] == ["Things"]
        for operation in ("Scan", "DescribeTable", "DeleteTable"):
            assert code(engine, operation, TableName=arn) == "ValidationException"


def test_pages_of_backups_continue_also_behind_a_deleted_one() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine)
        made = []
        for _ in range(3):
            reply = engine.call("CreateBackup", {"TableName": "Things", "BackupName": "one"})
            made.append(reply["BackupDetails"]["BackupArn"])
            clock.move(1)
        first = engine.call("ListBackups", {"Limit": 1})
        engine.call("DeleteBackup", {"BackupArn": made[0]})
        rest = engine.call("ListBackups", {"ExclusiveStartBackupArn": first["LastEvaluatedBackupArn"]})
        assert [each["BackupArn"] for each in rest["BackupSummaries"]] == made[1:]
        at = rest["BackupSummaries"][0]["BackupCreationDateTime"]
        for bounds, expected in (
            ({"TimeRangeLowerBound": at}, made[1:]),
            ({"TimeRangeUpperBound": at}, []),
            ({"TimeRangeUpperBound": at + 0.001}, made[1:2]),
        ):
            found = engine.call("ListBackups", bounds)["BackupSummaries"]
            assert [each["BackupArn"] for each in found] == expected
