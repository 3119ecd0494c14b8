"""The expression texts of a template: rendered once, with a placeholder for each slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from solotable._expressions.ast import And, Condition, Update
from solotable._expressions.render import Placeholders, render_condition, render_update
from solotable._values import AttributeValue

from .slots import Slot


class WireTexts:
    """The members of an UpdateItem that are the same in every request, and where its values go."""

    __slots__ = ("_fixed", "_members", "_tokens")

    def __init__(self, update: Update, condition: Condition | None, slots: int) -> None:
        placeholders = _SlotPlaceholders()
        members: dict[str, Any] = {}
        text = render_update(update, placeholders)
        if text is not None:
            members["UpdateExpression"] = text
        # A condition without terms always holds; the language cannot express it.
        if condition is not None and condition != And(()):
            members["ConditionExpression"] = render_condition(condition, placeholders)
        placeholders.add_to(members)
        self._fixed: dict[str, AttributeValue] = members.pop("ExpressionAttributeValues", {})
        self._members = members
        self._tokens = tuple(f":s{number}" for number in range(slots))

    def members(self, values: Sequence[AttributeValue]) -> dict[str, Any]:
        """Return the members with these values; the caller may add to the dict, not change its values."""
        members = self._members.copy()
        if self._tokens or self._fixed:
            given = self._fixed.copy()
            given.update(zip(self._tokens, values, strict=True))
            members["ExpressionAttributeValues"] = given
        return members


class _SlotPlaceholders(Placeholders):
    """Placeholders in which each slot has its own."""

    __slots__ = ()

    def value(self, value: AttributeValue) -> str:
        return f":s{value.number}" if type(value) is Slot else super().value(value)
