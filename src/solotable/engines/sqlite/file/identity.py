"""The path and inode of a database file, to detect a file that was removed or replaced.

This module does not open the database file: closing a descriptor of it would drop SQLite's own locks.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from solotable.errors import EngineError, FileReplaced

from .forks import Identity

#: A file that was removed or replaced is detected within this time.
_RECHECK_SECONDS = 0.001

#: The write-ahead log and its index.
_Log = tuple[Identity | None, Identity | None]


class DatabaseFile:
    """One database file, created if it does not exist."""

    def __init__(self, path: str, *, read_only: bool) -> None:
        #: Absolute and without links: a later os.chdir() or symlink does not change it.
        self.path = os.path.realpath(path)
        self._read_only = read_only
        #: Whether SQLite assumes that no process writes the file: see `switch_to_immutable`.
        self.immutable = False
        self._log_path = f"{self.path}-wal"
        self.log: _Log | None = None
        self._checked = 0.0
        if not read_only:
            self._create()
        try:
            found = Path(self.path).stat()
        except OSError as fault:
            raise EngineError(f"{self.path} cannot be opened: {fault.strerror}.") from fault
        if found.st_nlink > 1:
            raise EngineError(
                f"{self.path} has {found.st_nlink} names (hard links). SQLite finds its log by the file's "
                "name, so writes under two names destroy the file. Remove the other names, or copy the file."
            )
        self.identity: Identity = (found.st_dev, found.st_ino)

    def _create(self) -> None:
        """Create the file with access for its owner only; SQLite would give access to others too."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            pass
        except OSError as fault:
            if identity_of(self.path) is None:
                raise EngineError(f"{self.path} cannot be created: {fault.strerror}.") from fault

    @property
    def uri(self) -> str:
        """The URI that SQLite opens."""
        mode = "ro" if self._read_only else "rw"
        return f"{Path(self.path).as_uri()}?mode={mode}{'&immutable=1' if self.immutable else ''}"

    def switch_to_immutable(self) -> bool:
        """Read the file without a log, which SQLite cannot create in a folder that is not writable."""
        if not self._read_only or self.immutable or self._log_has_content():
            return False
        self.immutable = True
        return True

    def check_in_place(self) -> None:
        """Raise FileReplaced if the path no longer leads to the file, or its log was removed."""
        self._checked = time.monotonic()
        if self.immutable:
            if self._log_has_content():
                raise FileReplaced(
                    f"{self.path} was opened read-only in a folder that is not writable, and another "
                    "process writes it now. Open it again."
                )
            return
        if identity_of(self.path) != self.identity:
            raise FileReplaced(
                f"{self.path} was removed or replaced while it was open; nothing more is written to it. "
                "Put the file back, or close the engine and open the new file."
            )
        if self.log is not None and self._find_log() != self.log:
            raise self._log_replaced()

    def recheck(self) -> None:
        """Check again unless a check was made in the last millisecond: it costs a tenth of a short write."""
        if time.monotonic() - self._checked > _RECHECK_SECONDS:
            self.check_in_place()

    def note_log(self) -> None:
        """Record the inodes of the log and its index, once the connection that writes has them open."""
        if self.log is None:
            found = self._find_log()
            if None in found:
                raise self._log_replaced()
            self.log = found

    def forget_log(self) -> None:
        """Forget the log, when no connection of this process has it open."""
        self.log = None

    def _find_log(self) -> _Log:
        return identity_of(self._log_path), identity_of(f"{self.path}-shm")

    def _log_replaced(self) -> FileReplaced:
        return FileReplaced(
            f"{self._log_path} or -shm was removed or replaced while it was open. Both are part of the "
            "database: writes since the last checkpoint may be lost. Close every process that has the file "
            "open."
        )

    def _log_has_content(self) -> bool:
        try:
            return Path(self._log_path).stat().st_size > 0
        except OSError:
            return False


def identity_of(path: str) -> Identity | None:
    """Return the device and inode of a path; None if it does not exist."""
    try:
        found = os.stat(path)  # noqa: PTH116 - called for commits; Path doubles its time
    except OSError:
        return None
    return found.st_dev, found.st_ino
