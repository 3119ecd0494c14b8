"""Decode replies of a DynamoDB endpoint to records, the inverse of `encode.replies`.

Items stay dicts of wire values. Nothing is checked.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from solotable._protocol.replies import (
    BatchGot,
    BatchWrote,
    GotItem,
    Page,
    Reply,
    StatementRan,
    TransactGot,
    TransactWrote,
    WroteItem,
)
from solotable._protocol.requests import (
    BatchGetItem,
    BatchWriteItem,
    DeleteItem,
    ExecuteStatement,
    GetItem,
    PutItem,
    Query,
    Request,
    Scan,
    TransactGetItems,
    TransactWriteItems,
    UpdateItem,
)

ReplyT = TypeVar("ReplyT")


def decode_reply(request: Request[ReplyT], members: dict[str, Any]) -> ReplyT:
    """Return the reply to a request from its members; a control operation's reply is its members."""
    return cast(ReplyT, _decode(request, members))


def _decode(request: Request[Any], wire: dict[str, Any]) -> Reply:
    capacity = wire.get("ConsumedCapacity")
    match request:
        case GetItem():
            return GotItem(item=wire.get("Item"), capacity=capacity)
        case PutItem() | UpdateItem() | DeleteItem():
            return WroteItem(
                attributes=wire.get("Attributes"),
                capacity=capacity,
                collection=wire.get("ItemCollectionMetrics"),
            )
        case Query() | Scan():
            return Page(
                items=wire.get("Items"),
                count=wire["Count"],
                scanned=wire["ScannedCount"],
                last_key=wire.get("LastEvaluatedKey"),
                capacity=capacity,
            )
        case BatchGetItem():
            return BatchGot(
                responses=wire.get("Responses", {}),
                unprocessed=wire.get("UnprocessedKeys", {}),
                capacity=capacity,
            )
        case BatchWriteItem():
            return BatchWrote(
                unprocessed=wire.get("UnprocessedItems", {}),
                capacity=capacity,
                collections=wire.get("ItemCollectionMetrics"),
            )
        case TransactGetItems():
            return TransactGot(items=[one.get("Item") for one in wire["Responses"]], capacity=capacity)
        case TransactWriteItems():
            return TransactWrote(capacity=capacity, collections=wire.get("ItemCollectionMetrics"))
        case ExecuteStatement():
            return StatementRan(
                items=wire.get("Items", []),
                next_token=wire.get("NextToken"),
                last_key=wire.get("LastEvaluatedKey"),
                capacity=capacity,
            )
        case _:
            return wire
