"""Background work takes small slices while another writer waits, and large ones while none does."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.file.connection import Database
from solotable.engines.sqlite.file.pacing import BatchPacer
from solotable.engines.sqlite.maintenance import index_backfill
from tests.waiting import wait_until

from .clocked import START, create, opened, put
from .test_index_backfill import MANY, defined_only, filled
from .test_ttl_sweeper import SETTING, at


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(str(tmp_path / "db"), durability="relaxed")


def slices(database: Database, pace: BatchPacer, count: int) -> list[int]:
    found = []
    for _ in range(count):
        found.append(pace.items)
        database.write(pace.adapt)
    return found


def test_slices_grow_while_no_other_writer_is_seen(database: Database) -> None:
    assert slices(database, BatchPacer(database), 7) == [50, 100, 200, 400, 500, 500, 500]
    database.close()


def test_slices_are_small_again_once_a_writer_waits(database: Database) -> None:
    pace = BatchPacer(database)
    slices(database, pace, 5)

    def slice_with_a_writer_behind_it(connection: sqlite3.Connection) -> None:
        writer.start()
        wait_until(lambda: database.waiting)
        pace.adapt(connection)

    writer = threading.Thread(target=lambda: database.write(lambda connection: None))
    database.write(slice_with_a_writer_behind_it)
    writer.join()
    assert slices(database, pace, 3) == [50, 100, 200]
    database.close()


def test_slices_are_small_while_another_process_writes(database: Database, tmp_path: Path) -> None:
    pace = BatchPacer(database)
    slices(database, pace, 5)
    other = Database(str(tmp_path / "db"), durability="relaxed")
    other.write(lambda connection: connection.execute("UPDATE identity SET last_index = last_index + 1"))
    assert slices(database, pace, 3)[1:] == [50, 100]
    other.close()
    database.close()


def waiting_writer(engine: SqliteEngine, stop: threading.Event) -> threading.Thread:
    """Let a thread write for as long as it may."""

    def work() -> None:
        while not stop.is_set():
            engine.database.write(lambda connection: None)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_filling_beside_a_writer_is_done_in_small_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    thread: threading.Thread | None = None
    plain = BatchPacer.adapt

    def look(self: BatchPacer, connection: sqlite3.Connection) -> None:
        sizes.append(self.items)
        wait_until(lambda: thread is None or engine.database.waiting)
        plain(self, connection)

    monkeypatch.setattr(BatchPacer, "adapt", look)
    with opened(tmp_path / "db") as engine:
        create(engine)
        filled(engine)
        index_backfill.fill(engine, "Things", defined_only(engine))
        alone, sizes[:] = len(sizes), []
        stop = threading.Event()
        thread = waiting_writer(engine, stop)
        engine.call(
            "UpdateTable",
            {"TableName": "Things", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "byg"}}]},
        )
        index_backfill.fill(engine, "Things", defined_only(engine))
        stop.set()
        thread.join()
        assert alone <= MANY // 250
        assert sizes == [50] * (MANY // 50)


def test_a_sweep_removes_in_paced_slices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rests = 0
    plain = BatchPacer.yield_to_writers

    def rest(self: BatchPacer) -> None:
        nonlocal rests
        rests += 1
        plain(self)

    monkeypatch.setattr(BatchPacer, "yield_to_writers", rest)
    with opened(tmp_path / "db") as engine:
        create(engine)
        engine.call("UpdateTimeToLive", SETTING)
        for place in range(120):
            put(engine, str(place), expires=at(START - 10))
        assert engine.sweep() == 120
    # 50 and the rest.
    assert rests == 2
