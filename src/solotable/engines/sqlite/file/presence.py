"""A shared lock that each engine holds while it has a file open.

The kernel releases it when the process dies. It is an open file description lock on the first byte of the
lock file, which does not interfere with the flock() of `file_lock`. The first engine takes it exclusively
until it has read which sessions died, so that exactly one engine does so. Only Linux has such locks;
elsewhere `is_first` is always False.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import time
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from .connection import Database

#: How long to wait for an engine that holds the lock exclusively, which it does briefly.
_WAIT_SECONDS = 1.0
_POLL_SECONDS = 0.001

if sys.platform == "linux":
    import fcntl

    def _lock(descriptor: int, kind: int) -> None:
        # struct flock: the type, SEEK_SET, the first byte, one of them, no process.
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, 0, 0, 1, 0))


class PresenceLock:
    """The shared lock of one engine."""

    __slots__ = ("__weakref__", "_descriptor", "_path", "is_first")

    def __init__(self, database: Database, *, takes_part: bool = True) -> None:
        """Take the lock, unless this engine leaves repairs to others and does not count for them."""
        self._path = f"{database.path}-lock"
        self._descriptor: int | None = None
        #: Whether no other engine had the file open, in this process or another.
        self.is_first = False
        if sys.platform == "linux" and takes_part and not (database.in_memory or database.read_only):
            _present.add(self)
            self._open()
            self.is_first = self._try_lock(exclusively=True) is True
            if not self.is_first:
                self.share()

    def _open(self) -> None:
        # Without descriptors or such locks, this engine is not the first.
        with contextlib.suppress(OSError):
            self._descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def _try_lock(self, *, exclusively: bool) -> bool | None:
        """Take the lock; return whether it was free, or None on a system without such locks."""
        if self._descriptor is None or sys.platform != "linux":
            return None
        try:
            _lock(self._descriptor, fcntl.F_WRLCK if exclusively else fcntl.F_RDLCK)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            return None
        return True

    def share(self) -> None:
        """Make the lock shared; the first engine does so when it has read which sessions died."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while self._try_lock(exclusively=False) is False and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def __del__(self) -> None:
        # An engine that was dropped without close().
        self.close()

    def restart(self) -> None:
        """Take a new lock in a forked child: the inherited one is the parent's."""
        if self._descriptor is not None:
            self.close()
            self._open()
            self.share()

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


_present: WeakSet[PresenceLock] = WeakSet()


def _restart_all() -> None:
    for presence in tuple(_present):
        presence.restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_all)
