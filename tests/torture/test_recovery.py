"""kill -9 of restores and prunes, writers in other processes, damaged files, and many random points."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from solotable.backup import BackupFile
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.maintenance.checkup import examine
from solotable.engines.sqlite.recovery import targets
from solotable.engines.sqlite.recovery.in_place import apply_preview, make_preview
from solotable.engines.sqlite.recovery.restore import restore_table
from solotable.engines.sqlite.recovery.scopes import Scope
from solotable.errors import EngineError, RecoveryError, ServiceError, TableNotFound
from tests.conformance.tables import index, table
from tests.killing import Start
from tests.unit.engines.sqlite.clocked import Clock, opened
from tests.unit.engines.sqlite.recovery.past import SCOPES, Past, newest, part_of, recovery, scan
from tests.waiting import HANG_SECONDS, jitter

from .damage import spoil
from .restorer import put
from .size import LIMIT_SECONDS, SEED, amount

ITEMS = amount(600, 5_000)
KILLS = amount(4, 60)
POINTS = amount(12, 500)
DAMAGES = amount(40, 2_000)
WRITERS = 2

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)
State = dict[str, Any]


def read(engine: SqliteEngine, name: str = "Shop", **members: Any) -> State:
    found: State = {}
    start: dict[str, Any] = {}
    while True:
        page = engine.call("Scan", {"TableName": name, **members, **start})
        found |= {item["pk"]["S"]: item for item in page["Items"]}
        if "LastEvaluatedKey" not in page:
            return found
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def fill(path: Path) -> tuple[int, State]:
    """Fill a file, remember its state, then change most of it; return the position and its state."""
    chance = random.Random(SEED)
    with sqlite.open(path, durability="relaxed") as engine:
        engine.call("CreateTable", table("Shop", "pk:S", types={"g": "S"}, gsi=[index("by-g", "g")]))
        for place in range(ITEMS):
            put(engine, f"k{place:05d}", place)
        engine.call("UpdateContinuousBackups", recovery("Shop"))
        for place in range(0, ITEMS, 3):
            put(engine, f"k{place:05d}", place + 1)
        position, state = newest(engine), read(engine)
        for _ in range(ITEMS):
            key = f"k{chance.randrange(ITEMS * 2):05d}"
            if chance.random() < 0.4:
                engine.call("DeleteItem", {"TableName": "Shop", "Key": {"pk": {"S": key}}})
            else:
                put(engine, key, chance.randrange(1_000_000))
    return position, state


def kill_often(start: Start, path: Path, action: str, argument: str, dice: random.Random) -> None:
    """Start the action again and again, and kill it in the step after one that it was let do."""
    for _ in range(KILLS):
        victim = start("-m", "tests.torture.restorer", str(path), action, argument)
        for steps in range(1, dice.randrange(2, 5)):
            victim.wait_for_lines(steps)
            victim.release()
        jitter(dice)
        assert "done" not in victim.kill()[-1], "it was over before it was killed"


def test_s2_16_a_restore_that_is_killed_is_continued_by_the_next_engine(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "shop.db"
    position, state = fill(path)
    dice = random.Random(SEED)
    victim = start("-m", "tests.torture.restorer", str(path), "table", str(position))
    for steps in range(1, 5):
        victim.wait_for_lines(steps)
        victim.release()
    assert "done" not in victim.kill()[-1]
    before = None
    with sqlite.open(path, read_only=True) as engine:
        described = engine.call("DescribeTable", {"TableName": "Restored"})["Table"]
        assert described["TableStatus"] == "CREATING"
        with pytest.raises(TableNotFound):
            engine.call("Scan", {"TableName": "Restored"})
        before = read(engine)
    jitter(dice)
    with sqlite.open(path, durability="relaxed") as engine:
        targets.wait(engine, HANG_SECONDS)
        assert read(engine, "Restored") == state
        assert len(read(engine, "Restored", IndexName="by-g")) == len(state)
        assert read(engine) == before
        assert "Copies" not in engine.table("Shop").definition
    assert examine(str(path)).problems == []


def test_a_restore_into_another_file_goes_on_where_it_was_killed(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "shop.db"
    position, state = fill(path)
    kill_often(start, path, "file", str(position), random.Random(SEED))
    assert start("-m", "tests.torture.restorer", str(path), "file", str(position)).end()[-1] == "done"
    with sqlite.open(f"{path}.copy") as engine:
        assert read(engine) == state
    assert examine(f"{path}.copy").problems == []


def test_a_restore_in_place_that_is_killed_can_run_again(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "shop.db"
    position, state = fill(path)
    with sqlite.open(path) as engine:
        preview = make_preview(engine, "Shop", position, Scope())
        kept = next(iter(sample.key["pk"]["S"] for sample in preview.samples))
        put(engine, kept, 12_345)
    argument = json.dumps(preview.to_json())
    kill_often(start, path, "place", argument, random.Random(SEED))
    assert start("-m", "tests.torture.restorer", str(path), "place", argument).end()[-1] == "done"
    with sqlite.open(path) as engine:
        found = read(engine)
        # A writer has changed this one after the preview.
        assert found.pop(kept)["v"] == {"N": "12345"}
        assert found == {key: item for key, item in state.items() if key != kept}
        assert apply_preview(engine, preview).conflicts == 1
    assert examine(str(path)).problems == []


def test_a_prune_that_is_killed_keeps_what_the_window_promises(tmp_path: Path, start: Start) -> None:
    path, clock, day = tmp_path / "shop.db", Clock(), 86_400
    with opened(path, clock) as engine:
        engine.call("CreateTable", table("Shop", "pk:S"))
        engine.call("UpdateContinuousBackups", recovery("Shop", RecoveryPeriodInDays=1))
        states: list[tuple[int, State]] = []
        for place in range(ITEMS):
            put(engine, f"k{place % 50:05d}", place)
            clock.move(2 * day / ITEMS)
            if place % (ITEMS // 20) == 0:
                states.append((newest(engine), read(engine)))
    for _ in range(KILLS):
        victim = start("-m", "tests.torture.restorer", str(path), "prune", str(clock()))
        victim.wait_for_lines(1)
        victim.release()
        victim.wait_for_lines(2)
        victim.kill()
        with opened(path, clock) as engine, BackupFile(engine) as file:
            first = file.status("Shop").first_sequence
            assert first is not None
            for sequence, state in random.Random(SEED).sample(states, 5):
                if sequence < first:
                    with pytest.raises(RecoveryError):
                        restore_table(engine, "Shop", sequence, "Restored", scope=Scope())
                    continue
                restore_table(engine, "Shop", sequence, "Restored", scope=Scope())
                assert read(engine, "Restored") == state
                engine.call("DeleteTable", {"TableName": "Restored"})


def test_other_processes_write_while_tables_are_restored(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "shop.db"
    position, state = fill(path)
    writers = [start("-m", "tests.torture.restorer", str(path), "write", str(n)) for n in range(WRITERS)]
    for writer in writers:
        writer.wait_for_lines(1)
        writer.release()
        writer.wait_for_lines(10)
    with sqlite.open(path, durability="relaxed") as engine:
        for number in range(3):
            restore_table(engine, "Shop", position, f"Restored{number}", scope=Scope())
            assert read(engine, f"Restored{number}") == state
        arn = engine.call("CreateBackup", {"TableName": "Shop", "BackupName": "live"})["BackupDetails"][
            "BackupArn"
        ]
        targets.complete(engine, arn)
        engine.call("RestoreTableFromBackup", {"BackupArn": arn, "TargetTableName": "Live"})
        targets.complete(engine, "Live")
        scope = Scope(key={"pk": {"S": "k00000"}})
        apply_preview(engine, make_preview(engine, "Shop", position, scope))
    for writer in writers:
        assert len(writer.lines) > 10, "the writers went on"
        writer.kill()
    with sqlite.open(path) as engine:
        drill = BackupFile(engine).drill("Shop", seed=SEED)
        assert drill.passed, drill
    assert examine(str(path)).problems == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_restores_in_the_child_and_writes_in_the_parent(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    position, state = fill(path)
    with sqlite.open(path, durability="relaxed") as engine:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                restore_table(engine, "Shop", position, "Restored", scope=Scope())
                code = 0
            finally:
                os._exit(code)
        for place in range(50):
            put(engine, f"parent{place}", place)
        assert os.waitpid(child, 0)[1] == 0
        assert read(engine, "Restored") == state


def test_s2_16_random_points_equal_the_model(tmp_path: Path) -> None:
    clock = Clock()
    engine = opened(tmp_path / "past.db", clock)
    past = Past(engine, clock, SEED)
    past.run(amount(150, 2_000))
    wrong = []
    for number in range(POINTS):
        sequence, _, items = past.random.choice(past.states)
        scope = SCOPES[number % len(SCOPES)]
        restore_table(engine, "Shop", sequence, "Restored", scope=scope)
        if scan(engine, "Restored") != part_of(items, scope):
            wrong.append((SEED, sequence, scope))
        engine.call("DeleteTable", {"TableName": "Restored"})
    engine.close()
    assert wrong == []


def test_s2_20_drills_pass_at_random_moments(tmp_path: Path) -> None:
    clock = Clock()
    engine = opened(tmp_path / "past.db", clock)
    Past(engine, clock, SEED).run(amount(100, 1_000))
    with BackupFile(engine) as file:
        drills = [file.drill("Shop", seed=SEED + number) for number in range(amount(3, 500))]
    engine.close()
    assert [drill.to_json() for drill in drills if not drill.passed] == []


def test_a_damaged_file_never_gives_a_wrong_item_back(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    position, state = fill(path)
    whole = path.read_bytes()
    dice = random.Random(SEED)
    refused = 0
    for _ in range(DAMAGES):
        path.write_bytes(whole)
        how = spoil(path, dice)
        for leftover in ("-wal", "-shm"):
            Path(f"{path}{leftover}").unlink(missing_ok=True)
        try:
            with sqlite.open(path) as engine:
                restore_table(engine, "Shop", position, "Restored", scope=Scope())
                found = read(engine, "Restored")
                assert found == state, (SEED, how)
        except (EngineError, ServiceError, RecoveryError, UnicodeDecodeError):
            # sqlite3 cannot decode the text of an error that names a damaged part of the schema.
            refused += 1
    assert refused, "some damage was found"
