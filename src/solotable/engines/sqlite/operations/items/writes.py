"""PutItem, UpdateItem, DeleteItem, and the actions of a transaction.

A write is checked in two steps: `prepare` needs only the table's definition, and `check_write` needs the
stored item. Nothing is written before both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from solotable._expressions.ast import Action, Add, Assign, Const, Delete, Update
from solotable._expressions.evaluate import evaluate
from solotable._expressions.update import TOO_LARGE, apply_update, paths_of_update, updated_values
from solotable._protocol.capacity import CapacityMeter
from solotable._protocol.engine import Pause, TooLong
from solotable._protocol.replies import SomeItem, WroteItem
from solotable._protocol.requests import (
    ConditionCheck,
    DeleteItem,
    PreparedUpdateItem,
    PutItem,
    UpdateItem,
    WriteAction,
)
from solotable._values import AttributeValue, Item, growth, item_size
from solotable._values.limits import LARGEST_ITEM
from solotable.engines.sqlite.heat.charges import charge_item
from solotable.engines.sqlite.items.keys import (
    EMPTY_KEY,
    check_and_encode_item_key,
    check_and_encode_key,
    check_index_keys,
    encode_partition_key,
    end_of_prefix,
    index_mismatch,
)
from solotable.engines.sqlite.items.storage import StoredItem, Writer, decode_row
from solotable.engines.sqlite.items.write_capacity import meter_write
from solotable.engines.sqlite.tables.catalog import Table
from solotable.errors import ConditionFailed, invalid, invalid_parameter

from .get_item import check_key_paths

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: One gigabyte, as DynamoDB estimates the size of item collections.
_GIGABYTE = 1 << 30


@dataclass(slots=True)
class ItemWrite:
    """A write that passed its checks: the stored row, and the item to store (None removes it)."""

    table: Table
    key: bytes
    old: StoredItem | None
    new: Item | None
    size: int


def write_item(engine: SqliteEngine, request: PutItem | UpdateItem | DeleteItem) -> WroteItem:
    """Check one write and commit it in its own transaction."""
    size = check_item_size(request)
    table = engine.table(request.table)
    key = prepare(table, request)
    thread = engine.thread
    ahead = None if thread.pause is None else _check_ahead(engine, table, key, request, size)
    largest = thread.largest if _reads_item(request) else None

    def action(writer: Writer) -> WroteItem:
        old = writer.find(table, key)
        if ahead is not None and old is not None and ahead.old is not None and ahead.old.raw == old.raw:
            write = ahead
            ahead.old.id = old.id
        else:
            if ahead is None and old is not None and largest is not None and len(old.raw) > largest:
                raise TooLong
            return write_row(writer, table, key, old, request, size)
        store(writer, write, request)
        return _reply(writer, write, request)

    return engine.write(action)


def write_row(
    writer: Writer,
    table: Table,
    key: bytes,
    old: StoredItem | None,
    request: PutItem | UpdateItem | DeleteItem,
    size: int,
) -> WroteItem:
    """Check one write against the stored row and store it."""
    try:
        write = _check_row(table, key, old, request, size)
    except ConditionFailed:
        charge(writer, table, old, request, size)
        raise
    store(writer, write, request)
    return _reply(writer, write, request)


def _reads_item(request: WriteAction) -> bool:
    return isinstance(request, UpdateItem) or request.condition is not None


def _check_ahead(
    engine: SqliteEngine, table: Table, key: bytes, request: PutItem | UpdateItem | DeleteItem, size: int
) -> ItemWrite | None:
    """Check a write against a large item before its transaction, which delays every other write.

    The result counts if the item is the same once the transaction has begun.
    """
    old = decode_row(table, key, engine.database.fetch_one(table.select_sql, (key,)))
    if old is None or not _reads_item(request):
        return None
    old.decode(engine.pause)
    return _check_row(table, key, old, request, size, engine.pause)


def check_item_size(action: WriteAction) -> int:
    """Return the size of an item to put, or reject it; this needs no table."""
    if not isinstance(action, PutItem):
        return 0
    size = item_size(action.item) if action.size is None else action.size
    if size > LARGEST_ITEM:
        raise invalid("Item size has exceeded the maximum allowed size")
    return size


def prepare(table: Table, action: WriteAction) -> bytes:
    """Reject an action that is invalid for this table, and return the bytes of the item's key."""
    if isinstance(action, PutItem):
        return check_and_encode_item_key(table, action.item)
    key = check_and_encode_key(table, action.key)
    if isinstance(action, UpdateItem) and not (
        isinstance(action, PreparedUpdateItem) and action.template.names.isdisjoint(table.key_names)
    ):
        _check_update(table, action.update)
    return key


