"""Limits of free JSON in bytes and depth. Values that JSON cannot hold are rejected."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from pydantic import AfterValidator, ValidationInfo

from solotable import is_stored

T = TypeVar("T")
#: JSON parsers reject deep trees, Pydantic's from 200 levels on; a stored tree must stay readable.
MAX_DEPTH = 64
#: The Pydantic context of values that a draft has checked, so that the entity does not check them again.
CHECKED: Final[Mapping[str, bool]] = MappingProxyType({"checked": True})


def check_json_size(max_bytes: int) -> Callable[[T], T]:
    """Return a validator: the value is JSON of at most this many bytes.

    >>> check_json_size(10)({"a": 1})
    {'a': 1}
    """

    def check(value: T) -> T:
        if _is_deeper(value, MAX_DEPTH):
            raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")
        try:
            size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
        except TypeError as error:
            raise ValueError(f"is not JSON: {error}") from None
        if size > max_bytes:
            raise ValueError(f"has {size} bytes as JSON, more than {max_bytes}")
        return value

    return check


def max_json_bytes(max_bytes: int) -> AfterValidator:
    """Return the same validator for a field; it skips values that were stored or CHECKED before."""
    check = check_json_size(max_bytes)

    def check_new(value: T, info: ValidationInfo) -> T:
        return value if is_stored(info) or info.context is CHECKED else check(value)

    return AfterValidator(check_new)


def _is_deeper(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        return levels == 0 or any(_is_deeper(each, levels - 1) for each in value.values())
    if isinstance(value, list):
        return levels == 0 or any(_is_deeper(each, levels - 1) for each in value)
    return False
