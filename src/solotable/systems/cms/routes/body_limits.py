"""The limit of JSON bodies in depth, and the text fields that bodies share."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

MAX_DEPTH = 32


def check_depth(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON tree, or raise ValueError when it is nested too deeply to be merged.

    >>> check_depth({"a": {"b": 1}})
    {'a': {'b': 1}}
    """
    level: list[Any] = [tree]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return tree
    raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")


Tree = Annotated[dict[str, Any], AfterValidator(check_depth)]
Email = Annotated[str, Field(min_length=3, max_length=254)]
IdText = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$")]
#: C0.13: it becomes part of a key, so the pattern excludes e-mail addresses.
VisitorId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")]
