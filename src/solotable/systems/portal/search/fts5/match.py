"""FTS5 expressions of a user's words. A word is only ever a quoted string, and never syntax."""

from __future__ import annotations

#: How much a match in the title, the tags and the summary counts.
WEIGHTS = (10.0, 4.0, 1.0)
#: From this length on, the last word also finds longer words: a user may still be writing it.
_SHORTEST_PREFIX = 2


def match_of(words: tuple[str, ...]) -> str:
    """Return the expression of words: all of them, the last one as a prefix.

    >>> print(match_of(("NEAR", 'say"', "guide")))
    "NEAR" AND "say\""" AND "guide" *
    """
    terms = ['"' + word.replace('"', '""') + '"' for word in words]
    if is_prefix(words[-1]):
        terms[-1] += " *"
    return " AND ".join(terms)


def is_prefix(last: str) -> bool:
    """Return whether the last word also finds longer words."""
    return len(last) >= _SHORTEST_PREFIX or not last.isascii()


def in_title(match: str) -> str:
    """Return the expression of matches whose title has all words."""
    return f"title : ({match})"
