"""The capacity that a write consumes, in its table and in the indexes."""

from __future__ import annotations

from solotable._protocol.capacity import CapacityMeter, write_units
from solotable._values import Item, item_size
from solotable.engines.sqlite.tables.catalog import Index, Table

from .keys import encode_index_key
from .storage import StoredItem


def meter_write(
    meter: CapacityMeter,
    table: Table,
    old: StoredItem | None,
    new: Item | None,
    size: int,
    *,
    transactional: bool = False,
) -> None:
    """Count the capacity of a write: the larger of both items, and every index entry that changes."""
    before = 0 if old is None else old.size
    meter.table(write_units(max(before, size), transactional))
    for index in table.indexes:
        units = _index_units(index, old, new, size, transactional)
        if units:
            (meter.index if index.is_global else meter.local)(index.name, units)


def _index_units(
    index: Index, stored: StoredItem | None, new: Item | None, size: int, transactional: bool
) -> float:
    if stored is None and new is not None:
        # Most writes are new items.
        is_indexed = encode_index_key(index, new, b"") is not None
        return write_units(index.size(new, size), transactional) if is_indexed else 0.0
    old = None if stored is None else stored.item
    before = None if old is None else encode_index_key(index, old, b"")
    after = None if new is None else encode_index_key(index, new, b"")
    projected_before = index.project(old) if old is not None and before is not None else None
    projected_after = index.project(new) if new is not None and after is not None else None
    if before is not None and before == after:
        if projected_before == projected_after:
            return 0.0
        largest = max(item_size(projected_before or {}), item_size(projected_after or {}))
        return write_units(largest, transactional)
    # DynamoDB: a changed index key costs the removal of one entry and the insertion of another.
    return sum(
        write_units(item_size(entry), transactional)
        for entry in (projected_before, projected_after)
        if entry is not None
    )
