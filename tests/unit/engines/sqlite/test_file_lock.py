"""The lock between processes: every wait ends."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from solotable import Table
from solotable.engines import sqlite
from solotable.engines.sqlite.file import file_lock
from solotable.engines.sqlite.file.file_lock import FileLock
from solotable.errors import EngineError, FileLocked
from tests.waiting import wait_until

from .test_identity import create, keys, put

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")

_HOLDER = """
import sys
from solotable.engines.sqlite.file.file_lock import FileLock
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


#: An interruption while the lock is given back is the caller's to undo: see `GroupCommit`. The last two
#: are a `with` block each: a tracer can raise before its end, where the interpreter runs no handlers.
_NOT_TRACED = ("__exit__", "release", "_unlock", "give_up", "waiting")


class Interruption:
    """Raises KeyboardInterrupt at the nth line of the lock's module that this thread runs."""

    def __init__(self, line: int) -> None:
        self._left = line
        self.came = False

    def __enter__(self) -> Interruption:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != file_lock.__file__ or frame.f_code.co_name in _NOT_TRACED:
            return None
        if event == "line":
            self._left -= 1
            if self._left < 0 and not self.came:
                self.came = True
                raise KeyboardInterrupt
        return self._trace


@pytest.mark.parametrize("situation", ["free", "granted in time", "given up"])
def test_an_interruption_at_any_line_leaves_no_lock_behind(situation: str, tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    for line in range(200):
        timeout_seconds = 0.01 if situation == "given up" else 50
        first, second, third = (FileLock(path, timeout_seconds=timeout_seconds) for _ in range(3))
        if situation != "free":
            first.acquire(50)
        interruption = Interruption(line)
        releasing = threading.Thread(target=release_once_it_waits, args=(first, second, interruption))
        if situation == "granted in time":
            releasing.start()
        with contextlib.suppress(KeyboardInterrupt, FileLocked), interruption, second:
            pass
        first.release()
        for lock, other in [(third, second), (second, third)] * 2:
            lock.acquire(50)
            with pytest.raises(FileLocked):
                other.acquire(0)
            lock.release()
        if situation == "granted in time":
            releasing.join()
        for lock in (first, second, third):
            lock.close()
        if not interruption.came:
            return
    pytest.fail("too few lines tried")


def release_once_it_waits(first: FileLock, second: FileLock, interruption: Interruption) -> None:
    wait_until(lambda: interruption.came or (second._waiter is not None and second._waiter.waiting))
    first.release()


def test_an_interruption_while_the_lock_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, calls = FileLock.release, itertools.count()

    def interrupted(lock: FileLock) -> None:
        if next(calls) == 0:
            raise KeyboardInterrupt
        release(lock)

    with create(tmp_path / "shop.db") as engine, sqlite.open(tmp_path / "shop.db") as other:
        monkeypatch.setattr(FileLock, "release", interrupted)
        with pytest.raises(KeyboardInterrupt):
            put(engine, "a")
        put(other, "b")
        assert keys(other) == {"a", "b"}


def test_a_lock_file_that_was_renamed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lock, "_RECHECK_SECONDS", 0)
    first = FileLock(str(tmp_path / "lock"), timeout_seconds=60)
    (tmp_path / "lock").rename(tmp_path / "old")
    second = FileLock(str(tmp_path / "lock"), timeout_seconds=60)
    with first, pytest.raises(FileLocked):
        second.acquire(0)
    first.close()
    second.close()


def test_a_lock_file_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with create(tmp_path / "shop.db"):
        pass
    (tmp_path / "shop.db-lock").unlink()
    (tmp_path / "shop.db-lock").mkdir()
    with pytest.raises(EngineError, match=r"shop\.db-lock cannot be opened: Is a directory\.$"):
        sqlite.open(tmp_path / "shop.db")
