"""Tables that a copy fills: restored tables and backups, from their definition to their completion.

The definition of a target has the member `Copy` until the copy is complete. The definition of its source
lists the target in `Copies`, so that the source records its changes until then. An engine that opens the file
continues the copies that it finds.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sqlite3
import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from solotable.engines.sqlite.tables import catalog, windows
from solotable.engines.sqlite.tables.catalog import Definition, Table
from solotable.engines.sqlite.tables.definitions import read_table
from solotable.engines.sqlite.tables.windows import Window
from solotable.errors import Corrupt, EngineError, RecoveryError, TableNotFound
from solotable.fork_safe import new_lock

from .copying import CopySource, Progress, copy_items
from .scopes import Scope
from .undo import UndoIndex

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: The largest table, in items, that is copied without a thread.
SMALL_TABLE = 1_000
_POLL_SECONDS = 0.2
_lock = new_lock()
#: The threads that copy, by engine and target.
_running: WeakKeyDictionary[SqliteEngine, dict[str, threading.Thread]] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    # A forked child has none of the parent's threads.
    os.register_at_fork(after_in_child=_running.clear)


def describe_copy(source: Table, sequence: int | None, scope: Scope) -> dict[str, Any]:
    """Return the member `Copy` of a target; a `sequence` of None copies a backup."""
    return {
        "Source": source.name,
        "Stream": source.definition["TableId"],
        "Sequence": sequence,
        "Scope": scope.to_json(),
    }


def add_target(connection: sqlite3.Connection, source: Table, name: str, definition: Definition) -> Table:
    """Add a target, and let its source record changes until the copy is complete."""
    target = catalog.add(connection, name, definition)
    if definition["Copy"]["Sequence"] is not None:
        changed = copy.deepcopy(source.definition)
        changed["Copies"] = [*changed.get("Copies", ()), name]
        catalog.replace(connection, source, changed)
    return target


def fill(engine: SqliteEngine, name: str, progress: Progress | None = None) -> None:
    """Copy until the target is complete; drop a target that can never be complete."""
    with engine.database.read() as connection:
        target = read_table(connection, name)
    task = target.definition.get("Copy")
    if task is None or "External" in task:
        return
    undo = None if task["Sequence"] is None else UndoIndex(task["Stream"], task["Sequence"])
    source = CopySource(
        engine=engine,
        name=task["Source"],
        table_id=task["Stream"],
        undo=undo,
        is_pinned=True,
        scope=Scope.from_json(task["Scope"]),
    )
    try:
        copy_items(source, engine, name, progress)
    except (Corrupt, TableNotFound, RecoveryError):
        engine.database.write(lambda connection: end(connection, name, complete=False))
        raise
    finally:
        if undo is not None:
            undo.close()
        engine.catalog.forget()
    engine.database.write(lambda connection: end(connection, name, complete=True))
    engine.catalog.forget()


def end(connection: sqlite3.Connection, name: str, *, complete: bool) -> None:
    """Make a target a table or a backup, or drop it."""
    with contextlib.suppress(TableNotFound):
        target = read_table(connection, name)
        task = target.definition.get("Copy")
        if task is None:
            # Another process has completed the copy.
            return
        if complete:
            definition = copy.deepcopy(target.definition)
            del definition["Copy"]
            catalog.replace(connection, target, definition)
        else:
            catalog.drop(connection, target)
        if task["Sequence"] is not None:
            _release(connection, task, name)


def _release(connection: sqlite3.Connection, task: dict[str, Any], name: str) -> None:
    """Stop recording changes for a copy."""
    source = catalog.Catalog().load(connection, task["Source"])
    if source is None or source.definition["TableId"] != task["Stream"]:
        return
    definition = copy.deepcopy(source.definition)
    definition["Copies"] = [each for each in definition.get("Copies", ()) if each != name]
    if not definition["Copies"]:
        del definition["Copies"]
    catalog.replace(connection, source, definition)
    if "Copies" not in definition and windows.find(connection, task["Stream"]) is None:
        # The sweeper removes what was recorded for the copy alone.
        window = Window(
            stream=task["Stream"],
            first=task["Sequence"],
            since_micros=0,
            pruned=task["Sequence"],
            pruned_micros=0,
            last=windows.newest_sequence(connection),
        )
        windows.store(connection, window)


def start(engine: SqliteEngine, name: str, items: int) -> None:
    """Fill a target: immediately if its source is small, otherwise in a thread."""
    if items <= SMALL_TABLE:
        fill(engine, name)
    else:
        _launch(engine, name)


def resume_all(engine: SqliteEngine) -> None:
    """Continue every copy that is not complete, in threads."""
    with engine.database.read() as connection:
        names = connection.execute("SELECT name FROM catalog WHERE instr(definition, '\"Copy\"')").fetchall()
    for (name,) in names:
        _launch(engine, name)


def wait(engine: SqliteEngine, timeout_seconds: float | None = None) -> None:
    """Wait for the copies of this engine."""
    with _lock:
        threads = list(_running.get(engine, {}).values())
    for thread in threads:
        thread.join(timeout_seconds)


def complete(engine: SqliteEngine, name: str, progress: Progress | None = None) -> None:
    """Wait until a target is complete; fill it here if no thread of this engine does."""
    while True:
        with _lock:
            thread = _running.get(engine, {}).get(name)
        if thread is None:
            # After an error in the thread, this raises it.
            fill(engine, name, progress)
            return
        thread.join(_POLL_SECONDS)
        if progress is not None:
            with engine.database.read() as connection:
                target = read_table(connection, name)
            progress(engine.pending_counts.read(target)[0].items, 0)


def _launch(engine: SqliteEngine, name: str) -> None:
    with _lock:
        threads = _running.setdefault(engine, {})
        if name in threads:
            return
        thread = threading.Thread(target=_run, args=(engine, name), name=f"copy-{name}", daemon=True)
        threads[name] = thread
    thread.start()


def _run(engine: SqliteEngine, name: str) -> None:
    try:
        # If the engine is closed or the disk is full, the next engine continues.
        with contextlib.suppress(EngineError, RecoveryError, TableNotFound):
            fill(engine, name)
    finally:
        with _lock:
            _running.get(engine, {}).pop(name, None)
