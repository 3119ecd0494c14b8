"""Connections to the file of an FTS5 index: opened, checked, reopened after the file was replaced."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from solotable.errors import DeclarationError
from solotable.fork_safe import new_lock
from solotable.systems.portal.search.port import IndexDamaged, SearchUnavailable

from .ownership import check_owner, claim, discard
from .schema import APPLICATION_ID, SCHEMA_VERSION, create, has_fts5, version_of

_BUSY_SECONDS = 5.0
_CACHE_KILOBYTES = 32 * 1024
_MOST_IDLE = 8
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise IndexDamaged for a damaged file, and SearchUnavailable for other errors of SQLite."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _DAMAGED or "no such table" in str(error):
            raise IndexDamaged(f"The search index is damaged ({error}); the indexer rebuilds it.") from error
        raise SearchUnavailable(f"The search index cannot be used: {error}.") from error


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another connection had the write lock for too long."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class ConnectionPool:
    """Connections to one file, or the only connection to an index in memory."""

    def __init__(self, path: Path | None) -> None:
        if not has_fts5():
            raise DeclarationError(
                f"SQLite {sqlite3.sqlite_version} of this Python has no FTS5; "
                f"use a Python whose SQLite has it, or OpenSearchIndex."
            )
        self._path = path
        self._lock = new_lock()
        self._idle: list[sqlite3.Connection] = []
        #: Identifies the file and the process that the idle connections belong to.
        self._opened: tuple[int, int] | None = None
        self._memory = None if path else _connect(None)
        # A damaged file does not stop the program: searches are unavailable until the indexer has rebuilt it.
        with suppress(SearchUnavailable), translate_errors(), self.connection():
            pass

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Borrow a connection to the current file; it is in no transaction afterwards."""
        if self._memory is not None:
            with self._lock:
                yield from _rolled_back(self._memory)
            return
        database, opened = self._borrow()
        try:
            yield from _rolled_back(database)
        except BaseException:
            database.close()
            raise
        with self._lock:
            if opened == self._opened and len(self._idle) < _MOST_IDLE:
                self._idle.append(database)
                return
        database.close()

    def reset(self) -> None:
        """Remove the file, or empty the memory, and create the tables again."""
        if self._memory is not None:
            with self._lock:
                self._memory.close()
                self._memory = _connect(None)
            return
        self.close()
        discard(self._require_path())
        with self.connection():
            pass

    def close(self) -> None:
        """Close idle connections; an index in memory ends."""
        with self._lock:
            if self._memory is not None:
                self._memory.close()
            for each in self._idle:
                each.close()
            self._idle.clear()
            self._opened = None

    def _borrow(self) -> tuple[sqlite3.Connection, tuple[int, int]]:
        path = self._require_path()
        current = _identity(path)
        with self._lock:
            if current is not None and current == self._opened and self._idle:
                return self._idle.pop(), current
            if current is None or current != self._opened:
                # Another process replaced the file, or this one was forked: these connections are not ours.
                self._idle.clear()
        database = _connect(path)
        found = _identity(path)
        if found is None:
            database.close()
            raise SearchUnavailable("The file of the search index was removed; try again in a moment.")
        with self._lock:
            self._opened = found
        return database, found

    def _require_path(self) -> Path:
        assert self._path is not None
        return self._path


def _rolled_back(database: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield database
    finally:
        if database.in_transaction:
            database.rollback()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        return os.getpid(), path.stat().st_ino
    except FileNotFoundError:
        return None


def _connect(path: Path | None) -> sqlite3.Connection:
    """Open an index, create it if it is empty, and replace one of another version."""
    if path is None:
        return _ready(_open(":memory:"))
    check_owner(path)
    database = _open(str(path))
    try:
        if version_of(database) not in ((0, 0), (APPLICATION_ID, SCHEMA_VERSION)):
            database.close()
            discard(path)
            database = _open(str(path))
        # First the tables: `check_owner` reads the main file, and not what is still in the WAL.
        _ready(database)
        _use_wal(database)
        claim(path)
    except BaseException:
        database.close()
        raise
    return database


def _open(name: str) -> sqlite3.Connection:
    database = sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        database.execute(f"PRAGMA cache_size = -{_CACHE_KILOBYTES}")
    except BaseException:
        database.close()
        raise
    return database


def _ready(database: sqlite3.Connection) -> sqlite3.Connection:
    if version_of(database) == (0, 0):
        try:
            create(database)
        except sqlite3.OperationalError:
            # Another process created the tables first.
            if database.in_transaction:
                database.rollback()
            if version_of(database) != (APPLICATION_ID, SCHEMA_VERSION):
                raise
    return database


def _use_wal(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA synchronous = NORMAL")
    try:
        database.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        # Another process is switching the file, which lasts.
        if not is_busy(error):
            raise
