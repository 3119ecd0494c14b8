"""Context managers for one read: an idle connection to a file, or the shared one in memory."""

from __future__ import annotations

import sqlite3
from os import getpid
from types import TracebackType
from typing import TYPE_CHECKING

from solotable._protocol.engine import TooLong
from solotable.errors import ServiceError

if TYPE_CHECKING:
    from .connection import Database
    from .group_commit import GroupCommit


class ReadContext:
    """Use one idle connection to a file. A class, because a generator would slow down every read."""

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
        # An error keeps its frames alive, and with them a statement that may hold an old snapshot.
        self._database.release_reader(self._reader, sound=isinstance(error, ServiceError | TooLong))
        if isinstance(error, sqlite3.Error):
            raise self._database.engine_error(error) from error


class SharedReadContext:
    """Use the only connection to a database in memory. All threads share the connection and this object."""

    __slots__ = ("_database", "_lock")

    def __init__(self, database: Database, group_commit: GroupCommit) -> None:
        self._database = database
        self._lock = group_commit.lock

    def __enter__(self) -> sqlite3.Connection:
        database = self._database
        if database.closed or getpid() != database.pid:
            database.check_usable()
        self._lock.acquire()
        return database.writer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        if isinstance(error, sqlite3.Error):
            raise self._database.engine_error(error) from error
