"""Paths that get in each other's way, and the order in which DynamoDB's messages name things.

Judged from the paths alone: no item is looked at.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar, Union

from .ast import Path

_Key = TypeVar("_Key", bound="str | int")

# A tree of paths: None where one ends.
_Places = dict[Union[str, int], Union["_Places", None]]


def clash(paths: tuple[Path, ...]) -> tuple[str, Path, Path] | None:
    """Return the first two paths of which one lies in the other, or that take one place for a list
    and for a map, and which of the two it is: overlap or conflict.
    """
    if len(paths) == 1:
        return None
    places: _Places = {}
    # DynamoDB: from the last path to the first, so the first of a pair is the one that is refused.
    for path in reversed(paths):
        found = _claim(places, path)
        if found is not None:
            return found[0], path, found[1]
    return None


def printed(path: Path) -> str:
    """Return a path as DynamoDB's messages show it."""
    return "[" + ", ".join(f"[{part}]" if isinstance(part, int) else part for part in path) + "]"


def hashed_order(keys: Collection[_Key]) -> list[_Key]:
    """Return the keys as a Java HashMap that was filled in this order would give them.

    >>> hashed_order(["#a", "#b", "#z", "#y"])
    ['#y', '#z', '#a', '#b']
    """
    buckets = 16
    while len(keys) > buckets * 3 // 4:
        buckets *= 2
    return sorted(keys, key=lambda key: _spread(key) & (buckets - 1))


def _spread(key: str | int) -> int:
    if isinstance(key, int):
        return key
    code = 0
    for character in key:
        code = (code * 31 + ord(character)) & 0xFFFFFFFF
    return code ^ code >> 16


def _claim(places: _Places, path: Path) -> tuple[str, Path] | None:
    """Enter a path in a tree of paths, or return how it fails to lie apart, and from which path."""
    last = len(path) - 1
    for at, part in enumerate(path):
        if places and type(next(iter(places))) is not type(part):
            return "conflict", _some_path(path[:at], places)
        if at == last:
            if part in places:
                return "overlap", _some_path(path[:at], places)
            places[part] = None
            break
        inner = places.setdefault(part, {})
        if inner is None:
            return "overlap", _some_path(path[:at], places)
        places = inner
    return None


def _some_path(start: Path, places: _Places | None) -> Path:
    # DynamoDB: of several paths beside the one that clashes, the last in a hash table's order is told.
    while places:
        part = hashed_order(places)[-1]
        start = (*start, part)
        places = places[part]
    return start
