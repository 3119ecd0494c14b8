"""Infer the template of a key attribute: literals, and fields whose values are attributes of the item.

A part of a key that no attribute of the item has becomes a field that only the key stores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from solotable._entities.keys.parts.codecs import escape
from solotable._values import Item
from solotable._values.lazy_dataclass import dataclass

from .attribute_types import time_form

_WORD: Final = re.compile(r"[A-Za-z$@_][A-Za-z$@_.-]*")
_CAPITALS: Final = re.compile(r"[A-Z][A-Z_-]+")
#: What may stand between a label and a value in one segment, such as `isbn_978`.
_LABEL: Final = re.compile(r"[A-Za-z$][A-Za-z0-9$]*[_:=.-]")
_DELIMITERS: Final = ("#", "|", "::", "/", "~", ":")
_KEY_NUMBER: Final = re.compile(r"0*(0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """How a table's keys are written."""

    delimiter: str = "#"
    escape: bool = False
    lower: bool = False

    def text(self, value: str) -> str:
        """Return a value as a key shows it."""
        shown = escape(value) if self.escape else value
        return shown.lower() if self.lower else shown


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart:
    """A part of a template: a literal, or a field with its format."""

    literal: str = ""
    #: The attribute that has the value; None for a literal, and for a value that only the key has.
    attribute: str | None = None
    spec: str = ""
    #: A name for a value that only the primary key has.
    key_only: str = ""

    @property
    def is_key_only(self) -> bool:
        """Whether no attribute has the value."""
        return bool(self.key_only) and self.attribute is None


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredTemplate:
    """The template of one key attribute, in the items that have it."""

    attribute: str
    parts: tuple[KeyPart, ...]
    #: Whether the field is the key attribute itself.
    native: bool = False
    #: The items whose key has another number of segments.
    misfits: int = 0

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes whose values are in the key."""
        return tuple(part.attribute for part in self.parts if part.attribute is not None)

    @property
    def literals(self) -> tuple[str, ...]:
        """The literal segments, such as ORDER."""
        return tuple(part.literal for part in self.parts if not part.attribute and not part.key_only)

    def value_attribute(self, at: int) -> str:
        """Return a name, for the inference only, of a value that only this key has."""
        return f"{self.attribute} {at} {self.parts[at].key_only}"


def find_delimiter(texts: Iterable[str]) -> str:
    """Return the text that most often follows the first word of a key."""
    found: Counter[str] = Counter()
    for text in texts:
        for each in _DELIMITERS:
            head, delimiter, _ = text.partition(each)
            if delimiter and (not head or _WORD.fullmatch(head)):
                found[each] += 1
                break
    return max(_DELIMITERS, key=lambda each: found[each]) if found else "#"


def shape(text: str, values: Mapping[str, str], notation: Notation) -> tuple[str, ...]:
    """Return a key's segments with `*` for each that looks like a value; `values` are the item's texts."""
    segments = text.split(notation.delimiter)
    known = {notation.text(value) for value in values.values()}
    return tuple(
        each if _is_literal(each, at, len(segments), known) else "*" for at, each in enumerate(segments)
    )


def key_only_values(templates: Iterable[InferredTemplate], item: Item, notation: Notation) -> Item:
    """Return the values of an item that only its primary key has, as attributes."""
    found: Item = {}
    for template in templates:
        values = [at for at, part in enumerate(template.parts) if part.is_key_only]
        if values:
            segments = item[template.attribute]["S"].split(notation.delimiter)
            if len(segments) == len(template.parts):
                found |= {template.value_attribute(at): {"S": segments[at]} for at in values}
    return found


def _is_literal(segment: str, at: int, segments: int, known: set[str]) -> bool:
    if not segment:
        return True
    if _WORD.fullmatch(segment) is None:
        return False
    if at == 0 and (segments > 1 or _CAPITALS.fullmatch(segment)):
        return True
    if segment in known:
        return False
    return _CAPITALS.fullmatch(segment) is not None or segment.startswith("$")


def infer_template(
    attribute: str,
    items: Sequence[Item],
    notation: Notation,
    *,
    partition: str,
    tag: str | None,
    ignored: frozenset[str],
) -> InferredTemplate:
    """Return the template of a key attribute that the items of one entity have.

    `partition` is the partition key of the same key, `tag` the type of the items. `ignored` are the
    attributes that no key contains: the keys themselves and the type attribute.
    """
    if any("S" not in item[attribute] for item in items):
        return InferredTemplate(attribute=attribute, parts=(), native=True)
    split = [item[attribute]["S"].split(notation.delimiter) for item in items]
    usual = Counter(map(len, split)).most_common(1)[0][0]
    rows = [(segments, item) for segments, item in zip(split, items, strict=True) if len(segments) == usual]
    parts: list[KeyPart] = []
    for at in range(usual):
        column = [segments[at] for segments, _ in rows]
        # The same word under several partition keys is a literal, such as `profile`.
        repeated = usual > 1 or (attribute != partition and _differ(items, partition))
        found = _part(at, column, [item for _, item in rows], repeated, tag, notation, ignored)
        parts.append(found or KeyPart(key_only=_value_name(attribute, parts)))
    misfits = len(items) - len(rows)
    if usual == 1 and parts[0].key_only and not parts[0].literal:
        return InferredTemplate(attribute=attribute, parts=(), native=True, misfits=misfits)
    return InferredTemplate(attribute=attribute, parts=tuple(parts), misfits=misfits)


def _part(
    at: int,
    column: list[str],
    items: list[Item],
    repeated: bool,
    tag: str | None,
    notation: Notation,
    ignored: frozenset[str],
) -> KeyPart | None:
    """Return a literal or a field for one segment; None if only the key has its values."""
    constant = len(set(column)) == 1
    first = column[0]
    if constant and (
        not first
        or first.startswith("$")
        or (at == 0 and _CAPITALS.fullmatch(first))
        or (tag is not None and re.fullmatch(rf"{re.escape(tag)}(_\w+)?", first, re.IGNORECASE))
    ):
        return KeyPart(literal=first)
    found = _attribute_of(column, items, notation, ignored)
    if found is not None:
        return found
    is_literal = _CAPITALS.fullmatch(first) or (
        repeated and _WORD.fullmatch(first) and (at == 0 or len(items) > 1)
    )
    return KeyPart(literal=first) if constant and is_literal else None


def _differ(items: Sequence[Item], attribute: str) -> bool:
    return any(item[attribute] != items[0][attribute] for item in items)


def _value_name(attribute: str, before: list[KeyPart]) -> str:
    """Return a name for a value: that of the literal before it, or of the key attribute."""
    literal = next((each.literal for each in reversed(before) if each.literal and not each.attribute), "")
    return f"{literal}_id" if literal else f"{attribute}_{len(before) + 1}"


def _attribute_of(
    column: list[str], items: list[Item], notation: Notation, ignored: frozenset[str]
) -> KeyPart | None:
    """Return the part for the attribute that has the values of a segment in every item."""
    label = _common_label(column)
    candidates = [name for name in items[0] if name not in ignored and _is_key_value(items, name)]
    for literal in dict.fromkeys(("", label)):
        values = [each.removeprefix(literal) for each in column]
        matching = [
            (name, spec)
            for name in candidates
            if (spec := _spec(values, [item[name] for item in items], notation)) is not None
        ]
        if matching:
            name, spec = max(matching, key=lambda each: _resemblance(each[0], literal))
            return KeyPart(literal=literal, attribute=name, spec=spec)
    return None


def _is_key_value(items: list[Item], name: str) -> bool:
    kinds = {next(iter(item.get(name, {"absent": True}))) for item in items}
    return kinds in ({"S"}, {"N"})


def _spec(values: list[str], stored: list[Mapping[str, str]], notation: Notation) -> str | None:
    """Return the format of a field whose values are these; None if it is another field."""
    if "S" in stored[0]:
        same = all(value == notation.text(each["S"]) for value, each in zip(values, stored, strict=True))
        return "" if same else _time_spec(values, [each["S"] for each in stored])
    numbers = [_KEY_NUMBER.fullmatch(value) for value in values]
    if not all(
        found is not None and found[1] == each["N"] for found, each in zip(numbers, stored, strict=True)
    ):
        return None
    widths = {len(value) for value in values}
    padded = any(len(value) > 1 and value.startswith("0") for value in values)
    return f"0{max(widths)}d" if padded and len(widths) == 1 else "d"


def _time_spec(values: list[str], stored: list[str]) -> str | None:
    """Return the precision of times in the key that the attribute stores with another one."""
    forms = {time_form(each) for each in values}
    offsets = {form and form[1] for form in (*forms, *map(time_form, stored))}
    if len(forms) != 1 or len(offsets) != 1 or None in offsets:
        return None
    same = all(
        datetime.fromisoformat(value) == datetime.fromisoformat(each)
        for value, each in zip(values, stored, strict=True)
    )
    return next(form[0] for form in forms if form) if same else None


def _common_label(column: list[str]) -> str:
    found = _LABEL.match(column[0])
    label = found[0] if found else ""
    return label if all(each.startswith(label) for each in column) else ""


def _resemblance(name: str, literal: str) -> int:
    plain = literal.rstrip("_:=.-").lower()
    return 2 if plain == name.lower() else int(bool(plain) and plain in name.lower())
