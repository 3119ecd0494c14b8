"""Check the JSON types of attribute values in one walk; `_values` checks their contents.

Null and unknown members are left out, and words for booleans become booleans. A value without such members
is returned as it is, so most items are not copied.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterable
from typing import Any

from solotable._protocol import errors
from solotable._values import (
    AttributeValue,
    Item,
    canonical,
    canonical_item,
    check_name,
    item_size,
    value_size,
)
from solotable._values.canonical import SHORT_NAME
from solotable._values.limits import DEEPEST_VALUE
from solotable._values.number import measure_number
from solotable.errors import ServiceError, invalid, invalid_parameter

_PLAIN = {"S": str, "N": str, "BOOL": bool}
_WORDS = {"TRUE": True, "1": True, "YES": True, "FALSE": False, "0": False, "NO": False}
_STRANGE = re.compile(r"[^A-Za-z0-9+/=]").search
_JAVA_VALUE = errors.JAVA + "AttributeValue"


class MeasuredAttributes(dict[str, Any]):
    """Valid attribute values as the request sends them, with their size in canonical form."""

    __slots__ = ("canonical", "size")

    #: None if the values are canonical as they are.
    canonical: Item | None
    size: int


class _NotPlain(Exception):
    """Some attribute value is invalid or has an unusual form."""


def measure_attributes(value: Any, *, inner: bool = False) -> Item:
    """Return a clean map of attribute values, or raise for its JSON types.

    It is a MeasuredAttributes if its values are plain and valid. `canonical_and_size` raises the error of
    invalid contents: DynamoDB checks them after all members of the request.
    """
    if type(value) is dict:
        try:
            found, size = _measure(value, 1)
        except (_NotPlain, ServiceError, TypeError, UnicodeEncodeError):
            # A caller in process can pass names that are not text, and lone surrogates.
            pass
        else:
            measured = MeasuredAttributes(value)
            measured.canonical = None if found is value else found
            measured.size = size
            return measured
    return check_attributes(value, inner=inner)


def canonical_and_size(attributes: Item) -> tuple[Item, int]:
    """Return a clean map of attribute values in canonical form with its size, or raise DynamoDB's error."""
    if type(attributes) is MeasuredAttributes:
        return attributes.canonical or attributes, attributes.size
    item = canonical_item(attributes)
    return item, item_size(item)


def _measure(values: Any, depth: int) -> tuple[Any, int]:
    """Check, make canonical and measure a map or list of values in one walk; raise for all but plain ones."""
    texts: list[str]
    pairs: Iterable[tuple[Any, Any]]
    if type(values) is dict and "" not in values:
        texts, pairs = list(values), values.items()
    elif type(values) is list:
        texts, pairs = [], enumerate(values)
    else:
        raise _NotPlain
    size = 0
    result = values
    for place, value in pairs:
        if type(value) is not dict or len(value) != 1:
            raise _NotPlain
        if "S" in value:
            texts.append(value["S"])
            continue
        found = value
        if "N" in value:
            number, taken = measure_number(value["N"])
            if number != value["N"]:
                found = {"N": number}
        elif "BOOL" in value and type(value["BOOL"]) is bool:
            taken = 1
        elif "M" in value and depth < DEEPEST_VALUE and type(value["M"]) is dict:
            members, taken = _measure(value["M"], depth + 1)
            taken += 3 + len(members)
            if members is not value["M"]:
                found = {"M": members}
        elif "L" in value and depth < DEEPEST_VALUE and type(value["L"]) is list:
            elements, taken = _measure(value["L"], depth + 1)
            taken += 3 + len(elements)
            if elements is not value["L"]:
                found = {"L": elements}
        elif "SS" in value and type(value["SS"]) is list:
            strings = sorted(set(value["SS"]))
            if not 0 < len(strings) == len(value["SS"]):
                raise _NotPlain
            texts += strings
            taken = 0
            if strings != value["SS"]:
                found = {"SS": strings}
        else:
            found = canonical(check_value(value, inner=True), depth)
            taken = value_size(found)
        size += taken
        if found is not value:
            if result is values:
                result = values.copy()
            result[place] = found
    text = "".join(texts)
    if len(text) > SHORT_NAME and type(values) is dict:
        for name in values:
            check_name(name)
    return result, size + (len(text) if text.isascii() else len(text.encode()))


