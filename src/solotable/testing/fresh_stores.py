"""Stores in memory, fresh for every test, in a fraction of the time that making tables takes.

The tables are made once for each set of declarations; a test gets a copy of that database, pages and
all, on a connection of its own. So nothing that a test does, to definitions and streams as to items,
can reach another.
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


class Templates:
    """Databases with tables and without items, to be copied."""

    def __init__(self) -> None:
        self._templates: dict[bytes, SqliteEngine] = {}

    def engine(self, tables: Sequence[Table], *, clock: Time, told: bool) -> SqliteEngine:
        """Return a new engine in memory with these tables.

        `told` says that the clock is a test's own: its templates are made at the time it starts with.
        """
        template = self._template(tables, clock, told=told)

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

    def _template(self, tables: Sequence[Table], clock: Time, *, told: bool) -> SqliteEngine:
        key = dumps([told, *([table.definition(), table.ttl] for table in tables)])
        found = self._templates.get(key)
        if found is None:
            found = sqlite.open(sqlite.MEMORY, clock=clock)
            for table in tables:
                ensure(found, table, table.name)
            self._templates[key] = found
        return found


class Fresh:
    """The store in memory of one test."""

    def __init__(self, templates: Templates, *, clock: Time, told: bool) -> None:
        self._templates = templates
        self._clock = clock
        self._told = told
        self._engine: SqliteEngine | None = None

    def prepare(self, tables: Sequence[Table]) -> tuple[SqliteEngine, dict[str, str]]:
        """Return the engine, these tables in it, and their names there."""
        if self._engine is None:
            self._engine = self._templates.engine(tables, clock=self._clock, told=self._told)
        else:
            for table in tables:
                ensure(self._engine, table, table.name)
        return self._engine, {table.name: table.name for table in tables}

    def clear(self) -> None:
        """Forget everything."""
        if self._engine is not None:
            self._engine.close()
