"""Ids that depend on a source item only, so that a repeated migration creates no second entity."""

from __future__ import annotations

from uuid import UUID, uuid5

_NAMESPACE = UUID("6f8f4a52-3a0e-5d0c-9a53-0d1f5c5f7f10")


def stable_id(*parts: str | int) -> str:
    """Return an id that is the same for the same parts: 32 hexadecimal digits of a UUID version 5.

    >>> stable_id("Surveys", "s1") == stable_id("Surveys", "s1")
    True
    >>> stable_id("a", "bc") == stable_id("ab", "c")
    False
    """
    # The length of each part keeps ("a", "bc") and ("ab", "c") apart.
    return uuid5(_NAMESPACE, "".join(f"{len(text)}:{text}" for text in map(str, parts))).hex