def check_attributes(value: Any, *, inner: bool = False, depth: int = 0) -> Item:
    """Return a clean map of attribute values, or raise for its JSON types."""
    if not isinstance(value, dict):
        raise errors.not_a_map(value, _JAVA_VALUE, inner=inner)
    clean: Item = value
    for name, member in value.items():
        if type(member) is dict and len(member) == 1:
            ((kind, content),) = member.items()
            if _PLAIN.get(kind) is type(content):
                continue
        checked = check_value(member, inner=True, depth=depth)
        if checked is not member:
            if clean is value:
                clean = dict(value)
            clean[name] = checked
    return clean


def check_value(value: Any, *, inner: bool, depth: int = 0) -> AttributeValue:
    """Return one clean attribute value, or raise for its JSON types."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise errors.not_a_structure(value, "AttributeValue", inner=inner)
    if depth > DEEPEST_VALUE:
        # `canonical` rejects it later, with the words for its operation.
        return value
    clean: AttributeValue = {}
    changed = False
    for kind, content in value.items():
        check = _CONTENTS.get(kind)
        if check is not None and content is not None:
            checked = clean[kind] = check(content, depth)
            changed = changed or checked is not content
    return clean if changed or len(clean) != len(value) else value


def check_text(value: Any, _depth: int = 0) -> str:
    """Return a string, or raise for another JSON type."""
    if not isinstance(value, str):
        raise errors.not_a_scalar(value, "String")
    return value


def check_flag(value: Any, _depth: int = 0) -> bool:
    """Return a boolean, or raise for another JSON type."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        # DynamoDB: accepts words for booleans, in upper or lower case.
        word = _WORDS.get(value.upper())
        if word is not None:
            return word
    raise errors.not_a_scalar(value, "Boolean")


def check_blob(value: Any, _depth: int = 0) -> str:
    """Return base64 text, or raise for other text."""
    if not isinstance(value, str):
        raise errors.not_a_blob(value)
    if len(value) % 4:
        raise errors.unreadable(
            f"Base64 encoded length is expected a multiple of 4 bytes but found: {len(value)}"
        )
    strange = _STRANGE(value)
    if strange:
        raise errors.unreadable(f"Invalid base 64 character: '{strange[0]}'")
    try:
        raw = binascii.a2b_base64(value, strict_mode=True)
    except binascii.Error:
        raw = None
    # Unused bits of the last character must be zero.
    spare = 0 if raw is None else len(raw) % 3
    if raw is None or (spare and binascii.b2a_base64(raw[-spare:], newline=False).decode() != value[-4:]):
        raise errors.unreadable("Invalid last non-pad Base64 character dectected")
    return value


def _set_of(check: Callable[[Any], Any], absent: ServiceError) -> Callable[[Any, int], Any]:
    def check_set(value: Any, _depth: int) -> Any:
        if not isinstance(value, list):
            raise errors.not_a_list(value, inner=False)
        for member in value:
            if member is None:
                raise invalid(absent.message, family="structure")
            check(member)
        return value

    return check_set


def _check_values(value: Any, depth: int) -> list[Any]:
    if not isinstance(value, list):
        raise errors.not_a_list(value, inner=False)
    clean = value
    for place, member in enumerate(value):
        if type(member) is dict and len(member) == 1:
            ((kind, content),) = member.items()
            if _PLAIN.get(kind) is type(content):
                continue
        checked = check_value(member, inner=True, depth=depth + 1)
        if checked is not member:
            if clean is value:
                clean = list(value)
            clean[place] = checked
    return clean


def _check_members(value: Any, depth: int) -> Item:
    return check_attributes(value, inner=False, depth=depth + 1)


_CONTENTS: dict[str, Callable[[Any, int], Any]] = {
    "S": check_text,
    "N": check_text,
    "B": check_blob,
    "SS": _set_of(check_text, invalid_parameter("An string set may not have a null string as a member")),
    "NS": _set_of(check_text, invalid("The parameter cannot be converted to a numeric value")),
    "BS": _set_of(check_blob, invalid_parameter("Binary sets may not contain null or empty values")),
    "L": _check_values,
    "M": _check_members,
    "NULL": check_flag,
    "BOOL": check_flag,
}
