"""Tables in memory for one test, in a fraction of the time that creating them takes.

The tables are created once for each set of declarations; a test gets a copy of that database on its own
connection. So a test cannot affect another, neither by items nor by definitions and streams.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from solotable._connect import ensure
from solotable._entities.declare.table import Table
from solotable._protocol.json_codec import dumps
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.file.connection import connect as open_connection

Time = Callable[[], float]


class DatabaseTemplates:
    """Databases with tables and without items, to copy for each test."""

    def __init__(self) -> None:
        self._templates: dict[bytes, SqliteEngine] = {}

    def engine(self, tables: Sequence[Table], *, clock: Time, controlled: bool) -> SqliteEngine:
        """Return a new engine in memory with these tables.

        `controlled`: the test controls the clock, so the template is created at the clock's start time.
        """
        template = self._template(tables, clock, controlled=controlled)

        def connect(*arguments: Any, **settings: Any) -> sqlite3.Connection:
            connection = open_connection(*arguments, **settings)
            template.database.writer.backup(connection)
            return connection

        return SqliteEngine(sqlite.MEMORY, clock=clock, connect=connect)

    def close(self) -> None:
        """Close the templates."""
        for template in self._templates.values():
            template.close()
        self._templates.clear()

    def _template(self, tables: Sequence[Table], clock: Time, *, controlled: bool) -> SqliteEngine:
        key = dumps([controlled, *([table.definition(), table.ttl] for table in tables)])
        found = self._templates.get(key)
        if found is None:
            found = sqlite.open(sqlite.MEMORY, clock=clock)
            for table in tables:
                ensure(found, table, table.name)
            self._templates[key] = found
        return found


class MemoryTables:
    """The tables of one test, in memory."""

    def __init__(self, templates: DatabaseTemplates, *, clock: Time, controlled: bool) -> None:
        self._templates = templates
        self._clock = clock
        self._controlled = controlled
        self._engine: SqliteEngine | None = None

    def prepare(self, tables: Sequence[Table]) -> tuple[SqliteEngine, dict[str, str]]:
        """Create tables; return the engine and the tables' names in it."""
        if self._engine is None:
            self._engine = self._templates.engine(tables, clock=self._clock, controlled=self._controlled)
        else:
            for table in tables:
                ensure(self._engine, table, table.name)
        return self._engine, {table.name: table.name for table in tables}

    def clear(self) -> None:
        """Close the engine."""
        if self._engine is not None:
            self._engine.close()
