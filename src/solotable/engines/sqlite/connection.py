"""One SQLite file: who may write, who may read, and what a fault of the file means.

Writes run one at a time and return only once committed (`commits`); reads have connections of their
own and never wait for a writer. Nothing here knows what is stored.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar, get_args

from solotable.errors import Corrupt, EngineError, NotOurFile, ReadOnly, ServiceError, StorageFull

from . import ddl
from .commits import Commits, Outcome
from .filelock import FileLock

ResultT = TypeVar("ResultT")
Durability = Literal["full", "relaxed"]
#: Opens a connection as `sqlite3.connect` does.
Connect = Callable[..., sqlite3.Connection]

MEMORY = ":memory:"
_BUSY_SECONDS = 30.0
_WRITER_CACHE_KIB = 64 * 1024
#: Each reader has its own; the operating system's cache serves all of them.
_READER_CACHE_KIB = 16 * 1024
#: More readers than this are closed after use, with their caches.
_MOST_IDLE_READERS = 8
#: A log that a long read has let grow is cut back to this.
_LARGEST_IDLE_WAL = 64 * 2**20
_OLDEST_SQLITE = (3, 35, 0)  # RETURNING
_FULL = {sqlite3.SQLITE_FULL}
_READ_ONLY = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class StaleDefinition(EngineError):
    """A SQLite table is gone: the definition that named it has changed; read it again and retry."""


class Database:
    """The connections to one file, or to one database in memory; `connect` opens them."""

    def __init__(
        self,
        path: str,
        *,
        durability: Durability = "full",
        read_only: bool = False,
        connect: Connect = sqlite3.connect,
    ) -> None:
        if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
            raise EngineError(f"SQLite {sqlite3.sqlite_version} is too old; solotable needs 3.35 or newer.")
        if durability not in get_args(Durability):
            raise EngineError(f'durability is "full" or "relaxed", not {durability!r}.')
        if not path or "\0" in path or Path(path).is_dir():
            raise EngineError(f'{path!r} cannot be a database: give the path of a file, or ":memory:".')
        self.path = path
        self.in_memory = path == MEMORY
        self.read_only = read_only
        self._durability = durability
        self._open_connection = connect
        self._pid = os.getpid()
        self._commits = Commits(self)
        self._readers: deque[sqlite3.Connection] = deque()
        self._reading = _SharedReading(self, self._commits) if self.in_memory else None
        self._closed = False
        self._writer_lost = False
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

    @property
    def waiting(self) -> int:
        """How many writes wait for the one that is being committed."""
        return self._commits.waiting

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        """Give a connection for one statement; what it sees is what was committed before."""
        return self._reading or Reading(self)

    def fetch_one(self, sql: str, parameters: tuple[Any, ...]) -> Any:
        """Return the first row of one statement, or None: what is read most, without a context of its own."""
        if self._reading is not None:
            with self._reading as shared:
                return shared.execute(sql, parameters).fetchone()
        reader = self.borrow()
        try:
            row = reader.execute(sql, parameters).fetchone()
        except sqlite3.Error as fault:
            self.give_back(reader, sound=False)
            raise self.fault(fault) from fault
        self.give_back(reader)
        return row

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Give a connection whose statements all see the same moment."""
        with self.read() as reader:
            # In memory, readers share the connection of whoever writes several things together.
            joined = reader.in_transaction
            if not joined:
                reader.execute("BEGIN")
            try:
                yield reader
            finally:
                if not joined and reader.in_transaction:
                    reader.execute("COMMIT")

    def borrow(self) -> sqlite3.Connection:
        """Take a connection to a file to read with; it must be given back."""
        self.check_usable()
        try:
            return self._readers.pop()
        except IndexError:
            try:
                return self._connect(reader=True)
            except sqlite3.Error as fault:
                raise self.fault(fault) from fault

    def give_back(self, reader: sqlite3.Connection, *, sound: bool = True) -> None:
        """End the use of a borrowed connection; one that is not sound is not used again."""
        if sound and len(self._readers) < _MOST_IDLE_READERS:
            self._readers.append(reader)
        else:
            reader.close()
        if self._closed:
            self._close_readers()

    def close(self) -> None:
        """Close every connection; a second call does nothing."""
        if os.getpid() != self._pid:
            # The connections, the lock and whoever holds it are the parent's.
            self._closed = True
            return
        with self._commits.lock:
            if self._closed:
                return
            self._closed = True
            # The last connection to close a file checkpoints it.
            with self.file_lock:
                self._close_readers()
                self.writer.close()
            self.file_lock.close()

    def _close_readers(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._readers.pop().close()

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

    def ready_writer(self) -> sqlite3.Connection:
        """Return the connection that writes, with no transaction open: a new one if the last was lost."""
        if self._writer_lost:
            self.writer = self._connect()
            self._writer_lost = False
        elif self.writer.in_transaction:
            # An interruption came between a failure and its undoing.
            self.writer.execute("ROLLBACK")
        return self.writer

    def abandon(self, fault: BaseException | None) -> None:
        """Undo the open transaction; a connection that cannot be trusted any more is replaced."""
        trusted = not isinstance(fault, sqlite3.Error) or _code(fault) != sqlite3.SQLITE_IOERR
        try:
            if self.writer.in_transaction:
                self.writer.execute("ROLLBACK")
        except sqlite3.Error:
            trusted = False
        if not trusted and not self.in_memory:
            # After a failed fsync nothing that this connection holds can be trusted. The next write
            # opens another: its caller is told if that fails too.
            self._writer_lost = True
            self.writer.close()

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
        connection = self._open_connection(
            target,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=_BUSY_SECONDS,
            cached_statements=512,
        )
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KIB}")
            if reader:
                connection.execute("PRAGMA query_only = ON")
            else:
                self._make_writer(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_writer(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA query_only = OFF")
        connection.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KIB}")
        connection.execute(f"PRAGMA page_size = {ddl.PAGE_BYTES}")
        if not self.in_memory:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                # SQLite says so and nothing more, for instance when the disk is full.
                raise EngineError(f"{self.path} cannot have a write-ahead log: its journal stays {mode!r}.")
            connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_IDLE_WAL}")
        # FULL: a commit returns after fsync. NORMAL may lose the last commits at a power cut.
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._durability == 'full' else 'NORMAL'}")
        connection.execute("PRAGMA fullfsync = ON")

    def fault(self, fault: sqlite3.Error, *, committing: bool = False) -> EngineError:
        """Return our error for SQLite's; nowhere else are the two matched."""
        code = _code(fault)
        if code == sqlite3.SQLITE_IOERR and committing:
            # The log may hold the whole transaction, and a recovery after a crash may find it there.
            return EngineError(f"{self.path}: {fault}; whether the write was kept is not known.")
        # By its words alone: with many threads the code was once another one.
        if str(fault).startswith("no such table"):
            return StaleDefinition(f"{self.path}: {fault}")
        if code in _FULL:
            return StorageFull(f"{self.path}: no room left for the write; nothing of it was kept.")
        if code in _READ_ONLY:
            return ReadOnly(f"{self.path} cannot be written: {fault}.")
        if code == sqlite3.SQLITE_CANTOPEN:
            return EngineError(f"{self.path} cannot be opened: {fault}.")
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
        if error is None:
            self._database.give_back(self._reader)
            return
        # An error keeps its frames alive, and in them a statement that may hold on to an old snapshot.
        self._database.give_back(self._reader, sound=isinstance(error, ServiceError))
        if isinstance(error, sqlite3.Error):
            raise self._database.fault(error) from error


class _SharedReading:
    """The use of the one connection to a database in memory; all share it, and so this."""

    __slots__ = ("_database", "_lock")

    def __init__(self, database: Database, commits: Commits) -> None:
        self._database = database
        self._lock = commits.lock

    def __enter__(self) -> sqlite3.Connection:
        self._database.check_usable()
        self._lock.acquire()
        return self._database.writer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
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
