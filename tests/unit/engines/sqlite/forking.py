"""Programs that fork while they have a database open, each run in a separate process.

A program prints the key of every write that was acknowledged; the tests look for them afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.file import forks
from solotable.engines.sqlite.file.connection import Database
from solotable.engines.sqlite.file.file_lock import FileLock
from solotable.errors import EngineError
from tests.waiting import HANG_SECONDS

from .faulty import Faults, once

TABLE = {
    "TableName": "Things",
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
}


def put(engine: SqliteEngine, key: str) -> None:
    """Write one item, and print its key once the write is acknowledged."""
    engine.call("PutItem", {"TableName": "Things", "Item": {"pk": {"S": key}}})
    os.write(1, f"{key}\n".encode())


def get(engine: SqliteEngine, key: str) -> Any:
    return engine.call("GetItem", {"TableName": "Things", "Key": {"pk": {"S": key}}}).get("Item")


def put_many(engine: SqliteEngine, prefix: str, count: int = 20) -> None:
    for number in range(count):
        put(engine, f"{prefix}-{number}")


def fork(work: Callable[[], None]) -> int:
    """Run the work in a forked child, which ends without Python's own clean-up."""
    child = os.fork()
    if child == 0:
        status = 0
        try:
            work()
        except BaseException:  # noqa: BLE001 - the parent reports it
            traceback.print_exc()
            status = 1
        os._exit(status)
    return child


def wait_for(child: int) -> None:
    _, status = os.waitpid(child, 0)
    assert status == 0, f"child ended with {status}"


def elsewhere(path: str, key: str) -> None:
    """Open the file in an unrelated process, write, and close it: the last one to close checkpoints."""
    program = "import sys; from tests.unit.engines.sqlite import forking; forking.visit(*sys.argv[1:])"
    subprocess.run([sys.executable, "-c", program, path, key], check=True)  # noqa: S603


def visit(path: str, key: str) -> None:
    with sqlite.open(path) as engine:
        put(engine, key)


class Steps:
    """Lets two processes take turns: each waits for the other's word."""

    def __init__(self) -> None:
        self._mine, self._theirs = os.pipe(), os.pipe()

    def child_says(self) -> None:
        os.write(self._theirs[1], b".")
        os.read(self._mine[0], 1)

    def parent_hears(self) -> None:
        assert os.read(self._theirs[0], 1) == b".", "the child ended early"

    def parent_says(self) -> None:
        os.write(self._mine[1], b".")


def _write_on(open_engine: Callable[[], SqliteEngine], steps: Steps, *, die: bool) -> None:
    engine = open_engine()
    put_many(engine, "child-before")
    steps.child_says()
    put_many(engine, "child-after")
    steps.child_says()
    if die:
        os.kill(os.getpid(), signal.SIGKILL)
    engine.close()


def child_opens_its_own(path: str) -> None:
    """The parent closes while the child, which opened the file again, continues to write."""
    _parent_closes_first(path, lambda _: sqlite.open(path))


def child_uses_the_parents(path: str) -> None:
    """The parent closes while the child continues to write through the engine that it inherited."""
    _parent_closes_first(path, lambda engine: engine)


def _parent_closes_first(path: str, choose: Callable[[SqliteEngine], SqliteEngine]) -> None:
    engine = sqlite.open(path)
    engine.call("CreateTable", TABLE)
    put(engine, "parent")
    steps = Steps()
    child = fork(lambda: _write_on(lambda: choose(engine), steps, die=True))
    steps.parent_hears()
    put(engine, "parent-during")
    engine.close()
    elsewhere(path, "elsewhere-1")
    steps.parent_says()
    steps.parent_hears()
    elsewhere(path, "elsewhere-2")
    steps.parent_says()
    os.waitpid(child, 0)


def two_engines(path: str) -> None:
    """One process has two engines on the file, and a child uses both."""
    first = sqlite.open(path)
    first.call("CreateTable", TABLE)
    second = sqlite.open(path)
    put(first, "first")
    put(second, "second")

    def use() -> None:
        put(first, "child-first")
        put(second, "child-second")

    wait_for(fork(use))
    first.close()
    put(second, "second-after")
    os.kill(os.getpid(), signal.SIGKILL)


