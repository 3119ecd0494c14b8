"""Encode replies as JSON bytes for the wire.

Stored items are JSON: they are copied into the reply and not decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from solotable._protocol.json_codec import dumps
from solotable._protocol.operations import WITHOUT_REPLY
from solotable._protocol.replies import (
    BatchGot,
    GotItem,
    Page,
    Reply,
    SomeItem,
    StatementRan,
    TransactGot,
    WroteItem,
)

from .replies import encode_reply

#: Bytes whose copy blocks other threads for a millisecond.
_LARGE_COPY = 2 * 1024 * 1024


def encode_body(operation: str, reply: Reply) -> bytes:
    """Return the body of an operation's reply: JSON, or nothing."""
    # DynamoDB: these two have no output in the API model; the body is empty, not "{}".
    return b"" if operation in WITHOUT_REPLY else encode_json(reply)


def encode_json(reply: Reply) -> bytes:
    """Return a reply as JSON, with the bytes of stored items."""
    pieces = encode_pieces(reply)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def encode_pieces(reply: Reply) -> list[bytes]:
    """Return a reply as JSON in pieces, so that the items of a long one are not copied."""
    encode = _ENCODERS.get(type(reply))
    return [dumps(encode_reply(reply))] if encode is None else encode(reply)


def _encode_got(reply: GotItem) -> list[bytes]:
    item = reply.item
    if reply.capacity is None and item.__class__ is bytes:
        return [b'{"Item":' + item + b"}"]
    return [_encode_object(Item=_optional_item_bytes(item), ConsumedCapacity=_optional_json(reply.capacity))]


def _encode_wrote(reply: WroteItem) -> list[bytes]:
    if reply.attributes is None and reply.capacity is None and reply.collection is None:
        return [b"{}"]
    return [
        _encode_object(
            Attributes=_optional_item_bytes(reply.attributes),
            ConsumedCapacity=_optional_json(reply.capacity),
            ItemCollectionMetrics=_optional_json(reply.collection),
        )
    ]


def _encode_page(reply: Page) -> list[bytes]:
    counts = b'"Count":%d,"ScannedCount":%d' % (reply.count, reply.scanned)
    tail = b"" if reply.last_key is None else b',"LastEvaluatedKey":' + dumps(reply.last_key)
    if reply.capacity is not None:
        tail += b',"ConsumedCapacity":' + dumps(reply.capacity)
    if reply.items is None:
        return [b"{" + counts + tail + b"}"]
    listed = [_item_bytes(item) for item in reply.items]
    joined = listed[0] if len(listed) == 1 else b",".join(listed)
    return [b'{"Items":[', joined, b"]," + counts + tail + b"}"]


def _encode_batch_got(reply: BatchGot) -> list[bytes]:
    pieces = [b'{"Responses":{']
    for place, (table, found) in enumerate(reply.responses.items()):
        pieces += [b"," if place else b"", dumps(table), b":[", *_join_items(found), b"]"]
    rest = _encode_members(
        UnprocessedKeys=dumps(reply.unprocessed), ConsumedCapacity=_optional_json(reply.capacity)
    )
    return [*pieces, b"},", rest, b"}"]


def _encode_transact_got(reply: TransactGot) -> list[bytes]:
    wrapped = [_encode_object(Item=_optional_item_bytes(item)) for item in reply.items]
    return _encode_list(b"Responses", _join_pieces(wrapped), ConsumedCapacity=_optional_json(reply.capacity))


def _encode_statement_ran(reply: StatementRan) -> list[bytes]:
    return _encode_list(
        b"Items",
        _join_items(reply.items),
        NextToken=_optional_json(reply.next_token),
        LastEvaluatedKey=_optional_json(reply.last_key),
        ConsumedCapacity=_optional_json(reply.capacity),
    )


def _encode_list(name: bytes, listed: list[bytes], **members: bytes | None) -> list[bytes]:
    rest = _encode_members(**members)
    return [b'{"' + name + b'":[', *listed, b"]," + rest + b"}" if rest else b"]}"]


def _join_items(found: Iterable[SomeItem]) -> list[bytes]:
    return _join_pieces([_item_bytes(item) for item in found])


def _join_pieces(pieces: list[bytes]) -> list[bytes]:
    """Return pieces with commas between them, joined unless the copy would be large."""
    if sum(map(len, pieces)) <= _LARGE_COPY:
        return [b",".join(pieces)]
    separated = [b","] * (2 * len(pieces) - 1)
    separated[::2] = pieces
    return separated


def _encode_object(**members: bytes | None) -> bytes:
    return b"{" + _encode_members(**members) + b"}"


def _encode_members(**members: bytes | None) -> bytes:
    return b",".join(
        b'"%s":%s' % (name.encode(), member) for name, member in members.items() if member is not None
    )


def _item_bytes(item: SomeItem) -> bytes:
    return item if isinstance(item, bytes) else dumps(item)


def _optional_item_bytes(item: SomeItem | None) -> bytes | None:
    return None if item is None else _item_bytes(item)


def _optional_json(member: Mapping[str, Any] | list[Any] | str | None) -> bytes | None:
    return None if member is None else dumps(member)


#: The replies that can hold the bytes of stored items.
_ENCODERS: Final[Mapping[type, Callable[[Any], list[bytes]]]] = {
    GotItem: _encode_got,
    WroteItem: _encode_wrote,
    Page: _encode_page,
    BatchGot: _encode_batch_got,
    TransactGot: _encode_transact_got,
    StatementRan: _encode_statement_ran,
}
