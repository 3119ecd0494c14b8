"""Engines with a fault planted in them, each of which the checks of `history` must find.

The faults are in the connections that the engine is given; the engine itself is the one we ship.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, ClassVar

from solotable.engines.sqlite import SqliteEngine

Open = Callable[[str], SqliteEngine]


def _with(factory: type[sqlite3.Connection]) -> Open:
    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return sqlite3.connect(*arguments, factory=factory, **options)

    return lambda path: SqliteEngine(path, durability="relaxed", connect=connect)


class _EarlyAnswer(sqlite3.Connection):
    """COMMIT answers at once and happens with the next write."""

    commits = 0
    writes = False

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and self.writes:
            self.commits += 1
            # The table itself is made in peace.
            if self.commits > 3:
                self.late = True
                return super().execute("SELECT 1")
        if sql == "PRAGMA query_only = OFF":
            self.writes = True
        if sql == "BEGIN IMMEDIATE" and getattr(self, "late", False):
            self.late = False
            super().execute("COMMIT")
        return super().execute(sql, *parameters)

    @property
    def in_transaction(self) -> bool:
        return super().in_transaction and not getattr(self, "late", False)


class _LostCommit(sqlite3.Connection):
    """Now and then a COMMIT is a ROLLBACK."""

    commits = 0

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == "COMMIT":
            self.commits += 1
            if self.commits % 50 == 0:
                sql = "ROLLBACK"
        return super().execute(sql, *parameters)


class _NoTransaction(sqlite3.Connection):
    """Every statement is committed alone, as if the lock and the transaction were not there."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql.startswith(("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK")):
            sql = "SELECT 1"
        return super().execute(sql, *parameters)


class _TornTransaction(sqlite3.Connection):
    """What a transaction has written so far is committed after its first write."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        cursor = super().execute(sql, *parameters)
        if sql.startswith(("UPDATE t", "INSERT INTO t")) and self.in_transaction:
            super().execute("COMMIT")
            super().execute("BEGIN IMMEDIATE")
        return cursor


class _StaleReads(sqlite3.Connection):
    """A reader keeps its snapshot for a while."""

    statements = 0

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == "PRAGMA query_only = ON":
            self.reads = True
        if sql == "PRAGMA query_only = OFF":
            self.reads = False
        if getattr(self, "reads", False) and sql.startswith("SELECT id, size, crc"):
            _StaleReads.statements += 1
            if self.in_transaction and _StaleReads.statements % 20 == 0:
                super().execute("COMMIT")
            if not self.in_transaction:
                super().execute("BEGIN")
        return super().execute(sql, *parameters)


class _ReadsPastTheLock(sqlite3.Connection):
    """Conditions are checked on what another connection saw a little earlier."""

    remembered: ClassVar[dict[Any, Any]] = {}
    reads = 0

    def execute(self, sql: str, *parameters: Any) -> Any:
        cursor = super().execute(sql, *parameters)
        if sql.startswith("SELECT id, size, crc, item") and self.in_transaction:
            found = cursor.fetchone()
            _ReadsPastTheLock.reads += 1
            if _ReadsPastTheLock.reads % 10 == 0 and parameters in self.remembered:
                return _Answer(self.remembered[parameters])
            self.remembered[parameters] = found
            return _Answer(found)
        return cursor


class _Answer:
    def __init__(self, row: Any) -> None:
        self._row = row

    def fetchone(self) -> Any:
        return self._row


class _Unconditional(SqliteEngine):
    """Conditions are not looked at."""

    def call(self, operation: str, payload: dict[str, Any]) -> dict[str, Any]:
        if payload.get("ConditionExpression"):
            payload = {name: value for name, value in payload.items() if name != "ConditionExpression"}
            values = payload["ExpressionAttributeValues"]
            payload["ExpressionAttributeValues"] = {":new": values[":new"]}
        return super().call(operation, payload)


MUTANTS: dict[str, Open] = {
    "acknowledged before COMMIT": _with(_EarlyAnswer),
    "a COMMIT that is lost": _with(_LostCommit),
    "no transaction and no lock": _with(_NoTransaction),
    "a torn transaction": _with(_TornTransaction),
    "stale reads": _with(_StaleReads),
    "a condition checked outside the lock": _with(_ReadsPastTheLock),
    "conditions ignored": lambda path: _Unconditional(path, durability="relaxed"),
}
