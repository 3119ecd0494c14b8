"""How large a value of free JSON may be. What JSON cannot say is refused before it is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def within(most: int) -> Callable[[T], T]:
    """Return a validator: the value is JSON of at most so many bytes.

    >>> within(10)({"a": 1})
    {'a': 1}
    """

    def judge(value: T) -> T:
        try:
            size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
        except RecursionError:
            raise ValueError("is nested too deeply") from None
        except TypeError as refused:
            raise ValueError(f"is no JSON: {refused}") from None
        if size > most:
            raise ValueError(f"has {size} bytes as JSON; there is room for {most}")
        return value

    return judge
