"""The sweeper: what expires, what does not, and what it leaves behind."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from solotable._protocol.requests import PutItem
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.file.pacing import BatchPacer
from solotable.engines.sqlite.items import expiry_index
from solotable.engines.sqlite.maintenance import index_backfill, ttl_sweeper
from solotable.engines.sqlite.maintenance.checkup import examine
from tests.conformance.tables import index
from tests.waiting import HANG_SECONDS

from .clocked import DAY, HOUR, START, Clock, create, keys, opened, put
from .work import Steps

SETTING = {"TableName": "Things", "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True}}
NEW_AND_OLD = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


def expiring(clock: Clock, **more: object) -> SqliteEngine:
    engine = opened(clock=clock)
    create(engine, **more)
    enable(engine)
    return engine


def enable(engine: SqliteEngine) -> None:
    engine.call("UpdateTimeToLive", SETTING)


def at(seconds: float) -> dict[str, str]:
    return {"N": str(int(seconds))}


def test_an_item_goes_once_its_time_has_passed() -> None:
    clock = Clock()
    with expiring(clock) as engine:
        put(engine, "soon", expires=at(START + 10))
        put(engine, "later", expires=at(START + DAY))
        assert engine.sweep() == 0
        clock.move(11)
        assert engine.sweep() == 1
        assert keys(engine) == ["later"]


def test_only_numbers_expire_and_only_at_the_top() -> None:
    with expiring(Clock()) as engine:
        put(engine, "text", expires={"S": str(int(START - 10))})
        put(engine, "none")
        put(engine, "nested", inner={"M": {"expires": at(START - 10)}})
        put(engine, "other", expired=at(START - 10))
        assert engine.sweep() == 0


def test_an_item_five_years_late_stays() -> None:
    with expiring(Clock()) as engine:
        put(engine, "old", expires=at(START - 5 * 365 * DAY - 10))
        put(engine, "millis", expires=at(START * 1000))
        put(engine, "late", expires=at(START - 4 * 365 * DAY))
        assert engine.sweep() == 1
        assert keys(engine) == ["millis", "old"]


def test_a_table_without_time_to_live_is_not_swept() -> None:
    with opened() as engine:
        create(engine)
        put(engine, "past", expires=at(START - 10))
        assert engine.sweep() == 0


def test_an_index_loses_what_expired() -> None:
    with expiring(Clock(), types={"g": "S"}, gsi=[index("byg", "g")]) as engine:
        put(engine, "past", g={"S": "x"}, expires=at(START - 10))
        put(engine, "kept", g={"S": "x"})
        assert engine.sweep() == 1
        assert keys(engine, IndexName="byg") == ["kept"]


def test_more_items_than_one_batch_expire() -> None:
    with expiring(Clock()) as engine:
        for place in range(250):
            put(engine, f"{place}", expires=at(START - 10))
        assert engine.sweep() == 250
        assert keys(engine) == []


def test_the_stream_says_that_the_service_did_it() -> None:
    with expiring(Clock(), StreamSpecification=NEW_AND_OLD) as engine:
        put(engine, "past", expires=at(START - 10))
        engine.sweep()
        (stream,) = engine.call("ListStreams", {})["Streams"]
        arn = {"StreamArn": stream["StreamArn"]}
        (shard,) = engine.call("DescribeStream", arn)["StreamDescription"]["Shards"]
        place = {**arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        inserted, removed = engine.call("GetRecords", engine.call("GetShardIterator", place))["Records"]
        assert "userIdentity" not in inserted
        assert removed["eventName"] == "REMOVE"
        assert removed["userIdentity"] == {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}


def test_an_item_that_got_more_time_during_the_sweep_stays() -> None:
    with expiring(Clock()) as engine:
        put(engine, "past", expires=at(START - 10))
        with engine.database.read() as connection:
            found = ttl_sweeper._due(connection, engine.table("Things"), (0, 0), START, 10)
        assert len(found) == 1
        put(engine, "past", expires=at(START + DAY))
        assert ttl_sweeper._remove(engine, "Things", found, BatchPacer(engine.database)) == 0
        assert keys(engine) == ["past"]


def changes(engine: SqliteEngine) -> int:
    with engine.database.read() as connection:
        asked = "SELECT count(*) FROM changes WHERE old IS NOT NULL OR new IS NOT NULL"
        return int(connection.execute(asked).fetchone()[0])


def test_changes_are_kept_for_a_day() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine, StreamSpecification=NEW_AND_OLD)
        put(engine, "1")
        clock.move(23 * HOUR)
        put(engine, "2")
        engine.sweep()
        assert changes(engine) == 2
        clock.move(2 * HOUR)
        engine.sweep()
        assert changes(engine) == 1


def test_changes_are_kept_longer_when_the_table_can_be_brought_back() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine)
        engine.call(
            "UpdateContinuousBackups",
            {
                "TableName": "Things",
                "PointInTimeRecoverySpecification": {
                    "PointInTimeRecoveryEnabled": True,
                    "RecoveryPeriodInDays": 3,
                },
            },
        )
        put(engine, "1")
        clock.move(2 * DAY)
        engine.sweep()
        assert changes(engine) == 1
        clock.move(2 * DAY)
        engine.sweep()
        assert changes(engine) == 0


def test_no_sequence_number_is_given_out_twice_though_every_change_was_trimmed() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine, StreamSpecification=NEW_AND_OLD)
        for name in "123":
            put(engine, name)
        clock.move(2 * DAY)
        engine.sweep()
        engine.sweep()
        assert changes(engine) == 0
        put(engine, "4")
        with engine.database.read() as connection:
            rows = connection.execute(
                "SELECT sequence, new IS NULL FROM changes ORDER BY sequence"
            ).fetchall()
        # The last number is kept, and nothing of what it was about.
        assert rows == [(3, 1), (4, 0)]
        clock.move(2 * DAY)
        engine.sweep()
        with engine.database.read() as connection:
            assert connection.execute("SELECT sequence FROM changes").fetchall() == [(4,)]


def test_tokens_are_forgotten_after_their_time() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine)
        write = {"Put": {"TableName": "Things", "Item": {"pk": {"S": "1"}}}}
        engine.call("TransactWriteItems", {"TransactItems": [write], "ClientRequestToken": "once"})
        clock.move(HOUR)
        engine.sweep()
        with engine.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM tokens").fetchone() == (0,)


def test_a_sweep_costs_what_expires_and_not_what_is_there(tmp_path: Path) -> None:
    taken = []
    for items in (1_000, 20_000):
        clock, steps = Clock(), Steps()
        path = str(tmp_path / f"{items}.db")
        with SqliteEngine(path, durability="relaxed", clock=clock, connect=steps.connect) as engine:
            create(engine)
            enable(engine)
            fill(engine, items)
            engine.sweep()
            nothing, removed = steps.of(engine.sweep)
            assert removed == 0
            for place in range(10):
                put(engine, f"past {place}", expires=at(START - place - 1))
            ten, removed = steps.of(engine.sweep)
            assert removed == 10
            taken.append((nothing, ten))
    few, many = taken
    assert many[0] <= few[0] + 2
    assert many[1] <= few[1] + 20


def fill(engine: SqliteEngine, items: int) -> None:
    """Put many items that expire later, in few transactions."""
    for first in range(0, items, 1_000):
        engine.handle_together(
            [
                PutItem(table="Things", item={"pk": {"S": f"{place}"}, "expires": at(START + DAY + place)})
                for place in range(first, min(first + 1_000, items))
            ]
        )


def test_the_sweep_searches_the_expiry_index_in_order() -> None:
    with expiring(Clock()) as engine:
        index_ = engine.table("Things").expiry
        assert index_ is not None
        with engine.database.read() as connection:
            plan = connection.execute(
                f"EXPLAIN QUERY PLAN {expiry_index.due_sql(index_)}", (0, 0, 1, 1)
            ).fetchall()
    (only,) = [row[3] for row in plan]
    assert only.startswith(f"SEARCH e{index_.id} USING PRIMARY KEY")


def entries(engine: SqliteEngine) -> list[tuple[int, int]]:
    with engine.database.read() as connection:
        (name,) = connection.execute("SELECT name FROM sqlite_master WHERE name GLOB 'e[0-9]*'").fetchone()
        return connection.execute(f"SELECT second, row FROM {name}").fetchall()


def test_the_expiry_index_follows_every_write(tmp_path: Path) -> None:
    dice = random.Random(5)
    times = ["1800000000", "1.5", "-7", "1E+100", "-9.9E+125", "99999999999999999999", "1800000000.25"]
    path = tmp_path / "db"
    with opened(path) as engine:
        create(engine)
        enable(engine)
        for _ in range(300):
            key = str(dice.randrange(20))
            match dice.randrange(4):
                case 0:
                    engine.call("DeleteItem", {"TableName": "Things", "Key": {"pk": {"S": key}}})
                case 1:
                    put(engine, key, expires={"S": "never"})
                case _:
                    put(engine, key, expires={"N": dice.choice(times)}, n={"N": str(dice.random())[:9]})
    assert examine(str(path)).problems == []


def test_a_fraction_of_a_second_counts() -> None:
    clock = Clock()
    with expiring(clock) as engine:
        put(engine, "half", expires={"N": str(START + 0.5)})
        clock.move(0.25)
        assert engine.sweep() == 0
        clock.move(0.5)
        assert engine.sweep() == 1


def status(engine: SqliteEngine) -> str:
    description = engine.call("DescribeTimeToLive", {"TableName": "Things"})["TimeToLiveDescription"]
    return str(description["TimeToLiveStatus"])


def test_a_large_table_s_expiry_index_is_filled_behind_the_caller_s_back(tmp_path: Path) -> None:
    with opened(tmp_path / "db", Clock()) as engine:
        create(engine)
        fill(engine, 2_000)
        for place in range(100):
            put(engine, f"past {place}", expires=at(START - 10))
        engine.call("UpdateTimeToLive", SETTING)
        assert status(engine) in ("ENABLING", "ENABLED")
        put(engine, "past 0", expires=at(START + DAY))
        index_backfill.wait(engine, HANG_SECONDS)
        assert status(engine) == "ENABLED"
        assert len(entries(engine)) == 2_100
        assert engine.sweep() == 99
    assert examine(str(tmp_path / "db")).problems == []


def test_a_filling_that_was_killed_goes_on_when_the_file_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path, Clock()) as engine:
        create(engine)
        fill(engine, 2_000)
        put(engine, "past", expires=at(START - 10))
    program = (
        "import os, signal, sys\n"
        "from solotable.engines import sqlite\n"
        "from solotable.engines.sqlite.file.pacing import BatchPacer\n"
        "from tests.unit.engines.sqlite.test_ttl_sweeper import SETTING\n"
        "# After the first slice, and before the second.\n"
        "BatchPacer.yield_to_writers = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        "engine = sqlite.open(sys.argv[1], durability='relaxed')\n"
        "engine.call('UpdateTimeToLive', SETTING)\n"
        "from solotable.engines.sqlite.maintenance import index_backfill\n"
        "index_backfill.wait(engine)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL  # noqa: S603  # the program above
    with opened(path, Clock()) as engine:
        index_backfill.wait(engine, HANG_SECONDS)
        assert status(engine) == "ENABLED"
        assert len(entries(engine)) == 2_001
        assert engine.sweep() == 1


def test_the_expiry_index_goes_with_the_setting_and_with_the_table() -> None:
    with expiring(Clock()) as engine:
        put(engine, "1", expires=at(START + 10))
        off = {**SETTING, "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": False}}
        engine.call("UpdateTimeToLive", off)
        assert expiry_tables(engine) == 0
        put(engine, "2", other=at(START - 10))
        other = {**SETTING, "TimeToLiveSpecification": {"AttributeName": "other", "Enabled": True}}
        engine.call("UpdateTimeToLive", other)
        assert len(entries(engine)) == 1
        assert engine.sweep() == 1
        engine.call("DeleteTable", {"TableName": "Things"})
        assert expiry_tables(engine) == 0


def expiry_tables(engine: SqliteEngine) -> int:
    with engine.database.read() as connection:
        found = connection.execute("SELECT count(*) FROM sqlite_master WHERE name GLOB 'e[0-9]*'")
        return int(found.fetchone()[0])


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("DELETE FROM {}", "expiry index: 1 items have no entry"),
        ("INSERT INTO {} VALUES (7, 1)", "expiry index: 1 entries do not point to an item with that time"),
        ("INSERT INTO {} VALUES (1800000010, 99)", "expiry index: 1 entries do not point to an item"),
    ],
)
def test_the_doctor_compares_the_expiry_index_with_the_items(
    damage: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "db"
    with opened(path, Clock()) as engine:
        create(engine)
        enable(engine)
        put(engine, "1", expires=at(START + 10))
        index_ = engine.table("Things").expiry
        assert index_ is not None
        engine.database.write(lambda connection: connection.execute(damage.format(f"e{index_.id}")))
        # An entry that leads astray removes nothing.
        assert engine.sweep() == 0
    (found,) = examine(str(path)).problems
    assert problem in found
