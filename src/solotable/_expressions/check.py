"""Check a condition's tree against DynamoDB's limits, without printing and parsing it.

The walk counts operators and bounds the bytes of the text from above. It accepts what certainly fits.
Any other tree is rendered and compiled, so that its error is the parser's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from solotable._values import ORDERED, TYPES, AttributeValue, canonical, sort_key
from solotable._values.limits import (
    DEEPEST_PATH,
    LARGEST_EXPRESSION,
    LARGEST_LIST_INDEX,
    LONGEST_ATTRIBUTE_NAME,
    MOST_IN_OPERANDS,
    MOST_OPERATORS,
)
from solotable._values.number import is_plain_number
from solotable.errors import ServiceError

from .ast import (
    And,
    Attr,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Const,
    Contains,
    Exists,
    In,
    Not,
    Operand,
    Or,
    Path,
    Size,
    TypeIs,
)

#: Bytes of the longest placeholder: a text that fits has fewer than 10,000 of them.
_PLACEHOLDER: Final = len("#9999")
#: Bytes of the longest list index with its brackets.
_INDEX: Final = len(f"[{LARGEST_LIST_INDEX}]")
#: A name of so many characters fits, however many bytes each of them takes.
_SHORT_NAME: Final = LONGEST_ATTRIBUTE_NAME // 4
_PREFIXED: Final = frozenset({"S", "B"})
_SMALL: Final = frozenset({Compare, Between, Exists, TypeIs, BeginsWith, Contains})


def check_condition(condition: Condition) -> None:
    """Raise the ServiceError with which DynamoDB rejects a condition or filter, as a ConditionExpression.

    A tree that has no text raises DeclarationError, as `render_condition` does.
    """
    tally = _Tally()
    check = _CHECKS.get(type(condition))
    fits = check is not None and check(condition, tally)
    if not fits or tally.operators > MOST_OPERATORS or tally.size > LARGEST_EXPRESSION:
        _compile(condition)


def is_large(condition: Condition) -> bool:
    """Return whether a condition takes over half of a limit: joined with others, it may not fit."""
    kind = type(condition)
    # One comparison never does, and is the commonest condition.
    if kind in _SMALL:
        return False
    tally = _Tally()
    check = _CHECKS.get(kind)
    fits = check is not None and check(condition, tally)
    return not fits or tally.operators > MOST_OPERATORS // 2 or tally.size > LARGEST_EXPRESSION // 2


def _compile(condition: Condition) -> None:
    # Imported here: a process that sends no text and reads none does not load the parser.
    from .render import Placeholders, render_condition
    from .syntax.compile import compile_expressions

    members: dict[str, Any] = {}
    placeholders = Placeholders()
    text = render_condition(condition, placeholders)
    placeholders.add_to(members)
    compile_expressions(
        condition=text,
        names=members.get("ExpressionAttributeNames"),
        values=members.get("ExpressionAttributeValues"),
    )


class _Tally:
    """The operators that the text of a tree has at most, and its bytes."""

    __slots__ = ("operators", "size")

    def __init__(self) -> None:
        self.operators = 0
        self.size = 0


def _junction(node: And | Or, tally: _Tally) -> bool:
    terms = node.terms
    # Each operator has two spaces around it, and each term may have parentheses.
    tally.size += len(terms) * len(" AND ()")
    tally.operators += len(terms) - 1
    # Checked on the way down: no level of a deep tree is visited that has too many operators above it.
    if not terms or tally.operators > MOST_OPERATORS:
        return False
    for term in terms:
        check = _CHECKS.get(type(term))
        if check is None or not check(term, tally):
            return False
    return True


def _not(node: Not, tally: _Tally) -> bool:
    # The text has one NOT less where two cancel out or `attribute_not_exists` says it.
    tally.operators += 1
    tally.size += len("NOT ()")
    check = _CHECKS.get(type(node.condition))
    return check is not None and tally.operators <= MOST_OPERATORS and check(node.condition, tally)


def _compare(node: Compare, tally: _Tally) -> bool:
    tally.operators += 1
    tally.size += len(" <> ")
    left, right = node.left, node.right
    if not (_operand(left, tally) and _operand(right, tally)) or _is_same_path(left, right):
        return False
    return node.comparator in ("=", "<>") or (_is_ordered(left) and _is_ordered(right))


def _between(node: Between, tally: _Tally) -> bool:
    tally.operators += 1
    tally.size += len(" BETWEEN  AND ")
    operand, low, high = node.operand, node.low, node.high
    if not (_operand(operand, tally) and _operand(low, tally) and _operand(high, tally)):
        return False
    if _is_same_path(operand, low) or _is_same_path(operand, high):
        return False
    if not (_is_ordered(operand) and _is_ordered(low) and _is_ordered(high)):
        return False
    return not (type(low) is Const and type(high) is Const) or _is_range(low.value, high.value)


def _in(node: In, tally: _Tally) -> bool:
    tally.operators += 1
    tally.size += len(" IN ()") + len(node.options) * len(", ")
    operand = node.operand
    if not 0 < len(node.options) <= MOST_IN_OPERANDS or not _operand(operand, tally):
        return False
    for option in node.options:  # noqa: SIM110 - half the time of a generator
        if not _operand(option, tally) or _is_same_path(operand, option):
            return False
    return True


def _exists(node: Exists, tally: _Tally) -> bool:
    tally.operators += 1
    tally.size += len("attribute_not_exists()")
    return _path(node.path, tally)


def _type_is(node: TypeIs, tally: _Tally) -> bool:
    tally.operators += 1
    tally.size += len("attribute_type(, )") + _PLACEHOLDER
    return node.kind in TYPES and _operand(node.operand, tally)


def _begins_with(node: BeginsWith, tally: _Tally) -> bool:
    tally.operators += 1
    tally.size += len("begins_with(, )")
    operand, prefix = node.operand, node.prefix
    if not (_operand(operand, tally) and _operand(prefix, tally)) or _is_same_path(operand, prefix):
        return False
    return _is_prefixed(operand) and _is_prefixed(prefix)


def _contains(node: Contains, tally: _Tally) -> bool:
    tally.operators += 1
    tally.size += len("contains(, )")
    operand, member = node.operand, node.member
    return _operand(operand, tally) and _operand(member, tally) and not _is_same_path(operand, member)


_CHECKS: Final[dict[type, Callable[[Any, _Tally], bool]]] = {
    And: _junction,
    BeginsWith: _begins_with,
    Between: _between,
    Compare: _compare,
    Contains: _contains,
    Exists: _exists,
    In: _in,
    Not: _not,
    Or: _junction,
    TypeIs: _type_is,
}


def _operand(operand: Operand, tally: _Tally) -> bool:
    if type(operand) is Const:
        tally.size += _PLACEHOLDER
        return _is_valid(operand.value)
    if type(operand) is Size:
        tally.operators += 1
        tally.size += len("size()")
        return _path(operand.operand.path, tally)
    return _path(operand.path, tally)  # type: ignore[union-attr] # mypy does not narrow by `type() is`


def _path(path: Path, tally: _Tally) -> bool:
    if len(path) > DEEPEST_PATH:
        return False
    for part in path:
        if type(part) is str:
            tally.size += _PLACEHOLDER + len(".")
            if not 0 < len(part) <= _SHORT_NAME:
                return False
        else:
            tally.size += _INDEX
            if type(part) is not int or not 0 <= part <= LARGEST_LIST_INDEX:
                return False
    return True


def _is_valid(value: AttributeValue) -> bool:
    if len(value) != 1:
        return False
    ((kind, content),) = value.items()
    # The commonest values, without a call.
    if kind == "S" or (kind == "N" and is_plain_number(content)):
        return True
    try:
        canonical(value)
    except ServiceError:
        return False
    return True


def _is_same_path(first: Operand, other: Operand) -> bool:
    return type(first) is Attr and type(other) is Attr and first.path == other.path


def _is_ordered(operand: Operand) -> bool:
    return type(operand) is not Const or next(iter(operand.value)) in ORDERED


def _is_prefixed(operand: Operand) -> bool:
    if type(operand) is Const:
        return next(iter(operand.value)) in _PREFIXED
    return type(operand) is Attr


def _is_range(low: AttributeValue, high: AttributeValue) -> bool:
    ((low_kind, low_content),) = canonical(low).items()
    ((high_kind, high_content),) = canonical(high).items()
    return low_kind == high_kind and sort_key(low_kind, low_content) <= sort_key(high_kind, high_content)
