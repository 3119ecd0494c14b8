"""Migrations under load and kill -9: nothing is lost, nothing returns, and no work is done twice."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from solotable.engines import sqlite
from solotable.migrations.diff import DiffOptions, compare
from solotable.migrations.worker import Worker
from solotable.migrations.workflow.cursors import LEASE_SECONDS
from tests.killing import ROOT, Program
from tests.migrations.workflow.lab import Lab, MovableClock
from tests.migrations.workflow.simulation import Simulation
from tests.waiting import HANG_SECONDS, jitter, wait_until

from .mover import SHORT_LEASE, fill, open_lab
from .size import LIMIT_SECONDS, SEED, amount, report
from .test_faults import needs_strace

ITEMS = amount(300, 100_000)
KILLS = amount(2, 200)
#: The longest life of a worker that is killed: it copies pages, applies changes, and opens windows.
MOST_REQUESTS = 100
LARGE = amount(400, 1_000_000)
WRITES_PER_SECOND = float(amount(100, 500))
#: The copy has ended. Under load, a worker may not catch up with the writer.
COPIED = ("CatchingUp", "Running", "Error")
SMALL = 150
POINTS = amount(3, 200)
WORLDS = amount(1, 1_000)
pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def _program(folder: Path, name: str, *arguments: object) -> Program:
    log = folder / f"{name}.log"
    return Program(log, "-m", "tests.torture.mover", *map(str, arguments))


def _progress(lab: Lab) -> tuple[object, ...]:
    """Return what changes while workers work."""
    status = lab.migration.status()
    return status.copy.scanned, status.applied, status.record.window, status.record.state


def _wait_for_copy(lab: Lab, chance: random.Random, look: Callable[[], object] = bool) -> None:
    """Wait until the copy has ended, for as long as the workers progress; `look` is called often."""
    while (seen := _progress(lab))[-1] not in COPIED:
        look()
        # A look takes time from the workers.
        jitter(chance, amount(1, 50) / 100)
        wait_until(lambda seen=seen: _progress(lab) != seen, seen=lambda: lab.migration.status().copy)  # type: ignore[misc]


def _finish(folder: Path) -> Lab:
    """Apply what is left, and compare both sides item by item."""
    lab = open_lab(folder)
    lab.clock.ahead += 12
    worker = Worker(lab.migration)
    lab.migration.work(until=lambda record: record.state == "Running")
    while worker.step() == "worked":
        pass
    worker.release()
    lab.check_in_pages()
    assert lab.migration.dead_letters() == []
    return lab


def test_killed_workers_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    lab = open_lab(tmp_path)
    fill(lab, ITEMS, 0)
    lab.start(window_seconds=amount(1, 3) / 5)
    writer = _program(tmp_path, "writer", "write", tmp_path, ITEMS, WRITES_PER_SECOND, SEED)
    writer.wait_for_lines(1)
    killer = _program(tmp_path, "killer", "kill", tmp_path, KILLS, MOST_REQUESTS, SEED)
    busy, before = 0, _progress(lab)
    for number in range(KILLS):
        killer.wait_for_lines(number + 1)
        now = _progress(lab)
        busy, before = busy + (now != before), now
    killer.end()
    scanned = lab.migration.status().copy.scanned
    survivor = _program(tmp_path, "survivor", "work", tmp_path, LEASE_SECONDS)
    _wait_for_copy(lab, chance)
    writes = len(writer.kill())
    survivor.kill()
    done = _finish(tmp_path)
    copy = done.migration.status().copy
    # Users are updated and not created: a copied item that is repeated or left out changes the count.
    assert copy.by_source["Users"] == ITEMS
    report(
        f"{KILLS} kills, at least {busy} after progress, when {scanned} of {ITEMS} items were copied, "
        f"and {writes * 50} writes beside: 0 lost, 0 copied twice (seed {SEED})"
    )


@needs_strace
def test_a_worker_killed_in_a_system_call_loses_nothing(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    lab = open_lab(tmp_path)
    fill(lab, SMALL, 3)
    lab.start(window_seconds=0.2)
    for number in range(POINTS):
        lab.user(number % SMALL, f"At {number}")
        lab.delete("Surveys", f"s{number % 3}")
        calls = "pwrite64,fdatasync,write,ftruncate"
        # At every system call of a small run, one after the other, or at a random one.
        when = amount(chance.randrange(1, 120), number + 1)
        injection = f"inject={calls}:signal=SIGKILL:when={when}"
        command = ["strace", "-f", "-o", os.devnull, "-e", f"trace={calls}", "-e", injection]
        command += [sys.executable, "-m", "tests.torture.mover", "work", str(tmp_path), str(SHORT_LEASE)]
        # The traced worker kills itself; one that finds no work is ended here.
        worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
        wait_until(lambda worker=worker: worker.poll() is not None or _is_idle(lab))  # type: ignore[misc]
        # Also the traced process, which would live on without strace.
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(HANG_SECONDS)
    done = _finish(tmp_path)
    assert done.migration.status().copy.by_source["Users"] == SMALL
    report(f"{POINTS} workers killed in system calls: 0 lost, 0 copied twice (seed {SEED})")


def _is_idle(lab: Lab) -> bool:
    status = lab.migration.status()
    return status.record.state == "Running" and status.lag_seconds == 0


def test_a_large_copy_under_load_loses_nothing(tmp_path: Path) -> None:
    lab = open_lab(tmp_path)
    fill(lab, LARGE, LARGE // 100)
    lab.start(window_seconds=30)
    writer = _program(tmp_path, "writer", "write", tmp_path, LARGE, WRITES_PER_SECOND, SEED)
    writer.wait_for_lines(1)
    began = time.monotonic()
    workers = [
        _program(tmp_path, f"worker{number}", "work", tmp_path, LEASE_SECONDS)
        for number in range(amount(1, 2))
    ]
    estimates: list[tuple[float, float]] = []

    def look() -> None:
        copy = lab.migration.status().copy
        if copy.percent > 10 and copy.eta_seconds and not estimates:
            estimates.append((time.monotonic() - began, copy.eta_seconds))

    _wait_for_copy(lab, random.Random(SEED), look)
    took = time.monotonic() - began
    writes = len(writer.kill()) * 50
    for worker in workers:
        worker.kill()
    done = _finish(tmp_path)
    assert done.migration.record().state == "Running"
    found = compare(done.migration, DiffOptions(settle_seconds=0))
    assert (found.total, found.unsettled, found.dead_letters) == (0, 0, 0)
    report(
        f"{LARGE} users copied in {took:.1f} s beside {writes / took:.0f} writes/s ({writes} writes): "
        f"{found.actual} items, 0 lost, 0 resurrected; "
        f"diff of {found.expected} items in {found.seconds:.1f} s: 0 differences; "
        f"estimated after 10 %: {[f'{at + eta:.1f} s' for at, eta in estimates]} (seed {SEED})"
    )


def test_random_worlds_keep_the_invariants(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "solotable.migrations")
    killed = flips = 0
    for number in range(WORLDS):
        clock = MovableClock()
        engines = sqlite.open(sqlite.MEMORY, clock=clock), sqlite.open(sqlite.MEMORY, clock=clock)
        lab = Lab(*engines, clock=clock)
        world = Simulation(lab, SEED + number)
        try:
            world.run()
        except BaseException:
            report(f"the world {number} of seed {SEED} failed")
            raise
        killed += world.killed
        flips += lab.migration.record().flips
        for engine in engines:
            engine.close()
    report(f"{WORLDS} worlds: {killed} workers killed, {flips} switches and reversals (seed {SEED})")
