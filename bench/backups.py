"""The price of continuous backups: the same writes with and without them, CPU and wall time.

Items are replaced in a relaxed file, by the engine's PutItem and by a store's put. Both contenders
take turns; a figure is the median of the rounds.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.clock import Work, race
from bench.in_process import TABLE
from solotable import Database, Entity, Key, Table
from solotable.backup import BackupFile
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine

OFF, ON = "without", "with"
SIZES = {"0.3 KB": 300, "0.8 KB": 800}
_ITEMS = 2_000
shop = Table("Shop")


class Order(Entity, table=shop):
    """An entity whose size a test chooses."""

    key = Key("ORDER#{order_id}", "ORDER")

    order_id: str
    number: int
    note: str


def measure(folder: Path, *, quick: bool = False) -> dict[str, dict[str, Any]]:
    """Return microseconds of a write: {write: {"cpu": {"without": ..., "with": ...}, "wall": ...}}."""
    figures: dict[str, dict[str, Any]] = {}
    rounds, calls = (5, 100) if quick else (40, 400)
    for title, size in SIZES.items():
        for kind, prepare in (("PutItem", _engine_work), ("store.put", _store_work)):
            opened: list[SqliteEngine | Database] = []
            work: dict[str, Work] = {}
            for name in (OFF, ON):
                path = folder / f"{kind}-{size}-{name}.db"
                work[name] = prepare(path, size, opened, backups=name == ON)
            figures[f"{kind}, replaces {title}"] = {
                "cpu": race(work, rounds=rounds, calls=calls, clock=time.process_time),
                "wall": race(work, rounds=rounds, calls=calls),
            }
            for each in opened:
                each.close()
    return figures


def table(figures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    """Return the figures as lines."""
    lines = [f"  {'':<28}{'CPU µs':>9}{'with':>8}{'':>8}{'wall µs':>10}{'with':>8}"]
    for title, each in figures.items():
        cpu, wall = each["cpu"], each["wall"]
        lines.append(
            f"  {title:<28}{cpu[OFF]:>9.1f}{cpu[ON]:>8.1f}{cpu[ON] / cpu[OFF]:>7.2f}x"
            f"{wall[OFF]:>10.1f}{wall[ON]:>8.1f}{wall[ON] / wall[OFF]:>7.2f}x"
        )
    return lines


def _engine_work(path: Path, size: int, opened: list[Any], *, backups: bool) -> Work:
    engine = sqlite.open(path, durability="relaxed")
    opened.append(engine)
    engine.call("CreateTable", TABLE)
    if backups:
        BackupFile(engine).enable("bench")
    filler = {"S": "x" * (size - 80)}
    # A new value each time: a write that changes nothing is not recorded.
    versions = itertools.count()

    def work(number: int) -> object:
        item = {
            "pk": {"S": f"order#{number % _ITEMS}"},
            "sk": {"S": "order"},
            "number": {"N": str(next(versions))},
            "note": filler,
        }
        return engine.call("PutItem", {"TableName": "bench", "Item": item})

    for number in range(_ITEMS):
        work(number)
    return work


def _store_work(path: Path, size: int, opened: list[Any], *, backups: bool) -> Work:
    db = shop.open(f"sqlite:///{path}?durability=relaxed")
    opened.append(db)
    if backups:
        engine = db.engine
        assert isinstance(engine, SqliteEngine)
        BackupFile(engine).enable("Shop")
    filler = "x" * (size - 120)
    versions = itertools.count()

    def work(number: int) -> object:
        return db.put(Order(order_id=str(number % _ITEMS), number=next(versions), note=filler))

    for number in range(_ITEMS):
        work(number)
    return work
