"""Templates of update and condition texts that clients repeat with other values.

A text counts with its names and the types of its values: all checks of `bind` depend on these alone, except
those of `_depends_on_values`. A template is made when a text has come a few times, and only if a function
can be compiled for it. The bounds keep the cache below some tens of megabytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final, Literal

from solotable._expressions.ast import Between, Condition, Const, Size, TypeIs, Update
from solotable._values import AttributeValue

from .slots import lift, nodes_of
from .template import UpdateTemplate

#: How often a text comes before it gets a template: compiling one takes as long as some tens of requests.
_FIRST_SIGHTS: Final = 4
_LONGEST_TEXT: Final = 1024
_MOST_PLACEHOLDERS: Final = 32
_LONGEST_NAME: Final = 255
_MOST_TEMPLATES: Final = 512
_MOST_SEEN: Final = 4096

_NO_NAMES: Final[dict[str, str]] = {}
_NO_VALUES: Final[dict[str, AttributeValue]] = {}


class TextCache:
    """Templates by texts; safe for use by many threads, which at worst repeat each other's work."""

    def __init__(self) -> None:
        #: False: the texts have no template.
        self._templates: dict[Hashable, UpdateTemplate | Literal[False]] = {}
        #: How often texts came, by the hash of their key.
        self._sights: dict[int, int] = {}

    def find(self, key: Hashable) -> UpdateTemplate | Literal[False] | None:
        """Return the template of a key from `key_of`; None if it may get one, see `note`."""
        return self._templates.get(key)

    def note(
        self,
        key: Hashable,
        update: Update,
        condition: Condition | None,
        values: Mapping[str, AttributeValue] | None,
    ) -> None:
        """Count texts that had no template; `values` are the very objects in the trees."""
        number = hash(key)
        sights = self._sights.get(number, 0) + 1
        if sights < _FIRST_SIGHTS:
            if len(self._sights) >= _MOST_SEEN:
                self._sights.clear()
            self._sights[number] = sights
            return
        self._sights.pop(number, None)
        if len(self._templates) >= _MOST_TEMPLATES:
            self._templates.clear()
        self._templates[key] = _template(update, condition, list((values or _NO_VALUES).values())) or False


def key_of(
    update: str | None,
    condition: str | None,
    names: dict[str, str] | None,
    values: dict[str, AttributeValue] | None,
) -> Hashable:
    """Return the key of an UpdateItem's texts, None for texts that are too long to cache."""
    names, values = names or _NO_NAMES, values or _NO_VALUES
    if len(update or "") + len(condition or "") > _LONGEST_TEXT:
        return None
    if len(names) > _MOST_PLACEHOLDERS or len(values) > _MOST_PLACEHOLDERS:
        return None
    # A value in JSON is an object with one member, whose name is its type.
    return update, condition, len(names), *names, *names.values(), *values, *map(tuple, values.values())


def _template(
    update: Update, condition: Condition | None, values: list[AttributeValue]
) -> UpdateTemplate | None:
    numbers = {id(value): number for number, value in enumerate(values)}
    # In process, a caller may pass one object as two values.
    if len(numbers) < len(values):
        return None
    trees = lift((update, condition), numbers)
    if any(map(_depends_on_values, nodes_of(trees))):
        return None
    template = UpdateTemplate(*trees)
    if template.slots < len(values) or not template.compile(values):
        return None
    return template


def _depends_on_values(node: Any) -> bool:
    """Return whether another value of the same type may give another tree, or an error."""
    match node:
        case TypeIs() | Size():
            return True
        case Between(_, Const(), Const()):
            # The bounds must be in order.
            return True
        case Const(value):
            # The size of a value.
            return type(value) is dict
        case str():
            return len(node) > _LONGEST_NAME
        case _:
            return False
