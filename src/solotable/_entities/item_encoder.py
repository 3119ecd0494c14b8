"""Compile the function that encodes an entity's values to an item, and counts its bytes.

The compiled function encodes the usual values of texts, numbers and keys without a call. It calls the codecs
for every other value, and they raise the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from solotable._entities.codecs.field_codecs import Attribute
from solotable._entities.codecs.scalars import PLAIN_INT, SCALARS
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import SHORT_KEY, KeyLayout, TemplateLayout
from solotable._entities.keys.parts.codecs import DigitsCodec, TextCodec, has_odd_character
from solotable._values import Item, item_size, levels, value_size
from solotable._values.limits import DEEPEST_VALUE
from solotable._values.number import number_size
from solotable._values.size import content_size, text_size

#: Fills an item with the attributes and keys of an entity's values; returns the bytes of what it has filled.
Fill = Callable[[Mapping[str, Any], Item], int]
#: The types of values that nest no others.
_FLAT: Final = frozenset({"S", "N", "B", "BOOL", "SS", "NS", "BS"})


class KeyEncoders(NamedTuple):
    """The functions that encode an entity's keys: the primary key, and its paths of indexes."""

    primary: AccessPath
    #: Returns the primary key, or raises DataError.
    encode_primary: Callable[[Mapping[str, Any]], Item]
    indexes: tuple[AccessPath, ...]


def compile_encoder(
    attributes: Mapping[str, Attribute], keys: KeyEncoders, too_deep: Callable[[str], Exception]
) -> Fill:
    """Return the function that encodes the values of an entity; `too_deep` returns the error of a field."""
    stored = [each for each in attributes.values() if each.stored]
    variables = {each.field: f"v{number}" for number, each in enumerate(stored)}
    names: dict[str, Any] = {
        "content_size": content_size,
        "deepest": DEEPEST_VALUE,
        "has_odd": has_odd_character,
        "item_size": item_size,
        "levels": levels,
        "number_size": number_size,
        "plain": PLAIN_INT,
        "text_size": text_size,
        "too_deep": too_deep,
        "value_size": value_size,
    }
    lines: list[str] = []
    for number, attribute in enumerate(stored):
        names[f"encode{number}"] = attribute.encode
        lines += _field_lines(attribute, f"v{number}", f"encode{number}")
    for number, path in enumerate((keys.primary, *keys.indexes)):
        names[f"key{number}"] = path.encode if number else keys.encode_primary
        lines += _key_lines(path, variables, f"key{number}")
    # The text is made of declared names.
    source = (
        "def fill(values, item):\n size = 0\n" + "\n".join(f" {line}" for line in lines) + "\n return size"
    )
    exec(source, names)  # noqa: S102
    fill: Fill = names["fill"]
    return fill


def is_counted_once(attributes: Iterable[Attribute], keys: KeyEncoders) -> bool:
    """Return whether no key is a field or belongs to two paths, so that the compiled sizes add up."""
    wires = {each.wire for each in attributes if each.stored}
    paths = (keys.primary, *keys.indexes)
    names = [name for path in paths for name in path.names]
    return wires.isdisjoint(names) and len(set(names)) == len(names)


def _field_lines(attribute: Attribute, value: str, encode: str) -> list[str]:
    wire, size = repr(attribute.wire), len(attribute.wire.encode())
    given = f"{value} = values[{attribute.field!r}]"
    scalar = attribute.scalar if attribute.opaque is None else None
    if scalar is SCALARS[str] and attribute.kind == "S":
        usual = f"{value}.__class__ is str and {value}.isascii()"
        stored, bytes_ = f"{{'S': {value}}}", f"len({value})"
    elif scalar is SCALARS[int] and attribute.kind == "N":
        usual = f"{value}.__class__ is int and -plain < {value} < plain"
        stored, bytes_ = f"{{'N': (text := str({value}))}}", "number_size(text)"
    elif attribute.kind == "BOOL":
        usual, stored, bytes_ = f"{value} is True or {value} is False", f"{{'BOOL': {value}}}", "1"
    else:
        return [given, *_encoded_lines(attribute, wire, size, f"{encode}({value})")]
    return [
        given,
        f"if {usual}:",
        f" item[{wire}] = {stored}",
        f" size += {size} + {bytes_}",
        "else:",
        *(f" {line}" for line in _encoded_lines(attribute, wire, size, f"{encode}({value})")),
    ]


def _encoded_lines(attribute: Attribute, wire: str, size: int, encoded: str) -> list[str]:
    """Return the lines that store what a codec returns."""
    kind = None if attribute.scalar is None or attribute.optional or attribute.opaque else attribute.kind
    bytes_ = "value_size(encoded)" if kind is None else f"content_size({kind!r}, encoded[{kind!r}])"
    lines = [
        f"encoded = {encoded}",
        "if encoded is not None:",
        f" item[{wire}] = encoded",
        f" size += {size} + {bytes_}",
    ]
    if attribute.kind not in _FLAT:
        deep = "('L' in encoded or 'M' in encoded) and levels(encoded) >= deepest"
        lines += [f" if {deep}:", f"  raise too_deep({attribute.field!r})"]
    return lines


def _key_lines(path: AccessPath, variables: Mapping[str, str], encode: str) -> list[str]:
    """Return the lines that encode a key: inline if all parts have usual values, otherwise with a call."""
    general = [
        f"found = {encode}(values)",
        "if found is not None:",
        " item |= found",
        " size += item_size(found)",
    ]
    layouts = [each for each in (path.partition, path.sort) if each is not None]
    found = [_layout_text(each, variables) for each in layouts]
    texts = [each for each in found if each is not None]
    if path.computed or path.when or len(texts) < len(layouts):
        return general
    usual = [term for terms, _ in texts for term in terms]
    lines: list[str] = []
    for number, (layout, (_, text)) in enumerate(zip(layouts, texts, strict=True)):
        usual.append(f"0 < len(text{number} := {text}) <= {SHORT_KEY}")
        (name,) = layout.names
        lines += [
            f" item[{name!r}] = {{'S': text{number}}}",
            f" size += {len(name.encode())} + text_size(text{number})",
        ]
    return [f"if {' and '.join(usual)}:", *lines, "else:", *(f" {line}" for line in general)]


def _layout_text(layout: KeyLayout, variables: Mapping[str, str]) -> tuple[Sequence[str], str] | None:
    """Return the terms that the parts of a key are usual, and the expression of its text; None for others."""
    if not isinstance(layout, TemplateLayout) or layout.sharding is not None:
        return None
    terms: list[str] = []
    texts: list[str] = []
    for part in layout.template.parts:
        if isinstance(part, str):
            texts.append(repr(part))
            continue
        value, codec = variables.get(part.field), part.codec
        if value is not None and type(codec) is TextCodec:
            terms.append(f"{value}.__class__ is str and ({value}.isalnum() or not has_odd({value}))")
            texts.append(value)
        elif value is not None and type(codec) is DigitsCodec and codec.enum is None:
            terms.append(f"{value}.__class__ is int and 0 <= {value} < {codec.limit}")
            texts.append(f"str({value}).zfill({codec.digits})")
        else:
            return None
    return terms, " + ".join(texts)
