"""Read a whole table in one snapshot, while writers continue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from solotable._protocol.engine import TableSnapshot
from solotable.engines.sqlite.items.keys import BEYOND
from solotable.engines.sqlite.items.storage import read_chunks
from solotable.engines.sqlite.tables.catalog import Table
from solotable.engines.sqlite.tables.definitions import read_table

if TYPE_CHECKING:
    import sqlite3

    from solotable.engines.sqlite.engine import SqliteEngine


@contextmanager
def table_snapshot(engine: SqliteEngine, name: str) -> Iterator[TableSnapshot]:
    """Return a context with the items of a table, all as of one commit.

    The write-ahead log grows until the context ends. In memory, writers wait.
    """
    with engine.database.snapshot() as connection:
        # The first statement begins the snapshot, so the time is that of the snapshot or a little later.
        table = read_table(connection, name)
        yield TableSnapshot(time=engine.now_micros() / 1_000_000, items=_read(connection, table))


def _read(connection: sqlite3.Connection, table: Table) -> Iterator[tuple[bytes, int]]:
    for chunk in read_chunks(connection, table, None, low=b"", high=BEYOND):
        for row in chunk:
            yield row[1], row[0]
