"""Key layouts: a template in one string attribute, or plain attributes of the entity.

A layout encodes values to key attributes, and arguments to key conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Union

from solotable._entities.codecs.field_codecs import Attribute
from solotable._expressions.ast import KeyOperator, KeyTerm
from solotable._values import AttributeValue, Item, ordered_bytes
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError

from .bounds import highest_with_prefix
from .parts.time_buckets import BucketCodec
from .ranges import SortRange, Verb, bounds_of, clamped, rounded
from .sharding import Sharding
from .templates import Template, TemplateField

#: DynamoDB: the longest key attributes, in bytes.
_LONGEST = {"partition": 2048, "sort": 1024}
#: A string of this length fits any key: a character has at most four bytes.
SHORT_KEY = min(_LONGEST.values()) // 4


@dataclass(frozen=True, slots=True)
class TemplateLayout:
    """A key in one string attribute, filled by a template."""

    attribute: str
    template: Template
    role: Literal["partition", "sort"]
    sharding: Sharding | None = None
    #: The field of the template's time bucket.
    bucket: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields in the template."""
        return self.template.fields

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the key attributes."""
        return (self.attribute,)

    @property
    def shown(self) -> str:
        """The template with its shard, for messages and reports."""
        return self.template.text + ("" if self.sharding is None else "#{shard}")

    def parse(self, text: str) -> dict[str, Any] | None:
        """Return the fields of a key attribute, a time bucket as its text; None if it does not match."""
        if self.sharding is not None:
            text = text.rpartition("#")[0]
        return self.template.parse(text)

    def encode(self, values: Mapping[str, Any]) -> Item | None:
        """Return the key attribute; None when a part is None."""
        text = self.template.format(values)
        if text is None:
            return None
        if self.sharding is not None:
            text = self.sharding.partition_of(text, values)
        return {self.attribute: {"S": text} if 0 < len(text) <= SHORT_KEY else self._validated(text)}

    def equals(self, arguments: Mapping[str, Any]) -> tuple[KeyTerm, ...]:
        """Return the condition that the key equals these arguments."""
        text = self.template.format(arguments)
        if text is None:
            raise DataError(f"A part of {self.template.text!r} is None; a query needs every part.")
        if self.sharding is not None:
            text = self.sharding.partition_of(text, arguments)
        return (KeyTerm(self.attribute, "=", (self._validated(text),)),)

    def partitions(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return every partition key that items with these arguments may have."""
        text = self.template.format(arguments)
        if text is None:
            raise DataError(f"A part of {self.template.text!r} is None; a query needs every part.")
        texts = (text,) if self.sharding is None else self.sharding.partitions(text, arguments)
        self._validated(max(texts, key=len))
        return texts

    def within(self, arguments: Mapping[str, Any], sort_range: SortRange | None) -> tuple[KeyTerm, ...]:
        """Return the condition that the key starts with the given parts and is in the range."""
        template = self.template
        if sort_range is None and template.next_field(arguments) is None:
            return self.equals(arguments)
        prefix = template.prefix(arguments)
        if sort_range is None:
            return (KeyTerm(self.attribute, "begins_with", ({"S": prefix},)),) if prefix else ()
        self._check_open(arguments, sort_range)
        codec = template.codec(sort_range.field)
        if sort_range.verb == "starts_with" and codec.kind != "number":
            start = prefix + template.encode(sort_range.field, sort_range.values[0])
            return (KeyTerm(self.attribute, "begins_with", ({"S": start},)),)
        exact = rounded(sort_range, codec.step)
        exact = None if exact is None else clamped(exact, codec)
        bounds = None if exact is None else bounds_of(template, prefix, exact)
        if bounds is None:
            return _NOTHING
        low, high = bounds
        if high is None:
            return (KeyTerm(self.attribute, ">=", ({"S": low or ""},)),)
        if low is None:
            return (KeyTerm(self.attribute, "<=", ({"S": high},)),) if high else _NOTHING
        return (KeyTerm(self.attribute, "BETWEEN", ({"S": low}, {"S": high})),) if low <= high else _NOTHING

    def highest(self, prefix: str) -> str | None:
        """Return the highest key that starts with a prefix; None for the empty prefix."""
        return highest_with_prefix(prefix, escaped=self.template.key_format.escape)

    def _check_open(self, arguments: Mapping[str, Any], sort_range: SortRange) -> None:
        open_field = self.template.next_field(arguments)
        if open_field != sort_range.field:
            raise DataError(
                f"{sort_range.verb}({sort_range.field}=...) on {self.template.text!r}: "
                f"the first part that is not given is {open_field!r}."
            )

    def _validated(self, text: str) -> AttributeValue:
        if 0 < len(text) <= SHORT_KEY:
            return {"S": text}
        longest = _LONGEST[self.role]
        if not text:
            raise DataError(
                f"{self.attribute} = {self.template.text!r} is empty; DynamoDB rejects empty keys."
            )
        if len(text.encode()) > longest:
            raise DataError(
                f"{self.attribute} = {self.template.text!r} has {len(text.encode())} bytes; "
                f"DynamoDB takes at most {longest} in a {self.role} key."
            )
        return {"S": text}


