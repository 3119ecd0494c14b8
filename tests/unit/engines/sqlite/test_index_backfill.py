"""The filling of a new index: behind the caller's back, beside writers, and after a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.file.pacing import BatchPacer
from solotable.engines.sqlite.maintenance import index_backfill
from solotable.engines.sqlite.operations.tables import index_updates
from solotable.engines.sqlite.tables import definitions
from solotable.errors import ServiceError
from tests.conformance.tables import index
from tests.waiting import wait_until

from .clocked import Json, create, described, keys, opened, put

ADD: Json = {
    "TableName": "Things",
    "AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}],
    "GlobalSecondaryIndexUpdates": [{"Create": index("byg", "g")}],
}
MANY = 2_500


def filled(engine: SqliteEngine, items: int = MANY) -> None:
    for first in range(0, items, 25):
        puts = [
            {"PutRequest": {"Item": {"pk": {"S": f"{place:05d}"}, "g": {"S": "x"}}}}
            for place in range(first, min(first + 25, items))
        ]
        engine.call("BatchWriteItem", {"RequestItems": {"Things": puts}})


def status(engine: SqliteEngine) -> str:
    (only,) = described(engine)["GlobalSecondaryIndexes"]
    return str(only["IndexStatus"])


def defined_only(engine: SqliteEngine) -> int:
    """Add the index as a process does that is killed before it fills it."""
    definitions.change_definition(
        engine, "Things", lambda _connection, _table, new: index_updates.apply(new, ADD)
    )
    return definitions.load_current_table(engine, "Things").index("byg").id


def wait_until_active(engine: SqliteEngine) -> None:
    wait_until(lambda: status(engine) == "ACTIVE", seen=lambda: status(engine))


def test_a_small_table_s_index_is_ready_when_the_answer_comes() -> None:
    with opened() as engine:
        create(engine)
        filled(engine, 100)
        answer = engine.call("UpdateTable", ADD)["TableDescription"]["GlobalSecondaryIndexes"][0]
        assert (answer["IndexStatus"], answer["Backfilling"]) == ("CREATING", True)
        assert len(keys(engine, IndexName="byg")) == 100
        assert "Backfilling" not in described(engine)["GlobalSecondaryIndexes"][0]


@pytest.mark.parametrize("where", ["memory", "file"])
def test_a_larger_table_s_index_is_filled_while_it_is_written(where: str, tmp_path: Path) -> None:
    with opened(":memory:" if where == "memory" else tmp_path / "db") as engine:
        create(engine)
        filled(engine)
        engine.call("UpdateTable", ADD)
        for place in range(0, MANY, 50):
            put(engine, f"{place:05d}")
        put(engine, "new", g={"S": "x"})
        wait_until_active(engine)
        assert len(keys(engine, IndexName="byg")) == MANY - MANY // 50 + 1


def test_an_index_that_is_being_filled_cannot_be_read() -> None:
    with opened() as engine:
        create(engine)
        put(engine, "1", g={"S": "x"})
        defined_only(engine)
        with pytest.raises(ServiceError, match="Cannot read from backfilling global secondary index: byg"):
            engine.call("Scan", {"TableName": "Things", "IndexName": "byg"})


def test_a_second_index_waits_for_the_first() -> None:
    with opened() as engine:
        create(engine)
        defined_only(engine)
        with pytest.raises(ServiceError) as refused:
            engine.call(
                "UpdateTable", {**ADD, "GlobalSecondaryIndexUpdates": [{"Create": index("again", "g")}]}
            )
        assert refused.value.code == "LimitExceededException"
        assert refused.value.retryable


def test_an_unfinished_index_goes_on_at_the_next_describe_table(tmp_path: Path) -> None:
    with opened(tmp_path / "db") as engine:
        create(engine)
        filled(engine, 700)
        unfinished = defined_only(engine)
        pace = BatchPacer(engine.database)
        engine.database.write(
            lambda connection: index_backfill._batch(connection, "Things", unfinished, after=0, pace=pace)
        )
    with opened(tmp_path / "db") as engine:
        put(engine, "00001")
        put(engine, "00699")
        assert status(engine) == "CREATING"
        wait_until_active(engine)
        assert len(keys(engine, IndexName="byg")) == 698


def test_an_engine_without_maintenance_leaves_an_unfinished_index_to_others(tmp_path: Path) -> None:
    with opened(tmp_path / "db") as engine:
        create(engine)
        filled(engine)
        defined_only(engine)
    with sqlite.open(tmp_path / "db", maintenance=False) as reader:
        assert index_backfill._running.get(reader) is None
        # Nor does it count as an engine that may still fill it.
        with opened(tmp_path / "db") as engine:
            assert engine.presence.is_first or sys.platform != "linux"
            wait_until_active(engine)


def test_an_unfinished_index_goes_on_at_the_next_sweep() -> None:
    with opened() as engine:
        create(engine)
        put(engine, "1", g={"S": "x"})
        defined_only(engine)
        engine.sweep()
        index_backfill.wait(engine)
        assert keys(engine, IndexName="byg") == ["1"]


def test_an_index_dropped_while_it_is_filled_stays_dropped() -> None:
    with opened() as engine:
        create(engine)
        put(engine, "1", g={"S": "x"})
        dropped = defined_only(engine)
        engine.call(
            "UpdateTable",
            {"TableName": "Things", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "byg"}}]},
        )
        index_backfill.fill(engine, "Things", dropped)
        assert "GlobalSecondaryIndexes" not in described(engine)


def test_a_killed_process_leaves_an_index_that_the_next_one_finishes(tmp_path: Path) -> None:
    with opened(tmp_path / "db") as engine:
        create(engine)
        filled(engine)
    program = (
        "import sys\n"
        "from solotable.engines import sqlite\n"
        "from tests.unit.engines.sqlite.test_index_backfill import ADD\n"
        "engine = sqlite.open(sys.argv[1], durability='relaxed')\n"
        "engine.call('UpdateTable', ADD)\n"
        "print('answered', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(  # noqa: S603  # the program above
        [sys.executable, "-c", program, str(tmp_path / "db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "answered\n"
        child.kill()
    with opened(tmp_path / "db") as engine:
        wait_until_active(engine)
        assert len(keys(engine, IndexName="byg")) == MANY
