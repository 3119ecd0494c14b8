"""Order keys: texts between which there is always another one, so that a move writes one item.

An order key is a fraction between 0 and 1 in base 62 without its leading zero: `V` is one half. Keys sort as
their fractions do, because their digits are in the order of ASCII. No key ends with `0`: `V` and `V0` would
be the same fraction.

>>> first = between(None, None)
>>> last = between(first, None)
>>> first < between(first, last) < last
True
"""

from __future__ import annotations

from collections.abc import Iterator

from solotable.errors import DataError

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BASE = len(_DIGITS)
#: A key may become long if items are always moved to the same place; `spread` makes short ones again.
MAX_LENGTH = 64


class OrderKeysUsedUp(DataError):
    """No short key is left at this place."""


def is_order_key(text: str) -> bool:
    """Return whether a text is an order key."""
    return 0 < len(text) <= MAX_LENGTH and text[-1] != "0" and all(digit in _DIGITS for digit in text)


def between(after: str | None, before: str | None) -> str:
    """Return a short key after one key and before another; None is the start or the end."""
    if before is None and after is not None:
        return _next(after)
    if after is None and before is not None:
        return _previous(before)
    low, high = after or "", before
    if high is not None and low >= high:
        raise OrderKeysUsedUp(f"No order key sorts between {after!r} and {before!r}.")
    found = ""
    for position in range(MAX_LENGTH):
        floor = _DIGITS.index(low[position]) if position < len(low) else 0
        ceiling = _BASE
        if high is not None:
            ceiling = _DIGITS.index(high[position]) if position < len(high) else 0
        if ceiling - floor > 1:
            return found + _DIGITS[(floor + ceiling) // 2]
        found += _DIGITS[floor]
        if ceiling > floor:
            # One digit lower than the key above: all that follows is free.
            high = None
    raise OrderKeysUsedUp(f"The order keys between {after!r} and {before!r} are used up; spread the list.")


def _next(key: str) -> str:
    """Return a key after one, as short as possible: lists mostly grow at their end."""
    kept = len(key) - len(key.lstrip(_DIGITS[-1]))
    digit = _DIGITS.index(key[kept]) if kept < len(key) else 0
    return _checked(key[:kept] + _DIGITS[digit + 1])


def _previous(key: str) -> str:
    """Return a key before one, as short as possible."""
    kept = len(key) - len(key.lstrip("0"))
    digit = _DIGITS.index(key[kept])
    return _checked(key[:kept] + ("0" + _DIGITS[-1] if digit == 1 else _DIGITS[digit - 1]))


def _checked(key: str) -> str:
    if len(key) > MAX_LENGTH:
        raise OrderKeysUsedUp("The order keys of this list are used up; spread the list.")
    return key


def spread(count: int) -> Iterator[str]:
    """Yield short keys for a list of so many items, in order and at equal distances."""
    width = 1
    while _BASE**width <= 2 * count:
        width += 1
    for number in range(1, count + 1):
        rest = number * _BASE**width // (count + 1)
        text = ""
        for _ in range(width):
            rest, digit = divmod(rest, _BASE)
            text = _DIGITS[digit] + text
        yield text.rstrip("0")
