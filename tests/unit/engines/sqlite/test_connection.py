"""The file: what is refused, what is kept, and what a fault does to the next request."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.tables import layout
from solotable.errors import (
    Corrupt,
    EngineError,
    NotOurFile,
    ReadOnly,
    ServiceError,
    StorageFull,
    TransactionCancelled,
)
from tests.conformance.tables import TABLES
from tests.waiting import HANG_SECONDS

from .faulty import Faults

Json = dict[str, Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def start(path: Path, **options: Any) -> SqliteEngine:
    engine = sqlite.open(path, **options)
    engine.call("CreateTable", TABLES["Pair"])
    return engine


def put(engine: SqliteEngine, sort: str, **attributes: Json) -> None:
    item = {"pk": {"S": "p"}, "sk": {"S": sort}, **attributes}
    engine.call("PutItem", {"TableName": "Pair", "Item": item})


def get(engine: SqliteEngine, sort: str) -> Json | None:
    reply = engine.call("GetItem", {"TableName": "Pair", "Key": {"pk": {"S": "p"}, "sk": {"S": sort}}})
    return reply.get("Item")


def fill(engine: SqliteEngine) -> None:
    for number in range(100):
        put(engine, f"big{number:03d}", text={"S": "x" * 50_000})


def test_what_was_answered_is_there_after_reopening(path: Path) -> None:
    with start(path) as engine:
        put(engine, "a", n={"N": "1"})
    with sqlite.open(path) as engine:
        assert get(engine, "a") == {"pk": {"S": "p"}, "sk": {"S": "a"}, "n": {"N": "1"}}


def test_durable_is_full_fsync_in_wal_and_relaxed_is_not(path: Path) -> None:
    with start(path) as engine:
        (level,) = engine.database.write(lambda c: c.execute("PRAGMA synchronous").fetchone())
        (mode,) = engine.database.write(lambda c: c.execute("PRAGMA journal_mode").fetchone())
    assert (level, mode) == (2, "wal")
    with sqlite.open(path, durability="relaxed") as engine:
        (level,) = engine.database.write(lambda c: c.execute("PRAGMA synchronous").fetchone())
    assert level == 1


def test_the_first_read_after_a_commit_uses_the_cache_of_the_writer(path: Path) -> None:
    used: list[sqlite3.Connection] = []
    faults = Faults()
    with SqliteEngine(str(path), connect=faults.connect) as engine:
        engine.call("CreateTable", TABLES["Pair"])
        put(engine, "a")
        get(engine, "a")
        faults.before = lambda connection, sql: used.append(connection) if sql.startswith("SELECT") else None
        assert get(engine, "a")
        put(engine, "b")
        used.clear()
        assert get(engine, "b")
        assert get(engine, "b")
        assert [connection is engine.database.writer for connection in used] == [True, False]
        # Another thread has the writer: a read does not wait for it.
        put(engine, "c")
        used.clear()
        found: list[Json | None] = []
        with engine.database._group_commit.lock:
            reader = threading.Thread(target=lambda: found.append(get(engine, "c")))
            reader.start()
            reader.join(HANG_SECONDS)
        assert found == [{"pk": {"S": "p"}, "sk": {"S": "c"}}]
        assert engine.database.writer not in used


def test_a_read_with_the_writers_cache_sees_no_open_transaction(path: Path) -> None:
    with start(path) as engine:
        put(engine, "a", n={"N": "1"})

        def read(_: object) -> Json | None:
            put(engine, "a", n={"N": "2"})
            return get(engine, "a")

        (outcome,) = engine.database.run_together(read, [None])
        assert outcome.result == {"pk": {"S": "p"}, "sk": {"S": "a"}, "n": {"N": "1"}}
        assert get(engine, "a") == {"pk": {"S": "p"}, "sk": {"S": "a"}, "n": {"N": "2"}}


def test_a_read_with_the_writers_cache_sees_commits_of_other_processes(path: Path) -> None:
    with start(path) as engine, sqlite.open(path) as other:
        for number in range(3):
            put(engine, "mine", n={"N": str(number)})
            put(other, "theirs", n={"N": str(number)})
            found = get(engine, "theirs")
            assert found is not None
            assert found["n"] == {"N": str(number)}


def test_the_file_says_what_it_is(path: Path) -> None:
    start(path).close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA application_id").fetchone() == (layout.APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (layout.VERSION,)
    connection.close()


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_the_file_is_its_owners_alone(path: Path) -> None:
    with start(path) as engine:
        put(engine, "a")
        for name in (path, *path.parent.glob("shop.db-*")):
            assert stat.S_IMODE(name.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "content", [b"not a database at all, " * 100, b"SQLite format 3\x00" + b"\xff" * 200]
)
def test_a_file_that_is_not_a_database_is_rejected_and_unchanged(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(EngineError):
        sqlite.open(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(NotOurFile, match="another program"):
        sqlite.open(path)
    assert path.read_bytes() == before


def test_a_file_of_a_newer_version_is_refused(path: Path) -> None:
    start(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {layout.VERSION + 1}")
    connection.close()
    with pytest.raises(NotOurFile, match="newer solotable"):
        sqlite.open(path)


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be created"):
        sqlite.open(tmp_path / "nowhere" / "shop.db")


def test_read_only_reads_and_refuses_writes(path: Path) -> None:
    with start(path) as engine:
        put(engine, "a")
    with sqlite.open(path, read_only=True) as engine:
        assert get(engine, "a")
        with pytest.raises(ReadOnly, match="read_only"):
            put(engine, "b")
        assert get(engine, "b") is None


def test_a_full_disk_is_an_error_to_that_caller_and_nothing_is_lost(path: Path) -> None:
    with start(path) as engine:
        put(engine, "kept")
        (pages,) = engine.database.write(lambda c: c.execute("PRAGMA page_count").fetchone())
        engine.database.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 20}").fetchone())
        with pytest.raises(StorageFull):
            fill(engine)
        stored = [f"big{n:03d}" for n in range(100) if get(engine, f"big{n:03d}")]
        assert get(engine, "kept")
        engine.database.write(lambda c: c.execute("PRAGMA max_page_count = 100000").fetchone())
        put(engine, "after", text={"S": "x" * 50_000})
        assert [f"big{n:03d}" for n in range(100) if get(engine, f"big{n:03d}")] == stored
        assert get(engine, "after")


def test_a_damaged_item_is_an_error_and_never_an_answer(path: Path) -> None:
    with start(path) as engine:
        put(engine, "a", text={"S": "the right text"})
        table = engine.table("Pair")
    connection = sqlite3.connect(path)
    (item,) = connection.execute(f"SELECT item FROM {table.items}").fetchone()
    connection.execute(f"UPDATE {table.items} SET item = ?", (item.replace(b"right", b"wrong"),))
    connection.commit()
    connection.close()
    with sqlite.open(path) as engine:
        with pytest.raises(Corrupt, match="Pair"):
            get(engine, "a")
        with pytest.raises(Corrupt):
            engine.call("Scan", {"TableName": "Pair"})


def test_a_closed_engine_says_so(path: Path) -> None:
    engine = start(path)
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="was closed"):
        get(engine, "a")


@pytest.mark.parametrize("where", ["file", "memory"])
def test_conditional_counters_are_exact_under_threads(path: Path, where: str) -> None:
    target = path if where == "file" else Path(":memory:")
    with start(target, durability="relaxed") as engine:
        put(engine, "counter", n={"N": "0"})

        def add_ten() -> None:
            for _ in range(10):
                engine.call(
                    "UpdateItem",
                    {
                        "TableName": "Pair",
                        "Key": {"pk": {"S": "p"}, "sk": {"S": "counter"}},
                        "UpdateExpression": "ADD n :one",
                        "ExpressionAttributeValues": {":one": {"N": "1"}},
                    },
                )

        threads = [threading.Thread(target=add_ten) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        item = get(engine, "counter")
    assert item is not None
    assert item["n"] == {"N": "80"}


def test_a_cancelled_transaction_leaves_nothing(path: Path) -> None:
    with start(path) as engine:
        put(engine, "a")
        writes = [
            {"Put": {"TableName": "Pair", "Item": {"pk": {"S": "p"}, "sk": {"S": "new"}}}},
            {
                "Put": {
                    "TableName": "Pair",
                    "Item": {"pk": {"S": "p"}, "sk": {"S": "a"}},
                    "ConditionExpression": "attribute_not_exists(pk)",
                }
            },
        ]
        with pytest.raises(TransactionCancelled):
            engine.call("TransactWriteItems", {"TransactItems": writes})
        assert get(engine, "new") is None


def test_two_engines_on_one_file_see_each_others_writes(path: Path) -> None:
    with start(path) as first, sqlite.open(path) as second:
        put(first, "a")
        assert get(second, "a")
        put(second, "b")
        assert get(first, "b")


def test_a_token_is_remembered_across_a_restart_and_for_ten_minutes(path: Path) -> None:
    now = 1_000_000.0

    def transact(engine: SqliteEngine, sort: str) -> None:
        update = {
            "TableName": "Pair",
            "Key": {"pk": {"S": "p"}, "sk": {"S": sort}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        engine.call("TransactWriteItems", {"TransactItems": [{"Update": update}], "ClientRequestToken": "t"})

    with start(path, clock=lambda: now) as engine:
        transact(engine, "a")
        transact(engine, "a")
    with sqlite.open(path, clock=lambda: now) as engine:
        transact(engine, "a")
        item = get(engine, "a")
        assert item is not None
        assert item["n"] == {"N": "1"}
        with pytest.raises(ServiceError) as refused:
            transact(engine, "b")
        assert refused.value.code == "IdempotentParameterMismatchException"
        now += 601
        transact(engine, "b")
        assert get(engine, "b")


def test_a_damaged_schema_is_an_error_of_the_engine(path: Path) -> None:
    start(path).close()
    good = path.read_bytes()
    first, last = good.index(b"CREATE"), good.rindex(b"CREATE")
    errors = 0
    for place in range(first - 40, last + 60, 11):
        if not good[place]:
            continue
        # 0xFF is never part of UTF-8.
        path.write_bytes(good[:place] + b"\xff" + good[place + 1 :])
        try:
            sqlite.open(path).close()
        except EngineError:
            errors += 1
    assert errors > 50
