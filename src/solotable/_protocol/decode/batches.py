"""Decode BatchGetItem and BatchWriteItem.

The engine finds duplicate keys: it knows the table's schema.
"""

from __future__ import annotations

from typing import Any

from solotable._protocol.constraints.attribute_values import canonical_and_size
from solotable._protocol.decode.table_names import batch_table_name, plain_name
from solotable._protocol.requests import BatchDelete, BatchGetItem, BatchPut, BatchWriteItem, TableKeys
from solotable._values import canonical_item
from solotable._values.limits import MOST_BATCH_GETS, MOST_BATCH_WRITES
from solotable.errors import invalid

from .parameters import Members, expression_check, projection_of

_check_get = expression_check("ProjectionExpression", legacy=("AttributesToGet",))


def batch_get_item(members: Members) -> BatchGetItem:
    """Decode BatchGetItem."""
    requested = _check_requested(members, "BatchGetItem")
    # DynamoDB: either all tables of a request use expressions, or none.
    _check_get({name: part for entry in requested.values() for name, part in entry.items()})
    tables = tuple(_table_keys(name, entry) for name, entry in requested.items())
    if sum(len(part.keys) for part in tables) > MOST_BATCH_GETS:
        raise invalid("Too many items requested for the BatchGetItem call")
    return BatchGetItem(tables=tables, capacity=members.get("ReturnConsumedCapacity", "NONE"))


def batch_write_item(members: Members) -> BatchWriteItem:
    """Decode BatchWriteItem."""
    requested = _check_requested(members, "BatchWriteItem")
    for writes in requested.values():
        # DynamoDB: the text says attribute value, and means the two kinds of write.
        if any(len(write) != 1 for write in writes):
            raise invalid(
                "Supplied AttributeValue has more than one datatypes set, "
                "must contain exactly one of the supported datatypes"
            )
    tables = tuple((name, tuple(map(_write, writes))) for name, writes in requested.items())
    if sum(len(writes) for _, writes in tables) > MOST_BATCH_WRITES:
        raise invalid("Too many items requested for the BatchWriteItem call")
    return BatchWriteItem(
        tables=tables,
        capacity=members.get("ReturnConsumedCapacity", "NONE"),
        collection=members.get("ReturnItemCollectionMetrics", "NONE"),
    )


def _check_requested(members: Members, operation: str) -> dict[str, Any]:
    if not members["RequestItems"]:
        # paritysuite/dynamodb-conformance 157, 167: BatchGetItem in 32 of 33 regions, BatchWriteItem in few.
        raise invalid(
            f"The requestItems parameter is required for {operation}",
            newer="1 validation error detected: Value at 'RequestItems' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1",
            family="counted",
        )
    requested: dict[str, Any] = members["RequestItems"]
    if len({plain_name(batch_table_name(given, requested)) for given in requested}) < len(requested):
        # A table by its name, and again by its ARN.
        raise invalid("Provided list of item keys contains duplicates")
    return requested


def _table_keys(table: str, entry: Members) -> TableKeys:
    _check_get(entry)
    return TableKeys(
        table=table,
        projection=projection_of(entry),
        keys=tuple(canonical_item(key) for key in entry["Keys"]),
        consistent=entry.get("ConsistentRead", False),
        wire={name: part for name, part in entry.items() if name != "Keys"},
    )


def _write(write: Members) -> BatchPut | BatchDelete:
    put = write.get("PutRequest")
    if put is not None:
        item, size = canonical_and_size(put["Item"])
        return BatchPut(item=item, size=size)
    return BatchDelete(key=canonical_item(write["DeleteRequest"]["Key"]))
