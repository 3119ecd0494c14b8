"""Counts of items and bytes: exact, at a constant cost, across processes, kills and recounts."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from solotable import Table
from solotable._connect import over
from solotable._protocol.engine import TooLong
from solotable._protocol.requests import DeleteItem, PutItem
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.counts import counts, recount
from solotable.engines.sqlite.counts.counts import Counts
from solotable.engines.sqlite.maintenance.checkup import examine
from solotable.engines.sqlite.tables import catalog
from solotable.errors import EngineError
from tests.conformance.tables import TABLES, index
from tests.waiting import HANG_SECONDS

from .clocked import Json, create, described, opened, put
from .faulty import Faults, failing, fault, once
from .test_index_backfill import ADD, defined_only, filled, wait_until_active
from .work import Steps

GSI = [
    index("all", "g"),
    index("keys", "g", projection="KEYS_ONLY"),
    index("some", "g", "h", projection="INCLUDE", include=["more"]),
]
TYPES = {"g": "S", "h": "N"}


def counted(engine: SqliteEngine) -> Counts:
    """What a reading of every item finds."""
    with engine.database.snapshot() as connection:
        table = catalog.Catalog().table(connection, "Things")
        return counts.recount(connection, table)


def kept(engine: SqliteEngine) -> Counts:
    """What the engine says without reading any."""
    return engine.pending_counts.read(engine.table("Things"))


def in_file(path: Path) -> Counts:
    """What the file has, without the deltas that an engine has yet to add."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT index_id, items, bytes FROM counts")
        found = {index_id: counts.Count(items, size) for index_id, items, size in rows}
    connection.close()
    return found


