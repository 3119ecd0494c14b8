"""AccessPath: a compiled key that encodes values to key attributes and arguments to key conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from solotable._entities.codecs.computed_fields import ComputedField
from solotable._entities.codecs.field_codecs import Attribute
from solotable._entities.declare.table import Index, suggestion
from solotable._expressions.ast import KeyTerm
from solotable._values import AttributeValue, Item
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError

from .layout import KeyLayout, TemplateLayout
from .ranges import SortRange

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
    #: The fields of the key. The computed parts of a primary key are not among them: they follow from these.
    fields: frozenset[str]
    most_buckets: int = MOST_BUCKETS
    #: The condition on fields: the attributes, and the values that each may have.
    when: tuple[tuple[Attribute, tuple[AttributeValue | None, ...]], ...] = ()
    #: The key attributes that belong to the primary key.
    shared: frozenset[str] = frozenset()
    #: The fields on which the key attributes depend: those of all keys of the index, and of their conditions.
    sources: frozenset[str] = frozenset()
    #: The computed fields in the key and its condition.
    computed: tuple[ComputedField, ...] = ()
    #: The names of the key attributes.
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = (name for layout in (self.partition, self.sort) if layout for name in layout.names)
        object.__setattr__(self, "names", tuple(names))

    @property
    def is_split(self) -> bool:
        """Whether one declared partition is stored as several: shards, or time buckets."""
        layout = self.partition
        return isinstance(layout, TemplateLayout) and (
            layout.sharding is not None or layout.bucket is not None
        )

    def encode(self, values: Mapping[str, Any]) -> Item | None:
        """Return the key attributes; None if a part is None or `when` excludes the entity from the index."""
        if self.computed:
            values = self.complete(values)
        if self.when and not self.applies(values):
            return None
        partition = self.partition.encode(values)
        if partition is None or self.sort is None:
            return partition
        sort = self.sort.encode(values)
        return None if sort is None else partition | sort

    def complete(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return values or arguments with the computed parts that follow from them."""
        for each in self.computed:
            if not all(name in values for name in each.sources):
                continue
            value = each.compute(values)
            if values.get(each.name, value) != value:
                raise DataError(
                    f"{self.owner}.{self.name} got {each.name}={values[each.name]!r}, but the other parts "
                    f"give {value!r}; leave it out."
                )
            values = {**values, each.name: value}
        return values

    def applies(self, values: Mapping[str, Any]) -> bool:
        """Return whether the fields of the condition have one of their values."""
        return all(attribute.encode(values[attribute.field]) in allowed for attribute, allowed in self.when)

    def excludes(self, other: AccessPath) -> bool:
        """Return whether the conditions show that no entity has both keys."""
        theirs = {attribute.field: allowed for attribute, allowed in other.when}
        for attribute, allowed in self.when:
            if attribute.field in theirs:
                if not any(value in theirs[attribute.field] for value in allowed):
                    return True
            elif attribute.field in other.fields and allowed == (attribute.encode(None),):
                # A part of a key is never None.
                return True
        return False

    @property
    def derived(self) -> tuple[str, ...]:
        """The names of the attributes that only this key uses."""
        return tuple(
            each.attribute
            for each in (self.partition, self.sort)
            if isinstance(each, TemplateLayout) and each.attribute not in self.shared
        )

    @property
    def inexact(self) -> frozenset[str]:
        """The fields whose values the key does not contain exactly: folded texts and time buckets."""
        layouts = [each for each in (self.partition, self.sort) if isinstance(each, TemplateLayout)]
        exact = {name for each in layouts for name in each.fields if name not in each.template.inexact}
        return frozenset(name for each in layouts for name in each.template.inexact if name not in exact)

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
        """The fields whose values a template of the key contains whole, neither folded nor as a bucket."""
        layouts = [each for each in (self.partition, self.sort) if isinstance(each, TemplateLayout)]
        return frozenset(name for each in layouts for name in each.fields) - self.inexact

    def terms(self, arguments: Mapping[str, Any], sort_range: SortRange | None) -> tuple[KeyTerm, ...]:
        """Return the key condition of a query with these arguments."""
        terms = self.partition.equals(arguments)
        if self.sort is None:
            return terms
        return terms + self.sort.within(arguments, sort_range)

    def check_arguments(self, arguments: Iterable[str]) -> None:
        """Reject arguments that the key does not have."""
        for name in arguments:
            if not self.takes(name):
                raise DataError(
                    f"{self.owner}.{self.name} has no part {name!r}; {suggestion(name, self.parts)}"
                )

    def takes(self, name: str) -> bool:
        """Return whether a query along the key takes an argument of this name."""
        return name in self.fields or any(name == each.name for each in self.computed)

    @property
    def parts(self) -> tuple[str, ...]:
        """The fields of the key, in the key's order."""
        names = (*self.partition.fields, *(self.sort.fields if self.sort else ()))
        return tuple(name for name in dict.fromkeys(names) if name in self.fields)
