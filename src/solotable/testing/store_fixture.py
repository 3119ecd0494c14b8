"""The store of one test: one recording, faulty engine and one clock behind all its databases.

A test's blocking, async and HTTP stores share the same data.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from solotable._connect import scope_over
from solotable._entities.declare.table import Table
from solotable._flows.retry import Retries
from solotable._flows.scope import Scope
from solotable._protocol.engine import AsyncEngine, Engine
from solotable._store import AsyncDatabase, Database
from solotable._store.runner import Inline, Threaded
from solotable.errors import DeclarationError

from .clock import Clock
from .engines.faults import Faults
from .engines.faulty import FaultyEngine
from .engines.journal import Journal
from .engines.recording import RecordingEngine
from .engines.wrapper import EngineWrapper
from .memory_tables import DatabaseTemplates, MemoryTables
from .remote_tables import RemoteDatabase, RemoteTables

#: Fixed, so that cursors are the same in every run.
_CURSOR_SECRET = b"solotable.testing"
_THREADS = 8


class TableSource(Protocol):
    """Creates and removes the tables of one test."""

    def prepare(self, tables: Sequence[Table], /) -> tuple[Engine, dict[str, str]]:
        """Create tables; return the engine and the tables' names in it."""

    def clear(self) -> None:
        """Remove the tables."""


class _BorrowedEngine(EngineWrapper):
    """An engine that the store must not close: its TableSource does."""

    def close(self) -> None:
        pass


class StoreFixture:
    """The store of one test."""

    def __init__(self, source: DatabaseTemplates | RemoteDatabase, *, controlled: bool = False) -> None:
        self.clock = Clock() if controlled else None
        self.faults = Faults()
        self.journal = Journal()
        self._engine: RecordingEngine | None = None
        self._executors: list[ThreadPoolExecutor] = []
        self._tables: TableSource
        #: Whether waits only advance the clock: the database has no other one.
        self._skips_waits = isinstance(source, DatabaseTemplates) or source.takes_clock
        if isinstance(source, RemoteDatabase):
            source.clock = self.time
            self._tables = RemoteTables(source)
        else:
            self._tables = MemoryTables(source, clock=self.time, controlled=controlled)

    def time(self) -> float:
        """Return the time of the test's clock, if it has one."""
        return time.time() if self.clock is None else self.clock()

    def controlled_clock(self) -> Clock:
        """Return the clock that the test controls."""
        if self.clock is None:
            self.clock = Clock()
        return self.clock

    def database(self, tables: Sequence[Table]) -> Database:
        """Return the store of these tables."""
        if not tables:
            raise DeclarationError(
                "solotable_db() needs tables: solotable_db(table, ...), or in the ini file: "
                "solotable_models = package.module:table."
            )
        names = self._prepare(tables)
        return Database(self.engine, self._scope(names, tables))

    def async_database(self, tables: Sequence[Table]) -> AsyncDatabase:
        """Return the async store of these tables."""
        return AsyncDatabase(self._awaited(), self.database(tables).scope)

    @property
    def engine(self) -> RecordingEngine:
        """The engine behind all stores of the test."""
        if self._engine is None:
            self._prepare(())
        assert self._engine is not None
        return self._engine

    def close(self) -> None:
        """Stop the threads and remove the tables."""
        for executor in self._executors:
            executor.shutdown(wait=True)
        self._tables.clear()

    def _prepare(self, tables: Sequence[Table]) -> dict[str, str]:
        engine, names = self._tables.prepare(tables)
        if self._engine is None:
            sleep = self._wait if self._skips_waits else None
            self._engine = RecordingEngine(
                FaultyEngine(_BorrowedEngine(engine), self.faults), self.journal, sleep=sleep
            )
        return names

    def _wait(self, seconds: float) -> None:
        if self.clock is not None:
            self.clock.sleep(seconds)

    def _awaited(self) -> AsyncEngine:
        if self.engine.capabilities.instant:
            return Inline(self.engine)
        self._executors.append(ThreadPoolExecutor(_THREADS, thread_name_prefix="solotable-test"))
        return Threaded(self.engine, self._executors[-1])

    def _scope(self, names: dict[str, str], tables: Sequence[Table]) -> Scope:
        scope = scope_over(names, tables, [_CURSOR_SECRET], self.time)
        # A fixed jitter, so that a test waits equally long in every run.
        return replace(scope, retries=Retries(random=lambda: 0.5))
