"""kill -9 at any moment: what was acknowledged is there, nothing is torn, and the file is sound."""

from __future__ import annotations

import multiprocessing
import random
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite.maintenance.checkup import examine
from tests.waiting import HANG_SECONDS, jitter

from . import shop, writer
from .size import LIMIT_SECONDS, LONG, SEED, amount, report

LOOPS = amount(50, 500)
#: A file is used for so many kills: a recovery must also find what earlier ones have left.
LOOPS_A_FILE = 10

#: How many acknowledgements a writer may live to see, at most; many die at once.
LIVES = (0, 5, 50, 200, *((500, 1500) if LONG else ()))

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def killed(path: Path, first: int, chance: random.Random) -> list[tuple[str, int]]:
    """Let a process write for a while, kill it, and return its acknowledged writes."""
    life = int(chance.choice(LIVES) * chance.random())
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.torture.writer"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=writer.run, args=(str(path), first, theirs), daemon=True)
    process.start()
    theirs.close()
    acknowledged_writes: list[tuple[str, int]] = []
    assert _tell(ours, acknowledged_writes), "the writer did not start"
    while len(acknowledged_writes) <= life:
        assert _tell(ours, acknowledged_writes), "the writer has stopped"
    jitter(chance)
    process.kill()
    while _tell(ours, acknowledged_writes):
        pass
    process.join()
    ours.close()
    return acknowledged_writes[1:]


def _tell(connection: Connection, acknowledged_writes: list[tuple[str, int]]) -> bool:
    """Take the next acknowledgement; False when the writer has ended without another."""
    try:
        assert connection.poll(HANG_SECONDS), "the writer neither writes nor ends"
        kind, number = connection.recv_bytes().decode().split()
    except (EOFError, OSError):
        return False
    acknowledged_writes.append((kind, int(number)))
    return True


class Acknowledged:
    """All that was acknowledged on one file."""

    def __init__(self) -> None:
        self.items: set[int] = set()
        self.counts: list[int] = []
        self.pair = 0

    def add(self, acknowledged_writes: list[tuple[str, int]]) -> None:
        self.items |= {number for kind, number in acknowledged_writes if kind == "item"}
        self.counts += [number for kind, number in acknowledged_writes if kind == "count"]
        self.pair = max([self.pair, *(number for kind, number in acknowledged_writes if kind == "pair")])

    def check(self, path: Path, kills: int) -> None:
        """Compare with the file, which has been through so many kills."""
        with sqlite.open(path) as engine:
            stored = {item["pk"]["S"]: item for item in shop.pages(engine, "Scan")}
            listed = [item for place in range(shop.SHELVES) for item in shop.shelf(engine, place)]
            pair = shop.both(engine, writer.PAIR)
            count = shop.number(engine, "counter")
        assert [number for number in self.items if f"item-{number}" not in stored] == []
        items = {key: item for key, item in stored.items() if key.startswith("item-")}
        assert all(item == shop.content(int(item["n"]["N"])) for item in items.values())
        assert {item["pk"]["S"] for item in listed} == set(items)
        assert len(listed) == len(items)
        assert len(set(self.counts)) == len(self.counts), "an increment was granted twice"
        # What each writer had under way when it was killed may or may not have been kept.
        assert max(self.counts, default=0) <= count <= len(self.counts) + writer.COUNTERS * kills
        assert pair[0] == pair[1], "a transaction is torn"
        assert self.pair <= pair[0] <= self.pair + kills
        assert examine(str(path)).problems == []


def test_nothing_acknowledged_is_lost_to_kill_9(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    acknowledged = Acknowledged()
    writes = 0
    path = tmp_path / "shop.db"
    for loop in range(LOOPS):
        turn = loop % LOOPS_A_FILE
        if turn == 0:
            acknowledged = Acknowledged()
            path = tmp_path / f"shop{loop}.db"
            with sqlite.open(path) as engine:
                engine.call("CreateTable", shop.SHOP)
        acknowledged_writes = killed(path, (turn + 1) * 1_000_000, chance)
        writes += len(acknowledged_writes)
        acknowledged.add(acknowledged_writes)
        acknowledged.check(path, turn + 1)
    report(f"kill -9: {LOOPS} kills, {writes} acknowledged writes, 0 lost, 0 torn (seed {SEED})")
    assert writes > LOOPS
