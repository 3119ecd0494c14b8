"""The lock between processes: a wait that ends, whoever holds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from solotable import Table
from solotable.engines import sqlite
from solotable.engines.sqlite.file_lock import FileLock
from solotable.errors import FileLocked
from tests.waiting import wait_until

from .test_files import create, keys, put

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")

_HOLDER = """
import sys
from solotable.engines.sqlite.file_lock import FileLock
with FileLock(sys.argv[1], timeout_seconds=300):
    print("locked", flush=True)
    sys.stdin.read(1)
"""


@contextmanager
def stopped_holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Have another process take the lock, and stop it as a debugger or a paused container does."""
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _HOLDER, f"{path}-lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        process.send_signal(signal.SIGSTOP)
        try:
            yield process
        finally:
            process.kill()


def test_a_write_gives_up_on_a_stopped_process_and_names_it(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with create(path):
        pass
    with sqlite.open(path, lock_timeout_seconds=0.2) as engine, stopped_holder(path) as holder:
        for _ in range(2):
            with pytest.raises(FileLocked, match=f"process {holder.pid} has held the write lock") as refused:
                put(engine, "a")
            assert refused.value.holder == holder.pid
        # Reads need no lock.
        assert keys(engine) == set()
        with pytest.raises(FileLocked, match=str(holder.pid)):
            sqlite.open(path, lock_timeout_seconds=0.2)


def test_a_url_says_how_long_to_wait(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    url = f"sqlite:///{path}?lock_timeout=0.1"
    table = Table("Notes")
    with table.open(url):
        pass
    with stopped_holder(path), pytest.raises(FileLocked, match=r"over 0\.[1-9] s"):
        table.open(url)


def test_writes_go_on_once_the_process_does(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with create(path):
        pass
    with sqlite.open(path, lock_timeout_seconds=0.1) as engine, stopped_holder(path) as holder:
        with pytest.raises(FileLocked):
            put(engine, "a")
        holder.send_signal(signal.SIGCONT)
        assert holder.stdin is not None
        holder.stdin.write(".")
        holder.stdin.flush()
        holder.wait()
        for number in range(50):
            put(engine, f"b{number}")
        assert len(keys(engine)) == 50


def test_a_killed_holder_leaves_no_lock_behind(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with create(path) as engine, stopped_holder(path) as holder:
        holder.kill()
        put(engine, "a")


def test_closing_does_not_wait_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with create(path) as engine:
        put(engine, "a")
    engine = sqlite.open(path, lock_timeout_seconds=0.1)
    with stopped_holder(path):
        with pytest.raises(FileLocked):
            put(engine, "b")
        engine.close()
    with sqlite.open(path) as engine:
        assert keys(engine) == {"a"}


def test_a_wait_that_was_given_up_does_not_take_the_lock_from_the_next(tmp_path: Path) -> None:
    """The kernel grants the lock to the queue's thread, whose caller has left and come back."""
    first = FileLock(str(tmp_path / "lock"), timeout_seconds=30)
    second = FileLock(str(tmp_path / "lock"), timeout_seconds=30)
    third = FileLock(str(tmp_path / "lock"), timeout_seconds=30)
    for _ in range(100):
        with first, pytest.raises(FileLocked):
            second.acquire(0.001)
        with second, pytest.raises(FileLocked):
            third.acquire(0)
    for lock in (first, second, third):
        lock.close()


def test_locks_of_many_threads_exclude_each_other(tmp_path: Path) -> None:
    inside: list[int] = []
    together: list[int] = []

    def work(number: int) -> None:
        lock = FileLock(str(tmp_path / "lock"), timeout_seconds=300)
        for _ in range(200):
            with lock:
                inside.append(number)
                together.append(len(inside))
                inside.remove(number)
        lock.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == [1] * 1600


def test_closing_a_lock_that_another_waits_for_leaves_no_descriptor_open(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    if not Path("/proc/self/fd").exists():
        pytest.skip("counts descriptors in /proc")
    before = descriptors()
    first = FileLock(str(tmp_path / "lock"), timeout_seconds=30)
    second = FileLock(str(tmp_path / "lock"), timeout_seconds=30)
    with first:
        with pytest.raises(FileLocked):
            second.acquire(0.01)
        second.close()
    first.close()
    wait_until(lambda: descriptors() == before, seen=lambda: (before, descriptors()))
