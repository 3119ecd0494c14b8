"""The most frequent write of a bucket: writes of one form share a PreparedUpdate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from solotable.flow import Item, PreparedUpdate, Slot
from solotable.flow.conditions import (
    Condition,
    all_of,
    any_of,
    at_least,
    at_most,
    differs,
    equals,
    exists,
    less_than,
    missing,
)
from solotable.flow.requests import UpdateItem

from .flat_update import FlatUpdate

#: What every write begins with: its time, the number in its lane, the rules and the level of the item.
_AT, _NUMBER, _RULES, _LEVEL = map(Slot, range(4))
_FIRST_PART = 4

#: What a write requires of its lane: no number or a lower one, another number, none, or the number before.
LaneForm = Literal["below", "differs", "missing", "equals"]


class NextWrite:
    """The parts of a write, each with an attribute's name, and the values apart."""

    __slots__ = ("_lane_form", "_parts", "_values", "is_unique", "removed")

    def __init__(self, lane: str, values: list[int | str]) -> None:
        self._parts: list[str] = [lane]
        self._values = values
        self._lane_form: LaneForm = "below"
        #: Attributes that the write removes.
        self.removed: Sequence[str] = ()
        #: Whether no other write has these names, as with the hold of a lease.
        self.is_unique = False

    def require_lane(self, form: LaneForm, before: int | None) -> None:
        """Require something of the lane; called first."""
        self._lane_form = form
        if form == "equals":
            self._values.append(before or 0)

    def set(self, name: str, value: int) -> None:
        """Set an attribute."""
        self._parts += ("set", name)
        self._values.append(value)

    def add(self, name: str, value: int) -> None:
        """Add to a number."""
        self._parts += ("add", name)
        self._values.append(value)

    def equals(self, name: str, value: int) -> None:
        """Require a value."""
        self._parts += ("equals", name)
        self._values.append(value)

    def at_least(self, name: str, value: int) -> None:
        """Require this value or more."""
        self._parts += ("at_least", name)
        self._values.append(value)

    def at_most(self, name: str, value: int) -> None:
        """Require this value or less."""
        self._parts += ("at_most", name)
        self._values.append(value)

    def exists(self, name: str) -> None:
        """Require that an attribute exists."""
        self._parts += ("exists", name)

    def missing(self, name: str) -> None:
        """Require that an attribute does not exist."""
        self._parts += ("missing", name)

    def prepared(self) -> PreparedUpdate:
        """Return the update and the condition without their values."""
        # Which attributes are removed hardly repeats.
        if self.removed or self.is_unique:
            return _prepare(self._lane_form, self._parts, self.removed)
        return _prepared(self._lane_form, tuple(self._parts))

    def request(self, table: str, key: Item) -> UpdateItem:
        """Return the UpdateItem."""
        return self.prepared().request(table, key, self._values, returns="ALL_NEW", returns_on_failure=True)


@lru_cache(maxsize=512)
def _prepared(form: LaneForm, parts: tuple[str, ...]) -> PreparedUpdate:
    return _prepare(form, parts, ())


def lane_condition(form: LaneForm, lane: str, number: int | Slot, before: int | Slot | None) -> Condition:
    """Return what a write requires of its lane."""
    match form:
        case "below":
            return any_of(missing(lane), less_than(lane, number))
        case "differs":
            return differs(lane, number)
        case "missing":
            return missing(lane)
        case "equals":
            return equals(lane, before)


def _prepare(form: LaneForm, parts: Sequence[str], removed: Sequence[str]) -> PreparedUpdate:
    lane, *rest = parts
    update = FlatUpdate().set("at", _AT).add("writes", 1).set(lane, _NUMBER)
    number = _FIRST_PART + (form == "equals")
    unwritten = lane_condition(form, lane, _NUMBER, Slot(_FIRST_PART))
    terms = [equals("rules", _RULES), equals("level", _LEVEL), unwritten]
    for part, name in zip(rest[::2], rest[1::2], strict=True):
        slot = Slot(number)
        match part:
            case "set":
                update.set(name, slot)
            case "add":
                update.add(name, slot)
            case "equals":
                terms.append(equals(name, slot))
            case "at_least":
                terms.append(at_least(name, slot))
            case "at_most":
                terms.append(at_most(name, slot))
            case "missing":
                terms.append(missing(name))
                continue
            case _:
                terms.append(exists(name))
                continue
        number += 1
    for name in removed:
        update.remove(name)
    return PreparedUpdate(update, all_of(*terms))
