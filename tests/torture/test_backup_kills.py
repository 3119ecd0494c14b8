"""kill -9 at each system call that changes a file, of ship, prune, recover and a restore of a table."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite.maintenance.checkup import examine
from solotable.engines.sqlite.recovery import targets
from solotable.engines.sqlite.recovery.restore import restore_table
from solotable.engines.sqlite.recovery.scopes import Scope
from solotable.errors import DataError
from solotable.locations import FolderLocation
from solotable.shipping import Shipper, prune, restore_file
from tests.conformance.tables import table
from tests.unit.engines.sqlite.recovery.past import newest, recovery
from tests.unit.shipping import __main__ as program
from tests.unit.shipping.databases import items, new_database, put
from tests.waiting import HANG_SECONDS

from . import restorer
from .size import LIMIT_SECONDS, LONG, SEED, amount, report
from .test_faults import ROOT, needs_strace
from .test_recovery import read

CALLS = ["write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "link", "unlink", "mkdir", "rmdir"]
#: Where the short form kills: a run that only counts the calls would take as long again.
_FIRST_CALLS = [(call, number) for call in ("write", "pwrite64", "fsync", "unlink") for number in (1, 2, 3)]
#: How many of the calls are tried; all of them in the long form.
TRIES = amount(1, 10**6)

pytestmark = [pytest.mark.timeout(LIMIT_SECONDS), needs_strace]


@pytest.fixture
def work() -> Iterator[Path]:
    """A folder in memory: a killed process loses nothing that was not synced."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder below it has a random name
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        (Path(folder) / "work").mkdir()
        yield Path(folder) / "work"


def trace(options: list[str], arguments: list[str]) -> int:
    command = ["strace", "-f", *options, sys.executable, "-B", "-m", *arguments]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, check=False, timeout=HANG_SECONDS
    )
    return done.returncode


def keep(work: Path) -> None:
    """Remember the folder as a crash would leave it; it may have a database open."""
    shutil.copytree(work, work.with_name("kept"), ignore=shutil.ignore_patterns("*-shm"))


def _count_calls(counts: Path, arguments: list[str]) -> list[tuple[str, int]]:
    """Run a program, and return its calls by name and number."""
    assert trace(["-c", "-o", str(counts), "-e", f"trace={','.join(CALLS)}"], arguments) == 0
    # The columns: % time, seconds, microseconds per call, calls, errors (may be empty), system call.
    rows = [line.split() for line in counts.read_text().splitlines()]
    steps = [(row[-1], step + 1) for row in rows if row and row[-1] in CALLS for step in range(int(row[3]))]
    assert len(steps) > 20
    return steps


def kill_at_each_call(work: Path, arguments: list[str], check: Callable[[], None]) -> None:
    """Run a program once for each of its calls, killed there; `check` follows, on the folder as it was."""

    def reset() -> None:
        shutil.rmtree(work)
        shutil.copytree(work.with_name("kept"), work)

    reset()
    steps = _count_calls(work.with_name("counts"), arguments) if LONG else _FIRST_CALLS
    killed = 0
    for call, number in random.Random(SEED).sample(steps, min(TRIES, len(steps))):
        reset()
        injection = f"inject={call}:signal=SIGKILL:when={number}"
        killed += trace(["-o", os.devnull, "-e", f"trace={call}", "-e", injection], arguments) != 0
        check()
    assert killed or not LONG
    report(f"{arguments[0]}: killed at {killed} of {len(steps)} calls, 0 lost (seed {SEED})")


def test_ship_and_prune_lose_nothing_at_any_system_call(work: Path) -> None:
    path, location = str(work / "shop.db"), FolderLocation(work / "backup")
    new_database(path)
    with sqlite.open(path) as engine:
        with Shipper(path, location) as shipper:
            put(engine, 1)
            shipper.ship()
            before = items(engine)
        for number in (2, 3):
            put(engine, number, 9_000)
        everything = items(engine)
        keep(work)

    def restored() -> list[str]:
        restore_file(location, work / "copy.db")
        with sqlite.open(work / "copy.db") as copy:
            return items(copy)

    def check() -> None:
        assert restored() in (before, everything)
        for each in work.glob("copy.db*"):
            each.unlink()
        program.once(path, str(work / "backup"))
        assert restored() == everything
        prune(location, keep_seconds=1e-6, leftover_seconds=0)
        assert len(list((work / "backup").rglob("*.db.gz"))) == 1
        assert not list((work / "backup").rglob(".*"))

    kill_at_each_call(work, ["tests.unit.shipping", "once", path, str(work / "backup")], check)


def test_recover_gives_a_whole_file_or_none_at_any_system_call(work: Path) -> None:
    path, target, location = str(work / "shop.db"), work / "new.db", FolderLocation(work / "backup")
    new_database(path)
    with sqlite.open(path) as engine, Shipper(path, location) as shipper:
        for number in range(5):
            put(engine, number)
            shipper.ship()
        everything = items(engine)
        keep(work)

    def check() -> None:
        if target.exists():
            with pytest.raises(DataError, match="exists"):
                restore_file(location, target)
            with sqlite.open(target) as engine:
                assert items(engine) == everything
            for each in work.glob("new.db*"):
                each.unlink()
        restore_file(location, target)
        assert not list(work.glob(".new.db-*"))

    kill_at_each_call(work, ["tests.unit.shipping", "recover", str(work / "backup"), str(target)], check)


def test_a_restore_of_a_table_continues_after_a_kill_at_any_system_call(work: Path) -> None:
    path = work / "shop.db"
    with sqlite.open(path, durability="relaxed") as engine:
        engine.call("CreateTable", table("Shop", "pk:S"))
        engine.call("UpdateContinuousBackups", recovery("Shop"))
        for number in range(120):
            restorer.put(engine, f"k{number}", number)
        position, state = newest(engine), read(engine)
        for number in range(60):
            restorer.put(engine, f"k{number * 3}", 0)
        now = read(engine)
    keep(work)

    def check() -> None:
        with sqlite.open(path, durability="relaxed") as engine:
            targets.wait(engine, HANG_SECONDS)
            if "Restored" not in engine.call("ListTables", {})["TableNames"]:
                restore_table(engine, "Shop", position, "Restored", scope=Scope())
            assert read(engine, "Restored") == state
            assert read(engine) == now
        assert examine(str(path)).problems == []

    kill_at_each_call(work, ["tests.torture.restorer", str(path), "table", str(position)], check)
