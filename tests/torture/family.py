"""A family of processes on one file: they fork, change folders, stop, close, reopen and die.

`python -m tests.torture.family DB ACKNOWLEDGED SEED FORKS`, run in the database's folder, appends the key
of every acknowledged write to a file. A write that another, stopped process holds up is given up, and
its key is not in that file.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import FileLocked

from . import shop

_LOCK_SECONDS = 0.2
_WRITES = 8


class Member:
    """One process of the family: its engine, its own chance, and where it reports."""

    def __init__(self, path: str, report: int, seed: int) -> None:
        self._path = path
        self._report = report
        self._chance = random.Random(seed)
        self._engine = self._open(path)

    def _open(self, path: str) -> SqliteEngine:
        while True:
            with contextlib.suppress(FileLocked):
                return sqlite.open(path, lock_timeout_seconds=_LOCK_SECONDS)

    def live(self, forks: int) -> None:
        """Write in two threads while this thread forks; then write alone."""
        stop = threading.Event()
        failures: list[BaseException] = []
        threads = [
            threading.Thread(target=self._write_until, args=(stop, failures), daemon=True) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for _ in range(forks):
            self._have_child(forks // 3)
        stop.set()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        self._write(_WRITES)

    def _write_until(self, stop: threading.Event, failures: list[BaseException]) -> None:
        try:
            while not stop.is_set():
                self._write(1)
        except BaseException as error:  # noqa: BLE001 - raised again by the main thread
            failures.append(error)

    def _write(self, count: int) -> None:
        for _ in range(count):
            # The number says which item this is; two processes never choose the same one.
            number = random.SystemRandom().randrange(1 << 60)
            with contextlib.suppress(FileLocked):
                shop.put(self._engine, shop.content(number))
                os.write(self._report, f"{number}\n".encode())

    def _have_child(self, forks: int) -> None:
        seed = self._chance.randrange(1 << 32)
        child = os.fork()
        if child == 0:
            _run(lambda: self._be_born(seed, forks))
        if self._chance.random() < 0.5:
            # Wherever it is: perhaps in the middle of a commit.
            os.kill(child, signal.SIGSTOP)
            self._write(3)
            os.kill(child, signal.SIGCONT)
        if self._chance.random() < 0.3:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if status not in (0, signal.SIGKILL):
            raise AssertionError(f"child ended with {status}")

    def _be_born(self, seed: int, forks: int) -> None:
        self._chance = random.Random(seed)
        manner = self._chance.choice(["inherit", "reopen", "close and open", "move"])
        if manner == "reopen":
            self._engine = self._open(self._path)
        elif manner == "close and open":
            self._engine.close()
            self._engine = self._open(self._path)
        elif manner == "move":
            os.chdir("/")
        self._write(_WRITES)
        if forks and manner != "move":
            self.live(forks)
        self._write(_WRITES)
        if self._chance.random() < 0.3:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._chance.random() < 0.5:
            self._engine.close()
        if self._chance.random() < 0.5:
            os._exit(0)


def _run(work: Callable[[], None]) -> None:
    """Do a child's work, and end as a program does: with all of Python's clean-up."""
    try:
        work()
    except Exception:  # noqa: BLE001 - the parent sees the status
        traceback.print_exc()
        os._exit(1)
    sys.exit(0)


if __name__ == "__main__":
    database, acknowledged, seed_text, forks_text = sys.argv[1:]
    descriptor = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    Member(database, descriptor, int(seed_text)).live(int(forks_text))
