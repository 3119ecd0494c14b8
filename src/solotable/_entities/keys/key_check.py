"""Compile a fast check that the stored primary key of an item is the one that its attributes derive.

Every item that is read runs through it, so it compares texts where it can. It may answer no for a correct
key, whose exact check is slower. A shard must be the one that the fields choose, and a time bucket the one of
the field's time. Fields that only the key has are not compared. An attribute that is a key itself must be
stored as the model would store it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from solotable._entities.codecs.containers import CODEC_ERRORS
from solotable._entities.codecs.field_codecs import Attribute
from solotable._entities.codecs.item_decoder import Checks, Locate
from solotable._values import AttributeValue, Item
from solotable.errors import DataError

from .access_path import AccessPath
from .layout import AttributeLayout, KeyLayout, TemplateLayout
from .parts.codecs import (
    ChoiceCodec,
    DateCodec,
    DigitsCodec,
    PartCodec,
    TextCodec,
    TimestampCodec,
    UuidCodec,
)
from .parts.time_buckets import BucketCodec
from .sharding import Sharding

KeyCheck = Callable[[Item], bool]

#: Texts that a key contains as they are.
_is_plain = re.compile(r"[^\x00-%]*").fullmatch
#: A text that no key contains: DynamoDB stores no lone surrogate.
_NO_KEY = "\ud800"
#: The text of a stored time with a coarser precision; another text leads to the exact check.
_COARSER = {
    "microseconds": "{0}",
    "milliseconds": "({0}[:-4] + 'Z' if {0}[-4:] == '000Z' else {0})",
    "seconds": "{0}.replace('.000000Z', 'Z')",
}


def _locate_in_item(name: str) -> str:
    return f"item[{name!r}]"


def key_checks(
    primary: AccessPath, attributes: Mapping[str, Attribute], locate: Locate = _locate_in_item
) -> Checks:
    """Return the comparisons of an entity's primary key; none if it has no template that can be compared."""
    if primary.computed:
        # The attributes do not contain these parts, so the exact check compares every key.
        return Checks(["False"], {})
    names: dict[str, Any] = {"plain": _is_plain}
    layouts = (primary.partition, primary.sort)
    terms = [term for layout in layouts for term in _terms(layout, attributes, names, locate)]
    return Checks(terms, names)


def compile_key_check(primary: AccessPath, attributes: Mapping[str, Attribute]) -> KeyCheck | None:
    """Return the check of an entity's primary key; None if it has no template that can be compared."""
    found = key_checks(primary, attributes)
    if not found.terms:
        return None
    # One expression takes a quarter of the time of a loop over the parts. It is made of declared names.
    check: KeyCheck = eval(f"lambda item: {' and '.join(found.terms)}", dict(found.names))  # noqa: S307
    return check


def compared_names(primary: AccessPath) -> tuple[str, ...]:
    """Return the key attributes that the exact check compares."""
    layouts = (each for each in (primary.partition, primary.sort) if isinstance(each, AttributeLayout))
    attributes = (attribute for layout in layouts for attribute in layout.attributes)
    return (*primary.derived, *(each.wire for each in attributes if may_be_stored_otherwise(each)))


def _terms(
    layout: KeyLayout | None, attributes: Mapping[str, Attribute], names: dict[str, Any], locate: Locate
) -> list[str]:
    """Return the comparisons of a key, and add the functions in them to `names`."""
    if isinstance(layout, AttributeLayout):
        return _attribute_terms(layout, names, locate)
    if not isinstance(layout, TemplateLayout):
        return []
    texts: list[str] = []
    terms: list[str] = []
    for part in layout.template.parts:
        if isinstance(part, str):
            texts.append(repr(part))
            continue
        attribute, codec = attributes[part.field], part.codec
        if not attribute.stored:
            return []
        value = f"{locate(attribute.wire)}[{attribute.kind!r}]"
        if attribute.kind == "S" and type(codec) in (TextCodec, ChoiceCodec):
            texts.append(f"v{len(terms)}")
            terms.append(f"((v{len(terms)} := {value}).isalnum() or plain(v{len(terms)}) is not None)")
        elif attribute.kind == "S" and type(codec) in (DateCodec, UuidCodec):
            texts.append(value)
        elif attribute.kind == "S" and type(codec) is BucketCodec and codec.source != "ULID":
            # Every size of bucket is the start of a time's text in UTC.
            end = "" if codec.source == "date" else "Z"
            texts.append(f"({value}[:{codec.width}] if {value}.endswith({end!r}) else {_NO_KEY!r})")
        elif attribute.kind == "S" and type(codec) is TimestampCodec and codec.offset == "Z":
            texts.append(_COARSER[codec.precision].format(value))
        elif attribute.kind == "N" and type(codec) is DigitsCodec and not codec.signed:
            texts.append(f"{value}.zfill({codec.digits})")
        else:
            names[f"text{len(names)}"] = _encoder(attribute, codec)
            texts.append(f"text{len(names) - 1}({locate(attribute.wire)})")
    if layout.sharding is not None:
        chosen_by = [attributes[name] for name in layout.sharding.fields]
        if not all(each.stored for each in chosen_by):
            return ["False"]  # only the exact check knows the fields that choose the shard
        names["shard"] = _shard_text(layout.sharding, chosen_by)
        texts.append("shard(item)")
    return [*terms, f"{locate(layout.attribute)}['S'] == {' + '.join(texts)}"]


def _shard_text(sharding: Sharding, chosen_by: Sequence[Attribute]) -> Callable[[Item], str]:
    """Return the function from an item to the end of its partition key."""

    def text(item: Item) -> str:
        try:
            return sharding.suffix({each.field: each.decode(item[each.wire]) for each in chosen_by})
        except (DataError, *CODEC_ERRORS):
            return _NO_KEY

    return text


def _attribute_terms(layout: AttributeLayout, names: dict[str, Any], locate: Locate) -> list[str]:
    terms: list[str] = []
    for attribute in layout.attributes:
        if may_be_stored_otherwise(attribute):
            names[f"is_same{len(names)}"] = partial(is_stored_alike, attribute)
            terms.append(f"is_same{len(names) - 1}({locate(attribute.wire)})")
    return terms


def may_be_stored_otherwise(attribute: Attribute) -> bool:
    """Return whether other programs can store a value of this type in another form, as they do with times."""
    for kind, probe in (("S", "\N{NO-BREAK SPACE}probe"), ("N", "1700000000")):
        if attribute.kind == kind:
            try:
                return not isinstance(attribute.decode({kind: probe}), str | int | float | Decimal)
            except (DataError, *CODEC_ERRORS):
                return True
    return False


def is_stored_alike(attribute: Attribute, value: AttributeValue) -> bool:
    """Return whether the model would store the value of a key attribute in the same form."""
    try:
        encoded = attribute.encode(attribute.decode(value))
    except (DataError, *CODEC_ERRORS):
        return False
    return encoded == value


def _encoder(attribute: Attribute, codec: PartCodec) -> Callable[[AttributeValue], str]:
    """Return the function from an attribute to its text in the key."""

    def text(value: AttributeValue) -> str:
        try:
            return codec.encode(attribute.decode(value))
        except (DataError, *CODEC_ERRORS):
            return _NO_KEY

    return text
