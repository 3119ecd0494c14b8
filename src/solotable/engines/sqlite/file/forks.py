"""Close every SQLite connection around fork(); refuse a file whose connections a child inherited.

SQLite keeps its lock state per process and inode. A child that inherits an open connection believes
that it holds locks which belong to its parent. Another process then checkpoints and deletes the log, and
acknowledged writes are lost. So no connection is open while the process forks. Python's hooks run for
os.fork() and its callers; a fork by C code is detected by its process id.
"""

from __future__ import annotations

import contextlib
import gc

# Hooks before a fork run in reverse order: ours must run before logging's, as an import may take that lock.
import logging  # noqa: F401
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

from solotable.errors import EngineError

#: How long fork() waits for the reads and writes of other threads to finish.
_WAIT_SECONDS = 10.0
#: How long it then waits for SQLite to close the files, which happens when the last cursor is gone.
_CLOSE_SECONDS = 3.0
#: How long it then waits for other threads to leave SQLite; threads that compute in C code delay it so long.
_SETTLE_SECONDS = 0.25
_POLL_SECONDS = 0.001
#: The most files to remember; beyond that, closed ones are forgotten.
_MOST_KNOWN = 1_000

#: Device and inode of a file.
Identity = tuple[int, int]


class Forkable(Protocol):
    """An open database, as the hooks use it."""

    @property
    def pid(self) -> int:
        """The process that owns the connections."""

    @property
    def identity(self) -> Identity | None:
        """The file; None in memory."""

    def suspend(self, deadline: float) -> bool:
        """Close every connection and block new ones; return False if one stays in use."""

    def resume(self) -> None:
        """Let the parent open connections again, also if `suspend` was interrupted."""

    def restart(self) -> None:
        """Start again in a child, whose parent had suspended the database."""

    def disown(self) -> None:
        """Drop connections that belong to the parent, without closing them."""


_lock = threading.RLock()
_process = os.getpid()
_open: WeakSet[Any] = WeakSet()
#: Files that this process has opened. A closed database may still have a cursor, and so its file open.
_known: set[Identity] = set()
#: Databases that are suspended, by fork: a signal handler may fork while the process forks.
_suspended: list[list[Forkable]] = []
#: Files that this process must not open, because it inherited connections to them.
_inherited: set[Identity] = set()


def register(database: Forkable) -> None:
    """Add a database to the hooks, before its first connection is opened."""
    if os.getpid() != _process:
        # C code forked the process and ran no hook.
        _after_in_child()
    with _lock:
        if database.identity is not None:
            if database.identity in _inherited:
                raise EngineError(
                    "This process was forked while its parent was reading or writing the file, and SQLite "
                    "cannot open it here without losing writes. Start the process with the spawn or "
                    "forkserver method, or fork while no call is in progress."
                )
            if len(_known) > _MOST_KNOWN:
                _known.intersection_update(_open_files())
            _known.add(database.identity)
        _open.add(database)


def unregister(database: Forkable) -> None:
    """Remove a closed database from the hooks."""
    with _lock:
        _open.discard(database)


def block_forks() -> AbstractContextManager[object]:
    """Return a context in which fork() of another thread waits.

    A first import belongs in it: a child that was forked during the import would wait for it for ever.
    """
    return _lock


def leak(objects: Iterable[object]) -> None:
    """Prevent the collection of objects: SQLite would close a connection, and act on stale state."""
    import ctypes  # only a child that inherited connections needs it

    for each in objects:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))


def wait_until(condition: Callable[[], bool], deadline: float) -> bool:
    """Wait for a condition that other threads fulfil; return False at the deadline.

    The wait collects garbage, which may hold cursors of an exception and dropped connections.
    """
    now = time.monotonic()
    collect_at = now + (deadline - now) / 10
    while not condition():
        now = time.monotonic()
        if now > deadline:
            return False
        if now > collect_at:
            gc.collect()
            collect_at = deadline
        time.sleep(_POLL_SECONDS)
    return True


def _before() -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    _lock.acquire()
    suspended: list[Forkable] = []
    _suspended.append(suspended)
    for database in tuple(_open):
        if database.pid == os.getpid():
            # Listed first: an interruption must not leave it suspended.
            suspended.append(database)
            if not database.suspend(deadline):
                suspended.remove(database)
    files = {each.identity for each in suspended} - {None}
    if files:
        wait_until(lambda: not files & _open_files(), time.monotonic() + _CLOSE_SECONDS)
    if suspended:
        # A thread that closed a file may still hold the mutex of SQLite's allocator, and a child would wait
        # for it for ever.
        wait_until(lambda: not is_another_thread_running(), time.monotonic() + _SETTLE_SECONDS)


def is_another_thread_running() -> bool:
    """Return whether another thread runs C code; the caller has the GIL, so none runs Python.

    Without /proc, as on macOS, it is False.
    """
    own = str(threading.get_native_id())
    try:
        threads = os.listdir("/proc/self/task")  # noqa: PTH208 - the names are numbers, not paths
    except OSError:
        return False
    return any(_thread_state(each) == "R" for each in threads if each != own)


def _thread_state(thread: str) -> str:
    try:
        fields = Path(f"/proc/self/task/{thread}/stat").read_bytes()
        # The name of a thread is in parentheses, and may contain some.
        return fields.rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):
        return ""  # the thread has ended


def _open_files() -> set[Identity]:
    """Return which of the known files this process has open, by any connection."""
    found = set()
    try:
        descriptors = os.listdir("/dev/fd")  # noqa: PTH208 - the names are numbers, not paths
    except OSError:
        return set(_known)
    for name in descriptors:
        with contextlib.suppress(OSError):
            status = os.fstat(int(name))
            found.add((status.st_dev, status.st_ino))
    return found & _known


def _after_in_parent() -> None:
    # An interruption may have hit the hook before it took the lock or added its list.
    with contextlib.suppress(IndexError):
        for database in _suspended.pop():
            database.resume()
    with contextlib.suppress(RuntimeError):
        _lock.release()


def _after_in_child() -> None:
    # A thread that is not in the child may hold the old lock.
    global _lock, _process
    _lock, _process = threading.RLock(), os.getpid()
    suspended = _suspended[-1] if _suspended else []
    _inherited.update(_open_files())
    for database in tuple(_open):
        if database.identity not in _inherited and any(database is each for each in suspended):
            database.restart()
        else:
            database.disown()
    _suspended.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
