"""Writes that share a commit share nothing else: not an error, not an undoing, not an interruption."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from solotable._protocol.decode.requests import decode_request
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.file.group_commit import _QueuedWrite
from solotable.errors import ConditionFailed, EngineError, ReadOnly, StorageFull
from tests.conformance.tables import index, table
from tests.waiting import HANG_SECONDS, wait_until

from .faulty import Faults, failing, fault, once

Json = dict[str, Any]
WRITE = "INSERT INTO t1"


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def engine(tmp_path: Path, faults: Faults) -> Iterator[SqliteEngine]:
    with SqliteEngine(str(tmp_path / "shop.db"), connect=faults.connect) as opened:
        opened.call("CreateTable", table("Things", "pk:S"))
        yield opened
    faults.before = faults.after = lambda connection, sql: None


def put(engine: SqliteEngine, key: str, *, new: bool = False) -> None:
    condition = {"ConditionExpression": "attribute_not_exists(pk)"} if new else {}
    engine.call("PutItem", {"TableName": "Things", "Item": {"pk": {"S": key}}, **condition})


def get(engine: SqliteEngine, key: str) -> Json | None:
    return engine.call("GetItem", {"TableName": "Things", "Key": {"pk": {"S": key}}}).get("Item")


def keys(engine: SqliteEngine) -> set[str]:
    return {item["pk"]["S"] for item in engine.call("Scan", {"TableName": "Things"})["Items"]}


class Group:
    """Writes of several threads that come while another write is being committed."""

    def __init__(self, engine: SqliteEngine, faults: Faults) -> None:
        self.errors: dict[str, BaseException | None] = {}
        self._engine = engine
        self._faults = faults

    def run(self, *works: tuple[str, Callable[[], object]], then: Callable[[], None]) -> None:
        """Hold one COMMIT until all have come; `then` runs before the group is begun."""
        held, released = threading.Event(), threading.Event()

        def hold(connection: sqlite3.Connection) -> None:
            held.set()
            assert released.wait(HANG_SECONDS)

        self._faults.before = once("COMMIT", hold)
        threads = [threading.Thread(target=self._run, args=("first", lambda: put(self._engine, "first")))]
        threads[0].start()
        assert held.wait(HANG_SECONDS)
        for number, (name, work) in enumerate(works, 1):
            threads.append(threading.Thread(target=self._run, args=(name, work)))
            threads[-1].start()
            # In the order given: who waits is committed in turn.
            wait_until(lambda number=number: self._engine.database.waiting == number)  # type: ignore[misc]
        then()
        released.set()
        for thread in threads:
            thread.join(HANG_SECONDS)
            assert not thread.is_alive(), "a writer was left waiting"
        self._faults.before = self._faults.after = lambda connection, sql: None

    def _run(self, name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # checked by the test
            self.errors[name] = error
        else:
            self.errors[name] = None


@pytest.fixture
def group(engine: SqliteEngine, faults: Faults) -> Group:
    return Group(engine, faults)


def puts(engine: SqliteEngine, *names: str, new: bool = False) -> list[tuple[str, Callable[[], object]]]:
    return [(name, lambda name=name: put(engine, name, new=new)) for name in names]  # type: ignore[misc]


def nothing() -> None:
    pass


def test_writes_that_wait_are_committed_together(engine: SqliteEngine, faults: Faults, group: Group) -> None:
    before = faults.count("COMMIT")
    group.run(*puts(engine, *"abcdefgh"), then=nothing)
    assert faults.count("COMMIT") - before == 2
    assert keys(engine) == {"first", *"abcdefgh"}
    assert set(group.errors.values()) == {None}


def test_a_refused_write_is_undone_alone(engine: SqliteEngine, group: Group) -> None:
    group.run(
        *puts(engine, "a"), ("again", lambda: put(engine, "a", new=True)), *puts(engine, "b"), then=nothing
    )
    assert isinstance(group.errors["again"], ConditionFailed)
    assert group.errors["a"] is group.errors["b"] is None
    assert keys(engine) == {"first", "a", "b"}


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY])
@pytest.mark.parametrize("undoes", [True, False])
def test_after_a_failed_commit_no_write_is_acknowledged_or_repeated(
    engine: SqliteEngine, faults: Faults, group: Group, code: int, undoes: bool
) -> None:
    def then() -> None:
        faults.before = once("COMMIT", failing(code, undoes=undoes))
        faults.statements.clear()

    group.run(*puts(engine, "a", "b"), ("again", lambda: put(engine, "a", new=True)), then=then)
    errors = [group.errors[name] for name in ("a", "b", "again")]
    # The third met the first's item, which was never committed: it may not say so.
    assert all(isinstance(error, EngineError) for error in errors)
    assert len({id(error) for error in errors}) == 3, "threads that raise one object mix up their traces"
    assert faults.count("BEGIN IMMEDIATE") == 1
    assert keys(engine) == {"first"}
    put(engine, "after")
    assert keys(engine) == {"first", "after"}


def test_the_error_says_that_the_outcome_is_not_known(engine: SqliteEngine, faults: Faults) -> None:
    faults.before = once("COMMIT", failing(sqlite3.SQLITE_IOERR))
    with pytest.raises(EngineError, match="not known"):
        put(engine, "a")


@pytest.mark.parametrize("undoes", [True, False])
def test_a_full_disk_in_the_middle_is_the_fault_of_one(
    engine: SqliteEngine, faults: Faults, group: Group, undoes: bool
) -> None:
    def then() -> None:
        def hook(connection: sqlite3.Connection, sql: str) -> None:
            if "b" in writing and sql.startswith(WRITE):
                failing(sqlite3.SQLITE_FULL, undoes=undoes and connection.in_transaction)(connection)

        faults.before = hook

    writing: list[str] = []

    def slow_b(connection: sqlite3.Connection) -> None:
        writing.append("b")
        try:
            connection.execute(WRITE + "_1 (key, size, crc, item) VALUES (x'00', 1, 1, x'00')")
        finally:
            writing.remove("b")

    works = [*puts(engine, "a"), ("b", lambda: engine.database.write(slow_b)), *puts(engine, "c")]
    group.run(*works, then=then)
    assert isinstance(group.errors["b"], StorageFull)
    assert group.errors["a"] is group.errors["c"] is None
    assert keys(engine) == {"first", "a", "c"}


def test_a_connection_that_met_an_io_error_is_replaced_and_reads_go_on(
    engine: SqliteEngine, faults: Faults
) -> None:
    put(engine, "a")
    assert get(engine, "a")
    opened = faults.opened
    faults.before = once(WRITE, failing(sqlite3.SQLITE_IOERR))
    with pytest.raises(EngineError, match="injected"):
        put(engine, "b")
    assert get(engine, "a")
    assert get(engine, "b") is None
    put(engine, "b")
    assert faults.opened == opened + 1
    assert keys(engine) == {"a", "b"}


def test_an_io_error_inside_a_group_replaces_the_connection_and_the_others_are_tried_alone(
    engine: SqliteEngine, faults: Faults, group: Group
) -> None:
    opened = faults.opened

    def then() -> None:
        faults.before = once(WRITE, failing(sqlite3.SQLITE_IOERR, undoes=True), skip=1)

    group.run(*puts(engine, "a", "b", "c"), then=then)
    assert set(group.errors.values()) == {None}
    assert keys(engine) == {"first", "a", "b", "c"}
    assert faults.opened > opened


def test_a_connection_that_cannot_be_replaced_is_an_error_until_it_can(
    engine: SqliteEngine, faults: Faults
) -> None:
    keys(engine)
    faults.before = once("COMMIT", failing(sqlite3.SQLITE_IOERR))
    faults.refusal = fault(sqlite3.SQLITE_CANTOPEN)
    with pytest.raises(EngineError, match="not known"):
        put(engine, "a")
    with pytest.raises(EngineError, match="cannot be opened"):
        put(engine, "b")
    faults.refusal = None
    put(engine, "c")
    assert "c" in keys(engine)
    assert "b" not in keys(engine)


def test_an_interrupted_leader_leaves_no_write_waiting_and_reports_no_false_result(
    engine: SqliteEngine, faults: Faults, group: Group
) -> None:
    def interrupt(connection: sqlite3.Connection) -> None:
        raise KeyboardInterrupt

    def then() -> None:
        faults.before = once(WRITE, interrupt, skip=1)

    group.run(*puts(engine, "a", "b", "c"), then=then)
    interrupted = [name for name, error in group.errors.items() if isinstance(error, KeyboardInterrupt)]
    assert len(interrupted) == 1
    assert keys(engine) == set(group.errors) - set(interrupted)
    assert [error for error in group.errors.values() if error is not None] == [group.errors[interrupted[0]]]


def test_an_interruption_after_commit_began_is_in_doubt_and_nothing_is_done_twice(
    engine: SqliteEngine, faults: Faults, group: Group
) -> None:
    def interrupt(connection: sqlite3.Connection) -> None:
        raise KeyboardInterrupt

    def then() -> None:
        faults.after = once("COMMIT", interrupt, skip=1)
        faults.statements.clear()

    group.run(*puts(engine, "a", "b", "c"), then=then)
    assert faults.count(WRITE) == 3
    errors = [error for name, error in group.errors.items() if name != "first"]
    assert sum(isinstance(error, KeyboardInterrupt) for error in errors) == 1
    assert sum("not known" in str(error) for error in errors) == 2
    put(engine, "after")


@pytest.mark.skipif(os.name != "posix", reason="signals interrupt a wait on POSIX")
def test_a_waiting_caller_who_is_interrupted_takes_his_write_back(
    engine: SqliteEngine, faults: Faults
) -> None:
    held, released = threading.Event(), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        held.set()
        assert released.wait(HANG_SECONDS)

    faults.before = once("COMMIT", hold)
    first = threading.Thread(target=put, args=(engine, "first"))
    first.start()
    assert held.wait(HANG_SECONDS)

    def interrupt() -> None:
        wait_until(lambda: engine.database.waiting == 1)
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            put(engine, "mine")
    finally:
        signal.signal(signal.SIGINT, before)
    assert engine.database.waiting == 0
    released.set()
    first.join(HANG_SECONDS)
    interrupter.join(HANG_SECONDS)
    put(engine, "after")
    assert keys(engine) == {"first", "after"}


def test_writes_that_wait_while_the_engine_is_closed_are_refused(
    engine: SqliteEngine, faults: Faults, group: Group, tmp_path: Path
) -> None:
    keys(engine)
    opened = faults.opened
    closer = threading.Thread(target=engine.close)
    group.run(*puts(engine, "a", "b", "c"), then=closer.start)
    closer.join(HANG_SECONDS)
    with SqliteEngine(str(tmp_path / "shop.db")) as again:
        there = keys(again)
    assert faults.opened == opened
    assert there == {name for name, error in group.errors.items() if error is None}
    refused = [error for error in group.errors.values() if error is not None]
    assert all("was closed" in str(error) for error in refused)
    with pytest.raises(EngineError, match="was closed"):
        put(engine, "late")


def test_a_group_meets_a_definition_that_another_process_has_changed(
    engine: SqliteEngine, group: Group, tmp_path: Path
) -> None:
    put(engine, "known")
    with SqliteEngine(str(tmp_path / "shop.db")) as other:
        change = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        # The lock is held by the first write: the change comes between it and the group.
        changer = threading.Thread(
            target=other.call, args=("UpdateTable", {"TableName": "Things", "StreamSpecification": change})
        )
        changer.start()
        group.run(*puts(engine, "a", "b", "c"), then=nothing)
        changer.join(HANG_SECONDS)
    assert set(group.errors.values()) == {None}
    assert keys(engine) == {"known", "first", "a", "b", "c"}


def test_the_next_leader_wakes_before_the_callers_of_a_commit(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = engine.database._group_commit
    later = _QueuedWrite(lambda _: None, savepoint=False)
    first = _QueuedWrite(lambda _: commits._queue.append(later), savepoint=False)
    second = _QueuedWrite(lambda _: None, savepoint=False)
    commits._queue.extend([first, second])
    woken: list[_QueuedWrite] = []

    def wake(write: _QueuedWrite) -> None:
        woken.append(write)

    monkeypatch.setattr(_QueuedWrite, "wake", wake)
    commits._lead(first)
    assert woken == [later, first, second]
    assert first.done
    assert second.done
    commits._queue.clear()


# Several writes of one caller ---------------------------------------------------------------------


def request(operation: str, **members: Any) -> Any:
    return decode_request(operation, {"TableName": "Things", **members})


def test_requests_together_are_one_commit_with_an_outcome_each(engine: SqliteEngine, faults: Faults) -> None:
    faults.statements.clear()
    item = {"pk": {"S": "a"}}
    new = {"Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
    first, second, third = engine.handle_together(
        [request("PutItem", **new)] * 2 + [request("GetItem", Key=item)]
    )
    assert first.error is None
    assert isinstance(second.error, ConditionFailed)
    assert third.error is None
    assert faults.count("COMMIT") == 1


def test_together_a_rejected_write_needs_no_savepoint(engine: SqliteEngine, faults: Faults) -> None:
    new = [
        request("PutItem", Item={"pk": {"S": key}}, ConditionExpression="attribute_not_exists(pk)")
        for key in ("a", "a", "b")
    ]
    # The counts are not due: they are a savepoint.
    engine.pending_counts._due_at = float("inf")
    faults.statements.clear()
    outcomes = engine.handle_together(new)
    assert faults.count("COMMIT") == 1
    assert faults.count("SAVEPOINT") == 0
    assert [type(outcome.error) for outcome in outcomes] == [type(None), ConditionFailed, type(None)]
    assert keys(engine) == {"a", "b"}


def test_together_a_write_that_fails_after_a_change_is_undone_alone(
    engine: SqliteEngine, faults: Faults
) -> None:
    engine.call("CreateTable", table("Indexed", "pk:S", types={"g": "S"}, gsi=[index("byg", "g")]))
    entries = 0

    def hook(connection: sqlite3.Connection, sql: str) -> None:
        nonlocal entries
        if sql.startswith("INSERT OR IGNORE INTO x"):
            entries += 1
            # The second of three writes, in the transaction of all and in its own.
            if entries in (2, 4):
                failing(sqlite3.SQLITE_FULL)(connection)

    faults.before = hook
    works = [
        decode_request("PutItem", {"TableName": "Indexed", "Item": {"pk": {"S": key}, "g": {"S": "g"}}})
        for key in "abc"
    ]
    outcomes = engine.handle_together(works)
    assert [type(outcome.error) for outcome in outcomes] == [type(None), StorageFull, type(None)]
    found = engine.call("Scan", {"TableName": "Indexed"})["Items"]
    assert {item["pk"]["S"] for item in found} == {"a", "c"}
    assert engine.call("Scan", {"TableName": "Indexed", "IndexName": "byg"})["Count"] == 2
    assert engine.call("DescribeTable", {"TableName": "Indexed"})["Table"]["ItemCount"] == 2


def test_together_a_failed_commit_is_everyones_and_an_undoing_is_tried_alone(
    engine: SqliteEngine, faults: Faults
) -> None:
    new = [
        request("PutItem", Item={"pk": {"S": key}}, ConditionExpression="attribute_not_exists(pk)")
        for key in ("a", "a", "b")
    ]
    faults.before = once("COMMIT", failing(sqlite3.SQLITE_IOERR))
    outcomes = engine.handle_together(new)
    assert all(isinstance(outcome.error, EngineError) for outcome in outcomes)
    assert keys(engine) == set()
    faults.before = once(WRITE, failing(sqlite3.SQLITE_FULL, undoes=True), skip=1)
    outcomes = engine.handle_together(new)
    assert [type(outcome.error) for outcome in outcomes] == [type(None), ConditionFailed, type(None)]
    assert keys(engine) == {"a", "b"}


def test_a_refusal_is_forgotten_when_the_second_try_grants(engine: SqliteEngine, faults: Faults) -> None:
    """The second write meets the first's item, then the disk is full, and then the first is refused."""
    new = {"Item": {"pk": {"S": "a"}}, "ConditionExpression": "attribute_not_exists(pk)"}
    left = 2

    def hook(connection: sqlite3.Connection, sql: str) -> None:
        nonlocal left
        if sql.startswith(WRITE):
            left -= 1
            if left == 0:
                # The write of "b": the first try of "a" is gone, and so is its second.
                failing(sqlite3.SQLITE_FULL, undoes=True)(connection)
            if left == -1:
                failing(sqlite3.SQLITE_FULL, undoes=True)(connection)

    faults.before = hook
    works = [
        request("PutItem", **new),
        request("PutItem", **new),
        request("PutItem", Item={"pk": {"S": "b"}}),
    ]
    first, second, third = engine.handle_together(works)
    assert isinstance(first.error, StorageFull)
    assert second.error is None
    assert second.get() is not None
    assert third.error is None
    assert keys(engine) == {"a", "b"}


