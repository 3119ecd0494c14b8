"""Reply records. An item is JSON bytes as stored, or a dict if the engine has changed it.

The encoder copies bytes into the reply without decoding them. `decode_items` decodes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Union

from solotable._values import Item
from solotable._values.lazy_dataclass import dataclass

from .json_codec import loads

#: The items that are decoded together while a page is iterated.
_TOGETHER = 16

#: One item as stored (JSON bytes), or as a dict. In a list of items, bytes may hold several items with
#: commas between them.
SomeItem = Union[bytes, Item]

#: ConsumedCapacity of one table, in wire form.
Capacity = dict[str, Any]

#: The reply of a control operation, in wire form.
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GotItem:
    item: SomeItem | None = None
    capacity: Capacity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WroteItem:
    attributes: SomeItem | None = None
    capacity: Capacity | None = None
    collection: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    #: None if the request asks for the count only.
    items: list[SomeItem] | None
    count: int
    scanned: int
    last_key: Item | None = None
    capacity: Capacity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchGot:
    responses: Mapping[str, list[SomeItem]]
    unprocessed: Mapping[str, Any] = field(default_factory=dict)
    capacity: list[Capacity] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWrote:
    unprocessed: Mapping[str, Any] = field(default_factory=dict)
    capacity: list[Capacity] | None = None
    collections: Mapping[str, list[dict[str, Any]]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactGot:
    items: list[SomeItem | None]
    capacity: list[Capacity] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactWrote:
    capacity: list[Capacity] | None = None
    collections: Mapping[str, list[dict[str, Any]]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRan:
    items: list[SomeItem]
    next_token: str | None = None
    last_key: Item | None = None
    capacity: Capacity | None = None


Reply = Union[
    GotItem, WroteItem, Page, BatchGot, BatchWrote, TransactGot, TransactWrote, StatementRan, Answer
]


def decode_items(found: Iterable[SomeItem]) -> list[Item]:
    """Return items as dicts; those that are bytes are decoded together."""
    listed = list(found)
    raw = [item for item in listed if isinstance(item, bytes)]
    if len(raw) == len(listed):
        return _decode(*raw)
    decoded: list[Item] = []
    for item in listed:
        decoded += _decode(item) if isinstance(item, bytes) else [item]
    return decoded


def iterate_items(found: Iterable[SomeItem]) -> Iterator[Item]:
    """Yield items as dicts, decoded a few at a time.

    A caller that keeps none of them needs a quarter of the time of `decode_items` for a page of 1 MB: the
    garbage collector never sees more than a few items.
    """
    listed = list(found)
    for at in range(0, len(listed), _TOGETHER):
        yield from decode_items(listed[at : at + _TOGETHER])


def _decode(*pieces: bytes) -> list[Item]:
    decoded: list[Item] = loads(b"[" + b",".join(pieces) + b"]")
    return decoded
