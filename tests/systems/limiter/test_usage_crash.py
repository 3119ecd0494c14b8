"""kill -9 of who consumes and of two who count: usage is what was consumed, exactly."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

import solotable
from solotable.protocol.encode import items as decode_items
from solotable.protocol.requests import Scan
from solotable.systems.limiter.table import limiter
from solotable.systems.limiter.usage import aggregate
from solotable.values import Item
from tests.torture.size import SEED, amount

from .consuming import opened

ROUNDS = amount(4, 60)
ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.timeout(amount(240, 3600))


def started(role: str, path: Path, seed: int) -> subprocess.Popen[bytes]:
    sources = Path(solotable.__file__).parents[1]
    return subprocess.Popen(  # noqa: S603 - its own program
        [sys.executable, "-m", "tests.systems.limiter.consuming", role, str(path), str(seed)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{sources}{os.pathsep}{ROOT}"},
    )


def killed(process: subprocess.Popen[bytes]) -> Counter[str]:
    """Kill a process and return what it has told."""
    process.kill()
    told, _ = process.communicate()
    return Counter(told.decode().split("\n")[:-1])


def sums(items: Iterable[Item], tag: str, prefix: str, *names: str) -> Counter[tuple[str, ...]]:
    """Return what the attributes that begin so come to, by other attributes and their own rest."""
    total: Counter[tuple[str, ...]] = Counter()
    for item in items:
        if item[limiter.tag] == {"S": tag}:
            who = tuple(item[name]["S"] for name in names)
            for name, value in item.items():
                if name.startswith(prefix):
                    total[(*who, name.removeprefix(prefix))] += int(value["N"])
    return total


def test_c1_5_usage_is_what_was_consumed_whoever_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "limiter.db"
    dice = random.Random(SEED)
    opened(str(path)).close()
    told: Counter[str] = Counter()
    for round_ in range(ROUNDS):
        processes = [started(role, path, round_) for role in ("consume", "count", "count")]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline(), "it did not start"
        time.sleep(dice.uniform(0.05, 0.6))
        dice.shuffle(processes)
        for process in processes:
            told += killed(process)
            time.sleep(dice.uniform(0.0, 0.1))
    with opened(str(path)) as db:
        aggregate(db)
        assert aggregate(db).records == 0
        found: list[Item] = []
        start = None
        while True:
            page = db.engine.handle(Scan(table=db.scope.table(limiter), start=start, consistent=True))
            found += decode_items(page.items or ())
            start = page.last_key
            if not start:
                break
    assert told["consumed"] > ROUNDS
    assert told["counted"] > 1
    consumed = sums(found, "Bucket", "consumed_", "entity", "resource")
    for window in ("hour", "day", "month"):
        rows = [item for item in found if item.get("window") == {"S": window}]
        assert sums(rows, "Usage", "tokens_", "entity", "resource") == consumed, f"seed {SEED}"
