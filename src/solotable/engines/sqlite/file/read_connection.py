"""The use of a connection for one read: borrowed from a file's idle ones, or shared in memory."""

from __future__ import annotations

import sqlite3
from types import TracebackType
from typing import TYPE_CHECKING

from solotable._protocol.engine import TooLong
from solotable.errors import ServiceError

if TYPE_CHECKING:
    from .connection import Database
    from .group_commit import GroupCommit


class ReadContext:
    """The use of one borrowed connection; a class because reads are many and generators slow."""

    __slots__ = ("_database", "_reader")

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        self._reader = self._database.acquire_reader()
        return self._reader

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._database.release_reader(self._reader)
            return
        # An error keeps its frames alive, and in them a statement that may hold on to an old snapshot.
        self._database.release_reader(self._reader, sound=isinstance(error, ServiceError | TooLong))
        if isinstance(error, sqlite3.Error):
            raise self._database.engine_error(error) from error


class SharedReadContext:
    """The use of the one connection to a database in memory; all share it, and so this."""

    __slots__ = ("_database", "_lock")

    def __init__(self, database: Database, commits: GroupCommit) -> None:
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
            raise self._database.engine_error(error) from error
