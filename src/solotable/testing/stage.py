"""What one test works with: one store behind one recording, faulty engine, and one clock.

All stores that a test opens, blocking, awaited or over HTTP, are the same one.
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
from .engines.layer import Layer
from .engines.recording import RecordingEngine
from .fresh_stores import Fresh, Templates
from .remote_tables import Elsewhere, Place

#: Cursors of tests are the same in every run.
_CURSOR_SECRET = b"solotable.testing"
_THREADS = 8


class Ground(Protocol):
    """Where the tables of one test are."""

    def prepare(self, tables: Sequence[Table], /) -> tuple[Engine, dict[str, str]]:
        """Return the engine, these tables in it, and their names there."""

    def clear(self) -> None:
        """Leave nothing behind."""


class _Lent(Layer):
    """An engine that is not the test's to close: the ground does, and one elsewhere serves more tests."""

    def close(self) -> None:
        pass


class Stage:
    """The store of one test."""

    def __init__(self, source: Templates | Place, *, told: bool = False) -> None:
        self.clock = Clock() if told else None
        self.faults = Faults()
        self.journal = Journal()
        self._engine: RecordingEngine | None = None
        self._executors: list[ThreadPoolExecutor] = []
        self._ground: Ground
        #: Whether waiting takes no time: nobody else's clock is involved.
        self._hurried = isinstance(source, Templates) or source.takes_clock
        if isinstance(source, Place):
            source.clock = self.time
            self._ground = Elsewhere(source)
        else:
            self._ground = Fresh(source, clock=self.time, told=told)

    def time(self) -> float:
        """Return the time: the clock's where the test has one."""
        return time.time() if self.clock is None else self.clock()

    def told_clock(self) -> Clock:
        """Return the clock that the test tells the time."""
        if self.clock is None:
            self.clock = Clock()
        return self.clock

    def database(self, tables: Sequence[Table]) -> Database:
        """Return the store of these tables."""
        if not tables:
            raise DeclarationError(
                "Say which tables to open: solotable_db(table, ...), or name them in the ini file: "
                "solotable_models = package.module:table."
            )
        names = self._prepare(tables)
        return Database(self.engine, self._scope(names, tables))

    def async_database(self, tables: Sequence[Table]) -> AsyncDatabase:
        """Return the same store, to be awaited."""
        return AsyncDatabase(self._awaited(), self.database(tables).scope)

    @property
    def engine(self) -> RecordingEngine:
        """The engine that all stores of the test share."""
        if self._engine is None:
            self._prepare(())
        assert self._engine is not None
        return self._engine

    def close(self) -> None:
        """Clear what the test has left."""
        for executor in self._executors:
            executor.shutdown(wait=True)
        self._ground.clear()

    def _prepare(self, tables: Sequence[Table]) -> dict[str, str]:
        engine, names = self._ground.prepare(tables)
        if self._engine is None:
            sleep = self._wait if self._hurried else None
            self._engine = RecordingEngine(
                FaultyEngine(_Lent(engine), self.faults), self.journal, sleep=sleep
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
        # The middle of the jitter: a test waits as long in every run.
        return replace(scope, retries=Retries(dice=lambda: 0.5))