def refused_beside_another_connection(path: str) -> None:
    """The program reads the file by sqlite3 itself: that connection cannot be closed for it."""
    forks._CLOSE_SECONDS = 0.1
    engine = sqlite.open(path)
    engine.call("CreateTable", TABLE)
    other = sqlite3.connect(path)
    other.execute("SELECT * FROM catalog").fetchall()
    wait_for(fork(lambda: _refuses(lambda: sqlite.open(path))))
    put(engine, "parent")
    other.close()
    wait_for(fork(lambda: put(engine, "child")))
    engine.close()


def refused_beside_a_closed_engine(path: str) -> None:
    """A closed engine's file stays open in SQLite as long as one of its cursors is alive."""
    engine = sqlite.open(path)
    engine.call("CreateTable", TABLE)
    put(engine, "parent")
    cursor = engine.database.writer.execute("SELECT * FROM catalog UNION ALL SELECT * FROM catalog")
    cursor.fetchone()
    engine.close()
    wait_for(fork(lambda: _refuses(lambda: sqlite.open(path))))
    del cursor
    wait_for(fork(lambda: visit(path, "child")))


def interrupted_reads(path: str) -> None:
    """An interruption drops the connection of a read; a fork must not wait for it."""
    faults = Faults()
    engine = SqliteEngine(path, connect=faults.connect)
    engine.call("CreateTable", TABLE)

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    for operation, request in (("GetItem", {"Key": {"pk": {"S": "x"}}}), ("Scan", {})):
        faults.after = once("SELECT", interrupt)
        try:
            engine.call(operation, {"TableName": "Things", **request})
        except KeyboardInterrupt:
            put(engine, f"interrupted-{operation}")
    # As if the interruption had come just when the connection was taken.
    engine.database.acquire_reader()
    wait_for(fork(lambda: put(engine, "child")))
    engine.close()


def beside_a_database_in_memory(path: str) -> None:
    """A fork waits for a thread that is inside SQLite: the child would find SQLite's own locks held."""
    engine = sqlite.open(path)
    engine.call("CreateTable", TABLE)
    memory = sqlite.open(":memory:")
    begun, finished = threading.Event(), threading.Event()

    def work(connection: sqlite3.Connection) -> None:
        begun.set()
        while not forks._suspended:
            connection.execute("SELECT 1")
        finished.set()

    thread = threading.Thread(target=memory.database.write, args=(work,))
    thread.start()
    begun.wait()

    def use() -> None:
        assert finished.is_set()
        put(engine, "child")

    wait_for(fork(use))
    thread.join()
    put(engine, "parent")


def is_alone(engine: SqliteEngine) -> bool:
    """Say whether no other engine has the file open."""
    alone = engine.presence._try_lock(exclusively=True) is True
    engine.presence.share()
    return alone


def each_process_is_present(path: str) -> None:
    """Parent and child both have the file open: neither is alone."""
    engine = sqlite.open(path)
    engine.call("CreateTable", TABLE)
    steps = Steps()

    def use() -> None:
        assert sys.platform != "linux" or not is_alone(engine)
        put(engine, "child")
        steps.child_says()

    child = fork(use)
    steps.parent_hears()
    assert not is_alone(engine)
    steps.parent_says()
    wait_for(child)
    assert sys.platform != "linux" or is_alone(engine)
    engine.close()


def forks_in_a_fork(path: str) -> None:
    """A signal handler forks while the process forks: the parent must not stay locked."""
    engine, second = sqlite.open(path), sqlite.open(path)
    engine.call("CreateTable", TABLE)
    wait_until, calls = forks.wait_until, itertools.count()

    def handler(condition: Callable[[], bool], deadline: float) -> bool:
        if next(calls) == 1:
            # One of the databases is suspended, the other one is about to be.
            wait_for(fork(lambda: _refuses(lambda: put(engine, "never"))))
        return wait_until(condition, deadline)

    forks.wait_until = handler
    wait_for(fork(lambda: put(engine, "child")))
    put(engine, "parent")
    put(second, "parent-second")
    # In the middle of a write, on the same thread.
    engine.database.write(lambda _: wait_for(fork(lambda: _refuses(lambda: put(engine, "never")))))
    put(engine, "parent-again")
    engine.close()