def check_write(writer: Writer, table: Table, key: bytes, action: WriteAction, size: int = 0) -> ItemWrite:
    """Check the condition against the stored item, and return the write."""
    return _check_row(table, key, writer.find(table, key), action, size)


def _check_row(
    table: Table,
    key: bytes,
    old: StoredItem | None,
    action: WriteAction,
    size: int,
    pause: Pause | None = None,
) -> ItemWrite:
    if isinstance(action, PreparedUpdateItem):
        write = _run_prepared(table, key, old, action)
        if write is not None:
            return write
    if action.condition is not None and not evaluate(
        action.condition, {} if old is None else old.item, pause
    ):
        raise ConditionFailed(item=old.item if old is not None and action.returns_on_failure else None)
    match action:
        case PutItem():
            return ItemWrite(table, key, old, action.item, size)
        case DeleteItem():
            return ItemWrite(table, key, old, None, 0)
        case ConditionCheck():
            return ItemWrite(
                table, key, old, None if old is None else old.item, 0 if old is None else old.size
            )
        case UpdateItem():
            return _check_update_result(table, key, old, action)


def _run_prepared(
    table: Table, key: bytes, old: StoredItem | None, action: PreparedUpdateItem
) -> ItemWrite | None:
    """Check and apply a prepared update by its compiled function; None if it does not cover the item."""
    template, values = action.template, action.values
    apply = template.function(values)
    if not apply:
        return None
    if old is not None:
        item = old.item
        result = apply(item, values, item)
        size = old.size
    elif template.update.creates and template.names.isdisjoint(table.key_names):
        result = apply({}, values, action.key)
        size = item_size(action.key)
    else:
        return None
    if result is None:
        template.note_miss()
        return None
    if result is False:
        raise ConditionFailed(item=old.item if old is not None and action.returns_on_failure else None)
    new, gained = result
    size += gained
    if size > LARGEST_ITEM:
        return None
    check_updated_keys(table, new)
    return ItemWrite(table, key, old, new, size)


def _check_update_result(table: Table, key: bytes, old: StoredItem | None, action: UpdateItem) -> ItemWrite:
    if old is None and not action.update.creates:
        return ItemWrite(table, key, None, None, 0)
    new = apply_update(action.update, action.key if old is None else old.item)
    check_updated_keys(table, new)
    if old is None:
        size = item_size(new)
    else:
        touched = {str(each.path[0]) for each in action.update.actions}
        size = old.size + growth(touched, old.item, new, most=LARGEST_ITEM)
    if size > LARGEST_ITEM:
        raise invalid(TOO_LARGE)
    return ItemWrite(table, key, old, new, size)


def store(writer: Writer, write: ItemWrite, action: WriteAction) -> None:
    """Store the new item, or remove the stored one."""
    if writer.charges is not None:
        charge(writer, write.table, write.old, action, write.size)
    if isinstance(action, ConditionCheck):
        return
    if write.new is not None:
        writer.save(write.table, write.key, write.old, write.new, write.size)
    elif write.old is not None:
        writer.remove(write.table, write.key, write.old)


def charge(writer: Writer, table: Table, old: StoredItem | None, action: WriteAction, size: int) -> None:
    """Charge the units of a write to the item's partition, if they are counted."""
    if writer.charges is not None:
        charge_item(writer.charges, table, key_of(action), old, size)


