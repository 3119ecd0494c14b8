"""The two sides of a key: composed (a template fills one string attribute) or native (the entity's own).

A side turns values into key attributes, and arguments into conditions on them; it sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Union

from solotable._entities.codecs.field_codecs import Attribute
from solotable._expressions.ast import KeyOperator, KeyTerm
from solotable._values import AttributeValue, Item, ordered_bytes
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError

from .sharding import Spread
from .templates import Part, Template, below, ceiling
from .time_buckets import BucketCodec

#: DynamoDB: the longest key attributes, in bytes.
_LONGEST = {"partition": 2048, "sort": 1024}
#: So many characters fit any key: four bytes is the most that one takes.
_SHORT = min(_LONGEST.values()) // 4


#: `span` is from a value up to another that is no longer in it; callers have no word for it.
Verb = Literal["since", "after", "until", "before", "between", "starts_with", "span"]


@dataclass(frozen=True, slots=True)
class Bound:
    """A range over the first part of the sort key that the arguments leave open."""

    verb: Verb
    field: str
    values: tuple[Any, ...]


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
        if 0 < len(text) <= _SHORT:
            return {"S": text}
        longest = _LONGEST[self.role]
        if not text:
            raise DataError(f"{self.attribute} = {self.template.text!r} is empty, which no key may be.")
        if len(text.encode()) > longest:
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


def buckets_of(template: Template) -> list[Part]:
    """Return the buckets of time in a template."""
    parts = (part for part in template.parts if isinstance(part, Part))
    return [part for part in parts if isinstance(part.codec, BucketCodec)]
