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

if TYPE_CHECKING:
    from .connection import Database

if sys.platform == "linux":
    import fcntl

    def _lock(descriptor: int, kind: int) -> None:
        # struct flock: the type, SEEK_SET, the first byte, one of them, no process.
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, 0, 0, 1, 0))


class Presence:
    """The shared lock of one engine."""

    __slots__ = ("_descriptor",)

    def __init__(self, database: Database) -> None:
        self._descriptor: int | None = None
        if sys.platform == "linux" and not (database.in_memory or database.read_only):
            descriptor = os.open(f"{database.path}-lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            self._descriptor = descriptor
            # A file system may have no such locks.
            with contextlib.suppress(OSError):
                _lock(descriptor, fcntl.F_RDLCK)

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
