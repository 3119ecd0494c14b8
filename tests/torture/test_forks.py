"""Families of processes that fork, stop, move and die: what was acknowledged is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite.maintenance.checkup import examine
from tests.house.checkout import ROOT

from . import shop
from .size import LIMIT_SECONDS, SEED, amount, report

FAMILIES = amount(2, 60)
FORKS = amount(6, 12)

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()"),
    pytest.mark.timeout(LIMIT_SECONDS),
]


def test_nothing_acknowledged_is_lost_in_a_family_of_processes(tmp_path: Path) -> None:
    writes = 0
    for family in range(FAMILIES):
        folder = tmp_path / str(family)
        folder.mkdir()
        with sqlite.open(folder / "shop.db") as engine:
            engine.call("CreateTable", shop.SHOP)
        # A relative path: children change their folder.
        command = [sys.executable, "-m", "tests.torture.family", "shop.db", "acknowledged"]
        done = subprocess.run(
            [*command, str(SEED + family), str(FORKS)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        acknowledged = {f"item-{number}" for number in (folder / "acknowledged").read_text().split()}
        with sqlite.open(folder / "shop.db") as engine:
            stored = {item["pk"]["S"] for item in shop.pages(engine, "Scan")}
        assert acknowledged <= stored, f"{len(acknowledged - stored)} acknowledged writes are lost"
        assert examine(str(folder / "shop.db")).problems == []
        writes += len(acknowledged)
    report(f"forks: {FAMILIES} families, {writes} acknowledged writes, 0 lost (seed {SEED})")
    assert writes > FAMILIES * FORKS
