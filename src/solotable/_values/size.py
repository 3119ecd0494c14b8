"""Sizes of items and values as DynamoDB counts them, for the 400 KB limit, the 1 MB page and capacity."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

from .canonical import AttributeValue, Item
from .number import number_size


def item_size(item: Item) -> int:
    """Return the size of an item: names and values, in UTF-8 bytes."""
    total = text_size("".join(item))
    for value in item.values():
        text = value.get("S")
        if text is not None and text.isascii():
            # Most attributes are ASCII text: a call costs more than its length.
            total += len(text)
            continue
        for kind, content in value.items():
            if kind == "N":
                total += number_size(content)
            else:
                total += content_size(kind, content)
    return total


def growth(names: Collection[str], old: Item, new: Item, *, most: int = sys.maxsize) -> int:
    """Return how many bytes an item has gained, where only the attributes of these names differ.

    Stops counting once the new values alone take more than `most` bytes.
    """
    total = added = 0
    for name in names:
        before, after = old.get(name), new.get(name)
        if before is not None and after is not None and "N" in before and "N" in after:
            one, other = before["N"], after["N"]
            if one != other:
                total += number_size(other) - number_size(one)
            continue
        if after is not None:
            added += item_size({name: after})
            if added > most:
                return added
        total -= 0 if before is None else item_size({name: before})
    return total + added


def value_size(value: AttributeValue) -> int:
    """Return the size of one canonical value, without its attribute's name."""
    ((kind, content),) = value.items()
    return content_size(kind, content)


def content_size(kind: str, content: Any) -> int:
    """Return the size of a canonical value given as its type and content."""
    match kind:
        case "S":
            return len(content) if content.isascii() else len(content.encode())
        case "N":
            return number_size(content)
        case "B":
            return base64_size(content)
        case "BOOL" | "NULL":
            return 1
        case "SS":
            return text_size("".join(content))
        case "NS":
            return sum(map(number_size, content))
        case "BS":
            return sum(map(base64_size, content))
        case "L":
            # DynamoDB: 3 bytes for a list or map, and 1 for each element or pair.
            return 3 + len(content) + sum(map(value_size, content))
        case _:
            return 3 + len(content) + item_size(content)


def levels(value: AttributeValue) -> int:
    """Return the nesting depth of lists and maps in a value.

    >>> levels({"S": "a"}), levels({"L": []}), levels({"M": {"a": {"L": []}}})
    (0, 1, 2)
    """
    if "L" in value:
        return 1 + max(map(levels, value["L"]), default=0)
    if "M" in value:
        return 1 + max(map(levels, value["M"].values()), default=0)
    return 0


def text_size(text: str) -> int:
    """Return the UTF-8 length of a string."""
    return len(text) if text.isascii() else len(text.encode())


def base64_size(text: str) -> int:
    """Return the number of bytes that canonical base64 text encodes."""
    return len(text) // 4 * 3 - text[-2:].count("=")
