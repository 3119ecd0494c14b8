"""Upgrade a file of layout 1: count its items, and create expiry indexes for the backfill.

The upgrade is one transaction: a killed process leaves the file unchanged, and of two processes only one
upgrades. It reads every item once.
"""

from __future__ import annotations

import copy
import sqlite3

from solotable.engines.sqlite.counts import counts

from . import catalog, layout


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
    layout.create_counts(connection)
    tables = catalog.Catalog()
    for name in catalog.list_names(connection):
        table = tables.table(connection, name)
        counts.store(connection, table, counts.recount(connection, table))
        if "TimeToLive" in table.definition:
            definition = copy.deepcopy(table.definition)
            definition["TimeToLive"]["Status"] = "CREATING"
            # The engine starts the backfill of an index with status CREATING when it opens the file.
            catalog.replace(connection, table, definition)
    connection.execute(f"PRAGMA user_version = {layout.VERSION}")
