"""A disk that fails or is full: an error to that caller, reads continue, and so do writes afterwards.

The faults are the kernel's: strace makes system calls fail, a small tmpfs runs full.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite.maintenance.checkup import examine
from solotable.engines.sqlite.maintenance.compact import _vacuum, compact
from solotable.errors import StorageFull
from tests.waiting import HANG_SECONDS

from . import shop
from .size import LIMIT_SECONDS, SEED, amount, report

ROOT = Path(__file__).parents[2]
WRITES = 40
#: Runs of each kind of fault.
RUNS = amount(2, 60)
#: About how many such calls a run makes.
CALLS = {"fdatasync": 2 * WRITES, "pwrite64": 6 * WRITES, "ftruncate": 4, "unlink": 4}

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def _strace_works() -> bool:
    if shutil.which("strace") is None:
        return False
    command = ["strace", "-e", "inject=getppid:error=EIO", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


needs_strace = pytest.mark.skipif(not _strace_works(), reason="strace is not here, or may not trace")


def run(path: Path, injection: str) -> tuple[list[tuple[int, str | None]], int]:
    """Run the victim with system calls failing; return its answers, and how it ended."""
    command = [
        *("strace", "-f", "-o", os.devnull, "-e", f"trace={injection.partition(':')[0]}"),
        *("-e", f"inject={injection}", sys.executable, "-m", "tests.torture.victim", str(path), str(WRITES)),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    answers: list[tuple[int, str | None]] = []
    for line in done.stdout.splitlines():
        number, error, reads = json.loads(line)
        assert reads, "a read failed after a fault of a write"
        answers.append((number, error))
    assert "Traceback" not in done.stderr, done.stderr
    return answers, done.returncode


def check(path: Path, answers: list[tuple[int, str | None]]) -> None:
    """Everything that was granted is there and right; what was refused is there whole or not at all."""
    granted = {number for number, error in answers if error is None}
    with sqlite.open(path) as engine:
        stored = {int(item["n"]["N"]): item for item in shop.pages(engine, "Scan")}
    assert granted <= set(stored)
    assert all(item == shop.content(number) for number, item in stored.items())
    assert examine(str(path)).problems == []


@needs_strace
@pytest.mark.parametrize(
    ("call", "error", "expected"),
    [
        ("fdatasync", "EIO", {"EngineError"}),
        ("pwrite64", "EIO", {"EngineError"}),
        ("pwrite64", "ENOSPC", {"StorageFull"}),
        ("ftruncate", "EIO", {"EngineError"}),
    ],
)
def test_a_failing_system_call_is_an_error_to_its_caller_and_the_engine_goes_on(
    tmp_path: Path, call: str, error: str, expected: set[str]
) -> None:
    chance = random.Random(f"{SEED} {call} {error}")
    faults = 0
    for turn in range(RUNS):
        path = tmp_path / f"shop{turn}.db"
        first = chance.randrange(1, CALLS[call])
        # One fault, or three in a row: the engine must also bear that its way back fails.
        when = f"{first}" if chance.random() < 0.6 else f"{first}..{first + 2}"
        answers, ended = run(path, f"{call}:error={error}:when={when}")
        assert ended == 0
        assert answers[-1][0] == WRITES
        seen = {name for number, name in answers if name is not None and number > 0}
        assert seen <= expected, seen
        faults += sum(name is not None for _, name in answers)
        check(path, answers)
        assert sum(name is None for _, name in answers) >= WRITES - 6
    report(f"{call} {error}: {RUNS} runs of {WRITES} writes, {faults} errors, 0 lost (seed {SEED})")


@needs_strace
@pytest.mark.parametrize("call", ["fdatasync", "pwrite64", "ftruncate", "unlink"])
def test_a_process_that_dies_at_a_system_call_leaves_a_sound_file(tmp_path: Path, call: str) -> None:
    chance = random.Random(f"{SEED} {call}")
    died = 0
    for turn in range(RUNS):
        path = tmp_path / f"shop{turn}.db"
        when = chance.randrange(1, CALLS[call])
        answers, ended = run(path, f"{call}:signal=SIGKILL:when={when}")
        died += ended != 0
        if path.exists() and path.stat().st_size and answers:
            check(path, answers)
    report(f"SIGKILL at {call}: {RUNS} runs, died in {died}, 0 lost (seed {SEED})")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of sixteen megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small tmpfs cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_runs_full_refuses_writes_and_takes_them_again(small_disk: Path) -> None:
    path = small_disk / "shop.db"
    granted: set[int] = set()
    refused = 0
    with sqlite.open(path) as engine:
        engine.call("CreateTable", shop.SHOP)
        ballast = small_disk / "ballast"
        for number in range(2500):
            if number == 100:
                ballast.write_bytes(b"x" * (_free(small_disk) - 8192))
            if number == 1200:
                ballast.unlink()
            try:
                shop.put(engine, shop.content(number))
            except StorageFull:
                refused += 1
                assert number >= 100
            else:
                granted.add(number)
            assert shop.get(engine, "item-0") == shop.content(0)
    assert refused > 100
    assert len([number for number in granted if number >= 1200]) > 200
    with sqlite.open(path) as engine:
        stored = {int(item["n"]["N"]): item for item in shop.pages(engine, "Scan")}
    assert set(stored) == granted
    assert examine(str(path)).problems == []


def test_a_disk_that_is_full_does_not_let_a_file_be_compacted_and_harms_nothing(small_disk: Path) -> None:
    path = small_disk / "shop.db"
    with sqlite.open(path) as engine:
        engine.call("CreateTable", shop.SHOP)
        for number in range(1200):
            shop.put(engine, shop.content(number))
        for number in range(0, 1200, 2):
            engine.call("DeleteItem", {"TableName": "Shop", "Key": {"pk": {"S": f"item-{number}"}}})
    (small_disk / "ballast").write_bytes(b"x" * (_free(small_disk) - 65_536))
    with pytest.raises(StorageFull, match="nothing was changed"):
        compact(str(path))
    with sqlite.open(path) as engine, pytest.raises(StorageFull):
        # As if the disk had filled up after a look at its room.
        engine.database.run_exclusively(lambda c: _vacuum(c, str(path), lambda what, part: None))
    assert examine(str(path)).problems == []
    (small_disk / "ballast").unlink()
    done = compact(str(path))
    assert done.bytes_after < done.bytes_before
    with sqlite.open(path) as engine:
        assert {int(item["n"]["N"]) for item in shop.pages(engine, "Scan")} == set(range(1, 1200, 2))
    assert examine(str(path)).problems == []


def _free(place: Path) -> int:
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


@needs_strace
def test_what_is_acknowledged_has_been_fsynced(tmp_path: Path) -> None:
    """A kill leaves the system's cache alone; a power cut does not. So the calls themselves are looked at."""
    log = tmp_path / "calls"
    command = [
        *("strace", "-f", "-y", "-o", str(log), "-e", "trace=pwrite64,fdatasync,fsync,write"),
        *(sys.executable, "-m", "tests.torture.victim", str(tmp_path / "shop.db"), str(WRITES)),
    ]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=HANG_SECONDS)
    unsynced = False
    acknowledged = 0
    for line in log.read_text(errors="replace").splitlines():
        call = line.split(maxsplit=1)[1]
        if call.startswith("pwrite64") and "shop.db-wal>" in call:
            unsynced = True
        elif call.startswith(("fdatasync", "fsync")) and "shop.db-wal>" in call:
            assert call.endswith("= 0"), call
            unsynced = False
        elif call.startswith("write(1<") and '"[' in call:
            acknowledged += 1
            assert not unsynced, f"acknowledgement {acknowledged} came before the fsync"
    assert acknowledged == WRITES
