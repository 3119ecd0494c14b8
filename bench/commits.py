"""Durable commits: how many writes a second are on the disk when they are answered.

PutItem in process at full durability, by one caller and by sixteen, beside one caller of raw
SQLite (a transaction and an fsync for each item, WAL, synchronous FULL). A figure is the median
of rounds taken in turns; waits are those of all rounds together.
"""

from __future__ import annotations

import gc
import itertools
import os
import sqlite3
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.in_process import TABLE
from bench.wire import workload
from solotable._protocol.json_codec import dumps
from solotable.engines import sqlite

MANY = 16
RAW, ONE, SIXTEEN = "raw SQLite, 1 caller", "solotable, 1 caller", f"solotable, {MANY} callers"
_ITEMS = 2048

Write = Callable[[dict[str, Any]], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Who writes, with how many threads, and what it has taken so far."""

    write: Write
    callers: int
    rates: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)


def fsync_milliseconds(folder: Path) -> float:
    """Return what the disk takes for 4 KB that must not be lost, the median of some.

    It decides what sharing an fsync can gain: where it costs next to nothing, as on some virtual
    disks, many callers are bound by the processor like one.
    """
    taken = []
    with (folder / "fsync").open("wb", buffering=0) as file:
        for _ in range(64):
            file.write(bytes(4096))
            start = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - start)
    return round(statistics.median(taken) * 1e3, 3)


def raw_writer(path: Path) -> tuple[sqlite3.Connection, Write]:
    """Return a connection and a call that stores one item, each in a transaction of its own."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE items (pk TEXT, sk TEXT, item BLOB, PRIMARY KEY (pk, sk))")

    def write(item: dict[str, Any]) -> None:
        connection.execute(
            "INSERT OR REPLACE INTO items VALUES (?, ?, ?)", (item["pk"]["S"], item["sk"]["S"], dumps(item))
        )

    return connection, write


def measure(folder: Path, *, rounds: int, seconds: float) -> dict[str, dict[str, float]]:
    """Return for each contender its commits a second and its waits in milliseconds."""
    items = [workload.item(number) for number in range(_ITEMS)]
    connection, raw = raw_writer(folder / "commits-raw.db")
    with sqlite.open(folder / "commits-engine.db") as engine:
        engine.call("CreateTable", TABLE)

        def ours(item: dict[str, Any]) -> object:
            return engine.call("PutItem", {"TableName": "bench", "Item": item})

        contenders = {
            RAW: Contender(write=raw, callers=1),
            ONE: Contender(write=ours, callers=1),
            SIXTEEN: Contender(write=ours, callers=MANY),
        }
        for contender in contenders.values():
            play(contender.write, contender.callers, items, seconds / 4)
        for _ in range(rounds):
            for contender in contenders.values():
                rate, waits = play(contender.write, contender.callers, items, seconds)
                contender.rates.append(rate)
                contender.waits.extend(waits)
            print(".", end="", flush=True)
    connection.close()
    return {
        name: {"rate": round(statistics.median(each.rates), 1), **spread(each.waits)}
        for name, each in contenders.items()
    }


def play(
    write: Write, callers: int, items: Sequence[dict[str, Any]], seconds: float
) -> tuple[float, list[float]]:
    """Write from this many threads for some seconds; return writes a second, and every wait in seconds."""
    waits: list[list[float]] = [[] for _ in range(callers)]
    failures: list[Exception] = []
    gate = threading.Barrier(callers + 1)

    def caller(number: int) -> None:
        mine = itertools.cycle(items[number::callers])
        taken = waits[number]
        gate.wait()
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            # A new value each time: no write finds the item as it would leave it.
            write({**next(mine), "order": {"N": str(len(taken))}})
            taken.append(time.perf_counter() - start)

    def guarded(number: int) -> None:
        try:
            caller(number)
        except Exception as failure:  # noqa: BLE001 - the edge of a thread: raised again below
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(callers)]
    gc.collect()
    for thread in threads:
        thread.start()
    gate.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - begin
    if failures:
        raise failures[0]
    together = [wait for each in waits for wait in each]
    return len(together) / elapsed, together


def spread(waits: Sequence[float]) -> dict[str, float]:
    """Return the middle, the 99th of a hundred and the worst of some waits, in milliseconds."""
    ordered = sorted(waits)
    if not ordered:
        return {"p50_ms": 0.0, "p99_ms": 0.0, "worst_ms": 0.0}
    at = {"p50_ms": len(ordered) // 2, "p99_ms": len(ordered) * 99 // 100, "worst_ms": len(ordered) - 1}
    return {name: round(ordered[place] * 1e3, 3) for name, place in at.items()}
