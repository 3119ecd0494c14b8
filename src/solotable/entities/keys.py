"""Keys as they are declared on an entity, and what each becomes for one entity.

A side of a key is composed (a template fills one string attribute) or native (the entity's own
attributes are the key). A key turns values into key attributes and arguments into key conditions;
it sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Union

from solotable.errors import DataError, DeclarationError
from solotable.expressions.ast import KeyOperator, KeyTerm
from solotable.values import AttributeValue, Item, ordered_bytes

from .attributes import Attribute
from .buckets import BucketCodec
from .spread import Spread
from .table import Index, KeyAttribute, Table, suggestion
from .templates import Part, Template, below, ceiling

if TYPE_CHECKING:
    from .entity import Entity
    from .queries import Query

EntityT = TypeVar("EntityT", bound="Entity")
EntityT_co = TypeVar("EntityT_co", bound="Entity", covariant=True)

#: DynamoDB: the longest key attributes, in bytes.
_LONGEST = {"partition": 2048, "sort": 1024}

#: How many buckets of time a query walks unless its key says otherwise.
MOST_BUCKETS = 400

#: `span` is from a value up to another that is no longer in it; callers have no word for it.
Verb = Literal["since", "after", "until", "before", "between", "starts_with", "span"]


@dataclass(frozen=True, slots=True)
class Bound:
    """A range over the first part of the sort key that the arguments leave open."""

    verb: Verb
    field: str
    values: tuple[Any, ...]


class Key:
    """A key of an entity: `Key("ORG#{org}", "USER#{user_id}")`, or with `index="GSI1"` an index key.

    Each side is a template, or a tuple of fields that are the key attributes themselves (native
    multi-attribute keys). `entity.key` is the table's own key; every other name is an access path
    whose `query(...)` gives a `Query`.

    `shards=8` spreads each partition over eight, `shard_by=` names the fields that say which one, and
    `was=` is the number of shards before, while items are still being rewritten. A partition with a
    bucket of time, as `{at:day}`, is walked over at most `most_buckets` buckets.
    """

    def __init__(
        self,
        partition: str | tuple[str, ...],
        sort: str | tuple[str, ...] | None = None,
        *,
        index: str | None = None,
        shards: int | None = None,
        shard_by: tuple[str, ...] | None = None,
        was: int | None = None,
        most_buckets: int | None = None,
    ) -> None:
        self.partition = partition
        self.sort = sort
        self.index = index
        self.shards = shards
        self.shard_by = shard_by
        self.was = was
        self.most_buckets = most_buckets
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[EntityT]) -> BoundKey[EntityT]:
        return BoundKey(owner, self.name)

    def __repr__(self) -> str:
        sides = [repr(side) for side in (self.partition, self.sort) if side is not None]
        index = f", index={self.index!r}" if self.index else ""
        return f"Key({', '.join(sides)}{index}{f', shards={self.shards}' if self.shards else ''})"


class BoundKey(Generic[EntityT_co]):
    """A key of one entity class, ready to be asked for a query."""

    __slots__ = ("_entity", "_name")

    def __init__(self, entity: type[EntityT_co], name: str) -> None:
        self._entity = entity
        self._name = name

    @property
    def entity(self) -> type[EntityT_co]:
        """The entity class that the key belongs to."""
        return self._entity

    @property
    def path(self) -> AccessPath:
        """What the key is made of."""
        return self._entity.plan().keys[self._name]

    def query(self, **arguments: Any) -> Query[EntityT_co]:
        """Return a query of the items whose key starts with these parts, whole segments only."""
        from .queries import Query

        return Query.over(self._entity, self.path, arguments)

    def __repr__(self) -> str:
        return f"{self._entity.__name__}.{self._name}"


@dataclass(frozen=True, slots=True)
class Composed:
    """One string attribute, filled by a template."""

    attribute: str
    template: Template
    role: Literal["partition", "sort"]
    #: How the partition is spread over shards; None when it is one.
    spread: Spread | None = None
    #: The field that stands in it as a bucket of time.
    bucket: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the template takes."""
        return self.template.fields

    @property
    def shown(self) -> str:
        """The template as messages and reports show it, its shard included."""
        return self.template.text + ("" if self.spread is None else "#{shard}")

    def parse(self, text: str) -> dict[str, Any] | None:
        """Return what the attribute was made of, or None; a bucket stands for all times in it."""
        if self.spread is not None:
            text = text.rpartition("#")[0]
        return self.template.parse(text)

    def dump(self, values: Mapping[str, Any]) -> Item | None:
        """Return the attribute, or None when a part is None."""
        text = self.template.format(values)
        if text is None:
            return None
        if self.spread is not None:
            text = self.spread.placed(text, values)
        return {self.attribute: self._checked(text)}

    def equals(self, arguments: Mapping[str, Any]) -> tuple[KeyTerm, ...]:
        """Return the condition that the attribute is exactly this."""
        text = self.template.format(arguments)
        if text is None:
            raise DataError(f"A part of {self.template.text!r} is None; a query needs every part.")
        if self.spread is not None:
            text = self.spread.placed(text, arguments)
        return (KeyTerm(self.attribute, "=", (self._checked(text),)),)

    def every(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the texts of every shard in which items with these arguments may lie."""
        text = self.template.format(arguments)
        if text is None:
            raise DataError(f"A part of {self.template.text!r} is None; a query needs every part.")
        texts = (text,) if self.spread is None else self.spread.texts(text, arguments)
        self._checked(max(texts, key=len))
        return texts

    def within(self, arguments: Mapping[str, Any], bound: Bound | None) -> tuple[KeyTerm, ...]:
        """Return the condition that the attribute starts with the given parts, and lies in the bound."""
        template = self.template
        if bound is None and template.next_field(arguments) is None:
            return self.equals(arguments)
        prefix = template.prefix(arguments)
        if bound is None:
            return (KeyTerm(self.attribute, "begins_with", ({"S": prefix},)),) if prefix else ()
        self._judge(arguments, bound)
        if bound.verb == "starts_with":
            start = prefix + template.encode(bound.field, bound.values[0])
            return (KeyTerm(self.attribute, "begins_with", ({"S": start},)),)
        marks = [prefix + template.encode(bound.field, value) for value in bound.values]
        return self._range(prefix, bound.verb, marks)

    def _range(self, prefix: str, verb: Verb, marks: list[str]) -> tuple[KeyTerm, ...]:
        """Return the exact range; a mark stands for itself and for all that goes on behind a `#`."""
        low: str | None = prefix or None
        high = highest(prefix)
        match verb:
            case "since":
                low = marks[0]
            case "after":
                low = ceiling(marks[0])
            case "until":
                high = ceiling(marks[0])
            case "before":
                high = below(marks[0])
            case "span":
                low, high = marks[0], below(marks[1])
            case _:
                low, high = marks[0], ceiling(marks[1])
        if high is None:
            return (KeyTerm(self.attribute, ">=", ({"S": low or ""},)),)
        if low is None:
            return (KeyTerm(self.attribute, "<=", ({"S": high},)),) if high else _NOTHING
        return (KeyTerm(self.attribute, "BETWEEN", ({"S": low}, {"S": high})),) if low <= high else _NOTHING

    def _judge(self, arguments: Mapping[str, Any], bound: Bound) -> None:
        open_field = self.template.next_field(arguments)
        if open_field != bound.field:
            raise DataError(
                f"{bound.verb}({bound.field}=...) on {self.template.text!r}: "
                f"the first part that is open is {open_field!r}."
            )

    def _checked(self, text: str) -> AttributeValue:
        longest = _LONGEST[self.role]
        if not text:
            raise DataError(f"{self.attribute} = {self.template.text!r} is empty, which no key may be.")
        if len(text) * 4 > longest and len(text.encode()) > longest:
            raise DataError(
                f"{self.attribute} = {self.template.text!r} has {len(text.encode())} bytes; "
                f"DynamoDB takes at most {longest} in a {self.role} key."
            )
        return {"S": text}


@dataclass(frozen=True, slots=True)
class Native:
    """The entity's own attributes are the key, in this order."""

    attributes: tuple[Attribute, ...]
    role: Literal["partition", "sort"]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are the key."""
        return tuple(attribute.field for attribute in self.attributes)

    def dump(self, values: Mapping[str, Any]) -> Item | None:
        """Return the attributes, or None when one of them is absent."""
        item: Item = {}
        for attribute in self.attributes:
            value = attribute.dump(values[attribute.field]) if attribute.field in values else None
            if value is None:
                return None
            item[attribute.wire] = value
        return item

    def equals(self, arguments: Mapping[str, Any]) -> tuple[KeyTerm, ...]:
        """Return the condition that every attribute is exactly this."""
        return tuple(KeyTerm(each.wire, "=", (self._value(each, arguments),)) for each in self.attributes)

    def within(self, arguments: Mapping[str, Any], bound: Bound | None) -> tuple[KeyTerm, ...]:
        """Return conditions on the leading attributes that are given, and on the next by the bound."""
        given = [each for each in self.attributes if each.field in arguments]
        if given != list(self.attributes[: len(given)]):
            raise DataError(f"The parts {self.fields} of a key are given from the left, without a gap.")
        terms = tuple(KeyTerm(each.wire, "=", (self._value(each, arguments),)) for each in given)
        if bound is None:
            return terms
        rest = self.attributes[len(given) :]
        if not rest or rest[0].field != bound.field:
            open_field = rest[0].field if rest else None
            raise DataError(
                f"{bound.verb}({bound.field}=...): the first part that is open is {open_field!r}."
            )
        values = tuple(self._value(rest[0], {bound.field: value}) for value in bound.values)
        if bound.verb == "between":
            low, high = (ordered_bytes(*next(iter(value.items()))) for value in values)
            if low > high:
                return _NOTHING
        return (*terms, KeyTerm(rest[0].wire, _NATIVE[bound.verb], values))

    def _value(self, attribute: Attribute, arguments: Mapping[str, Any]) -> AttributeValue:
        value = attribute.dump(arguments[attribute.field]) if attribute.field in arguments else None
        if value is None:
            raise DataError(f"The key part {attribute.field!r} is missing; a query needs it.")
        return value


Side = Union[Composed, Native]
#: What no query can meet; the store answers such a query itself.
_NOTHING: tuple[KeyTerm, ...] = (KeyTerm("", "=", ()),)
_NATIVE: dict[Verb, KeyOperator] = {
    "since": ">=",
    "after": ">",
    "until": "<=",
    "before": "<",
    "between": "BETWEEN",
    "starts_with": "begins_with",
    # Only over a bucket of time, whose sort key is never native.
    "span": "BETWEEN",
}


def meets_nothing(terms: tuple[KeyTerm, ...]) -> bool:
    """Whether a range is empty, so that there is nothing to ask."""
    return any(term is _NOTHING[0] for term in terms)


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


def highest(prefix: str) -> str | None:
    """Return the last key that can start with the prefix; None when every key does."""
    if not prefix:
        return None
    if prefix.endswith("#"):
        # Values hold neither `#` nor `$`, so nothing lies between `X#...` and `X$`.
        return ceiling(prefix[:-1])
    room = _LONGEST["sort"] - len(prefix.encode())
    return prefix + "\U0010ffff" * (room // 4) + ("", "\x7f", "\u07ff", "\uffff")[room % 4]


def names_of(side: Side) -> tuple[str, ...]:
    """Return the names of the attributes of one side."""
    if isinstance(side, Composed):
        return (side.attribute,)
    return tuple(attribute.wire for attribute in side.attributes)


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


def buckets_of(template: Template) -> list[Part]:
    """Return the buckets of time in a template."""
    parts = (part for part in template.parts if isinstance(part, Part))
    return [part for part in parts if isinstance(part.codec, BucketCodec)]


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


#: For the type checker: what a BoundKey or an entity class offers to `collection`.
Rooted = Union[type[EntityT], BoundKey[EntityT]]
KeyReader = Callable[[Mapping[str, Any]], Item]