def key_of(action: WriteAction) -> Item:
    """Return the item to put, or the key of another action: both have the key attributes."""
    return action.item if isinstance(action, PutItem) else action.key


def _check_update(table: Table, update: Update) -> None:
    keys = table.key_names
    for action in update.actions:
        if action.path[0] in keys or (isinstance(action, Assign) and not isinstance(action.operand, Const)):
            break
    else:
        # Most updates neither write nor read a key attribute, so they need no further checks.
        return
    for name in table.schema.names:
        for action in update.actions:
            if action.path[0] == name:
                raise invalid_parameter(f"Cannot update attribute {name}. This attribute is part of the key")
    for index in table.indexes:
        for part in index.schema.attributes:
            for action in update.actions:
                value = _constant(action) if action.path == (part.name,) else None
                if value is not None and part.kind not in value:
                    raise index_mismatch(index, part, value)
    check_key_paths(table, paths_of_update(update))


def _constant(action: Action) -> AttributeValue | None:
    """Return the value that an action assigns, if it does not depend on the stored item."""
    match action:
        case Assign(_, Const(value)) | Add(_, value) | Delete(_, value):
            return value
        case _:
            return None


def check_updated_keys(table: Table, new: Item) -> None:
    """Reject an update that gives an index key attribute an invalid value."""
    if new.keys().isdisjoint(table.index_key_names):
        return
    for index in table.indexes:
        for part in index.schema.attributes:
            value = new.get(part.name)
            if value is None:
                continue
            if part.kind not in value:
                raise invalid(
                    "The update expression attempted to update the secondary index key to unsupported type"
                )
            if not value[part.kind]:
                raise invalid(
                    "One or more parameter values are not valid. The update expression attempted to update a "
                    f"secondary index key to a value that is not supported. {EMPTY_KEY[part.kind]}"
                )
    check_index_keys(table, new)


def _reply(writer: Writer, write: ItemWrite, request: PutItem | UpdateItem | DeleteItem) -> WroteItem:
    if request.returns == "NONE" and request.capacity == "NONE" and request.collection != "SIZE":
        return _EMPTY_REPLY
    capacity = None
    if request.capacity != "NONE":
        meter = CapacityMeter(request.table)
        meter_write(meter, write.table, write.old, write.new, write.size)
        capacity = meter.report(request.capacity)
    collection = collection_metrics(writer, write) if request.collection == "SIZE" else None
    return WroteItem(attributes=_attributes(write, request), capacity=capacity, collection=collection)


_EMPTY_REPLY = WroteItem()


def _attributes(write: ItemWrite, request: PutItem | UpdateItem | DeleteItem) -> SomeItem | None:
    old, new = write.old, write.new
    match request.returns:
        case "ALL_OLD":
            return None if old is None else old.raw
        case "ALL_NEW":
            return new
        case "UPDATED_OLD" if isinstance(request, UpdateItem) and old is not None:
            return updated_values(request.update, old.item, old.item) or None
        case "UPDATED_NEW" if isinstance(request, UpdateItem) and new is not None:
            return updated_values(request.update, new, {} if old is None else old.item) or None
        case _:
            return None


def collection_metrics(writer: Writer, write: ItemWrite) -> dict[str, Any] | None:
    """Return the size of the item's collection; only a table with local indexes has collections."""
    table = write.table
    if not table.has_local_indexes:
        return None
    item = write.new if write.new is not None else None if write.old is None else write.old.item
    if item is None:
        return None
    low = encode_partition_key(table.schema, item)
    (total,) = writer.connection.execute(
        f"SELECT coalesce(sum(size), 0) FROM {table.items} WHERE key >= ? AND key < ?",
        (low, end_of_prefix(low)),
    ).fetchone()
    gigabytes = float(total // _GIGABYTE)
    partition = table.schema.partition[0].name
    return {
        "ItemCollectionKey": {partition: item[partition]},
        "SizeEstimateRangeGB": [gigabytes, gigabytes + 1.0],
    }
