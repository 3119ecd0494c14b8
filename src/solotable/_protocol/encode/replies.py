"""Encode replies as dicts for callers in process, with every item decoded."""

from __future__ import annotations

from typing import Any

from solotable._protocol.json_codec import loads
from solotable._protocol.replies import (
    BatchGot,
    BatchWrote,
    GotItem,
    Page,
    Reply,
    SomeItem,
    StatementRan,
    TransactGot,
    TransactWrote,
    WroteItem,
    decode_items,
)


def encode_reply(reply: Reply) -> dict[str, Any]:
    """Return a reply in wire form, every item decoded."""
    match reply:
        case GotItem():
            return _present(Item=_item(reply.item), ConsumedCapacity=reply.capacity)
        case WroteItem():
            return _present(
                Attributes=_item(reply.attributes),
                ConsumedCapacity=reply.capacity,
                ItemCollectionMetrics=reply.collection,
            )
        case Page():
            return _present(
                Items=None if reply.items is None else decode_items(reply.items),
                Count=reply.count,
                ScannedCount=reply.scanned,
                LastEvaluatedKey=reply.last_key,
                ConsumedCapacity=reply.capacity,
            )
        case BatchGot():
            return _present(
                Responses={table: decode_items(found) for table, found in reply.responses.items()},
                UnprocessedKeys=reply.unprocessed,
                ConsumedCapacity=reply.capacity,
            )
        case TransactGot():
            found = iter(decode_items(item for item in reply.items if item is not None))
            return _present(
                Responses=[{} if item is None else {"Item": next(found)} for item in reply.items],
                ConsumedCapacity=reply.capacity,
            )
        case StatementRan():
            return _present(Items=decode_items(reply.items), **_after_items(reply))
        case _:
            return _without_items(reply)


def _without_items(reply: BatchWrote | TransactWrote | dict[str, Any]) -> dict[str, Any]:
    match reply:
        case BatchWrote():
            return _present(
                UnprocessedItems=reply.unprocessed,
                ItemCollectionMetrics=reply.collections,
                ConsumedCapacity=reply.capacity,
            )
        case TransactWrote():
            return _present(ConsumedCapacity=reply.capacity, ItemCollectionMetrics=reply.collections)
        case _:
            return reply


def _after_items(reply: StatementRan) -> dict[str, Any]:
    return {
        "NextToken": reply.next_token,
        "LastEvaluatedKey": reply.last_key,
        "ConsumedCapacity": reply.capacity,
    }


def _present(**members: Any) -> dict[str, Any]:
    return {name: member for name, member in members.items() if member is not None}


def _item(item: SomeItem | None) -> Any:
    return loads(item) if isinstance(item, bytes) else item
