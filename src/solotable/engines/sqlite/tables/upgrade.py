"""Upgrade a file of an older layout.

From layout 1, count its items, and create expiry indexes for the backfill. From layout 2, open the windows of
tables with continuous backups. From layout 3, create the table of exports and imports. The upgrade is one
transaction: a killed process leaves the file unchanged, and of two processes only one upgrades. From
layout 1, it reads every item once; from layout 2, every change.
"""

from __future__ import annotations

import copy
import sqlite3

from solotable.engines.sqlite.counts import counts

from . import catalog, layout, windows


def upgrade(connection: sqlite3.Connection) -> None:
    """Upgrade the file if it has an older layout."""
    if layout.layout_of(connection) == layout.VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if layout.layout_of(connection) < layout.VERSION:
            _upgrade(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _upgrade(connection: sqlite3.Connection) -> None:
    tables = catalog.Catalog()
    if layout.layout_of(connection) < 2:
        layout.create_counts(connection)
        for name in catalog.list_names(connection):
            _add_counts(connection, tables.table(connection, name))
    if layout.layout_of(connection) < 3:
        layout.create_recovery(connection)
        for name in catalog.list_names(connection):
            definition = tables.table(connection, name).definition
            if "PointInTimeRecovery" in definition:
                windows.adopt(connection, definition)
    layout.create_transfers(connection)
    connection.execute(f"PRAGMA user_version = {layout.VERSION}")


def _add_counts(connection: sqlite3.Connection, table: catalog.Table) -> None:
    counts.store(connection, table, counts.recount(connection, table))
    if "TimeToLive" in table.definition:
        definition = copy.deepcopy(table.definition)
        definition["TimeToLive"]["Status"] = "CREATING"
        # The engine starts the backfill of an index with status CREATING when it opens the file.
        catalog.replace(connection, table, definition)
