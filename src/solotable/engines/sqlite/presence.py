"""A shared lock that each engine holds while it has a file open; the kernel releases it when a process dies.

It is an open file description lock on the first byte of the lock file, which does not interfere with the
flock() of `file_lock`. Only Linux has it; elsewhere `is_alone` is always False.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from .connection import Database

if sys.platform == "linux":
    import fcntl

    def _lock(descriptor: int, kind: int) -> None:
        # struct flock: the type, SEEK_SET, the first byte, one of them, no process.
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, 0, 0, 1, 0))


class Presence:
    """The shared lock of one engine."""

    __slots__ = ("__weakref__", "_descriptor", "_path")

    def __init__(self, database: Database) -> None:
        self._path = f"{database.path}-lock"
        self._descriptor: int | None = None
        if sys.platform == "linux" and not (database.in_memory or database.read_only):
            self._open()
            _present.add(self)

    def _open(self) -> None:
        # Without descriptors, or on a file system without such locks, this engine counts as one of several.
        with contextlib.suppress(OSError):
            self._descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            _lock(self._descriptor, fcntl.F_RDLCK)

    def __del__(self) -> None:
        # An engine that was dropped without close().
        self.close()

    def restart(self) -> None:
        """Take a new lock in a forked child: the inherited one is the parent's."""
        if self._descriptor is not None:
            self.close()
            self._open()

    def is_alone(self) -> bool:
        """Say whether no other engine has the file open, in this process or another."""
        if self._descriptor is None or sys.platform != "linux":
            return False
        try:
            _lock(self._descriptor, fcntl.F_WRLCK)
        except OSError:
            return False
        _lock(self._descriptor, fcntl.F_RDLCK)
        return True

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


_present: WeakSet[Presence] = WeakSet()


def _restart_all() -> None:
    for presence in tuple(_present):
        presence.restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_all)