def sessions(path: Path) -> int:
    connection = sqlite3.connect(path)
    (found,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
    connection.close()
    return int(found)


def write_something(engine: SqliteEngine, dice: random.Random) -> None:
    key = {"pk": {"S": str(dice.randrange(30))}}
    values: Json = {
        "g": {"S": "x" * dice.randrange(1, 4)},
        "h": {"N": str(dice.randrange(1000))},
        "more": {"S": "y" * dice.randrange(9)},
        "rest": {"S": "z" * dice.randrange(99)},
    }
    item = key | {name: value for name, value in values.items() if dice.random() < 0.7}
    match dice.randrange(6):
        case 0:
            engine.call("DeleteItem", {"TableName": "Things", "Key": key})
        case 1:
            name, value = dice.choice(list(values.items()))
            update = {"UpdateExpression": f"SET #n = {':v'}", "ExpressionAttributeNames": {"#n": name}}
            engine.call(
                "UpdateItem",
                {"TableName": "Things", "Key": key, **update, "ExpressionAttributeValues": {":v": value}},
            )
        case 2:
            removal = {"UpdateExpression": "REMOVE g, #r", "ExpressionAttributeNames": {"#r": "rest"}}
            engine.call("UpdateItem", {"TableName": "Things", "Key": key, **removal})
        case 3:
            writes = [
                {"Put": {"TableName": "Things", "Item": item}},
                {"Delete": {"TableName": "Things", "Key": {"pk": {"S": str(dice.randrange(30, 40))}}}},
            ]
            engine.call("TransactWriteItems", {"TransactItems": writes})
        case 4:
            engine.handle_together(
                [PutItem(table="Things", item=item), DeleteItem(table="Things", key={"pk": {"S": "7"}})]
            )
        case _:
            engine.call("PutItem", {"TableName": "Things", "Item": item})


@pytest.mark.parametrize("where", ["memory", "file"])
def test_counts_are_those_of_the_items_after_any_writes(where: str, tmp_path: Path) -> None:
    dice = random.Random(7)
    with opened(":memory:" if where == "memory" else tmp_path / "db") as engine:
        create(engine, types=TYPES, gsi=GSI)
        for _ in range(12):
            for _ in range(40):
                write_something(engine, dice)
            assert kept(engine) == counted(engine)
    if where == "file":
        assert examine(str(tmp_path / "db")).problems == []


def test_a_description_has_the_counts_of_its_indexes() -> None:
    with opened() as engine:
        create(engine, types={"g": "S"}, gsi=GSI[:2])
        put(engine, "1", g={"S": "x"}, more={"S": "yyyy"})
        put(engine, "2")
        got = described(engine)
        # pk and its value take 3 bytes, g 2, more 8.
        assert (got["ItemCount"], got["TableSizeBytes"]) == (2, 16)
        assert {
            one["IndexName"]: (one["ItemCount"], one["IndexSizeBytes"])
            for one in got["GlobalSecondaryIndexes"]
        } == {"all": (1, 13), "keys": (1, 5)}


def test_counts_of_an_index_that_is_filled_beside_writers_are_right(tmp_path: Path) -> None:
    dice = random.Random(3)
    with opened(tmp_path / "db") as engine:
        create(engine)
        filled(engine, 1_500)
        engine.call("UpdateTable", ADD)
        while described(engine)["GlobalSecondaryIndexes"][0]["IndexStatus"] == "CREATING":
            key = f"{dice.randrange(1_600):05d}"
            put(engine, key, g={"S": "x" * dice.randrange(1, 9)}, rest={"S": "y" * dice.randrange(50)})
            engine.call(
                "DeleteItem", {"TableName": "Things", "Key": {"pk": {"S": f"{dice.randrange(1_600):05d}"}}}
            )
        assert kept(engine) == counted(engine)


def test_a_write_counts_an_entry_that_the_filling_has_not_made_yet(tmp_path: Path) -> None:
    with opened(tmp_path / "db") as engine:
        create(engine)
        put(engine, "1", g={"S": "x"})
        put(engine, "2", g={"S": "x"})
        defined_only(engine)
        put(engine, "1", g={"S": "x"}, more={"S": "longer"})
        engine.call("DeleteItem", {"TableName": "Things", "Key": {"pk": {"S": "2"}}})
        assert kept(engine) == counted(engine)
        wait_until_active(engine)
        assert kept(engine) == counted(engine)


@pytest.fixture(scope="module")
def small_and_large(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Closed files with few and with many items, to be copied."""
    folder = tmp_path_factory.mktemp("counts")
    paths = []
    for items in (1_000, 20_000):
        paths.append(folder / f"{items}.db")
        with opened(paths[-1]) as engine:
            create(engine, types=TYPES, gsi=GSI)
            fill_quickly(engine, items)
    return paths


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("open", lambda engine: None),
        ("ensure", lambda engine: over(engine, [Table("Things", partition="pk", sort=None)])),
        ("DescribeTable", described),
        (
            "UpdateTable",
            lambda engine: engine.call(
                "UpdateTable", {"TableName": "Things", "DeletionProtectionEnabled": True}
            ),
        ),
        ("DeleteTable", lambda engine: engine.call("DeleteTable", {"TableName": "Things"})),
    ],
)
def test_no_control_operation_reads_items(
    name: str, work: Callable[[SqliteEngine], object], small_and_large: list[Path], tmp_path: Path
) -> None:
    taken = []
    for filled_file in small_and_large:
        path = Path(shutil.copy(filled_file, tmp_path))
        steps = Steps()

        def open_and_work(path: Path = path, steps: Steps = steps) -> None:
            with SqliteEngine(str(path), durability="relaxed", connect=steps.connect) as engine:
                work(engine)

        taken.append(steps.of(open_and_work)[0])
    few, many = taken
    assert many <= few + 2, name


def fill_quickly(engine: SqliteEngine, items: int) -> None:
    """Put many items in few transactions."""
    for first in range(0, items, 1_000):
        engine.handle_together(
            [
                PutItem(table="Things", item={"pk": {"S": f"{place:05d}"}, "g": {"S": "x"}, "h": {"N": "1"}})
                for place in range(first, first + 1_000)
            ]
        )


def test_two_engines_see_what_both_have_written(tmp_path: Path) -> None:
    with opened(tmp_path / "db") as one, opened(tmp_path / "db") as two:
        create(one)
        put(one, "1")
        put(two, "2")
        # The first write of each is added to the file at once.
        assert described(one)["ItemCount"] == described(two)["ItemCount"] == 2
        for place in range(10):
            put(one, f"more {place}")
        assert described(one)["ItemCount"] == 12
        one.sweep()
        assert described(two)["ItemCount"] == 12
        put(one, "last")
    assert in_file(tmp_path / "db")[0].items == 13
    assert sessions(tmp_path / "db") == 0


def test_a_busy_writer_changes_the_file_s_counts_now_and_then_only(tmp_path: Path) -> None:
    faults = Faults()
    with SqliteEngine(str(tmp_path / "db"), durability="relaxed", connect=faults.connect) as engine:
        create(engine)
        put(engine, "first")
        engine.pending_counts._due_at = float("inf")
        before = len(faults.statements)
        put(engine, "second")
        assert not any("counts" in sql or "sessions" in sql for sql in faults.statements[before:])
        engine.pending_counts._due_at = 0.0
        put(engine, "third")
        assert any("sessions" in sql for sql in faults.statements[before:])
        assert in_file(tmp_path / "db")[0].items == 3


def test_a_count_has_every_committed_write_and_no_other_while_counts_are_added(tmp_path: Path) -> None:
    faults = Faults()
    with SqliteEngine(str(tmp_path / "db"), durability="relaxed", connect=faults.connect) as engine:
        create(engine)
        put(engine, "1")
        put(engine, "2")
        engine.pending_counts._due_at = 0.0
        seen: list[int] = []

        def look(_: sqlite3.Connection) -> None:
            seen.append(kept(engine)[0].items)

        faults.before = once("COMMIT", look)
        put(engine, "3")
        faults.after = once("COMMIT", look)
        engine.pending_counts._due_at = 0.0
        put(engine, "4")
        assert seen == [2, 4]
        assert kept(engine)[0].items == 4


PROGRAM = """
import os, sys, time
from solotable.engines import sqlite
from tests.unit.engines.sqlite.clocked import put
engine = sqlite.open(sys.argv[1], durability="relaxed")
for place in range(300):
    put(engine, str(place), g={"S": "x"})
print("written", flush=True)
if sys.argv[2] == "wait":
    time.sleep(600)
"""


def writer(path: Path, then: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603  # the program above
        [sys.executable, "-c", PROGRAM, str(path), then], stdout=subprocess.PIPE, text=True
    )


def test_after_a_kill_the_next_to_open_the_file_puts_the_counts_right(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as engine:
        create(engine, types=TYPES, gsi=GSI)
    with writer(path, "wait") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "written\n"
        child.kill()
    assert in_file(path)[0].items < 300
    assert sessions(path) == 1
    with opened(path) as engine:
        put(engine, "one more")
        recount.wait(engine, HANG_SECONDS)
        assert kept(engine) == counted(engine)
        assert described(engine)["ItemCount"] == 301
    assert sessions(path) == 0
    assert examine(str(path)).problems == []


def test_a_program_that_ends_without_closing_leaves_right_counts(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as engine:
        create(engine)
    with writer(path, "end") as child:
        assert child.wait(HANG_SECONDS) == 0
    assert in_file(path)[0].items == 300
    assert sessions(path) == 0


def test_threads_that_write_while_the_engine_closes_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as engine:
        create(engine, types=TYPES, gsi=GSI)
        under_way = threading.Barrier(5)

        def work(seed: int) -> None:
            dice = random.Random(seed)
            write_something(engine, dice)
            under_way.wait(HANG_SECONDS)
            with contextlib.suppress(EngineError):
                while True:
                    write_something(engine, dice)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        under_way.wait(HANG_SECONDS)
        engine.close()
        for thread in threads:
            thread.join(HANG_SECONDS)
    with opened(path) as engine:
        recount.wait(engine, HANG_SECONDS)
        assert kept(engine) == counted(engine)
    assert sessions(path) == 0


LATE = """
import atexit, sys

def write_late():
    # Registered before solotable's own handler, so it runs after it.
    put(engine, "late")
    print("written", flush=True)

atexit.register(write_late)
from solotable.engines import sqlite
from tests.unit.engines.sqlite.clocked import put
engine = sqlite.open(sys.argv[1], durability="relaxed")
put(engine, "early")
"""


def test_a_write_after_the_handler_at_exit_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as engine:
        create(engine)
    done = subprocess.run(  # noqa: S603  # the program above
        [sys.executable, "-c", LATE, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "written\n"
    with opened(path) as engine:
        recount.wait(engine, HANG_SECONDS)
        assert described(engine)["ItemCount"] == 2
    assert sessions(path) == 0


@pytest.mark.parametrize("keys", [["2"], ["2", "4"]])
def test_a_group_that_is_interrupted_leaves_later_writes_counted(keys: list[str], tmp_path: Path) -> None:
    faults = Faults()
    path = tmp_path / "db"

    def interrupt(_: sqlite3.Connection) -> None:
        raise KeyboardInterrupt

    with SqliteEngine(str(path), durability="relaxed", connect=faults.connect) as engine:
        create(engine)
        put(engine, "1")
        engine.pending_counts._due_at = 0.0
        faults.before = once("COMMIT", interrupt)
        with pytest.raises(KeyboardInterrupt):
            engine.handle_together([PutItem(table="Things", item={"pk": {"S": key}}) for key in keys])
        put(engine, "3")
        assert kept(engine) == counted(engine)
    with opened(path) as engine:
        recount.wait(engine, HANG_SECONDS)
        assert described(engine)["ItemCount"] == 2
    assert sessions(path) == 0


@pytest.mark.parametrize(("statement", "skip"), [("COMMIT", 2), ("RELEASE", 0)])
def test_a_group_whose_counts_cannot_be_added_leaves_all_writes_counted(
    statement: str, skip: int, tmp_path: Path
) -> None:
    faults = Faults()
    path = tmp_path / "db"
    # Each write has its own commit after this, and then the counts.
    undo = once("INSERT", failing(sqlite3.SQLITE_FULL, undoes=True))
    fail = once(statement, failing(sqlite3.SQLITE_FULL, undoes=True), skip=skip)

    def fail_twice(connection: sqlite3.Connection, sql: str) -> None:
        if statement == "COMMIT":
            undo(connection, sql)
        fail(connection, sql)

    with SqliteEngine(str(path), durability="relaxed", connect=faults.connect) as engine:
        create(engine)
        faults.before = fail_twice
        outcomes = engine.handle_together(
            [PutItem(table="Things", item={"pk": {"S": key}}) for key in ("1", "2")]
        )
        assert [outcome.error for outcome in outcomes] == [None, None]
        assert kept(engine) == counted(engine)
        engine.pending_counts._due_at = 0.0
        put(engine, "3")
        assert kept(engine) == counted(engine)
        assert in_file(path)[0].items == 3
    with opened(path) as engine:
        recount.wait(engine, HANG_SECONDS)
        assert described(engine)["ItemCount"] == 3
    assert sessions(path) == 0


def test_what_a_rejected_part_of_a_group_has_written_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as engine:
        create(engine)
        put(engine, "1")

        def work() -> None:
            put(engine, "2")
            raise TooLong

        (outcome,) = engine.pending_counts.run_together(lambda call: call(), [work])
        assert isinstance(outcome.error, TooLong)
        assert kept(engine) == counted(engine)
    assert in_file(path)[0].items == 2
    assert sessions(path) == 0


def test_of_engines_that_open_a_file_at_once_one_recounts(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as engine:
        create(engine)
    for _ in range(40):
        with sqlite3.connect(path) as connection:
            connection.execute("INSERT INTO sessions VALUES ('dead', 1)")
        connection.close()
        together = threading.Barrier(4)
        engines: list[SqliteEngine] = []

        def work(together: threading.Barrier = together, engines: list[SqliteEngine] = engines) -> None:
            together.wait(HANG_SECONDS)
            engines.append(opened(path))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_SECONDS)
        for engine in engines:
            recount.wait(engine, HANG_SECONDS)
            engine.close()
        assert sessions(path) == 0


def test_nothing_is_recounted_while_its_writer_lives(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as one:
        create(one)
        put(one, "1")
        with opened(path) as two:
            assert two not in recount._running
            assert described(two)["ItemCount"] == 1
        assert sessions(path) == 1


def test_a_recount_does_not_double_what_its_own_process_has_yet_to_add(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as engine:
        create(engine, types=TYPES, gsi=GSI)
        put(engine, "1")
        engine.pending_counts._due_at = float("inf")
        put(engine, "2", g={"S": "x"})
        recount.recount_table(engine, "Things")
        assert kept(engine) == counted(engine)
        put(engine, "3", g={"S": "x"})
        assert kept(engine) == counted(engine)
    assert in_file(path)[0].items == 3


def test_a_recount_beside_writers_loses_and_doubles_nothing(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as engine, opened(path) as other:
        create(engine, types=TYPES, gsi=GSI)
        filled(engine, 500)
        stop = threading.Event()

        def work(one: SqliteEngine, seed: int) -> None:
            dice = random.Random(seed)
            while not stop.is_set():
                write_something(one, dice)

        threads = [
            threading.Thread(target=work, args=(one, seed)) for seed, one in enumerate((engine, other))
        ]
        for thread in threads:
            thread.start()
        try:
            engine.database.write(lambda c: c.execute("UPDATE counts SET items = items + 7, bytes = 1"))
            for _ in range(3):
                recount.recount_table(engine, "Things")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        engine.pending_counts.flush()
        other.pending_counts.flush()
        assert kept(engine) == kept(other) == counted(engine)


def test_a_write_of_unknown_outcome_leaves_the_session_to_be_recounted(tmp_path: Path) -> None:
    faults = Faults()
    path = tmp_path / "db"
    with SqliteEngine(str(path), durability="relaxed", connect=faults.connect) as engine:
        create(engine)
        put(engine, "1")

        def fail(_: sqlite3.Connection) -> None:
            raise fault(sqlite3.SQLITE_IOERR)

        faults.after = once("COMMIT", fail)
        with pytest.raises(EngineError, match="not known"):
            put(engine, "2")
        put(engine, "3")
    assert sessions(path) == 1
    with opened(path) as engine:
        recount.wait(engine, HANG_SECONDS)
        assert kept(engine) == counted(engine)
    assert sessions(path) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")
def test_a_child_does_not_count_what_its_parent_wrote(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as engine:
        create(engine)
        put(engine, "1")
        put(engine, "2")
        child = os.fork()
        if child == 0:
            put(engine, "3")
            engine.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert described(engine)["ItemCount"] == 3
    assert in_file(path)[0].items == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork()")
def test_a_child_of_multiprocessing_that_does_not_close_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as engine:
        create(engine)
        put(engine, "1")

        def work() -> None:
            for key in "234":
                put(engine, key)

        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        child.join(HANG_SECONDS)
        assert child.exitcode == 0
        assert described(engine)["ItemCount"] == 4
        assert sessions(path) == 1
    assert sessions(path) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork()")
def test_a_recount_goes_on_after_a_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "db"
    with opened(path) as engine:
        create(engine, types=TYPES, gsi=GSI)
        filled(engine, 2_000)
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO sessions VALUES ('dead', 1)")
        connection.execute("UPDATE counts SET items = items + 7")
    connection.close()
    # Many pauses: the fork comes in the middle.
    monkeypatch.setattr(counts, "_CHUNK", 10)
    with opened(path) as engine:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        recount.wait(engine, HANG_SECONDS)
        assert kept(engine) == counted(engine)
    assert sessions(path) == 0


def test_engines_that_are_dropped_without_close_leave_no_descriptors(tmp_path: Path) -> None:
    """The second one recounts after the first, in a thread that must not keep it."""
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("counts descriptors in /proc")

    def drop() -> None:
        engine = sqlite.open(tmp_path / "shop.db")
        if not engine.call("ListTables", {})["TableNames"]:
            engine.call("CreateTable", TABLES["Pair"])
        engine.call("PutItem", {"TableName": "Pair", "Item": {"pk": {"S": "p"}, "sk": {"S": "a"}}})
        recount.wait(engine)

    drop()
    gc.collect()
    before = len(list(folder.iterdir()))
    for _ in range(5):
        drop()
    gc.collect()
    assert len(list(folder.iterdir())) <= before
