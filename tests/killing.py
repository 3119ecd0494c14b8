"""Python programs in their own processes, which report progress line by line until a test kills them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import solotable

from .torture.size import LONG, SEED
from .waiting import HANG_SECONDS, wait_until

ROOT = Path(__file__).parents[1]
_SOURCES = Path(solotable.__file__).parents[1]

#: What the fixture `start` is: it starts a program, and kills what is left at the end of the test.
Start = Callable[..., "Program"]


class Program:
    """`python ARGUMENTS` in its own process; the lines that it prints go to the file `log`.

    A file never makes the program wait for its reader, as a pipe does. A program that calls `step` waits
    for the test instead: it never goes further than the test lets it.
    """

    def __init__(self, log: Path, *arguments: str) -> None:
        self._log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(  # noqa: S603 - programs of the tests
                [sys.executable, *arguments],
                stdin=subprocess.PIPE,
                stdout=out,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": f"{_SOURCES}{os.pathsep}{ROOT}"},
            )

    @property
    def lines(self) -> list[str]:
        """The whole lines so far; a line that was cut was not told."""
        return self._log.read_text(encoding="utf-8").split("\n")[:-1]

    def wait_for_lines(self, count: int) -> list[str]:
        """Wait until the program has told so many lines; it must not end before."""
        wait_until(
            lambda: self.process.poll() is not None or len(self.lines) >= count, seen=lambda: self.lines
        )
        lines = self.lines
        assert len(lines) >= count, f"the program ended with {self.process.returncode}: {lines}"
        return lines

    def release(self, threads: int = 1) -> None:
        """Let a program that waits in `step` go on to the next one, or several threads that wait there."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n" * threads)
        self.process.stdin.flush()

    def kill(self) -> list[str]:
        """Send kill -9, and return all that the program has told."""
        self.process.kill()
        return self.end()

    def end(self) -> list[str]:
        """Let the program run to its end, and return all that it has told."""
        # This closes its standard input, so that no step waits any more.
        self.process.communicate(timeout=HANG_SECONDS)
        return self.lines


def tell(line: str) -> None:
    """Report a line to the test, at once and whole."""
    os.write(1, f"{line}\n".encode())


def step(line: str) -> None:
    """Report a line, and wait until the test releases the program; several threads may wait at once."""
    tell(line)
    # Not sys.stdin: a thread that reads two releases at once keeps the one of the other thread.
    os.read(0, 1)


#: Python's names of the operations on files after which a process may be killed.
_OPERATIONS = {
    *("open", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "sqlite3.connect"),
}


def kill_at_each_step(
    folder: Path, action: Callable[[], object], check: Callable[[], object], *, every: int = 1
) -> int:
    """Run an action again and again, killed before its first, second, third ... operation on a file.

    Only operations below the folder count, and syncs. Each run is a fork, so this process must not have a
    database open. `check` is called after each kill, and prepares the next run. Returns the number of the
    last operation that was killed.

    In the suite, only one of `every` operations is killed, from a random one on; TORTURE=long kills all.
    """
    stride = 1 if LONG else every
    number = random.Random(SEED).randint(1, stride)
    while _kill_fork(number, folder, action):
        try:
            check()
        except BaseException as error:
            error.add_note(f"after a kill before operation {number}")
            raise
        number += stride
    return number - stride


def _kill_fork(number: int, folder: Path, action: Callable[[], object]) -> bool:
    """Run an action in a fork that is killed before an operation; return False if it came to its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork of a process with threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            _die_before(number, folder)
            action()
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return status != 0


def _die_before(number: int, folder: Path) -> None:
    """Kill this process before its operation of a number."""
    left = number
    prefix, sync = str(folder), os.fsync

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _OPERATIONS and prefix in str(arguments[0]):
            count()

    def sync_and_count(descriptor: int) -> None:
        count()
        sync(descriptor)

    setattr(os, "fsync", sync_and_count)  # noqa: B010 - this process only counts its steps, and dies
    sys.addaudithook(audit)
