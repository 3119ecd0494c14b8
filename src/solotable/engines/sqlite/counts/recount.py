"""Correct the stored counts after a process died with pending deltas.

A thread counts the items in a snapshot while writers continue. The transaction that takes the snapshot moves
the table to its next generation: deltas of earlier generations are in the snapshot, later ones are not.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from solotable.engines.sqlite.tables import catalog
from solotable.engines.sqlite.tables.definitions import read_table
from solotable.errors import EngineError, TableNotFound

from . import counts
from .counts import Count, Counts

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_running: WeakKeyDictionary[SqliteEngine, _RecountThread] = WeakKeyDictionary()


class _ForkPending(EngineError):
    """The process is about to fork and needs all reads closed; begin again after the fork."""


class _RecountThread(threading.Thread):
    """The thread that recounts all tables of an engine's file."""

    def __init__(self, engine: SqliteEngine, died: list[str]) -> None:
        super().__init__(name="recount", daemon=True)
        self.stopped = threading.Event()
        self._engine = engine
        self._died = died

    def run(self) -> None:
        """Recount each table, then delete the dead sessions; after an error the next engine does it."""
        engine = self._engine
        try:
            with contextlib.suppress(EngineError):
                self._recount(engine)
        finally:
            # This thread must not keep an engine alive that is dropped without close().
            del self._engine
            _running.pop(engine, None)

    def _recount(self, engine: SqliteEngine) -> None:
        with engine.database.read() as connection:
            names = catalog.list_names(connection)
        for name in names:
            with contextlib.suppress(TableNotFound):
                self._recount_table(engine, name)
        ended = [(each,) for each in self._died]
        engine.database.write(
            lambda connection: connection.executemany("DELETE FROM sessions WHERE id = ?", ended)
        )

    def _recount_table(self, engine: SqliteEngine, name: str) -> None:
        while True:
            with contextlib.suppress(_ForkPending):
                recount_table(engine, name, self.stopped)
                return


def repair(engine: SqliteEngine) -> None:
    """Recount in a thread if a session has died; only the first engine on the file can know."""
    if not engine.presence.is_first:
        return
    with engine.database.read() as connection:
        died = [name for (name,) in connection.execute("SELECT id FROM sessions")]
    engine.presence.share()
    if died:
        _running[engine] = _RecountThread(engine, died)
        _running[engine].start()


def wait(engine: SqliteEngine, timeout_seconds: float | None = None) -> None:
    """Wait for the recount of this engine, if one runs."""
    thread = _running.get(engine)
    if thread is not None:
        thread.join(timeout_seconds)


def stop(engine: SqliteEngine) -> None:
    """Stop a recount before the engine is closed; the next engine starts again."""
    thread = _running.get(engine)
    if thread is not None and thread is not threading.current_thread():
        thread.stopped.set()
        thread.join()


def recount_table(engine: SqliteEngine, name: str, stopped: threading.Event | None = None) -> None:
    """Count a table's items and add the difference to the stored counts."""
    database = engine.database
    reader = database.acquire_reader()
    sound = False

    def check() -> None:
        if database.suspended:
            raise _ForkPending(f"{database.path}: the process forks; count again.")
        if stopped is not None and stopped.is_set():
            raise EngineError(f"{database.path}: the recount was stopped.")

    try:
        # In a shared transaction, the snapshot would lack the writes that come before this one.
        table, changed, before = database.write_alone(partial(_begin, reader=reader, name=name))
        engine.catalog.forget(name)
        counted = counts.recount(reader, table, check)
        reader.execute("COMMIT")
        sound = True
    except sqlite3.Error as fault:
        raise database.engine_error(fault) from fault
    finally:
        database.release_reader(reader, sound=sound)
    database.write(partial(_correct, table=changed, counted=counted, before=before))


def _begin(
    connection: sqlite3.Connection, reader: sqlite3.Connection, name: str
) -> tuple[catalog.Table, catalog.Table, Counts]:
    table = read_table(connection, name)
    before = counts.read(connection, table)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM catalog").fetchone()
    changed = catalog.replace(connection, table, table.definition)
    connection.execute("UPDATE counts SET since = ? WHERE table_id = ?", (changed.generation, table.id))
    return table, changed, before


def _correct(connection: sqlite3.Connection, table: catalog.Table, counted: Counts, before: Counts) -> None:
    corrections = [
        (
            count.items - before.get(index_id, Count()).items,
            count.bytes - before.get(index_id, Count()).bytes,
            table.id,
            index_id,
            table.generation,
        )
        for index_id, count in counted.items()
    ]
    # A later recount replaces this one.
    connection.executemany(
        "UPDATE counts SET items = items + ?, bytes = bytes + ? "
        "WHERE table_id = ? AND index_id = ? AND since = ?",
        corrections,
    )
