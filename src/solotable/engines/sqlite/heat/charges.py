"""The write units that one request consumes on the partitions of a table and its indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from solotable._protocol.capacity import write_units
from solotable._values import AttributeValue, Item, item_size

if TYPE_CHECKING:
    from solotable.engines.sqlite.items.storage import StoredItem
    from solotable.engines.sqlite.tables.catalog import Index, Table

    from .recorder import HeatRecord

_NOTHING: AttributeValue = {}


def charge_item(
    charges: list[HeatRecord], table: Table, key: Item, old: StoredItem | None, size: int
) -> None:
    """Charge a write of an item, or of a key, to the table: the larger of the old and new item."""
    if old is not None and old.size > size:
        size = old.size
    charges.append((table, None, table.schema.partition_content(key), write_units(size), True))


def charge_entry(charges: list[HeatRecord], table: Table, index: Index, item: Item, whole: int) -> None:
    """Charge an index entry that is added or removed; `whole` is the size of the item."""
    _charge(charges, table, index, item, index.size(item, whole))


def charge_unmoved(
    charges: list[HeatRecord], table: Table, index: Index, old: StoredItem, new: Item, size: int
) -> None:
    """Charge an index entry whose key does not change, if one of its attributes does."""
    if index.projection == "KEYS_ONLY":
        return
    # `has_index_key` also checks lengths, and takes three times as long.
    for part in index.schema.attributes:
        if part.kind not in new.get(part.name, _NOTHING):
            return
    if index.projected is None:
        largest = max(old.size, size)
    else:
        before, after = index.project(old.item), index.project(new)
        if before == after:
            return
        largest = max(item_size(before), item_size(after))
    _charge(charges, table, index, new, largest)


def _charge(charges: list[HeatRecord], table: Table, index: Index, item: Item, size: int) -> None:
    if index.is_global:
        charges.append((table, index, index.schema.partition_content(item), write_units(size), True))
    else:
        # DynamoDB: a local index shares the partitions of its table.
        charges.append((table, None, table.schema.partition_content(item), write_units(size), True))


def multiply(charges: list[HeatRecord], factor: int) -> None:
    """Count every unit several times: twice in a transaction, more in a sample."""
    charges[:] = [
        (table, index, content, factor * units, True) for table, index, content, units, _ in charges
    ]
