"""One SQLite file: who may write, who may read, and what a fault of the file means.

Writes run one at a time and return only once committed (`commits`); reads have connections of their
own and never wait for a writer. Nothing here knows what is stored.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

from solotable.errors import Corrupt, EngineError, NotOurFile, ReadOnly, StorageFull

from . import ddl
from .commits import Commits, Outcome
from .filelock import FileLock

ResultT = TypeVar("ResultT")
Durability = Literal["full", "relaxed"]

MEMORY = ":memory:"
_BUSY_SECONDS = 30.0
_CACHE_KIB = 64 * 1024
_OLDEST_SQLITE = (3, 35, 0)  # RETURNING
_FULL = {sqlite3.SQLITE_FULL}
_READ_ONLY = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class StaleDefinition(EngineError):
    """A SQLite table is gone: the definition that named it has changed; read it again and retry."""


class Database:
    """The connections to one file, or to one database in memory."""

    def __init__(self, path: str, *, durability: Durability = "full", read_only: bool = False) -> None:
        if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
            raise EngineError(f"SQLite {sqlite3.sqlite_version} is too old; solotable needs 3.35 or newer.")
        self.path = path
        self.in_memory = path == MEMORY
        self.read_only = read_only
        self._durability = durability
        self._pid = os.getpid()
        self._commits = Commits(self)
        self._readers: deque[sqlite3.Connection] = deque()
        self._closed = False
        if not self.in_memory:
            _create_privately(self.path, read_only=self.read_only)
        self.file_lock = FileLock(self._lock_path())
        try:
            with self.file_lock:
                self.writer = self._open_first()
        except sqlite3.Error as fault:
            self.file_lock.close()
            raise self.fault(fault) from fault
        except BaseException:
            self.file_lock.close()
            raise

    def write(self, action: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        """Run the action in a transaction and return its result once that is committed."""
        self._check_writable()
        return self._commits.write(action)

    def together(self, works: Sequence[Callable[[], Any]]) -> list[Outcome]:
        """Run several works of one caller; what they write is committed together."""
        self._check_writable()
        return self._commits.together(works)

    def read(self) -> Reading:
        """Give a connection for one statement; what it sees is what was committed before."""
        return Reading(self)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Give a connection whose statements all see the same moment."""
        with self.read() as reader:
            reader.execute("BEGIN")
            try:
                yield reader
            finally:
                if reader.in_transaction:
                    reader.execute("COMMIT")

    def borrow(self) -> sqlite3.Connection:
        """Take a connection to read with; it must be given back."""
        self.check_usable()
        if self.in_memory:
            self._commits.lock.acquire()
            return self.writer
        try:
            return self._readers.pop()
        except IndexError:
            try:
                return self._connect(reader=True)
            except sqlite3.Error as fault:
                raise self.fault(fault) from fault

    def give_back(self, reader: sqlite3.Connection) -> None:
        """End the use of a borrowed connection."""
        if self.in_memory:
            self._commits.lock.release()
        elif self._closed:
            reader.close()
        else:
            self._readers.append(reader)

    def close(self) -> None:
        """Close every connection; a second call does nothing."""
        with self._commits.lock:
            if self._closed:
                return
            self._closed = True
            # The last connection to close a file checkpoints it.
            with self.file_lock:
                while self._readers:
                    self._readers.pop().close()
                self.writer.close()
            self.file_lock.close()

    def check_usable(self) -> None:
        if self._closed:
            raise EngineError(f"The engine on {self.path} was closed; open it again.")
        if os.getpid() != self._pid:
            raise EngineError(
                f"The engine on {self.path} was opened before a fork; SQLite connections do not "
                "survive one. Open it again in this process."
            )

    def _check_writable(self) -> None:
        self.check_usable()
        if self.read_only:
            raise ReadOnly(f"{self.path} was opened read-only; open it without read_only=True to write.")

    def abandon(self, fault: sqlite3.Error | None) -> None:
        """Undo the open transaction; a connection that cannot be trusted any more is replaced."""
        trusted = fault is None or _code(fault) != sqlite3.SQLITE_IOERR
        try:
            if self.writer.in_transaction:
                self.writer.execute("ROLLBACK")
        except sqlite3.Error:
            trusted = False
        if not trusted and not self.in_memory:
            # After a failed fsync nothing that this connection holds can be trusted.
            self.writer.close()
            self.writer = self._connect()

    def _lock_path(self) -> str | None:
        return None if self.in_memory or self.read_only else f"{self.path}-lock"

    def _open_first(self) -> sqlite3.Connection:
        """Open the file, make it ours if it is new, and refuse it if it is something else."""
        connection = self._connect(reader=True)
        try:
            ours = ddl.is_ours(connection, self.path)
            if self.read_only:
                if not ours:
                    raise NotOurFile(f"{self.path} is empty and was opened read-only.")
                return connection
            # Only now: changing the journal's mode would change another program's file.
            self._make_writer(connection)
            if not ours:
                ddl.create(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, *, reader: bool = False) -> sqlite3.Connection:
        if self.in_memory:
            target = MEMORY
        else:
            mode = "ro" if self.read_only else "rw"
            target = f"{Path(self.path).absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(
            target,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=_BUSY_SECONDS,
            cached_statements=512,
        )
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        if reader:
            connection.execute("PRAGMA query_only = ON")
        else:
            self._make_writer(connection)
        return connection

    def _make_writer(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA query_only = OFF")
        connection.execute(f"PRAGMA page_size = {ddl.PAGE_BYTES}")
        if not self.in_memory:
            connection.execute("PRAGMA journal_mode = WAL")
        # FULL: a commit returns after fsync. NORMAL may lose the last commits at a power cut.
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._durability == 'full' else 'NORMAL'}")
        connection.execute("PRAGMA fullfsync = ON")

    def fault(self, fault: sqlite3.Error) -> EngineError:
        """Return our error for SQLite's; nowhere else are the two matched."""
        code = _code(fault)
        if code == sqlite3.SQLITE_ERROR and str(fault).startswith("no such table"):
            return StaleDefinition(f"{self.path}: {fault}")
        if code in _FULL:
            return StorageFull(f"{self.path}: no room left for the write; nothing of it was kept.")
        if code in _READ_ONLY:
            return ReadOnly(f"{self.path} cannot be written or opened: {fault}.")
        if code == sqlite3.SQLITE_NOTADB:
            return NotOurFile(f"{self.path} is not a solotable database; nothing was changed.")
        if code in _DAMAGED:
            return Corrupt(f"{self.path} is damaged: {fault}. Restore a backup, or salvage what is readable.")
        if code == sqlite3.SQLITE_BUSY:
            return EngineError(f"{self.path} was held by another writer for over {_BUSY_SECONDS:.0f} s.")
        return EngineError(f"{self.path}: {fault}")


def _code(fault: sqlite3.Error) -> int:
    """Return SQLite's primary result code."""
    return int(getattr(fault, "sqlite_errorcode", 0)) & 0xFF


class Reading:
    """The use of one borrowed connection; a class because reads are many and generators slow."""

    __slots__ = ("_database", "_reader")

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        self._reader = self._database.borrow()
        return self._reader

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.give_back(self._reader)
        if isinstance(error, sqlite3.Error):
            raise self._database.fault(error) from error


def _create_privately(path: str, *, read_only: bool) -> None:
    """Make the file readable by its owner alone before SQLite can make it otherwise."""
    if read_only or Path(path).exists():
        return
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as fault:
        raise EngineError(f"{path} cannot be created: {fault.strerror}.") from fault
