"""Names of entities, resources and limits: what they may look like, and why one is refused.

They become parts of keys and of attribute names, so they are ASCII: what looks alike is alike.
"""

from __future__ import annotations

import re

from solotable.errors import DataError

#: The resource that stands for every one that has no limits of its own.
DEFAULT = "_default_"

_ENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-:@]{0,255}")
_RESOURCE = re.compile(r"[A-Za-z][A-Za-z0-9_.\-/:]{0,63}")
_LIMIT = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,63}")


def entity_name(given: str) -> str:
    """Return the name of an entity, or refuse it."""
    return _judged("An entity", _ENTITY, given, "256", "a letter or digit", "_ . - : @")


def resource_name(given: str) -> str:
    """Return the name of a resource, or refuse it."""
    return _judged("A resource", _RESOURCE, given, "64", "a letter", "_ . - / :")


def limit_name(given: str) -> str:
    """Return the name of a limit, or refuse it."""
    return _judged("A limit", _LIMIT, given, "64", "a letter", "_ . -")


def _judged(what: str, form: re.Pattern[str], given: str, most: str, first: str, others: str) -> str:
    # `type`, not isinstance: a subclass of str may print as something else than it compares as.
    if type(given) is str and form.fullmatch(given):
        return given
    raise DataError(
        f"{what} is named by 1 to {most} characters: {first}, then letters, digits and {others}; "
        f"{shown(given)} is not."
    )


def shown(given: object) -> str:
    """Return what was given as an error may show it: not at any length."""
    try:
        text = repr(given)
    except ValueError:
        # Python: a whole number of more than 4,300 digits is not written out.
        return "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"
