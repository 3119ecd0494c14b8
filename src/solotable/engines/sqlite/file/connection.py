"""The connections to one SQLite file.

Writes run one at a time and return only once committed (`group_commit`). Each read has its own connection
and never waits for a writer. No connection is open while the process forks (`forks`), and all connections
lead to the same file (`identity`). This module does not know what is stored.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Literal, TypeVar, get_args
from weakref import WeakSet

from solotable.engines.sqlite.tables import layout
from solotable.engines.sqlite.tables.upgrade import upgrade
from solotable.errors import Corrupt, EngineError, FileLocked, NotOurFile, ReadOnly

from . import forks
from .file_lock import FileLock
from .group_commit import GroupCommit, Outcome
from .identity import DatabaseFile
from .read_connection import ReadContext, SharedReadContext
from .sqlite_errors import describe, primary_code

ResultT = TypeVar("ResultT")
CallT = TypeVar("CallT")
Durability = Literal["full", "relaxed"]


class Connection(sqlite3.Connection):
    """A connection with weak references, so that the garbage collector closes one that was dropped."""

    __slots__ = ("__weakref__",)


#: Opens a connection as `sqlite3.connect` does, of a subclass of `sqlite3.Connection`.
Connect = Callable[..., sqlite3.Connection]
connect: Connect = partial(sqlite3.connect, factory=Connection)

MEMORY = ":memory:"
#: How long a write waits for another process that holds the lock of the file.
LOCK_SECONDS = 30.0
_WRITER_CACHE_KIB = 64 * 1024
#: Each reader has its own; the operating system's cache serves all of them.
_READER_CACHE_KIB = 16 * 1024
#: The most idle readers; others are closed after use, with their caches.
_MOST_IDLE_READERS = 8
#: A write-ahead log that grew during a long read is truncated to this size.
_LARGEST_IDLE_WAL = 64 * 2**20
_OLDEST_SQLITE = (3, 35, 0)  # RETURNING


class Database:
    """The connections to one file, or to one database in memory; `connect` opens them."""

    def __init__(
        self,
        path: str,
        *,
        durability: Durability = "full",
        read_only: bool = False,
        lock_timeout_seconds: float = LOCK_SECONDS,
        connect: Connect = connect,
    ) -> None:
        if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
            raise EngineError(f"SQLite {sqlite3.sqlite_version} is too old; solotable needs 3.35 or newer.")
        if durability not in get_args(Durability):
            raise EngineError(f'durability is "full" or "relaxed", not {durability!r}.')
        if not path or "\0" in path or os.path.isdir(path):  # noqa: PTH112 - Path raises where a folder cannot be read
            raise EngineError(f'{path!r} cannot be a database: pass the path of a file, or ":memory:".')
        self.in_memory = path == MEMORY
        self.read_only = read_only
        self._file = None if self.in_memory else DatabaseFile(path, read_only=read_only)
        self.path = MEMORY if self._file is None else self._file.path
        self._durability = durability
        self._lock_timeout_seconds = lock_timeout_seconds
        self._open_connection = connect
        self.pid = os.getpid()
        self._group_commit = GroupCommit(self)
        self._readers: deque[sqlite3.Connection] = deque()
        #: Every open connection, and the lock under which one is opened.
        self._connections: WeakSet[sqlite3.Connection] = WeakSet()
        self._opening = threading.RLock()
        self._suspended = False
        self._shared_read = SharedReadContext(self, self._group_commit) if self.in_memory else None
        self.closed = False
        #: Whether a commit has changed pages that readers have in their caches; the writer's cache has them.
        self.readers_are_stale = False
        self.writer: sqlite3.Connection
        self._writer_lost = False
        lock_path = None if self.in_memory or read_only else f"{self.path}-lock"
        self.file_lock = FileLock(lock_path, timeout_seconds=lock_timeout_seconds)
        try:
            # fork() takes this lock too, so the process does not fork before the file is open.
            with self._group_commit.lock:
                forks.register(self)
                with self.file_lock:
                    self.writer = self._open_first()
        except BaseException as fault:
            forks.unregister(self)
            self.file_lock.close()
            if isinstance(fault, sqlite3.Error):
                raise self.engine_error(fault) from fault
            raise

    def write(self, action: Callable[[sqlite3.Connection], ResultT], *, savepoint: bool = True) -> ResultT:
        """Run the action in a transaction and return its result once that is committed.

        `savepoint=False` saves two statements, see `GroupCommit.write`.
        """
        if self.closed or self.read_only or os.getpid() != self.pid:
            self.check_writable()
        return self._group_commit.write(action, savepoint=savepoint)

    def write_alone(self, action: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        """Run the action in a transaction that no other write shares."""
        self.check_writable()
        return self._group_commit.write_alone(action)

    def run_together(self, call: Callable[[CallT], Any], arguments: Sequence[CallT]) -> list[Outcome]:
        """Call a function with each argument; all that the calls write is committed together."""
        self.check_writable()
        return self._group_commit.run_together(call, arguments)

    def run_exclusively(self, action: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        """Run the action on the connection that writes, without a transaction, while no process commits."""
        self.check_writable()
        with self._group_commit.lock, self.file_lock:
            try:
                return action(self.prepare_writer())
            except sqlite3.Error as fault:
                error = self.engine_error(fault)
                self.roll_back(fault)
                raise error from fault

    @property
    def waiting(self) -> int:
        """How many writes wait for the one that is being committed."""
        return self._group_commit.waiting

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        """Return a context with a connection for one statement, which sees all commits before it."""
        return self._shared_read or ReadContext(self)

    def fetch_one(self, sql: str, parameters: tuple[Any, ...]) -> Any:
        """Return the first row of one statement, or None; faster than `read` for the commonest request."""
        if self.in_memory:
            if self.closed or os.getpid() != self.pid:
                self.check_usable()
            try:
                with self._group_commit.lock:
                    return self.writer.execute(sql, parameters).fetchone()
            except sqlite3.Error as error:
                raise self.engine_error(error) from error
        # A forked child must not use the connections of its parent; `acquire_reader` raises then.
        if (
            self.readers_are_stale
            and os.getpid() == self.pid
            and self._group_commit.lock.acquire(blocking=False)
        ):
            try:
                # Within `run_together`, this thread has the lock and a transaction that is not committed.
                if not (self.closed or self._writer_lost or self.writer.in_transaction):
                    self.readers_are_stale = False
                    return self.writer.execute(sql, parameters).fetchone()
            except sqlite3.Error as error:
                raise self.engine_error(error) from error
            finally:
                self._group_commit.lock.release()
        reader = self.acquire_reader()
        try:
            row = reader.execute(sql, parameters).fetchone()
        except BaseException as error:
            self.release_reader(reader, sound=False)
            if isinstance(error, sqlite3.Error):
                raise self.engine_error(error) from error
            raise
        self.release_reader(reader)
        return row

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Return a context with a connection whose statements all see the same snapshot."""
        with self.read() as reader:
            # In memory, a read within `run_together` uses the connection of the open transaction.
            in_transaction = reader.in_transaction
            if not in_transaction:
                reader.execute("BEGIN")
            try:
                yield reader
            finally:
                if not in_transaction and reader.in_transaction:
                    reader.execute("COMMIT")

    def acquire_reader(self) -> sqlite3.Connection:
        """Take a connection to a file to read with; the caller must release it."""
        if self.closed or os.getpid() != self.pid:
            self.check_usable()
        if self._suspended:
            # The thread that forks holds this lock until the fork is done.
            with self._opening:
                pass
        if self._file is not None and self._file.immutable:
            self._file.recheck()
        try:
            return self._readers.pop()
        except IndexError:
            try:
                return self._connect(reader=True)
            except sqlite3.Error as fault:
                raise self.engine_error(fault) from fault

    def release_reader(self, reader: sqlite3.Connection, *, sound: bool = True) -> None:
        """End the use of a connection; one that is not sound is closed."""
        if sound and not self._suspended and len(self._readers) < _MOST_IDLE_READERS:
            self._readers.append(reader)
        else:
            self._disconnect(reader)
        if self.closed:
            self._close_readers()

    def close(self) -> None:
        """Close every connection; a second call does nothing."""
        if os.getpid() != self.pid:
            # The connections and the lock belong to the parent.
            self.closed = True
            return
        with self._group_commit.lock:
            if self.closed:
                return
            self.closed = True
            # The last connection to a file checkpoints it when it closes. A process that holds the lock for
            # too long has the file open, so this connection is not the last one.
            with contextlib.suppress(FileLocked), self.file_lock:
                self._close_readers()
                self._close_writer()
            self._close_readers()
            self._close_writer()
            self.file_lock.close()
        forks.unregister(self)

    def _close_readers(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._disconnect(self._readers.pop())

    def _disconnect(self, connection: sqlite3.Connection) -> None:
        self._connections.discard(connection)
        connection.close()

    def _close_writer(self) -> None:
        self._writer_lost = True
        if self._file is not None:
            self._file.forget_log()
        self._disconnect(self.writer)

    @property
    def identity(self) -> forks.Identity | None:
        """The device and inode of the file."""
        return None if self._file is None else self._file.identity

    @property
    def suspended(self) -> bool:
        """Whether the process is about to fork: a long read must end, or the child cannot open the file."""
        return self._suspended

    def suspend(self, deadline: float) -> bool:
        """Close every connection before a fork; return False and change nothing if one stays in use."""
        if any(lock._is_owned() for lock in self._locks):
            # A signal handler forks in the middle of a call in the same thread.
            return False
        with contextlib.suppress(Exception):
            if all(lock.acquire(timeout=_seconds_left(deadline)) for lock in self._locks):
                self._suspended = True
                if self._close_for_fork(deadline):
                    return True
        self.resume()
        return False

    def _close_for_fork(self, deadline: float) -> bool:
        if self.in_memory:
            # SQLite's global locks are free as soon as no thread is inside it.
            return True
        if not forks.wait_until(self._only_writer_is_open, deadline):
            return False
        self.file_lock.acquire(_seconds_left(deadline))
        try:
            self._close_writer()
        finally:
            self.file_lock.release()
        self.file_lock.close()
        return True

    def _only_writer_is_open(self) -> bool:
        self._close_readers()
        return self._connections <= {self.writer}

    def resume(self) -> None:
        """Continue in the parent after a fork; connections are opened when they are needed."""
        self._suspended = False
        for lock in self._locks:
            # An interruption may have come before `suspend` had taken it.
            with contextlib.suppress(RuntimeError):
                lock.release()

    @property
    def _locks(self) -> tuple[Any, ...]:
        """The locks that are held while the process forks, in this order."""
        return self._group_commit.lock, self._opening

    def restart(self) -> None:
        """Continue in a child: the threads that waited for the parent's locks do not exist here."""
        if self.in_memory:
            return
        self.pid = os.getpid()
        self._group_commit = GroupCommit(self)
        self._opening = threading.RLock()
        self._suspended = False

    def disown(self) -> None:
        """Keep the parent's connections from being closed in a child."""
        forks.leak(self._connections)
        self.file_lock.forget()

    def check_usable(self) -> None:
        if self.closed:
            raise EngineError(f"The engine on {self.path} was closed; open it again.")
        if os.getpid() != self.pid:
            if self.in_memory:
                raise EngineError(
                    "The in-memory database belongs to the parent of this forked process. Open another "
                    "in this process, or use a file, which processes share."
                )
            raise EngineError(
                f"{self.path}: the process was forked while its engine was in use, or by C code that "
                "runs no hooks of Python. Start the process with the spawn or forkserver method, or fork "
                "while no call is in progress."
            )

    def check_writable(self) -> None:
        """Raise an error if the database is closed, or open for reading only."""
        self.check_usable()
        if self.read_only:
            raise ReadOnly(f"{self.path} was opened read-only; open it without read_only=True to write.")

    def begin(self) -> sqlite3.Connection:
        """Begin a transaction on the connection that writes, and return the connection."""
        writer = self.prepare_writer()
        writer.execute("BEGIN IMMEDIATE")
        if self._file is not None and self._file.log is None:
            self._file.note_log()
        return writer

    def prepare_writer(self) -> sqlite3.Connection:
        """Return the connection that writes, with no transaction open: a new one if the last was lost."""
        if self.closed:
            self.check_usable()
        if self._writer_lost:
            self.writer = self._connect()
            self._writer_lost = False
        elif self.writer.in_transaction:
            # An interruption came between a failure and its rollback.
            self.writer.execute("ROLLBACK")
        if self._file is not None:
            self._file.recheck()
        return self.writer

    def roll_back(self, fault: BaseException | None) -> None:
        """Roll back the open transaction; close a connection that cannot be trusted any more."""
        trusted = not isinstance(fault, sqlite3.Error) or primary_code(fault) != sqlite3.SQLITE_IOERR
        try:
            if self.writer.in_transaction:
                self.writer.execute("ROLLBACK")
        except sqlite3.Error:
            trusted = False
        if not trusted and not self.in_memory:
            # After a failed fsync, the pages that this connection holds cannot be trusted. The next write
            # opens another connection, and raises if that fails too.
            self._close_writer()

    def _open_first(self) -> sqlite3.Connection:
        """Open the file, lay it out if it is new, and reject the file of another program."""
        try:
            connection = self._connect(reader=True)
            ours = layout.is_ours(connection, self.path)
        except sqlite3.OperationalError:
            if self._file is None or not self._file.switch_to_immutable():
                raise
            connection = self._connect(reader=True)
            ours = layout.is_ours(connection, self.path)
        try:
            if self.read_only:
                if not ours:
                    raise NotOurFile(f"{self.path} is empty and was opened read-only.")
                return connection
            # Not earlier: changing the journal mode would change another program's file.
            self._make_writer(connection)
            if ours:
                upgrade(connection)
            else:
                layout.create(connection)
        except BaseException:
            self._disconnect(connection)
            raise
        return connection

    def _connect(self, *, reader: bool = False) -> sqlite3.Connection:
        if self._file is None:
            return self._configure(self._open_target(MEMORY), reader=reader)
        with self._opening:
            self._file.check_in_place()
            connection = self._open_target(self._file.uri)
            self._connections.add(connection)
        try:
            return self._configure(connection, reader=reader)
        except UnicodeDecodeError as fault:
            # Python decodes SQLite's message, which quotes a damaged name of the schema.
            self._disconnect(connection)
            raise Corrupt(
                f"{self.path} is damaged: its schema has text that is not UTF-8. Restore a backup."
            ) from fault
        except BaseException:
            self._disconnect(connection)
            raise

    def _open_target(self, target: str) -> sqlite3.Connection:
        return self._open_connection(
            target,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=self._lock_timeout_seconds,
            cached_statements=512,
        )

    def _configure(self, connection: sqlite3.Connection, *, reader: bool) -> sqlite3.Connection:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KIB}")
        if reader:
            connection.execute("PRAGMA query_only = ON")
        else:
            self._make_writer(connection)
        return connection

    def _make_writer(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA query_only = OFF")
        connection.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KIB}")
        connection.execute(f"PRAGMA page_size = {layout.PAGE_BYTES}")
        if not self.in_memory:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                # SQLite gives no reason. A full disk is one.
                raise EngineError(
                    f"{self.path}: SQLite cannot start a write-ahead log; the journal mode stays {mode!r}."
                )
            connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_IDLE_WAL}")
        # FULL: a commit returns after fsync. NORMAL may lose the last commits at a power cut.
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._durability == 'full' else 'NORMAL'}")
        connection.execute("PRAGMA fullfsync = ON")

    def engine_error(self, fault: sqlite3.Error, *, committing: bool = False) -> EngineError:
        """Return the EngineError for an error of SQLite."""
        return describe(fault, self.path, self._lock_timeout_seconds, committing=committing)


def _seconds_left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
