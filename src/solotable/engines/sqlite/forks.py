"""Close every SQLite connection around fork(); refuse a file whose connections a child inherited.

SQLite keeps its lock state per process and inode. A child that inherits an open connection believes
that it holds locks which belong to its parent: another process then checkpoints and deletes the log
under it, and acknowledged writes are lost. So no connection is open while the process forks.
Python's hooks see os.fork() and what is built on it; a fork by C code is found by its process id.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol
from weakref import WeakSet

from solotable.errors import EngineError

#: How long fork() waits for the reads and writes of other threads to finish.
_WAIT_SECONDS = 10.0
#: How long it then waits for SQLite to close the files, which it does when the last cursor is gone.
_CLOSE_SECONDS = 3.0
_POLL_SECONDS = 0.001

#: Device and inode of a file.
Identity = tuple[int, int]


class Forkable(Protocol):
    """An open database, as the hooks see it."""

    @property
    def pid(self) -> int:
        """The process that owns the connections."""

    @property
    def identity(self) -> Identity: ...

    def suspend(self, deadline: float) -> bool:
        """Close every connection and keep new ones from being opened; False if one stayed in use."""

    def resume(self) -> None:
        """Let the parent open connections again."""

    def restart(self) -> None:
        """Start over in a child, whose parent had suspended the database."""

    def disown(self) -> None:
        """Give up connections that belong to the parent, without closing them."""


_lock = threading.RLock()
_open: WeakSet[Any] = WeakSet()
_suspended: list[Forkable] = []
#: Files that this process must not open, because it inherited connections to them.
_inherited: set[Identity] = set()


def register(database: Forkable) -> None:
    """Put a database under the care of the hooks, before its first connection is opened."""
    with _lock:
        # A fork by C code ran no hook: what other processes own was inherited.
        _inherited.update(each.identity for each in _open if each.pid != os.getpid())
        if database.identity in _inherited:
            raise EngineError(
                "This process was forked while its parent was reading or writing the file, and SQLite "
                "cannot open it here without losing writes. Start the process with the spawn or "
                "forkserver method, or fork while no call is in progress."
            )
        _open.add(database)


def unregister(database: Forkable) -> None:
    """Take a closed database out of the hooks' care."""
    with _lock:
        _open.discard(database)


def leak(objects: Iterable[object]) -> None:
    """Keep objects from ever being collected: SQLite would close a connection, and act on stale state."""
    import ctypes  # needed by a child that inherited connections, and by no other

    for each in objects:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))


def wait_until(condition: Callable[[], bool], deadline: float) -> bool:
    """Wait for a condition that other threads bring about; False when the time is up."""
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _before() -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    _lock.acquire()
    _suspended.clear()
    _suspended.extend(each for each in tuple(_open) if each.pid == os.getpid() and each.suspend(deadline))
    if not _suspended or wait_until(lambda: not _open_files(), time.monotonic() + _CLOSE_SECONDS):
        return
    # Exceptions that refer to themselves keep cursors until they are collected.
    gc.collect()
    still_open = _open_files()
    for database in tuple(_suspended):
        if database.identity in still_open:
            _suspended.remove(database)
            database.resume()


def _open_files() -> set[Identity]:
    """Return the files of suspended databases that this process still has open."""
    found = set()
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - numbers are wanted, not paths
        with contextlib.suppress(OSError):
            status = os.fstat(int(name))
            found.add((status.st_dev, status.st_ino))
    return found.intersection(each.identity for each in _suspended)


def _after_in_parent() -> None:
    try:
        for database in _suspended:
            database.resume()
        _suspended.clear()
    finally:
        # The hook before the fork may have been interrupted before it had the lock.
        with contextlib.suppress(RuntimeError):
            _lock.release()


def _after_in_child() -> None:
    global _lock  # noqa: PLW0603 - a thread that is not in the child may hold the old one
    _lock = threading.RLock()
    for database in tuple(_open):
        if any(database is each for each in _suspended):
            database.restart()
        else:
            _inherited.add(database.identity)
            database.disown()
    _suspended.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
