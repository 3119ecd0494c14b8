"""GetItem: one item by its key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from solotable._expressions.ast import Path, Projection
from solotable._expressions.project import project
from solotable._protocol.capacity import CapacityMeter, read_units
from solotable._protocol.decode.large_items import decode_item_in_steps
from solotable._protocol.replies import GotItem, SomeItem
from solotable._protocol.requests import GetItem
from solotable._values import Item
from solotable.engines.sqlite.items.keys import check_and_encode_key
from solotable.engines.sqlite.items.storage import StoredItem, decode_row
from solotable.engines.sqlite.tables.catalog import Table
from solotable.errors import invalid

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine


def get_item(engine: SqliteEngine, request: GetItem) -> GotItem:
    """Return the item, if it exists."""
    table = engine.table(request.table)
    key = check_and_encode_key(table, request.key)
    if request.projection is not None:
        check_key_paths(table, request.projection)
    # sqlite3 looks for an adapter of bytes at every call, and of no bytearray: a fifth of the statement.
    row = decode_row(table, key, engine.database.fetch_one(table.select_sql, (bytearray(key),)))
    heat = engine.heat
    if heat is not None:
        if heat.skip_reads:
            heat.skip_reads -= 1
        else:
            units = read_units(0 if row is None else row.size, request.consistent)
            heat.add_read(table, None, table.schema.partition_content(request.key), units)
    if request.capacity == "NONE" and request.projection is None:
        return GotItem(item=None if row is None else row.raw)
    capacity = None
    if request.capacity != "NONE":
        meter = CapacityMeter(request.table)
        meter.table(read_units(0 if row is None else row.size, request.consistent))
        capacity = meter.report(request.capacity)
    return GotItem(item=project_row(engine, row, request.projection), capacity=capacity)


def record_read(engine: SqliteEngine, table: Table, key: Item, units: float) -> None:
    """Count the units of an item that was read, unless this read is skipped."""
    heat = engine.heat
    if heat is None:
        return
    if heat.skip_reads:
        heat.skip_reads -= 1
    else:
        heat.add_read(table, None, table.schema.partition_content(key), units)


def project_row(
    engine: SqliteEngine, row: StoredItem | None, projection: Projection | None
) -> SomeItem | None:
    """Return the projection of a row; without one, the stored bytes."""
    if row is None:
        return None
    return row.raw if projection is None else project_stored(engine, row, projection)


def project_stored(engine: SqliteEngine, row: StoredItem, projection: Projection) -> Item:
    """Return the projection of a stored item."""
    engine.pause(len(row.raw))
    return project(projection, decode_item_in_steps(row.raw, engine.pause) if engine.sliced else row.item)


def check_key_paths(table: Table, paths: Iterable[Path]) -> None:
    """Reject a path into a key attribute, which is neither a list nor a map."""
    for path in paths:
        if len(path) == 1:
            continue
        text = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
        if path[0] in table.schema.names:
            raise invalid(f"{text}Key: {path[0]}")
        if any(path[0] in index.schema.names for index in table.indexes):
            raise invalid(f"{text}IndexKey: {path[0]}")