def interrupted_forks(path: str) -> None:
    """KeyboardInterrupt at every line of the hooks: the parent writes on, the child writes or is refused."""
    forks._WAIT_SECONDS = forks._CLOSE_SECONDS = 0.3
    engine = sqlite.open(path, durability="relaxed")
    engine.call("CreateTable", TABLE)
    sys.unraisablehook = lambda _: None
    codes = {
        each.__code__
        for each in (
            forks._before,
            Database.suspend,
            Database._close_for_fork,
            Database._close_writer,
            FileLock.acquire,
            FileLock.close,
        )
    }
    for line in range(200):
        left = line
        interrupted = False

        def trace(frame: FrameType, event: str, _: object) -> Any:
            nonlocal left, interrupted
            if frame.f_code not in codes:
                return None
            if event == "line":
                left -= 1
                if left < 0 and not interrupted:
                    interrupted = True
                    raise KeyboardInterrupt
            return trace

        put(engine, f"parent-{line}")
        sys.settrace(trace)
        child = os.fork()
        sys.settrace(None)
        if child == 0:
            with contextlib.suppress(EngineError):
                put(engine, f"child-{line}")
            os._exit(0)
        wait_for(child)
        if not interrupted:
            break
    else:
        raise AssertionError("too few lines tried")
    wait_for(fork(lambda: put(engine, "child-last")))
    engine.close()


def too_few_descriptors(path: str) -> None:
    """A child cannot open the file until it may open files again, and the error says why."""
    import resource  # not on Windows

    engine = sqlite.open(path)
    engine.call("CreateTable", TABLE)

    def use() -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        for work in (lambda: put(engine, "never"), lambda: engine.call("Scan", {"TableName": "Things"})):
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            _refuses(work, "Too many open files")
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        put(engine, "child")

    wait_for(fork(use))
    put(engine, "parent")


def beside_c_code(path: str) -> None:
    """A fork waits for a thread in C code: SQLite's own mutexes would stay locked in the child.

    The C code here reads a file; the child has the memory of the moment of the fork.
    """
    forks._SETTLE_SECONDS = HANG_SECONDS
    engine = sqlite.open(path)
    engine.call("CreateTable", TABLE)
    size = 64 * 1024 * 1024
    content = bytearray(size)
    with Path(f"{path}.large").open("w+b", buffering=0) as file:
        file.write(b"x" * size)
        file.seek(0)
        reader = threading.Thread(target=file.readinto, args=(content,))
        reader.start()

        def use() -> None:
            assert content[-1] == ord("x"), "forked while the thread ran"
            put(engine, "child")

        wait_for(fork(use))
        reader.join()
    put(engine, "parent")


def daemon(path: str) -> None:
    """The parent exits without closing; its daemon writes while other processes come and go."""
    engine = sqlite.open(path)
    engine.call("CreateTable", TABLE)
    put(engine, "parent")
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        # The daemon keeps standard output open: the test reads until it is done.
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    put_many(engine, "daemon")
    elsewhere(path, "elsewhere-1")
    put_many(engine, "daemon-again")
    elsewhere(path, "elsewhere-2")
    os.kill(os.getpid(), signal.SIGKILL)


