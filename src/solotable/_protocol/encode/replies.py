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
            return _without_none(Item=_decode_item(reply.item), ConsumedCapacity=reply.capacity)
        case WroteItem():
            return _without_none(
                Attributes=_decode_item(reply.attributes),
                ConsumedCapacity=reply.capacity,
                ItemCollectionMetrics=reply.collection,
            )
        case Page():
            return _without_none(
                Items=None if reply.items is None else decode_items(reply.items),
                Count=reply.count,
                ScannedCount=reply.scanned,
                LastEvaluatedKey=reply.last_key,
                ConsumedCapacity=reply.capacity,
            )
        case BatchGot():
            return _without_none(
                Responses={table: decode_items(found) for table, found in reply.responses.items()},
                UnprocessedKeys=reply.unprocessed,
                ConsumedCapacity=reply.capacity,
            )
        case TransactGot():
            found = iter(decode_items(item for item in reply.items if item is not None))
            return _without_none(
                Responses=[{} if item is None else {"Item": next(found)} for item in reply.items],
                ConsumedCapacity=reply.capacity,
            )
        case StatementRan():
            return _without_none(Items=decode_items(reply.items), **_page_end(reply))
        case _:
            return _encode_without_items(reply)


def _encode_without_items(reply: BatchWrote | TransactWrote | dict[str, Any]) -> dict[str, Any]:
    match reply:
        case BatchWrote():
            return _without_none(
                UnprocessedItems=reply.unprocessed,
                ItemCollectionMetrics=reply.collections,
                ConsumedCapacity=reply.capacity,
            )
        case TransactWrote():
            return _without_none(ConsumedCapacity=reply.capacity, ItemCollectionMetrics=reply.collections)
        case _:
            return reply


def _page_end(reply: StatementRan) -> dict[str, Any]:
    return {
        "NextToken": reply.next_token,
        "LastEvaluatedKey": reply.last_key,
        "ConsumedCapacity": reply.capacity,
    }


def _without_none(**members: Any) -> dict[str, Any]:
    return {name: member for name, member in members.items() if member is not None}


def _decode_item(item: SomeItem | None) -> Any:
    return loads(item) if isinstance(item, bytes) else item
