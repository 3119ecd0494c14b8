"""The window of continuous backups: what it promises is there, and what it does not promise goes."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.maintenance import change_pruning
from solotable.engines.sqlite.recovery.positions import to_datetime
from solotable.engines.sqlite.recovery.restore import restore_table
from solotable.engines.sqlite.recovery.scopes import Scope
from solotable.engines.sqlite.tables import windows
from solotable.errors import RecoveryError, ServiceError
from tests.unit.engines.sqlite import layout_1
from tests.unit.engines.sqlite.clocked import DAY, START, Clock, create, keys, opened, put
from tests.unit.engines.sqlite.test_ttl_sweeper import NEW_AND_OLD, changes

from .past import recovery

SECOND = 1_000_000


def enabled(clock: Clock, path: object = ":memory:", **more: Any) -> SqliteEngine:
    engine = opened(path, clock)
    create(engine)
    engine.call("UpdateContinuousBackups", recovery("Things", **more))
    return engine


def window(engine: SqliteEngine) -> tuple[float, float]:
    """Return the first and the last restorable time, relative to the start of the clock."""
    reply = engine.call("DescribeContinuousBackups", {"TableName": "Things"})
    found = reply["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    return found["EarliestRestorableDateTime"] - START, found["LatestRestorableDateTime"] - START


def restored(engine: SqliteEngine, at: float | int) -> list[str]:
    """Return the keys at a time after the start of the clock; an int is a sequence number."""
    moment = at if isinstance(at, int) else to_datetime(int((START + at) * SECOND))
    restore_table(engine, "Things", moment, "Restored", scope=Scope())
    found = [item["pk"]["S"] for item in engine.call("Scan", {"TableName": "Restored"})["Items"]]
    engine.call("DeleteTable", {"TableName": "Restored"})
    return sorted(found)


def times(engine: SqliteEngine) -> list[int]:
    with engine.database.read() as connection:
        rows = connection.execute("SELECT at_micros FROM changes ORDER BY sequence").fetchall()
    return [at for (at,) in rows]


def set_limit(engine: SqliteEngine, limit: int) -> None:
    from solotable.engines.sqlite.tables.definitions import change_definition

    def action(_connection: object, _table: object, definition: dict[str, dict[str, int]]) -> None:
        definition["PointInTimeRecovery"]["MaxBytes"] = limit

    change_definition(engine, "Things", action)


def test_times_follow_the_order_of_commits_and_a_transaction_has_one() -> None:
    clock = Clock()
    with enabled(clock) as engine:
        put(engine, "1")
        clock.move(-100)
        put(engine, "2")
        items = [{"Put": {"TableName": "Things", "Item": {"pk": {"S": each}}}} for each in "34"]
        engine.call("TransactWriteItems", {"TransactItems": items})
        clock.move(200)
        put(engine, "5")
        first, second, third, fourth, fifth = times(engine)
        assert first < second < third == fourth < fifth
        assert restored(engine, 1.0) == ["1", "2", "3", "4"]


def test_the_window_begins_when_it_is_enabled_and_ends_now() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine)
        put(engine, "before")
        clock.move(10)
        engine.call("UpdateContinuousBackups", recovery("Things"))
        clock.move(5)
        put(engine, "after")
        assert window(engine) == (10, 15)
        assert restored(engine, 10.0) == ["before"]
        assert restored(engine, 15.0) == ["after", "before"]
        for outside in (9.0, 16.0, -DAY, 365 * DAY):
            with pytest.raises(RecoveryError, match="can be restored to times from 2027-01-15T08:00:10"):
                restored(engine, outside)
        for outside_sequence in (-1, 2):
            with pytest.raises(RecoveryError, match="to sequence 0 up to 1"):
                restored(engine, outside_sequence)


def test_the_start_of_the_window_moves_with_the_recovery_period() -> None:
    clock = Clock()
    with enabled(clock, RecoveryPeriodInDays=3) as engine:
        for name in "1234":
            put(engine, name)
            clock.move(DAY)
        engine.sweep()
        assert window(engine) == (DAY, 4 * DAY)
        assert changes(engine) == 3
        assert restored(engine, 1.0 * DAY) == ["1", "2"]
        assert restored(engine, 1.5 * DAY) == ["1", "2"]
        assert restored(engine, 3.0 * DAY) == ["1", "2", "3", "4"]
        clock.move(10 * DAY)
        engine.sweep()
        assert changes(engine) == 0
        assert restored(engine, 12.0 * DAY) == ["1", "2", "3", "4"]


def test_a_clock_that_goes_backwards_does_not_promise_what_was_pruned() -> None:
    clock = Clock()
    with enabled(clock, RecoveryPeriodInDays=1) as engine:
        put(engine, "1")
        clock.move(3 * DAY)
        put(engine, "2")
        engine.sweep()
        clock.move(-2 * DAY)
        earliest, _ = window(engine)
        assert earliest == 0
        assert restored(engine, earliest) == ["1"]
        with pytest.raises(RecoveryError):
            restored(engine, 0)


def test_disabling_and_enabling_starts_another_window() -> None:
    clock = Clock()
    with enabled(clock) as engine:
        put(engine, "1")
        clock.move(10)
        engine.call("UpdateContinuousBackups", recovery("Things", on=False))
        put(engine, "2")
        with pytest.raises(RecoveryError, match="are disabled"):
            restored(engine, 5.0)
        clock.move(10)
        engine.call("UpdateContinuousBackups", recovery("Things"))
        assert window(engine)[0] == 20
        with pytest.raises(RecoveryError):
            restored(engine, 5.0)
        put(engine, "3")
        assert restored(engine, 1) == ["1", "2"]
        engine.sweep()
        # What the first window recorded is gone.
        assert changes(engine) == 1


def test_a_limit_of_bytes_shortens_the_window_and_the_window_says_so() -> None:
    clock = Clock()
    with enabled(clock) as engine:
        for place in range(40):
            put(engine, "same", text={"S": f"{place:03d}" * 300})
            clock.move(1)
        engine.sweep()
        assert window(engine)[0] == 0
        set_limit(engine, 10_000)
        engine.sweep()
        earliest, latest = window(engine)
        assert 20 < earliest < latest == 40
        with engine.database.read() as connection:
            found = windows.find(connection, stream(engine))
        assert found is not None
        assert change_pruning.log_bytes(engine, found) <= 10_000
        assert restored(engine, earliest) == ["same"]
        with pytest.raises(RecoveryError):
            restored(engine, earliest - 1)
        put(engine, "same", text={"S": "x" * 900})
        assert 900 < change_pruning.log_bytes(engine, found) <= 11_100


def stream(engine: SqliteEngine) -> str:
    return str(engine.table("Things").definition["TableId"])


def test_a_limit_of_bytes_leaves_a_stream_its_day() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine, StreamSpecification=NEW_AND_OLD)
        engine.call("UpdateContinuousBackups", recovery("Things"))
        for place in range(20):
            put(engine, str(place), text={"S": "x" * 900})
        set_limit(engine, 1)
        engine.sweep()
        assert changes(engine) == 20
        with pytest.raises(RecoveryError):
            restored(engine, 1)
        clock.move(DAY + 1)
        engine.sweep()
        assert changes(engine) == 0


def test_pruning_in_batches_moves_the_window_with_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_pruning, "BATCH", 3)
    clock = Clock()
    with enabled(clock, RecoveryPeriodInDays=1) as engine:
        for place in range(20):
            put(engine, f"{place:02d}")
        clock.move(2 * DAY)
        put(engine, "new")
        engine.sweep()
        assert changes(engine) == 1
        assert restored(engine, 20) == [f"{place:02d}" for place in range(20)]


def test_a_window_without_a_stream_stores_each_image_once() -> None:
    with enabled(Clock()) as engine:
        put(engine, "1", text={"S": "x" * 100})
        put(engine, "1", text={"S": "y" * 100})
        with engine.database.read() as connection:
            rows = connection.execute("SELECT length(old), length(new) FROM changes").fetchall()
        assert rows[0][0] is None
        assert [new for _, new in rows] == [4, 4]


def test_s2_16_a_file_of_an_older_release_gets_a_window_when_it_is_enabled(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with opened(clock=Clock()) as engine:
        create(engine)
        put(engine, "1")
        layout_1.write(engine, path)
    clock = Clock()
    with opened(path, clock) as engine:
        with pytest.raises(RecoveryError, match="are disabled"):
            restored(engine, 0)
        engine.call("UpdateContinuousBackups", recovery("Things"))
        put(engine, "2")
        assert restored(engine, 0) == ["1"]
        assert keys(engine) == ["1", "2"]


def test_a_file_of_layout_2_with_continuous_backups_keeps_its_window(tmp_path: Path) -> None:
    path, clock = tmp_path / "old.db", Clock()
    with enabled(clock, path) as engine:
        put(engine, "1")
        clock.move(10)
        put(engine, "2")
    file = sqlite3.connect(path)
    file.executescript(
        "DROP TABLE transfers; DROP TABLE recovery; DROP INDEX changes_by_stream; "
        "CREATE INDEX changes_by_stream ON changes (stream, sequence); PRAGMA user_version = 2"
    )
    file.close()
    with opened(path, clock) as engine:
        assert window(engine) == (0, 10)
        assert restored(engine, 5.0) == ["1"]
        assert restored(engine, 0.0) == ["1"]
        assert restored(engine, 0) == []


def test_a_table_that_is_read_only_and_old_still_describes_its_window(tmp_path: Path) -> None:
    path, clock = tmp_path / "old.db", Clock()
    enabled(clock, path).close()
    file = sqlite3.connect(path)
    file.executescript("DROP TABLE transfers; DROP TABLE recovery; PRAGMA user_version = 2")
    file.close()
    with SqliteEngine(str(path), read_only=True, clock=clock) as engine:
        assert window(engine) == (0, 0)


def test_the_wire_rejects_a_time_outside_the_window() -> None:
    clock = Clock()
    with enabled(clock) as engine:
        clock.move(60)
        for seconds in (-1, 61):
            with pytest.raises(ServiceError) as caught:
                engine.call(
                    "RestoreTableToPointInTime",
                    {
                        "SourceTableName": "Things",
                        "TargetTableName": "Restored",
                        "RestoreDateTime": START + seconds,
                    },
                )
            assert caught.value.code == "InvalidRestoreTimeException"
            assert "'2027-01-15T08:00:00Z'" in caught.value.message
            assert "'2027-01-15T08:01:00Z'" in caught.value.message
