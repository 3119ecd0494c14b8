"""Names of entities, resources and limits: which are valid.

Names become parts of keys and of attribute names, so they are ASCII: names that look alike are alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from solotable.errors import DataError

#: The resource of limits that apply to every resource without its own.
DEFAULT = "_default_"
#: The patterns, also of the HTTP API's parameters.
ENTITY = r"[A-Za-z0-9][A-Za-z0-9_.\-:@]{0,255}"
RESOURCE = r"[A-Za-z][A-Za-z0-9_.\-/:]{0,63}"
LIMIT = r"[A-Za-z][A-Za-z0-9_.\-]{0,63}"


def entity_name(given: str) -> str:
    """Return the name of an entity, or raise DataError."""
    return _check("An entity", ENTITY, given, "256", "a letter or digit", "_ . - : @")


def resource_name(given: str) -> str:
    """Return the name of a resource, or raise DataError."""
    return _check("A resource", RESOURCE, given, "64", "a letter", "_ . - / :")


def limit_name(given: str) -> str:
    """Return the name of a limit, or raise DataError."""
    return _check("A limit", LIMIT, given, "64", "a letter", "_ . -")


def limit_names(given: Iterable[str]) -> list[str]:
    """Return names of limits, or raise DataError."""
    if isinstance(given, str):
        raise DataError(f"Names of limits are a list; got {shorten(given)}.")
    return [limit_name(each) for each in given]


def _check(what: str, pattern: str, given: str, longest: str, first: str, others: str) -> str:
    # `type`, not isinstance: a subclass of str may print as something else than it compares as.
    if type(given) is str and re.fullmatch(pattern, given):
        return given
    raise DataError(
        f"{what} name has 1 to {longest} characters: {first}, then letters, digits and {others}; "
        f"got {shorten(given)}."
    )


def shorten(given: object) -> str:
    """Return the repr of a value for an error text, at a bounded length."""
    try:
        text = repr(given)
    except ValueError:
        # Python: the repr of a whole number of more than 4,300 digits raises.
        return "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"
