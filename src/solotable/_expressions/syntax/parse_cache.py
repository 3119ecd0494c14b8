"""Cache of the trees of short texts, which programs repeat.

A tree can take a hundred times the bytes of its text: a thousand of the longest texts would fill gigabytes.
The trees of texts up to this length take at most a hundred megabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

LONGEST_CACHED: Final = 512
_MOST_CACHED = 1024

_Rest = ParamSpec("_Rest")
_Tree = TypeVar("_Tree")


def cache_trees(parse: Callable[Concatenate[str, _Rest], _Tree]) -> Callable[Concatenate[str, _Rest], _Tree]:
    """Cache the trees that a parser returns for short texts; errors are not cached."""
    cached = lru_cache(maxsize=_MOST_CACHED)(parse)

    @wraps(parse)
    def parse_or_get(text: str, /, *rest: _Rest.args, **named: _Rest.kwargs) -> _Tree:
        if len(text) > LONGEST_CACHED:
            return parse(text, *rest, **named)
        return cached(text, *rest, **named)  # type: ignore[arg-type] # a label, which is text too

    return parse_or_get
