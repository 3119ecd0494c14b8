"""A sample of a live table: its keys and indexes as DescribeTable returns them, and some of its items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from solotable._values import Item
from solotable._values.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledIndex:
    """A secondary index of a live table."""

    name: str
    partition: tuple[str, ...]
    sort: tuple[str, ...]
    local: bool
    #: "ALL", "KEYS_ONLY" or the included attributes.
    projection: str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSample:
    """The definition of a live table and some of its items."""

    name: str
    partition: str
    sort: str | None
    #: The types of all key attributes, also of indexes.
    kinds: Mapping[str, str]
    indexes: tuple[SampledIndex, ...]
    ttl: str | None
    stream: bool
    #: DynamoDB's own count, which it renews every six hours.
    item_count: int
    items: Sequence[Item]

    @property
    def key_names(self) -> frozenset[str]:
        """The attributes of the primary key and of all indexes."""
        return frozenset(self.kinds)

    @classmethod
    def of(cls, description: Mapping[str, Any], ttl: str | None, items: Sequence[Item]) -> TableSample:
        """Combine a reply of DescribeTable, the attribute of the time to live, and scanned items."""
        (partition,), sort = _key(description["KeySchema"])
        local = description.get("LocalSecondaryIndexes") or ()
        stream = description.get("StreamSpecification") or {}
        return cls(
            name=description["TableName"],
            partition=partition,
            sort=sort[0] if sort else None,
            kinds={
                each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]
            },
            indexes=(
                *(_index(each, local=True) for each in local),
                *(_index(each, local=False) for each in description.get("GlobalSecondaryIndexes") or ()),
            ),
            ttl=ttl,
            stream=bool(stream.get("StreamEnabled")) and stream.get("StreamViewType") == "NEW_AND_OLD_IMAGES",
            item_count=description.get("ItemCount", 0),
            items=items,
        )


def _index(described: Mapping[str, Any], *, local: bool) -> SampledIndex:
    partition, sort = _key(described["KeySchema"])
    projection = described["Projection"]
    kind = projection["ProjectionType"]
    return SampledIndex(
        name=described["IndexName"],
        partition=partition,
        sort=sort,
        local=local,
        projection=tuple(projection["NonKeyAttributes"]) if kind == "INCLUDE" else kind,
    )


def _key(schema: Sequence[Mapping[str, str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return (
        tuple(each["AttributeName"] for each in schema if each["KeyType"] == "HASH"),
        tuple(each["AttributeName"] for each in schema if each["KeyType"] == "RANGE"),
    )
