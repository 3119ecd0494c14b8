"""Read and write JSON with orjson if it is installed, otherwise with the standard library.

Both return the same values and the same bytes (compact, UTF-8 not escaped), except for floats below 1e-4,
which DynamoDB never sends. Both reject lone surrogates, NaN, infinities, numbers beyond a double and byte
order marks. The last of duplicate keys wins. `loads` raises ValueError, also for nesting beyond the stack:
orjson accepts 1024 levels, the standard library what Python's stack allows, both ten times DynamoDB's limit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isinf
from typing import Any

_SMALLEST_WHOLE = -(2**63)
_LARGEST_WHOLE = 2**64 - 1
_DIGITS_OF_A_WHOLE = 20


def _whole(digits: str) -> int | float:
    # orjson returns a float beyond 64 bits; and int() of a million digits takes minutes.
    if len(digits) <= _DIGITS_OF_A_WHOLE:
        number = int(digits)
        if _SMALLEST_WHOLE <= number <= _LARGEST_WHOLE:
            return number
    return _real(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise ValueError("number is beyond a double")
    return number


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def plain_loads(raw: bytes) -> Any:
    """Read JSON with the standard library alone."""
    text = raw.decode("utf-8")
    try:
        value = json.loads(text, parse_int=_whole, parse_float=_real, parse_constant=_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if "\\ud" in text or "\\uD" in text:
        # A lone surrogate fails to encode as UTF-8; UnicodeEncodeError is a ValueError.
        plain_dumps(value)
    return value


def plain_dumps(value: Any) -> bytes:
    """Write JSON with the standard library alone."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _orjson() -> Any:
    try:
        import orjson
    except ImportError:  # pragma: no cover
        return None
    return orjson


_FAST = _orjson()
loads: Callable[[bytes], Any] = plain_loads if _FAST is None else _FAST.loads
dumps: Callable[[Any], bytes] = plain_dumps if _FAST is None else _FAST.dumps


def sorted_dumps(value: Any) -> bytes:
    """Write JSON with the members of every object in the order of their names."""
    if _FAST is None:
        return json.dumps(
            value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, sort_keys=True
        ).encode()
    written: bytes = _FAST.dumps(value, option=_FAST.OPT_SORT_KEYS)
    return written