def test_in_memory_reads_and_transactions_work_together_with_writes() -> None:
    with SqliteEngine(":memory:") as engine:
        engine.call("CreateTable", table("Things", "pk:S"))
        key = {"pk": {"S": "a"}}
        gets = decode_request(
            "TransactGetItems", {"TransactItems": [{"Get": {"TableName": "Things", "Key": key}}]}
        )
        outcomes = engine.handle_together([request("PutItem", Item=key), gets, request("GetItem", Key=key)])
        assert [outcome.error for outcome in outcomes] == [None, None, None]
        assert outcomes[1].get().items == [b'{"pk":{"S":"a"}}']


def test_read_only_refuses_groups_too(engine: SqliteEngine, tmp_path: Path) -> None:
    with SqliteEngine(str(tmp_path / "shop.db"), read_only=True) as reader, pytest.raises(ReadOnly):
        reader.handle_together([request("PutItem", Item={"pk": {"S": "a"}})])


def test_a_file_that_cannot_have_a_log_is_refused(tmp_path: Path) -> None:
    """SQLite then continues with its old journal without an error: readers would block writers."""

    class Stubborn(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            return super().execute("PRAGMA journal_mode" if "journal_mode" in sql else sql, *parameters)

    with pytest.raises(EngineError, match="write-ahead log"):
        SqliteEngine(str(tmp_path / "shop.db"), connect=partial(sqlite3.connect, factory=Stubborn))
