"""Connections that fail on demand, as SQLite does when the disk fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

from solotable.engines.sqlite.file.connection import Connect

Hook = Callable[[sqlite3.Connection, str], None]


def fault(code: int, text: str = "injected") -> sqlite3.OperationalError:
    """Return the error that SQLite would raise with this result code."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


class Faults:
    """What happens before and after statements; a test sets it while the engine runs."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.opened = 0
        self.before: Hook = lambda connection, sql: None
        self.after: Hook = lambda connection, sql: None
        #: Raised instead of opening a connection.
        self.refusal: sqlite3.Error | None = None

    @property
    def connect(self) -> Connect:
        faults = self

        class Faulty(sqlite3.Connection):
            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                faults.statements.append(sql)
                faults.before(self, sql)
                cursor = super().execute(sql, *parameters)
                faults.after(self, sql)
                return cursor

        def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
            if faults.refusal is not None:
                raise faults.refusal
            faults.opened += 1
            return sqlite3.connect(*arguments, factory=Faulty, **options)

        return connect

    def count(self, beginning: str) -> int:
        """Return how many statements began like this."""
        return sum(sql.startswith(beginning) for sql in self.statements)


def once(beginning: str, happening: Callable[[sqlite3.Connection], None], *, skip: int = 0) -> Hook:
    """Return a hook for one statement that begins like this, after `skip` others."""
    left = skip

    def hook(connection: sqlite3.Connection, sql: str) -> None:
        nonlocal left
        if sql.startswith(beginning):
            left -= 1
            if left == -1:
                happening(connection)

    return hook


def failing(code: int, *, undoes: bool = False) -> Callable[[sqlite3.Connection], None]:
    """Return something that happens: this error, with the transaction gone if SQLite would undo it."""
    return partial(_fail, code, undoes)


def _fail(code: int, undoes: bool, connection: sqlite3.Connection) -> None:
    if undoes:
        sqlite3.Connection.execute(connection, "ROLLBACK")
    raise fault(code)
