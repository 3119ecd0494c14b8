"""Restores across changes of a table: indexes added and deleted, expired items, a table created again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from solotable.engines.sqlite.maintenance.checkup import examine
from solotable.engines.sqlite.recovery.in_place import apply_preview, make_preview
from solotable.engines.sqlite.recovery.restore import restore_table
from solotable.engines.sqlite.recovery.scopes import Scope
from solotable.errors import RecoveryError, ServiceError
from tests.conformance.tables import index, table
from tests.unit.engines.sqlite.clocked import Clock, opened

from .past import newest, recovery
from .things import first, rows, write

Json = dict[str, Any]


def test_items_older_than_an_index_are_restored_in_place_without_an_entry(path: Path, clock: Clock) -> None:
    olds: dict[str, Json] = {
        "number": {"g": {"N": "1"}},
        "empty": {"g": {"S": ""}},
        "long": {"g": {"S": "x" * 3000}},
        "list": {"g": {"L": []}},
        "none": {},
        "good": {"g": {"S": "old"}},
    }
    with opened(path, clock) as engine:
        for key, attributes in olds.items():
            write(engine, key, **attributes)
        before, position = rows(engine), newest(engine)
        for key in olds:
            write(engine, key, g={"S": "new"})
        change = {"Create": {**index("by-g", "g")}}
        engine.call(
            "UpdateTable",
            {
                "TableName": "Things",
                "AttributeDefinitions": [
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "g", "AttributeType": "S"},
                ],
                "GlobalSecondaryIndexUpdates": [change],
            },
        )
        assert len(rows(engine, IndexName="by-g")) == 6
        restore_table(engine, "Things", position, "Restored", scope=Scope())
        assert rows(engine, "Restored") == before
        assert sorted(rows(engine, "Restored", IndexName="by-g")) == ["good"]
        done = apply_preview(engine, make_preview(engine, "Things", position, Scope()))
        assert done.written == 6
        assert rows(engine) == before
        assert sorted(rows(engine, IndexName="by-g")) == ["good"]
        for key in olds:
            engine.call("DeleteItem", {"TableName": "Things", "Key": {"pk": {"S": key}}})
        assert rows(engine, IndexName="by-g") == {}
        described = engine.call("DescribeTable", {"TableName": "Things"})["Table"]
        assert described["GlobalSecondaryIndexes"][0]["ItemCount"] == 0
        apply_preview(engine, make_preview(engine, "Things", position, Scope()))
        assert sorted(rows(engine, IndexName="by-g")) == ["good"]
        engine.call(
            "UpdateTable",
            {"TableName": "Things", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-g"}}]},
        )
        restore_table(engine, "Things", position, "Later", scope=Scope())
        assert rows(engine, "Later") == before
    assert examine(str(path)).problems == []


def test_items_that_expired_within_the_window_are_restored(path: Path, clock: Clock) -> None:
    with opened(path, clock) as engine:
        live = {"TableName": "Things", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"}}
        engine.call("UpdateTimeToLive", live)
        write(engine, "mortal", ttl={"N": str(int(clock()) + 60)})
        position = newest(engine)
        clock.move(3600)
        assert engine.sweep() == 1
        restore_table(engine, "Things", position, "Restored", scope=Scope())
        engine.sweep()
        assert list(rows(engine, "Restored")) == ["mortal"]
        done = apply_preview(engine, make_preview(engine, "Things", position, Scope()))
        assert done.written == 1
        # It has expired: the time to live removes it again, and a table restored beside it keeps it.
        assert engine.sweep() == 1
        assert rows(engine) == {}
    assert examine(str(path)).problems == []


def test_a_table_that_was_created_again_has_no_state_of_its_namesake(path: Path, clock: Clock) -> None:
    with opened(path, clock) as engine:
        position = write(engine, "old")
        clock.move(10)
        engine.call("DeleteTable", {"TableName": "Things"})
        clock.move(10)
        engine.call("CreateTable", table("Things", "pk:S"))
        with pytest.raises(RecoveryError, match="disabled"):
            restore_table(engine, "Things", position, "Restored", scope=Scope())
        engine.call("UpdateContinuousBackups", recovery("Things"))
        write(engine, "new")
        with pytest.raises(ServiceError):
            engine.call(
                "RestoreTableToPointInTime",
                {
                    "SourceTableName": "Things",
                    "TargetTableName": "Restored",
                    "RestoreDateTime": clock() - 15,
                },
            )
        restore_table(engine, "Things", first(engine), "Restored", scope=Scope())
        assert rows(engine, "Restored") == {}
        backups = engine.call("ListBackups", {"BackupType": "ALL"})["BackupSummaries"]
        assert len(backups) == 1
        engine.call(
            "RestoreTableFromBackup", {"BackupArn": backups[0]["BackupArn"], "TargetTableName": "Old"}
        )
        assert list(rows(engine, "Old")) == ["old"]
        engine.sweep()
        assert list(rows(engine)) == ["new"]
