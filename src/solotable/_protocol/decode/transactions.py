"""Decode TransactGetItems, TransactWriteItems and PartiQL statements.

The engine reports errors of an action with its table, as cancellation reasons.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any, Final

from solotable._expressions.syntax.compile import compile_expressions
from solotable._protocol.constraints.attribute_values import canonical_and_size
from solotable._protocol.decode.table_names import table_name
from solotable._protocol.requests import (
    NO_UPDATE,
    BatchExecuteStatement,
    ConditionCheck,
    DeleteItem,
    ExecuteStatement,
    ExecuteTransaction,
    GetItem,
    PutItem,
    Statement,
    TransactGetItems,
    TransactWriteItems,
    UpdateItem,
    WriteAction,
)
from solotable._values import canonical, canonical_item, item_size
from solotable._values.limits import LARGEST_ITEM, LARGEST_TRANSACTION
from solotable.errors import invalid

from .parameters import Members, condition_of, expression_check, projection_of

_NO_VALUES: Final[dict[str, Any]] = {}
_check_get = expression_check("ProjectionExpression", legacy=())
_check_write = expression_check("ConditionExpression", legacy=())
_check_update = expression_check("UpdateExpression", "ConditionExpression", legacy=())


def transact_get_items(members: Members) -> TransactGetItems:
    """Decode TransactGetItems."""
    return TransactGetItems(
        gets=tuple(_get(action["Get"]) for action in members["TransactItems"]),
        capacity=members.get("ReturnConsumedCapacity", "NONE"),
    )


def transact_write_items(members: Members) -> TransactWriteItems:
    """Decode TransactWriteItems."""
    wire = members["TransactItems"]
    for action in wire:
        if not action:
            raise invalid(
                "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request"
            )
        if len(action) > 1:
            raise invalid("TransactItems can only contain one of Check, Put, Update or Delete")
    actions = tuple(_action(*pair) for action in wire for pair in action.items())
    _check_payload(actions, wire)
    return TransactWriteItems(
        actions=actions,
        token=members.get("ClientRequestToken"),
        fingerprint=_fingerprint(members.get("ClientRequestToken"), wire),
        capacity=members.get("ReturnConsumedCapacity", "NONE"),
        collection=members.get("ReturnItemCollectionMetrics", "NONE"),
    )


def execute_statement(members: Members) -> ExecuteStatement:
    """Decode ExecuteStatement."""
    return ExecuteStatement(
        statement=_statement(members),
        limit=members.get("Limit"),
        token=members.get("NextToken"),
        capacity=members.get("ReturnConsumedCapacity", "NONE"),
    )


def batch_execute_statement(members: Members) -> BatchExecuteStatement:
    """Decode BatchExecuteStatement."""
    return BatchExecuteStatement(
        # DynamoDB: an invalid parameter fails its own statement only.
        statements=tuple(_statement(one, check=False) for one in members["Statements"]),
        capacity=members.get("ReturnConsumedCapacity", "NONE"),
    )


def execute_transaction(members: Members) -> ExecuteTransaction:
    """Decode ExecuteTransaction."""
    return ExecuteTransaction(
        statements=tuple(map(_statement, members["TransactStatements"])),
        token=members.get("ClientRequestToken"),
        fingerprint=_fingerprint(members.get("ClientRequestToken"), members["TransactStatements"]),
        capacity=members.get("ReturnConsumedCapacity", "NONE"),
    )


def _get(get: Members) -> GetItem:
    table = table_name(get["TableName"])
    _check_get(get)
    return GetItem(
        table=table, key=canonical_item(get["Key"]), consistent=True, projection=projection_of(get)
    )


def _action(kind: str, action: Members) -> WriteAction:
    table = table_name(action["TableName"])
    on_failure = action.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    if kind == "Update":
        _check_update(action)
        key = canonical_item(action["Key"])
        compiled = compile_expressions(
            update=action["UpdateExpression"],
            condition=action.get("ConditionExpression"),
            names=action.get("ExpressionAttributeNames"),
            values=action.get("ExpressionAttributeValues"),
        )
        return UpdateItem(
            table=table,
            key=key,
            update=compiled.update or NO_UPDATE,
            condition=compiled.condition,
            returns_on_failure=on_failure,
        )
    _check_write(action)
    if kind == "Put":
        item, size = canonical_and_size(action["Item"])
        # DynamoDB: an item that is too large fails the request; it is not a cancellation reason.
        if size > LARGEST_ITEM:
            raise invalid("Item size has exceeded the maximum allowed size")
        return PutItem(
            table=table,
            item=item,
            size=size,
            condition=condition_of(action),
            returns_on_failure=on_failure,
        )
    # DynamoDB: checks the condition of these two before the key.
    condition = condition_of(action)
    key = canonical_item(action["Key"])
    if kind == "Delete":
        return DeleteItem(table=table, key=key, condition=condition, returns_on_failure=on_failure)
    assert condition is not None
    return ConditionCheck(table=table, key=key, condition=condition, returns_on_failure=on_failure)


def _check_payload(actions: tuple[WriteAction, ...], wire: list[Members]) -> None:
    # DynamoDB: counts what the request sends, not the items that it writes.
    size = 0
    for action in actions:
        if isinstance(action, PutItem):
            size += item_size(action.item) if action.size is None else action.size
        else:
            size += item_size(action.key)
    for sent in wire:
        for parameters in sent.values():
            size += item_size(parameters.get("ExpressionAttributeValues", _NO_VALUES))
    if size > LARGEST_TRANSACTION:
        raise invalid(f"Transaction payload size cannot exceed 4MB. Payload Size: {size}")


def _statement(members: Members, *, check: bool = True) -> Statement:
    parameters = members.get("Parameters", ())
    return Statement(
        text=members["Statement"],
        parameters=tuple(map(canonical, parameters) if check else parameters),
        consistent=members.get("ConsistentRead", False),
        returns_on_failure=members.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD",
    )


def _fingerprint(token: str | None, wire: list[Any]) -> bytes:
    if token is None:
        return b""
    # The standard library's encoder: a request has the same hash with and without orjson.
    return blake2b(json.dumps(wire, sort_keys=True).encode(), digest_size=16).digest()
