"""Key conditions, which programs send again and again with other values: bound once for their types.

What binding a key condition judges are its text, its names and the types of its values; so an outline
without the values is remembered and only filled in. BETWEEN and size() look at the values themselves:
those are bound each time, and so is whatever is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from solotable._expressions.ast import KeyCondition, KeyOperator, KeyTerm
from solotable._values import AttributeValue
from solotable.errors import ServiceError

from .bind import bind_condition
from .key_conditions import key_condition
from .parse import parse_condition
from .parse_cache import remember
from .unused import check_used

#: Attribute name, operator, placeholder of the value.
_Outline = tuple[str, KeyOperator, str]

_MOST_PLACEHOLDERS = 8
_LONGEST_NAME = 255


def compile_key(text: str, names: Mapping[str, str], values: Mapping[str, AttributeValue]) -> KeyCondition:
    """Return the terms of a key condition that is a request's only expression, or refuse it."""
    if len(names) + len(values) <= _MOST_PLACEHOLDERS:
        outlines = _outlines(
            text, tuple(names.items()), tuple([(name, *value) for name, value in values.items()])
        )
        if outlines is not None:
            return tuple([KeyTerm(name, operator, (values[value],)) for name, operator, value in outlines])
    return _bound(text, names, values)


def _bound(text: str, names: Mapping[str, str], values: Mapping[str, AttributeValue]) -> KeyCondition:
    parsed = parse_condition(text, "KeyConditionExpression")
    condition = bind_condition(parsed, "KeyConditionExpression", names, values)
    check_used(names, values, [parsed.used])
    return key_condition(parsed.tree, condition)


@remember
def _outlines(
    text: str, names: tuple[tuple[str, str], ...], kinds: tuple[tuple[str, ...], ...]
) -> tuple[_Outline, ...] | None:
    """Return the outline of every term; None when the values themselves matter."""
    lower = text.lower()
    if "between" in lower or "size" in lower or any(len(name) > _LONGEST_NAME for _, name in names):
        return None
    # In the place of each value its placeholder.
    marked: dict[str, AttributeValue] = {name: {kind: name} for name, kind in kinds}
    try:
        terms = _bound(text, dict(names), marked)
    except ServiceError:
        return None
    return tuple((term.name, term.operator, next(iter(term.values[0].values()))) for term in terms)
