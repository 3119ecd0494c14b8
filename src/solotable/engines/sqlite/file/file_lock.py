"""One lock per database file, held across processes while one of them commits or checkpoints.

It makes several writers fair: the kernel queues them, where SQLite would poll. It also prevents the
WAL-reset bug of SQLite before 3.51.3, which needs a commit of one connection during a checkpoint of another.
Reads do not take it. A wait has a time limit, because another process may stop while it holds the lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

from solotable.errors import EngineError, FileLocked, ReadOnly

from .forks import Identity
from .identity import identity_of

#: A lock file that was removed or replaced is detected within this time.
_RECHECK_SECONDS = 0.001
_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS}

if sys.platform == "win32":  # pragma: no cover - the suite runs on POSIX
    import msvcrt

    def try_lock(descriptor: int) -> bool:
        """Lock an open file, or return False if another process has it locked."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _lock(descriptor: int) -> None:
        while not try_lock(descriptor):
            time.sleep(0.01)

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Lock an open file, or return False if another process has it locked."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class FileLock:
    """The lock of one database file, which is a file beside it. Without a path it does nothing.

    One thread at a time uses it: `GroupCommit` serialises the commits of an engine.
    """

    def __init__(self, path: str | None, *, timeout_seconds: float) -> None:
        self._path = path
        self._timeout_seconds = timeout_seconds
        self._descriptor: int | None = None
        self._identity: Identity | None = None
        self._waiter: _LockWaiter | None = None
        self._checked = 0.0
        if path is not None:
            self._open()

    def __enter__(self) -> None:
        try:
            # Nearly always the lock is free and was checked in the last millisecond.
            if (
                self._waiter is not None
                or self._descriptor is None
                or not try_lock(self._descriptor)
                or time.monotonic() - self._checked > _RECHECK_SECONDS
            ):
                self.acquire(self._timeout_seconds)
        except BaseException:
            # An interruption may come when the lock is taken, or while it is released.
            self._give_up()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            _unlock(self._descriptor)

    def acquire(self, timeout_seconds: float) -> None:
        """Take the lock, or raise FileLocked with the process that holds it."""
        if self._path is None:
            return
        while True:
            descriptor = self._open() if self._descriptor is None else self._descriptor
            try:
                # The waiter of an abandoned wait is still in the kernel's queue, with this same descriptor.
                if (self._waiter is not None and self._waiter.waiting) or not try_lock(descriptor):
                    self._wait(descriptor, timeout_seconds)
                if not self._was_removed():
                    return
            except BaseException:
                self._give_up()
                raise
            # Other processes lock the file that replaced it.
            self.close()

    def close(self) -> None:
        """Close the lock file; the next acquire opens it again. The file stays for other processes."""
        descriptor, self._descriptor = self._descriptor, None
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.end()
            waiter.join()
        elif descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        # An engine that was dropped without close().
        if self._waiter is not None:
            self._waiter.end()
        elif self._descriptor is not None:
            os.close(self._descriptor)

    def forget(self) -> None:
        """Close the copies of a parent's descriptor in a child; the parent keeps its lock."""
        descriptor, self._descriptor, self._waiter = self._descriptor, None, None
        if descriptor is not None:
            os.close(descriptor)

    def _open(self) -> int:
        assert self._path is not None
        try:
            self._descriptor = os.open(
                self._path, os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600
            )
        except OSError as fault:
            if fault.errno not in _NOT_WRITABLE:
                raise EngineError(f"{self._path} cannot be opened: {fault.strerror}.") from fault
            raise ReadOnly(
                f"{self._path} cannot be opened for writing: {fault.strerror}. Make the file and its folder "
                "writable, or open the database with read_only=True."
            ) from fault
        status = os.fstat(self._descriptor)
        self._identity = status.st_dev, status.st_ino
        return self._descriptor

    def _was_removed(self) -> bool:
        now = time.monotonic()
        if now - self._checked < _RECHECK_SECONDS:
            return False
        self._checked = now
        return identity_of(self._path or "") != self._identity

    def _give_up(self) -> None:
        if self._waiter is not None:
            self._waiter.give_up()
        self.release()

    def _wait(self, descriptor: int, seconds: float) -> None:
        if self._waiter is None:
            self._waiter = _LockWaiter(descriptor)
        started = time.monotonic()
        if self._waiter.wait(seconds):
            return
        holder = _find_holder(descriptor)
        who = "another process" if holder is None else f"process {holder}"
        raise FileLocked(
            f"{self._path}: {who} has held the write lock for over {time.monotonic() - started:.1f} s. "
            "If it is stopped or hangs, resume it or end it; then try again. Nothing was written.",
            holder=holder,
        )


def _find_holder(descriptor: int) -> int | None:
    """Return the process that holds the lock, or None where the system does not list locks."""
    status = os.fstat(descriptor)
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            # 1: FLOCK  ADVISORY  WRITE 4711 fe:00:10174515 0 EOF; a waiting process has an arrow.
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5] == file:
                return int(fields[4])
    return None


class _LockWaiter:
    """A thread that waits in the kernel's queue for a caller with a time limit.

    flock() takes no time limit, and polling would let one writer starve another. An interruption may come at
    any line of a caller, so a caller only sets `_wanted`; the thread changes all other state.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._mutex = threading.Lock()
        self._wanted = False
        self._in_kernel = False
        self._ended = False
        #: Both are held. Releasing them signals "look" to the thread, and "granted" to the caller.
        self._call = threading.Lock()
        self._grant = threading.Lock()
        self._call.acquire()
        self._grant.acquire()
        self._thread = threading.Thread(target=self._run, name="solotable-file-lock", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for the lock; return whether it was granted. If not, the caller must call `give_up`."""
        # An interruption may have left the last grant here.
        self._grant.acquire(blocking=False)
        self._wanted = True
        _wake(self._call)
        return self._grant.acquire(timeout=seconds)

    def give_up(self) -> None:
        """End the wait; the caller then unlocks the descriptor."""
        with self._mutex:
            self._wanted = False
            self._grant.acquire(blocking=False)

    @property
    def waiting(self) -> bool:
        """Whether the thread is in the kernel's queue."""
        with self._mutex:
            return self._in_kernel

    def end(self) -> None:
        """End the thread, which closes the descriptor once flock() has returned."""
        self._ended = True
        _wake(self._call)

    def join(self) -> None:
        """Wait for the end of the thread, unless it waits in the kernel."""
        if not self.waiting:
            self._thread.join()

    def _run(self) -> None:
        while self._call.acquire() and not self._ended:
            with self._mutex:
                self._in_kernel = self._wanted
            if not self._in_kernel:
                continue
            _lock(self._descriptor)
            with self._mutex:
                self._in_kernel = False
                if self._wanted and not self._ended:
                    self._wanted = False
                    self._grant.release()
                else:
                    _unlock(self._descriptor)
        os.close(self._descriptor)


def _wake(sleeper: threading.Lock) -> None:
    # Another thread may have released it.
    with contextlib.suppress(RuntimeError):
        sleeper.release()