@dataclass(frozen=True, slots=True)
class AttributeLayout:
    """A key of plain attributes of the entity, in this order."""

    attributes: tuple[Attribute, ...]
    role: Literal["partition", "sort"]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the key."""
        return tuple(attribute.field for attribute in self.attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the key attributes."""
        return tuple(attribute.wire for attribute in self.attributes)

    def encode(self, values: Mapping[str, Any]) -> Item | None:
        """Return the key attributes; None when one is absent."""
        item: Item = {}
        for attribute in self.attributes:
            value = attribute.encode(values[attribute.field]) if attribute.field in values else None
            if value is None:
                return None
            item[attribute.wire] = value
        return item

    def equals(self, arguments: Mapping[str, Any]) -> tuple[KeyTerm, ...]:
        """Return the condition that every attribute equals its argument."""
        return tuple(KeyTerm(each.wire, "=", (self._value(each, arguments),)) for each in self.attributes)

    def within(self, arguments: Mapping[str, Any], sort_range: SortRange | None) -> tuple[KeyTerm, ...]:
        """Return conditions on the given leading attributes, and the range on the next attribute."""
        given = [each for each in self.attributes if each.field in arguments]
        if given != list(self.attributes[: len(given)]):
            raise DataError(f"Pass the parts {self.fields} of a key from the left, without a gap.")
        terms = tuple(KeyTerm(each.wire, "=", (self._value(each, arguments),)) for each in given)
        if sort_range is None:
            return terms
        rest = self.attributes[len(given) :]
        if not rest or rest[0].field != sort_range.field:
            open_field = rest[0].field if rest else None
            raise DataError(
                f"{sort_range.verb}({sort_range.field}=...): "
                f"the first part that is not given is {open_field!r}."
            )
        exact = rounded(sort_range, rest[0].step)
        if exact is None:
            return _NOTHING
        sort_range = exact
        values = tuple(self._value(rest[0], {sort_range.field: value}) for value in sort_range.values)
        if sort_range.verb == "between":
            low, high = (ordered_bytes(*next(iter(value.items()))) for value in values)
            if low > high:
                return _NOTHING
        return (*terms, KeyTerm(rest[0].wire, _NATIVE[sort_range.verb], values))

    def _value(self, attribute: Attribute, arguments: Mapping[str, Any]) -> AttributeValue:
        value = attribute.encode(arguments[attribute.field]) if attribute.field in arguments else None
        if value is None:
            raise DataError(f"The key part {attribute.field!r} is missing; a query needs it.")
        return value


KeyLayout = Union[TemplateLayout, AttributeLayout]


#: A condition that no item meets; the store answers such a query without a request.
_NOTHING: tuple[KeyTerm, ...] = (KeyTerm("", "=", ()),)


_NATIVE: dict[Verb, KeyOperator] = {
    "since": ">=",
    "after": ">",
    "until": "<=",
    "before": "<",
    "between": "BETWEEN",
    "starts_with": "begins_with",
    # Never used: the sort key of a key with a time bucket is a template.
    "span": "BETWEEN",
}


def is_empty(terms: tuple[KeyTerm, ...]) -> bool:
    """Return whether no item can meet a key condition."""
    return any(term is _NOTHING[0] for term in terms)


def bucket_fields(template: Template) -> list[TemplateField]:
    """Return the time buckets in a template."""
    parts = (part for part in template.parts if isinstance(part, TemplateField))
    return [part for part in parts if isinstance(part.codec, BucketCodec)]
