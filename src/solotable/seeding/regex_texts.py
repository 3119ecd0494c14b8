"""Texts that match a regular expression, for fields with `Field(pattern=...)`."""

from __future__ import annotations

import importlib
import string
from random import Random
from typing import Any

#: The most repetitions of `*` and `+`.
_MOST_REPEATED = 8
_CATEGORIES = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_WORD": string.ascii_letters + string.digits + "_",
    "CATEGORY_SPACE": " ",
}
_ANY = string.ascii_lowercase + string.digits


def text_matching(pattern: str, random: Random) -> str | None:
    """Return a text that matches a pattern; None if the pattern has parts that are not supported.

    >>> text_matching(r"^[a-z]{3}-\\d{4}$", Random(1))
    'szy-4177'
    """
    try:
        # Python's own parser has no public name.
        tree = importlib.import_module("re._parser").parse(pattern)
        return _text(tree, random, {})
    except (NotImplementedError, ValueError, ImportError):
        return None


def _text(nodes: Any, random: Random, groups: dict[int, str]) -> str:
    return "".join(_part(str(kind), content, random, groups) for kind, content in nodes)


def _part(kind: str, content: Any, random: Random, groups: dict[int, str]) -> str:
    match kind:
        case "LITERAL":
            return chr(content)
        case "NOT_LITERAL":
            return random.choice(_ANY.replace(chr(content), ""))
        case "ANY":
            return random.choice(_ANY)
        case "IN":
            return random.choice(_members(content))
        case "AT":
            return ""
        case "BRANCH":
            return _text(random.choice(content[1]), random, groups)
        case "SUBPATTERN":
            group, _, _, inner = content
            found = _text(inner, random, groups)
            if group is not None:
                groups[group] = found
            return found
        case "GROUPREF":
            return groups.get(content, "")
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, inner = content
            times = random.randint(low, min(int(high), max(low, _MOST_REPEATED)))
            return "".join(_text(inner, random, groups) for _ in range(times))
    raise NotImplementedError(kind)


def _members(nodes: Any) -> str:
    """Return the characters of a class such as `[a-z0-9-]`."""
    found, negated = "", False
    for kind, content in nodes:
        match str(kind):
            case "NEGATE":
                negated = True
            case "LITERAL":
                found += chr(content)
            case "RANGE":
                found += "".join(map(chr, range(content[0], min(content[1], content[0] + 255) + 1)))
            case "CATEGORY" if str(content) in _CATEGORIES:
                found += _CATEGORIES[str(content)]
            case _:
                raise NotImplementedError(kind)
    chosen = "".join(each for each in _ANY if each not in found) if negated else found
    if not chosen:
        raise NotImplementedError("an empty class")
    return chosen
