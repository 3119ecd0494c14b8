"""Outputs: the items that one source item becomes, and the dead letter if it cannot become any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from solotable._entities.declare.entity import Entity
from solotable._protocol.json_codec import dumps
from solotable._values import Item, item_size
from solotable._values.limits import LARGEST_ITEM, LONGEST_PARTITION_KEY, LONGEST_SORT_KEY
from solotable.errors import DataError

#: The identity of an output: its table, and the type and value of each key attribute.
OutputKey = tuple[str, ...]
#: put: a whole item. part: some attributes of an item. gather: an item to build from several entities.
OutputKind = Literal["put", "part", "gather"]
_LONGEST_KEYS = (LONGEST_PARTITION_KEY, LONGEST_SORT_KEY)
_ONLY_KEYS = ("S", "N", "B")


# A named tuple is made three times as fast as a frozen dataclass, and there is one for each item.
class Output(NamedTuple):
    """An item that a source item becomes."""

    table: str
    key: Item
    item: Item
    #: The tag of the entity; of internal items, such as locks, their tag, which begins with `_`.
    entity: str
    kind: OutputKind = "put"
    #: The attributes that this source alone writes, if the output is a part.
    owned: frozenset[str] = frozenset()
    #: The bytes of the item, if its encoder counts them.
    size: int | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A source item that has no outputs, and the reason."""

    source: str
    key: Item
    cause: str

    def __str__(self) -> str:
        return f"{self.source} {self.key}: {self.cause}"


class Outputs(NamedTuple):
    """The outputs of one source item: all of them, or none and a dead letter."""

    items: Mapping[OutputKey, Output] = MappingProxyType({})
    dead: tuple[DeadLetter, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Some fields of an entity whose other fields come from other sources.

    `Part(User, {"user_id": item["id"]}, {"email": item["email"]})`: `key` has the fields of the primary key.
    """

    entity: type[Entity]
    key: Mapping[str, Any]
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A former version of an entity that has a `History`."""

    entity: Entity


def output_key(table: str, key: Item) -> OutputKey:
    """Return the identity of the item under a key.

    >>> output_key("Shop", {"PK": {"S": "USER#1"}, "SK": {"N": "7"}})
    ('Shop', 'S:USER#1', 'N:7')
    """
    parts = [table]
    for value in key.values():
        for kind, content in value.items():
            parts.append(f"{kind}:{content}")
    return tuple(parts)


def check_item(names: tuple[str, ...], item: Item, *, sized: bool = False) -> Item:
    """Return the key of an item.

    Raises DataError for an item that DynamoDB would reject: no key, a long key, over 400 KB.
    """
    key: Item = {}
    for name, longest in zip(names, _LONGEST_KEYS, strict=False):
        value = item.get(name)
        if value is not None:
            key[name] = value
            if 0 < 4 * len(value.get("S", "")) <= longest:
                # Most keys are short texts.
                continue
        kind = None if value is None else next(iter(value), None)
        if value is None or kind not in _ONLY_KEYS:
            raise DataError(f"The output has no text, number or binary in its key attribute {name!r}.")
        content = value[kind]
        if not content:
            raise DataError(f"The output has an empty value in its key attribute {name!r}.")
        if kind == "S" and 4 * len(content) > longest and len(content.encode()) > longest:
            raise DataError(
                f"The output has {len(content.encode()):,} bytes in its key attribute {name!r}; "
                f"DynamoDB takes at most {longest:,}."
            )
    # The JSON of an item is longer than its size, and faster to compute.
    if not sized and len(dumps(item)) > LARGEST_ITEM and (size := item_size(item)) > LARGEST_ITEM:
        raise DataError(f"The output has {size:,} bytes, but DynamoDB takes at most {LARGEST_ITEM:,}.")
    return key