def threads(path: str) -> None:
    """Four threads write and two read while the process forks twelve times; every child writes too."""
    engine = sqlite.open(path, durability="relaxed")
    engine.call("CreateTable", TABLE)
    stop = threading.Event()
    failures: list[BaseException] = []

    def guarded(work: Callable[[int], None], number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - shown by the main thread
            failures.append(error)

    def write(number: int) -> None:
        written = 0
        while not stop.is_set():
            put(engine, f"thread-{number}-{written}")
            written += 1

    def read(_: int) -> None:
        while not stop.is_set():
            engine.call("Scan", {"TableName": "Things", "Limit": 50})

    running = [threading.Thread(target=guarded, args=(write, number)) for number in range(4)]
    running += [threading.Thread(target=guarded, args=(read, number)) for number in range(2)]
    for thread in running:
        thread.start()
    children = [fork(lambda number=number: put_many(engine, f"child-{number}", 5)) for number in range(12)]  # type: ignore[misc]
    statuses = [os.waitpid(child, 0)[1] for child in children]
    stop.set()
    for thread in running:
        thread.join()
    engine.close()
    assert not any(statuses), statuses
    assert not failures, failures


def start_methods(path: str) -> None:
    """Children by fork, forkserver and spawn write to a file that the parent keeps open."""
    engine = sqlite.open(path)
    engine.call("CreateTable", TABLE)
    for method in ("fork", "forkserver", "spawn"):
        put(engine, f"parent-{method}")
        context: Any = multiprocessing.get_context(method)
        process = context.Process(target=visit, args=(path, f"child-{method}"))
        process.start()
        process.join()
        assert process.exitcode == 0, (method, process.exitcode)
    os.kill(os.getpid(), signal.SIGKILL)


def refused_inside_a_read(path: str) -> None:
    """A fork in the middle of a read cannot be made safe: the child gets an error, the parent continues."""
    forks._WAIT_SECONDS = 0.1
    engine = sqlite.open(path)
    engine.call("CreateTable", TABLE)
    put(engine, "parent")

    def use() -> None:
        # The first read after a commit would use the connection that writes.
        _refuses(lambda: get(engine, "parent"))
        _refuses(lambda: put(engine, "never"))
        _refuses(lambda: sqlite.open(path))
        engine.close()

    with engine.database.snapshot() as connection:
        connection.execute("SELECT * FROM catalog").fetchall()
        child = os.fork()
        if child == 0:
            use()
            # With all of Python's clean-up, which would close what the child inherited.
            sys.exit(0)
    put(engine, "parent-during")
    wait_for(child)
    elsewhere(path, "elsewhere")
    put(engine, "parent-after")
    # The next fork finds nothing in use, and its child may write.
    wait_for(fork(lambda: put_many(engine, "child", 3)))
    os.kill(os.getpid(), signal.SIGKILL)


def refused_inside_a_write(path: str) -> None:
    """A fork while another thread commits, for longer than fork() waits: the lock stays the parent's."""
    forks._WAIT_SECONDS = 0.1
    engine = sqlite.open(path, lock_timeout_seconds=0.5)
    engine.call("CreateTable", TABLE)
    begun, finish = threading.Event(), threading.Event()

    def commit(_: object) -> None:
        begun.set()
        finish.wait()

    thread = threading.Thread(target=engine.database.write, args=(commit,))
    thread.start()
    begun.wait()
    child = fork(lambda: _refuses(lambda: sqlite.open(path)))
    wait_for(child)
    # The child's end must not have released the parent's lock.
    blocked = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _TRY_LOCK, path], check=False
    )
    assert blocked.returncode == 7, blocked.returncode
    finish.set()
    thread.join()
    put(engine, "parent")
    engine.close()


_TRY_LOCK = """
import fcntl, sys
with open(sys.argv[1] + "-lock") as lock:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(7)
"""


def refused_after_a_fork_by_c(path: str) -> None:
    """A fork that runs none of Python's hooks is found by its process id."""
    engine = sqlite.open(path)
    engine.call("CreateTable", TABLE)
    child = ctypes.CDLL(None).fork()
    if child == 0:
        try:
            _refuses(lambda: get(engine, "never"))
            _refuses(lambda: put(engine, "never"))
            _refuses(lambda: sqlite.open(path))
        except BaseException:  # noqa: BLE001 - the status says it
            os._exit(1)
        os._exit(0)
    wait_for(child)
    put(engine, "parent")
    engine.close()


def in_memory(path: str) -> None:
    """A child cannot share a database in memory, and the error says so."""
    del path
    engine = sqlite.open(":memory:")
    engine.call("CreateTable", TABLE)

    def use() -> None:
        _refuses(lambda: put(engine, "never"), "in-memory")
        with sqlite.open(":memory:") as other:
            assert other.call("ListTables", {})["TableNames"] == []

    wait_for(fork(use))
    assert engine.call("ListTables", {})["TableNames"] == ["Things"]


def async_store(path: str) -> None:
    """A child uses an async store whose threads stayed with the parent."""
    from solotable import Entity, Key, Table

    table = Table("Notes")

    class Note(Entity, table=table):
        key = Key("NOTE#{note_id}", "NOTE")
        note_id: str

    store = table.open_async(f"sqlite:///{path}")

    async def write(prefix: str) -> None:
        await asyncio.gather(*(store.put(Note(note_id=f"{prefix}-{number}")) for number in range(10)))
        assert await store.get(Note, note_id=f"{prefix}-9") is not None

    asyncio.run(write("parent"))
    wait_for(fork(lambda: asyncio.run(write("child"))))
    asyncio.run(write("parent-after"))
    asyncio.run(store.close())


def _refuses(work: Callable[[], object], words: str = "fork") -> None:
    try:
        work()
    except EngineError as error:
        assert words in str(error), error
    else:
        raise AssertionError("not refused")


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
