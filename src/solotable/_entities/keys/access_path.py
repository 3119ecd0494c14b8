"""AccessPath: a compiled key that encodes values to key attributes and arguments to key conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from solotable._entities.declare.table import Index, suggestion
from solotable._expressions.ast import KeyTerm
from solotable._values import Item
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError

from .layout import KeyLayout, TemplateLayout
from .parts.time_buckets import BucketCodec
from .ranges import SortRange
from .templates import TemplateField

#: The most time buckets that a query reads, unless its key declares another limit.
MOST_BUCKETS = 400


@dataclass(frozen=True, slots=True)
class AccessPath:
    """A key of an entity, checked and compiled."""

    name: str
    owner: str
    index: Index | None
    partition: KeyLayout
    sort: KeyLayout | None
    fields: frozenset[str]
    most_buckets: int = MOST_BUCKETS

    @property
    def is_split(self) -> bool:
        """Whether one declared partition is stored as several: shards, or time buckets."""
        layout = self.partition
        return isinstance(layout, TemplateLayout) and (
            layout.sharding is not None or layout.bucket is not None
        )

    def encode(self, values: Mapping[str, Any]) -> Item | None:
        """Return the key attributes; None when a part is None, because the item is then not in the index."""
        partition = self.partition.encode(values)
        if partition is None or self.sort is None:
            return partition
        sort = self.sort.encode(values)
        return None if sort is None else partition | sort

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the key attributes."""
        return tuple(name for layout in (self.partition, self.sort) if layout for name in layout.names)

    @property
    def derived(self) -> tuple[str, ...]:
        """The names of the attributes that only this key uses."""
        # A local index shares the partition key with the primary key.
        local = self.index is not None and self.index.local
        layouts = (self.sort,) if local else (self.partition, self.sort)
        return tuple(each.attribute for each in layouts if isinstance(each, TemplateLayout))

    def parse(self, item: Item) -> dict[str, Any] | None:
        """Return the fields of the key of an item, a time bucket as its text; None if it does not match."""
        found: dict[str, Any] = {}
        for layout in (self.partition, self.sort):
            if isinstance(layout, TemplateLayout):
                parts = layout.parse(item.get(layout.attribute, {}).get("S", ""))
                if parts is None:
                    return None
                found |= parts
            elif layout is not None:
                for attribute in layout.attributes:
                    if attribute.wire not in item:
                        return None
                    found[attribute.field] = attribute.decode(item[attribute.wire])
        return found

    @property
    def invertible(self) -> frozenset[str]:
        """The fields whose values the key contains whole: in a template, and not as a time bucket."""
        templates = [
            each.template for each in (self.partition, self.sort) if isinstance(each, TemplateLayout)
        ]
        parts = [part for template in templates for part in template.parts]
        return frozenset(
            part.field
            for part in parts
            if isinstance(part, TemplateField) and not isinstance(part.codec, BucketCodec)
        )

    def terms(self, arguments: Mapping[str, Any], sort_range: SortRange | None) -> tuple[KeyTerm, ...]:
        """Return the key condition of a query with these arguments."""
        terms = self.partition.equals(arguments)
        if self.sort is None:
            return terms
        return terms + self.sort.within(arguments, sort_range)

    def check_arguments(self, arguments: Iterable[str]) -> None:
        """Reject arguments that the key does not have."""
        for name in arguments:
            if name not in self.fields:
                raise DataError(
                    f"{self.owner}.{self.name} has no part {name!r}; {suggestion(name, self.parts)}"
                )

    @property
    def parts(self) -> tuple[str, ...]:
        """The fields of the key, in the key's order."""
        return tuple(dict.fromkeys((*self.partition.fields, *(self.sort.fields if self.sort else ()))))
