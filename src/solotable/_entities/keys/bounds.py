"""Bounds of ranges of sort keys: the least and greatest strings before, after and within others.

DynamoDB sorts strings by their UTF-8 bytes, which is the order of code points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from solotable._expressions.ast import KeyTerm
from solotable._values import AttributeValue, sort_key
from solotable._values.limits import LONGEST_SORT_KEY
from solotable.errors import DataError

#: The greatest character of each length in UTF-8 bytes.
_GREATEST = {1: "\x7f", 2: "\u07ff", 3: "\uffff", 4: "\U0010ffff"}


def ceiling(text: str) -> str:
    """Return the inclusive upper bound of `text` and every key that starts with `text#`."""
    return text + "$"


def below(text: str, longest_bytes: int = LONGEST_SORT_KEY) -> str:
    """Return the greatest string of at most `longest_bytes` UTF-8 bytes that sorts before `text`.

    >>> below("b", 3), below("a\\x00", 3)
    ('a߿', 'a')
    """
    if not text:
        raise DataError("no string sorts before the empty string; pass a bound that is not empty")
    fitting = _fitting(text, longest_bytes)
    if len(fitting) < len(text):
        return _filled(fitting, longest_bytes)
    if text[-1] == "\x00":
        return text[:-1]
    code = ord(text[-1]) - 1
    # UTF-8 has no surrogates: U+E000 comes right after U+D7FF.
    return _filled(text[:-1] + chr(0xD7FF if code == 0xDFFF else code), longest_bytes)


def above(text: str, longest_bytes: int = LONGEST_SORT_KEY) -> str | None:
    """Return the least string of at most `longest_bytes` UTF-8 bytes after `text`; None if none exists.

    >>> above("a", 3), above("abc", 3)
    ('a\\x00', 'abd')
    """
    if len(text.encode()) < longest_bytes:
        return text + "\x00"
    while text:
        start, code = text[:-1], ord(text[-1]) + 1
        if text[-1] != _GREATEST[4]:
            # A greater character may take more bytes, so check that the text still fits.
            found = start + chr(0xE000 if code == 0xD800 else code)
            if len(found.encode()) <= longest_bytes:
                return found
        text = start
    return None


def after_prefix(prefix: str) -> str | None:
    """Return the least string after all strings that start with a prefix; None if none exists.

    >>> after_prefix("ab"), after_prefix("a\U0010ffff")
    ('ac', 'b')
    """
    while prefix:
        start, code = prefix[:-1], ord(prefix[-1]) + 1
        if prefix[-1] != _GREATEST[4]:
            return start + chr(0xE000 if code == 0xD800 else code)
        prefix = start
    return None


def highest_with_prefix(prefix: str, *, escaped: bool = True) -> str | None:
    """Return the highest key that starts with a prefix; None for the empty prefix."""
    if not prefix:
        return None
    if escaped and prefix.endswith("#"):
        # Escaped values contain neither `#` nor `$`, so no key is between `X#...` and `X$`.
        return ceiling(prefix[:-1])
    return _filled(prefix, LONGEST_SORT_KEY)


def cover(ranges: Sequence[tuple[KeyTerm, ...]]) -> tuple[KeyTerm, ...]:
    """Return the narrowest condition on the sort key that covers all ranges."""
    first = ranges[0]
    if all(terms == first for terms in ranges):
        return first
    shared = 0
    while all(
        len(terms) > shared and terms[shared] == first[shared] and terms[shared].operator == "="
        for terms in ranges
    ):
        shared += 1
    if any(len(terms) <= shared for terms in ranges):
        return first[:shared]
    ends = [ends_of(terms[shared]) for terms in ranges]
    lows, highs = [low for low, _ in ends if low], [high for _, high in ends if high]
    low = min(lows, key=order_of) if len(lows) == len(ends) else None
    high = max(highs, key=order_of) if len(highs) == len(ends) else None
    name = first[shared].name
    if low is not None and high is not None:
        term = KeyTerm(name, "=", (low,)) if low == high else KeyTerm(name, "BETWEEN", (low, high))
        return (*first[:shared], term)
    if low is not None:
        return (*first[:shared], KeyTerm(name, ">=", (low,)))
    return first[:shared] if high is None else (*first[:shared], KeyTerm(name, "<=", (high,)))


def ends_of(term: KeyTerm) -> tuple[AttributeValue | None, AttributeValue | None]:
    """Return the least and the greatest value of a term; None for no limit."""
    value = term.values[0]
    match term.operator:
        case "=":
            return value, value
        case "begins_with":
            high = highest_with_prefix(value["S"]) if "S" in value else None
            return value, None if high is None else {"S": high}
        case ">=" | ">":
            return value, None
        case "<=" | "<":
            return None, value
        case _:
            return value, term.values[1]


def order_of(value: AttributeValue) -> Any:
    """Return what DynamoDB sorts a value of a key by."""
    return sort_key(*next(iter(value.items())))


def _fitting(text: str, longest_bytes: int) -> str:
    """Cut the text after the last whole character that fits."""
    return text.encode()[:longest_bytes].decode(errors="ignore")


def _filled(text: str, longest_bytes: int) -> str:
    space = longest_bytes - len(text.encode())
    return text + _GREATEST[4] * (space // 4) + _GREATEST.get(space % 4, "")
