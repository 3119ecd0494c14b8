"""Counters are exact and pairs whole under many threads and processes, and no writer waits for long."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import ConditionFailed, ServiceError
from tests.waiting import HANG_SECONDS

from . import shop
from .size import LIMIT_SECONDS, amount, report

THREADS = 16
PROCESSES = 4
PAIR = ("pair-a", "pair-b")
#: Increments of each worker.
SHARE = amount(20, 1000)
#: Writes of each worker on average, where each writes as often as it can.
WRITES = amount(50, 2000)

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def make(path: Path) -> None:
    with sqlite.open(path) as engine:
        engine.call("CreateTable", shop.SHOP)


def work(engine: SqliteEngine, share: int) -> list[float]:
    """Raise a counter and a pair so many times each; return how long each granted write took."""
    waits: list[float] = []

    def granted(step: Callable[[], None]) -> None:
        while True:
            begun = time.perf_counter()
            try:
                step()
            except ConditionFailed:
                continue
            except ServiceError as refused:
                assert refused.code == "TransactionCanceledException", refused
                continue
            waits.append(time.perf_counter() - begun)
            return

    def raise_counter() -> None:
        old = shop.number(engine, "counter")
        shop.set_from(engine, "counter", old, old + 1)

    def raise_pair() -> None:
        first, second = shop.both(engine, PAIR)
        assert first == second, "a transaction is torn"
        shop.set_both(engine, PAIR, first, first + 1)

    for _ in range(share):
        granted(raise_counter)
        granted(raise_pair)
    return waits


def in_process(path: str, share: int, waits: multiprocessing.Queue[list[float]]) -> None:
    with sqlite.open(path) as engine:
        waits.put(work(engine, share))


def check(path: Path, total: int) -> None:
    with sqlite.open(path) as engine:
        assert shop.number(engine, "counter") == total
        assert shop.both(engine, PAIR) == (total, total)


def test_counters_are_exact_and_pairs_whole_under_threads(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    make(path)
    waits: list[list[float]] = []
    with sqlite.open(path) as engine:
        threads = [threading.Thread(target=lambda: waits.append(work(engine, SHARE))) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(waits) == THREADS, "a thread failed"
    check(path, THREADS * SHARE)
    tell(f"{THREADS} threads", waits)


def test_counters_are_exact_and_pairs_whole_under_processes(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    make(path)
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[list[float]] = context.Queue()
    processes = [context.Process(target=in_process, args=(str(path), SHARE, queue)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    waits = [queue.get(timeout=LIMIT_SECONDS) for _ in processes]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    check(path, PROCESSES * SHARE)
    tell(f"{PROCESSES} processes", waits)


def tell(who: str, waits: list[list[float]]) -> None:
    every = sorted(wait for own in waits for wait in own)
    worst = ", ".join(f"{max(own) * 1000:.0f}" for own in waits)
    report(
        f"{who}: {len(every)} granted writes, exact; p50 {every[len(every) // 2] * 1000:.1f} ms, "
        f"p99 {every[len(every) * 99 // 100] * 1000:.1f} ms; worst wait of each: {worst} ms"
    )


def test_a_slow_reader_does_not_hold_up_writers_nor_they_him(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    make(path)
    with sqlite.open(path) as engine:
        for number in range(200):
            shop.put(engine, shop.content(number))
        begun, ended = threading.Event(), threading.Event()
        seen: list[int] = []

        def read_slowly() -> None:
            """Look at one moment for as long as others write."""
            with engine.database.snapshot() as connection:
                table = engine.table("Shop")
                while not seen or not ended.is_set():
                    seen.append(connection.execute(f"SELECT count(*) FROM {table.items}").fetchone()[0])
                    begun.set()
                    ended.wait(0.005)
                seen.append(connection.execute(f"SELECT count(*) FROM {table.items}").fetchone()[0])

        alone = _write(engine, 1000, 200)
        reader = threading.Thread(target=read_slowly)
        reader.start()
        assert begun.wait(HANG_SECONDS)
        # Were a writer to wait for the reader, this would never end.
        beside = _write(engine, 2000, 200)
        scans = [len(shop.pages(engine, "Scan")) for _ in range(3)]
        ended.set()
        reader.join()
        assert set(seen) == {400}, "a snapshot moved"
        assert scans == [600] * 3
        report(f"200 writes alone {alone * 1000:.0f} ms, beside an open snapshot {beside * 1000:.0f} ms")


def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    make(path)
    with sqlite.open(path) as engine:
        shop.put(engine, shop.content(1))
        inside, done = threading.Event(), threading.Event()

        def write_slowly(connection: object) -> None:
            inside.set()
            assert done.wait(HANG_SECONDS)

        writer = threading.Thread(target=engine.database.write, args=(write_slowly,))
        writer.start()
        assert inside.wait(HANG_SECONDS)
        # Were they to wait, the test would end by its time limit.
        assert shop.get(engine, "item-1") == shop.content(1)
        assert len(shop.pages(engine, "Scan")) == 1
        done.set()
        writer.join()


def test_no_writer_starves_under_group_commit(tmp_path: Path) -> None:
    """Of sixteen who write as fast as they can, none gets far less than the others."""
    path = tmp_path / "shop.db"
    make(path)
    written = [0] * THREADS
    worst = [0.0] * THREADS
    with sqlite.open(path) as engine:
        together = threading.Barrier(THREADS)

        def write(place: int) -> None:
            together.wait(HANG_SECONDS)
            while sum(written) < THREADS * WRITES:
                begun = time.perf_counter()
                shop.put(engine, shop.content(place * 100_000 + written[place] % 500))
                worst[place] = max(worst[place], time.perf_counter() - begun)
                written[place] += 1

        threads = [threading.Thread(target=write, args=(place,)) for place in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert min(written) * 20 > max(written), written
    report(
        f"{THREADS} writers: {sum(written)} writes, from {min(written)} to {max(written)} each, "
        f"worst wait {max(worst) * 1000:.0f} ms"
    )


def _write(engine: SqliteEngine, first: int, count: int) -> float:
    begun = time.perf_counter()
    for number in range(first, first + count):
        shop.put(engine, shop.content(number))
    return time.perf_counter() - begun
