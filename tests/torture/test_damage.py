"""Damaged bytes: the right item or an error, never a wrong item, and the doctor finds what is missing.

What is not promised: SQLite's pages have no checksums, so damage to a page that leads to items may
hide them from a read. Every such case must be one that `solotable doctor` finds. A damaged log ends
where the damage begins: what is read then is what the file was at an earlier commit, whole.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite.maintenance.checkup import examine

from . import shop
from .damage import State, check_file, spoil
from .size import LIMIT_SECONDS, SEED, amount, report

TRIALS = amount(100, 5000)
ITEMS = 250
LOGGED = 25

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[State]]:
    """A file with a log as a crash leaves them, and the states that its last commits have left."""
    folder = tmp_path_factory.mktemp("original")
    with sqlite.open(folder / "live.db") as engine:
        engine.call("CreateTable", shop.SHOP)
        for number in range(ITEMS):
            shop.put(engine, shop.content(number))
        engine.database.write(lambda connection: connection.execute("SELECT 1").fetchone())
        state = {item["pk"]["S"]: item for item in shop.pages(engine, "Scan")}
        states = [state]
    with sqlite.open(folder / "live.db") as engine:
        for number in range(LOGGED):
            item = {**shop.content(number * 7), "again": {"N": str(number)}}
            if number % 5 == 4:
                item = shop.content(ITEMS + number)
            shop.put(engine, item)
            states.append({**states[-1], item["pk"]["S"]: item})
        for suffix in ("", "-wal", "-shm"):
            shutil.copyfile(f"{folder / 'live.db'}{suffix}", f"{folder / 'shop.db'}{suffix}")
    return folder / "shop.db", states


def test_the_original_is_read_right(tmp_path: Path, original: tuple[Path, list[State]]) -> None:
    path = _copy(original[0], tmp_path)
    assert Path(f"{path}-wal").stat().st_size > 10_000
    found = check_file(path, original[1], random.Random(1))
    assert (found.errors, found.wrong, found.missing, found.older) == (0, [], 0, False)
    assert examine(str(path)).problems == []


def test_a_damaged_file_gives_the_right_item_or_an_error(
    tmp_path: Path, original: tuple[Path, list[State]]
) -> None:
    chance = random.Random(SEED)
    tally: Counter[str] = Counter()
    for trial in range(TRIALS):
        path = _copy(original[0], tmp_path)
        target = chance.choices(("", "-wal", "-shm"), (8, 3, 1))[0]
        how = spoil(Path(f"{path}{target}"), chance)
        found = check_file(path, original[1], chance)
        assert found.wrong == [], f"seed {SEED}, trial {trial}, {how}: {found.wrong[:3]}"
        if found.older:
            assert target == "-wal", f"seed {SEED}, trial {trial}, {how}: an older state"
        if found.missing:
            problems = examine(str(path)).problems
            assert problems, f"seed {SEED}, trial {trial}, {how}: {found.missing} items are missing unseen"
        tally["error" if found.errors else "older" if found.older else "right"] += 1
        tally["missing"] += bool(found.missing)
        tally["missing without an error"] += bool(found.missing and not found.errors)
    report(
        f"damage: {TRIALS} files: {tally['right']} read right, {tally['error']} gave errors, "
        f"{tally['older']} an earlier commit (log damaged); 0 wrong items; {tally['missing']} passed items "
        f"over ({tally['missing without an error']} of them without any error), all found by doctor "
        f"(seed {SEED})"
    )


def _copy(source: Path, folder: Path) -> Path:
    path = folder / "shop.db"
    for suffix in ("", "-wal", "-shm"):
        shutil.copyfile(f"{source}{suffix}", f"{path}{suffix}")
    return path
