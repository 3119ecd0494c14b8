"""Parsed texts are remembered, because programs send the same few again and again; long ones are not.

A tree can take a hundred times the bytes of its text, so a stranger who sends a thousand of the
longest texts would fill gigabytes. What is this short takes a hundred megabytes at the very worst.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

LONGEST_REMEMBERED: Final = 512
_MOST_REMEMBERED = 1024

_Rest = ParamSpec("_Rest")
_Tree = TypeVar("_Tree")


def remember(parse: Callable[Concatenate[str, _Rest], _Tree]) -> Callable[Concatenate[str, _Rest], _Tree]:
    """Make a parser remember the trees of short texts; refusals are not remembered."""
    remembered = lru_cache(maxsize=_MOST_REMEMBERED)(parse)

    @wraps(parse)
    def parse_or_recall(text: str, /, *rest: _Rest.args, **named: _Rest.kwargs) -> _Tree:
        if len(text) > LONGEST_REMEMBERED:
            return parse(text, *rest, **named)
        return remembered(text, *rest, **named)  # type: ignore[arg-type] # a label, which is text too

    return parse_or_recall
