"""How large and how deep a value of free JSON may be. What JSON cannot say is refused before it is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from pydantic import AfterValidator, ValidationInfo

from solotable import is_stored

T = TypeVar("T")
#: Readers of JSON give up at some depth, Pydantic's at 200; what could not be read back is not stored.
DEEPEST = 64


def within(most: int) -> Callable[[T], T]:
    """Return a validator: the value is JSON of at most so many bytes.

    >>> within(10)({"a": 1})
    {'a': 1}
    """

    def judge(value: T) -> T:
        if _deeper(value, DEEPEST):
            raise ValueError(f"is nested more than {DEEPEST} levels deep")
        try:
            size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
        except TypeError as refused:
            raise ValueError(f"is no JSON: {refused}") from None
        if size > most:
            raise ValueError(f"has {size} bytes as JSON; there is room for {most}")
        return value

    return judge


def at_most(most: int) -> AfterValidator:
    """Return the same for a field of an entity: what was stored is not measured whenever it is read."""
    judge = within(most)

    def judge_new(value: T, info: ValidationInfo) -> T:
        return value if is_stored(info) else judge(value)

    return AfterValidator(judge_new)


def _deeper(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        return levels == 0 or any(_deeper(each, levels - 1) for each in value.values())
    if isinstance(value, list):
        return levels == 0 or any(_deeper(each, levels - 1) for each in value)
    return False
