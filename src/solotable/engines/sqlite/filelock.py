"""One lock per database file, held across processes while something commits or checkpoints.

It is what makes several writers fair (the kernel queues them, where SQLite's own waiting polls), and
it keeps out the WAL-reset fault of SQLite before 3.51.3, which needs a commit of one connection
during a checkpoint of another. It does not protect reads: those need no lock.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType

if sys.platform == "win32":  # pragma: no cover - the suite runs on POSIX
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class FileLock:
    """The lock of one database file: a file beside it that stays empty. No path: no other process."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: str | None) -> None:
        self._descriptor: int | None = None
        if path is not None:
            self._descriptor = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600)

    def __enter__(self) -> None:
        if self._descriptor is not None:
            try:
                _lock(self._descriptor)
            except BaseException:
                # An interruption may come between the kernel's grant and our hearing of it.
                _unlock(self._descriptor)
                raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            _unlock(self._descriptor)

    def close(self) -> None:
        """Let go of the file; it is left where it is, as others may hold it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
