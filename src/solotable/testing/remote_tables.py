"""The same tests on another database: tables made for one test, and deleted after it.

Every table has a name that no other has, and only what was made here is ever deleted.
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


class Place:
    """Another database, opened once for a session."""

    def __init__(self, url: str) -> None:
        self.address = Url.parse(url)
        if self.address.table is not None:
            raise DeclarationError(
                f"{url!r} names the table {self.address.table!r}; tests make their own: leave it out."
            )
        self._engine: Engine | None = None
        #: The clock of the test that runs.
        self.clock: Callable[[], float] = time.time

    @property
    def takes_clock(self) -> bool:
        """Whether a test can tell this database the time."""
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
class Elsewhere:
    """The tables of one test on another database."""

    place: Place
    prefix: str = field(default_factory=lambda: f"solotable-test-{secrets.token_hex(5)}-")
    made: list[str] = field(default_factory=list)

    def prepare(self, tables: Sequence[Table]) -> tuple[Engine, dict[str, str]]:
        """Return the engine, these tables in it, and their names there."""
        names = {
            table.name: self.place.address.settings.get("prefix", "") + self.prefix + table.name
            for table in tables
        }
        for table in tables:
            if names[table.name] not in self.made:
                self._make(table, names[table.name])
        return self.place.engine, names

    def clear(self) -> None:
        """Delete the tables that were made."""
        for name in reversed(self.made):
            try:
                _patiently(lambda name=name: self._ask("DeleteTable", TableName=name))  # type: ignore[misc]
            except TableNotFound:
                continue  # the test has done it
            except SolotableError as refused:
                warnings.warn(f"The table {name} of a test could not be deleted: {refused}", stacklevel=2)
        self.made.clear()

    def _make(self, table: Table, name: str) -> None:
        self.place.engine.handle(Control(operation="CreateTable", members=table.definition(name)))
        # From here on it is ours; a table that was there before has been refused.
        self.made.append(name)
        pause = _FIRST_PAUSE_SECONDS
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        while not _is_active(self._ask("DescribeTable", TableName=name)["Table"]):
            if time.monotonic() > deadline:
                raise SolotableError(f"The table {name} was made, but is not active after minutes.")
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        ensure(self.place.engine, table, name)

    def _ask(self, operation: str, **members: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.place.engine.handle(Control(operation=operation, members=members))
        return answer


def _is_active(table: dict[str, Any]) -> bool:
    parts = [
        table["TableStatus"],
        *(index["IndexStatus"] for index in table.get("GlobalSecondaryIndexes", ())),
    ]
    return all(part == "ACTIVE" for part in parts)


def _patiently(action: Callable[[], object]) -> None:
    """Do it once the table is not being changed any more."""
    deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
    while True:
        try:
            action()
        except ServiceError as refused:
            # DynamoDB: a table that is being made or changed cannot be deleted yet.
            if refused.code != "ResourceInUseException" or time.monotonic() > deadline:
                raise
            time.sleep(_LONGEST_PAUSE_SECONDS)
        else:
            return
