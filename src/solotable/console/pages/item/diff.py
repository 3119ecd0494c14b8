"""Two versions of an item side by side: lines of DynamoDB JSON, with the words that changed marked."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

from solotable._values import Item
from solotable.console.render import pretty


def diff_items(before: Item, after: Item) -> dict[str, Any]:
    """Return the lines of both sides, and how many were added and removed."""
    left, right = pretty(before).splitlines(), pretty(after).splitlines()
    rows: list[dict[str, Any]] = []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            rows += [_row(a + at, left[a + at], c + at, right[c + at], changed=False) for at in range(b - a)]
            continue
        for at in range(max(b - a, d - c)):
            one = a + at if a + at < b else None
            other = c + at if c + at < d else None
            rows.append(
                _row(
                    one,
                    "" if one is None else left[one],
                    other,
                    "" if other is None else right[other],
                    changed=True,
                )
            )
    return {
        "rows": rows,
        "added": sum(row["changed"] and row["right"]["number"] is not None for row in rows),
        "removed": sum(row["changed"] and row["left"]["number"] is not None for row in rows),
    }


def changed_names(before: Item, after: Item) -> list[str]:
    """Return the attributes that differ."""
    return [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]


def _row(one: int | None, left: str, other: int | None, right: str, *, changed: bool) -> dict[str, Any]:
    marks = _marks(left, right) if changed and one is not None and other is not None else None
    return {
        "changed": changed,
        "left": {"number": None if one is None else one + 1, "parts": _parts(left, marks and marks[0])},
        "right": {"number": None if other is None else other + 1, "parts": _parts(right, marks and marks[1])},
    }


def _marks(left: str, right: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the part of each line that differs: what is between their common start and end."""
    shortest = min(len(left), len(right))
    start = next((at for at in range(shortest) if left[at] != right[at]), shortest)
    end = 0
    while end < shortest - start and left[-1 - end] == right[-1 - end]:
        end += 1
    # Whole words read better than letters.
    while start > 0 and left[start - 1].isalnum():
        start -= 1
    while end > 0 and left[-end].isalnum():
        end -= 1
    return (start, len(left) - end), (start, len(right) - end)


def _parts(line: str, mark: tuple[int, int] | None) -> list[list[Any]]:
    """Return the line as texts, each with whether it is marked."""
    if mark is None:
        return [[line, False]]
    start, end = mark
    parts = [[line[:start], False], [line[start:end], True], [line[end:], False]]
    return [each for each in parts if each[0]]
