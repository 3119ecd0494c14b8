"""Tables of one test on another database, created for the test and deleted after it.

Every table has a unique name, and only tables that were created here are deleted.
"""

from __future__ import annotations

import secrets
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from solotable._connect import ensure, open_engine
from solotable._entities.declare.table import Table
from solotable._protocol.engine import Engine
from solotable._protocol.requests import Control
from solotable.errors import DeclarationError, ServiceError, SolotableError, TableNotFound
from solotable.urls import Url

_LONGEST_WAIT_SECONDS = 300.0
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 2.0


class RemoteDatabase:
    """A database outside the test process, opened once per session."""

    def __init__(self, url: str) -> None:
        self.address = Url.parse(url)
        if self.address.table is not None:
            raise DeclarationError(
                f"{url!r} names the table {self.address.table!r}; leave it out: tests create tables."
            )
        self._engine: Engine | None = None
        #: The clock of the current test.
        self.clock: Callable[[], float] = time.time

    @property
    def takes_clock(self) -> bool:
        """Whether a test can control the clock of this database."""
        return self.address.scheme == "sqlite"

    @property
    def engine(self) -> Engine:
        """The engine behind the URL."""
        if self._engine is None:
            self._engine = open_engine(self.address, clock=self._time)
        return self._engine

    def _time(self) -> float:
        return self.clock()

    def close(self) -> None:
        """Close the engine."""
        if self._engine is not None:
            self._engine.close()


@dataclass(slots=True)
class RemoteTables:
    """The tables of one test on a remote database."""

    database: RemoteDatabase
    prefix: str = field(default_factory=lambda: f"solotable-test-{secrets.token_hex(5)}-")
    created: list[str] = field(default_factory=list)

    def prepare(self, tables: Sequence[Table]) -> tuple[Engine, dict[str, str]]:
        """Create tables; return the engine and the tables' names in it."""
        names = {
            table.name: self.database.address.settings.get("prefix", "") + self.prefix + table.name
            for table in tables
        }
        for table in tables:
            if names[table.name] not in self.created:
                self._create(table, names[table.name])
        return self.database.engine, names

    def clear(self) -> None:
        """Delete the tables that were created."""
        for name in reversed(self.created):
            try:
                _retry_while_in_use(lambda name=name: self._call("DeleteTable", TableName=name))  # type: ignore[misc]
            except TableNotFound:
                continue  # the test has deleted it
            except SolotableError as error:
                warnings.warn(f"Cannot delete the test table {name}: {error}", stacklevel=2)
        self.created.clear()

    def _create(self, table: Table, name: str) -> None:
        self.database.engine.handle(Control(operation="CreateTable", members=table.definition(name)))
        # CreateTable fails for an existing table, so this one belongs to the test.
        self.created.append(name)
        pause = _FIRST_PAUSE_SECONDS
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        while not _is_active(self._call("DescribeTable", TableName=name)["Table"]):
            if time.monotonic() > deadline:
                raise SolotableError(
                    f"Table {name} is not active {_LONGEST_WAIT_SECONDS:g} seconds after CreateTable."
                )
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        ensure(self.database.engine, table, name)

    def _call(self, operation: str, **members: Any) -> dict[str, Any]:
        reply: dict[str, Any] = self.database.engine.handle(Control(operation=operation, members=members))
        return reply


def _is_active(table: dict[str, Any]) -> bool:
    parts = [
        table["TableStatus"],
        *(index["IndexStatus"] for index in table.get("GlobalSecondaryIndexes", ())),
    ]
    return all(part == "ACTIVE" for part in parts)


def _retry_while_in_use(action: Callable[[], object]) -> None:
    """Run an action, and again while its table is being created or changed."""
    deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
    while True:
        try:
            action()
        except ServiceError as error:
            # DynamoDB: it does not delete a table that is being created or changed.
            if error.code != "ResourceInUseException" or time.monotonic() > deadline:
                raise
            time.sleep(_LONGEST_PAUSE_SECONDS)
        else:
            return
