"""Overlaps and conflicts between document paths, and the order of keys in DynamoDB's messages.

Reads the paths alone, no item.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar, Union

from .ast import Path

_Key = TypeVar("_Key", bound="str | int")

# A tree of paths: None where one ends.
_Places = dict[Union[str, int], Union["_Places", None]]


def find_clash(paths: tuple[Path, ...]) -> tuple[str, Path, Path] | None:
    """Return "overlap" and two paths of which one contains the other, or "conflict" and two paths of which
    one needs a list where the other needs a map. None if there are none.
    """
    if len(paths) == 1:
        return None
    places: _Places = {}
    # DynamoDB: from the last path to the first, so it rejects the first path of a pair.
    for path in reversed(paths):
        found = _claim(places, path)
        if found is not None:
            return found[0], path, found[1]
    return None


def format_path(path: Path) -> str:
    """Return a path as DynamoDB's messages print it."""
    return "[" + ", ".join(f"[{part}]" if isinstance(part, int) else part for part in path) + "]"


def hashed_order(keys: Collection[_Key]) -> list[_Key]:
    """Return the keys in the iteration order of a Java HashMap that was filled in the given order.

    >>> hashed_order(["#a", "#b", "#z", "#y"])
    ['#y', '#z', '#a', '#b']
    """
    buckets = 16
    while len(keys) > buckets * 3 // 4:
        buckets *= 2
    return sorted(keys, key=lambda key: _hash(key) & (buckets - 1))


def _hash(key: str | int) -> int:
    if isinstance(key, int):
        return key
    code = 0
    for character in key:
        code = (code * 31 + ord(character)) & 0xFFFFFFFF
    return code ^ code >> 16


def _claim(places: _Places, path: Path) -> tuple[str, Path] | None:
    """Enter a path in a tree of paths; return the kind of a clash and the other path, or None."""
    last = len(path) - 1
    for at, part in enumerate(path):
        if places and type(next(iter(places))) is not type(part):
            return "conflict", _last_path(path[:at], places)
        if at == last:
            if part in places:
                return "overlap", _last_path(path[:at], places)
            places[part] = None
            break
        inner = places.setdefault(part, {})
        if inner is None:
            return "overlap", _last_path(path[:at], places)
        places = inner
    return None


def _last_path(start: Path, places: _Places | None) -> Path:
    # DynamoDB: names the last of several clashing paths, in the order of a hash table.
    while places:
        part = hashed_order(places)[-1]
        start = (*start, part)
        places = places[part]
    return start
