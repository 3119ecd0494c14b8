"""A declared key compiled for one entity: values to key attributes, arguments to key conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from solotable._entities.codecs.field_codecs import Attribute
from solotable._entities.declare.table import Index, KeyAttribute, Table, suggestion
from solotable._expressions.ast import KeyTerm
from solotable._values import Item
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError, DeclarationError

from .key import Key
from .layout import Bound, Composed, Native, Side, buckets_of, names_of
from .templates import Template

#: How many buckets of time a query walks unless its key says otherwise.
MOST_BUCKETS = 400


@dataclass(frozen=True, slots=True)
class AccessPath:
    """One key of one entity, checked and compiled."""

    name: str
    owner: str
    index: Index | None
    partition: Side
    sort: Side | None
    fields: frozenset[str]
    most_buckets: int = MOST_BUCKETS

    @property
    def scattered(self) -> bool:
        """Whether what is declared as one partition is kept as several: shards, or buckets of time."""
        side = self.partition
        return isinstance(side, Composed) and (side.spread is not None or side.bucket is not None)

    def dump(self, values: Mapping[str, Any]) -> Item | None:
        """Return the key attributes, or None when a part is None: then the index has no such item."""
        item = self.partition.dump(values)
        if item is None or self.sort is None:
            return item
        more = self.sort.dump(values)
        return None if more is None else item | more

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the key attributes."""
        return tuple(name for side in (self.partition, self.sort) if side for name in names_of(side))

    @property
    def derived(self) -> tuple[str, ...]:
        """The names of the attributes that are kept only for this key."""
        # A local index shares the partition key of the table's own key.
        local = self.index is not None and self.index.local
        sides = (self.sort,) if local else (self.partition, self.sort)
        return tuple(side.attribute for side in sides if isinstance(side, Composed))

    def terms(self, arguments: Mapping[str, Any], bound: Bound | None) -> tuple[KeyTerm, ...]:
        """Return the key condition of a query with these arguments."""
        terms = self.partition.equals(arguments)
        if self.sort is None:
            return terms
        return terms + self.sort.within(arguments, bound)

    def judge(self, arguments: Iterable[str]) -> None:
        """Refuse arguments that the key does not have."""
        for name in arguments:
            if name not in self.fields:
                raise DataError(
                    f"{self.owner}.{self.name} has no part {name!r}; {suggestion(name, self.parts)}"
                )

    @property
    def parts(self) -> tuple[str, ...]:
        """The fields of the key, in its order."""
        return tuple(dict.fromkeys((*self.partition.fields, *(self.sort.fields if self.sort else ()))))


def compile_key(
    key: Key, *, owner: str, table: Table, attributes: Mapping[str, Attribute], annotations: Mapping[str, Any]
) -> AccessPath:
    """Check a key against its table and entity, and return what it becomes."""
    where = f"{owner}.{key.name}"
    index = None if key.index is None else table.index(key.index, where=where)
    own = (table.partition,), ((table.sort,) if table.sort else ())
    ends: tuple[tuple[KeyAttribute, ...], ...] = own if index is None else (index.partition, index.sort)
    if key.sort is None and ends[1]:
        raise DeclarationError(f"{where} needs a sort template: {_place(table, index)} has a sort key.")
    if key.sort is not None and not ends[1]:
        raise DeclarationError(f"{where} has a sort template, but {_place(table, index)} has no sort key.")

    def side(given: str | tuple[str, ...], end: tuple[KeyAttribute, ...], role: Any) -> Side:
        if isinstance(given, tuple):
            return _native(given, end, role, attributes, where)
        return _composed(given, end, role, annotations, where, attributes)

    partition = side(key.partition, ends[0], "partition")
    sort = None if key.sort is None else side(key.sort, ends[1], "sort")
    fields = frozenset((*partition.fields, *(sort.fields if sort else ())))
    if index is None:
        for name in fields:
            if attributes[name].optional:
                raise DeclarationError(f"{where}: {name!r} may be None, and a table's own key never is.")
    return AccessPath(key.name, owner, index, partition, sort, fields, key.most_buckets or MOST_BUCKETS)


def _native(
    fields: tuple[str, ...],
    end: tuple[KeyAttribute, ...],
    role: Any,
    attributes: Mapping[str, Attribute],
    where: str,
) -> Native:
    if len(fields) != len(end):
        wanted = ", ".join(each.name for each in end)
        raise DeclarationError(
            f"{where} names {len(fields)} {role} fields; the key has {len(end)}: {wanted}."
        )
    found = []
    for field, attribute in zip(fields, end, strict=True):
        known = attributes.get(field)
        if known is None:
            raise DeclarationError(f"{where}: there is no field {field!r}; {suggestion(field, attributes)}")
        if known.wire != attribute.name:
            raise DeclarationError(
                f"{where}: the field {field!r} is kept as {known.wire!r}, the key attribute is "
                f"{attribute.name!r}; rename one with Attr({attribute.name!r})."
            )
        if known.kind != attribute.kind:
            raise DeclarationError(
                f"{where}: {field!r} is kept as {known.kind}, the key attribute is {attribute.kind}; "
                f'write "{attribute.name}:{known.kind}" in the index.'
            )
        found.append(known)
    return Native(tuple(found), role)


def _composed(
    text: str,
    end: tuple[KeyAttribute, ...],
    role: Any,
    annotations: Mapping[str, Any],
    where: str,
    attributes: Mapping[str, Attribute],
) -> Composed:
    if len(end) != 1 or end[0].kind != "S":
        wanted = ", ".join(f"{each.name}:{each.kind}" for each in end)
        raise DeclarationError(
            f"{where}: a template fills one string attribute; the key has {wanted}. Use a tuple."
        )
    name = end[0].name
    for attribute in attributes.values():
        if attribute.wire == name:
            raise DeclarationError(
                f"{where}: the field {attribute.field!r} is itself the key attribute {name!r}; "
                f"write ({attribute.field!r},) instead of a template, or rename the field with Attr()."
            )
    template = Template.compile(text, annotations, where=where)
    bucket = next((part.field for part in buckets_of(template)), None)
    return Composed(name, template, role, bucket=bucket)


def _place(table: Table, index: Index | None) -> str:
    return f"index {index.name!r}" if index else f"table {table.name!r}"
