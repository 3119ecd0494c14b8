"""What a fork does to an open database: nothing that was acknowledged is lost, in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite.maintenance.checkup import examine
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")


def run(program: str, path: Path) -> list[str]:
    """Run a program of `forking`; return the keys of its acknowledged writes, from all its processes."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "tests.unit.engines.sqlite.forking", program, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode in (0, -9), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout.split()


def stored(path: Path) -> set[str]:
    with sqlite.open(path) as engine:
        items = engine.call("Scan", {"TableName": "Things"})["Items"]
    assert examine(str(path)).problems == []
    return {item["pk"]["S"] for item in items}


@pytest.mark.parametrize(
    ("program", "writes"),
    [
        ("child_opens_its_own", 44),
        ("child_uses_the_parents", 44),
        ("two_engines", 5),
        ("daemon", 43),
        ("start_methods", 6),
        ("refused_inside_a_read", 7),
        ("refused_inside_a_write", 1),
        ("refused_after_a_fork_by_c", 1),
        ("refused_beside_another_connection", 2),
        ("refused_beside_a_closed_engine", 2),
        ("interrupted_reads", 3),
        ("beside_a_database_in_memory", 2),
        ("each_process_is_present", 1),
        ("forks_in_a_fork", 4),
        ("too_few_descriptors", 2),
        ("beside_c_code", 2),
    ],
)
def test_every_acknowledged_write_is_there_after_a_fork(program: str, writes: int, tmp_path: Path) -> None:
    acknowledged = run(program, tmp_path / "shop.db")
    assert len(acknowledged) == writes
    assert stored(tmp_path / "shop.db") == set(acknowledged)


def test_an_interruption_at_any_line_of_a_fork_leaves_the_parent_usable(tmp_path: Path) -> None:
    acknowledged = run("interrupted_forks", tmp_path / "shop.db")
    assert "child-last" in acknowledged
    assert stored(tmp_path / "shop.db") == set(acknowledged)


def test_threads_go_on_through_forks(tmp_path: Path) -> None:
    acknowledged = run("threads", tmp_path / "shop.db")
    assert len([key for key in acknowledged if key.startswith("child")]) == 60
    assert stored(tmp_path / "shop.db") == set(acknowledged)


def test_a_database_in_memory_stays_with_the_parent(tmp_path: Path) -> None:
    run("in_memory", tmp_path / "unused")


def test_an_async_store_works_in_a_forked_child(tmp_path: Path) -> None:
    run("async_store", tmp_path / "notes.db")
