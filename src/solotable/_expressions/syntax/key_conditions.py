"""Compile key conditions to key terms, one for each key attribute.

Programs repeat a key condition with other values. Its errors depend on its text, its names and the types of
its values, so an outline without values is cached and filled in. BETWEEN and size() depend on the values:
those are bound each time, and so are invalid conditions. The engine checks the terms against the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from solotable._expressions.ast import (
    And,
    Attr,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Const,
    KeyCondition,
    KeyOperator,
    KeyTerm,
    Operand,
)
from solotable._values import AttributeValue
from solotable.errors import ServiceError, invalid

from .bind import bind_condition, check_used
from .parse import parse_condition
from .parse_cache import cache_trees
from .unbound import (
    Call,
    Comparison,
    Conjunction,
    Disjunction,
    Negation,
    OneOf,
    Range,
    UnboundCondition,
    UnboundOperand,
    Value,
)

#: Attribute name, operator, placeholder of the value.
_Outline = tuple[str, KeyOperator, str]

_MOST_PLACEHOLDERS = 8
_LONGEST_OUTLINE_NAME = 255
_FLIPPED: Final[dict[str, KeyOperator]] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compile_key(text: str, names: Mapping[str, str], values: Mapping[str, AttributeValue]) -> KeyCondition:
    """Return the terms of a key condition that is a request's only expression, or raise DynamoDB's error."""
    if len(names) + len(values) <= _MOST_PLACEHOLDERS:
        outlines = _find_outlines(
            text, tuple(names.items()), tuple([(name, *value) for name, value in values.items()])
        )
        if outlines is not None:
            return tuple([KeyTerm(name, operator, (values[value],)) for name, operator, value in outlines])
    return _bind(text, names, values)


def _bind(text: str, names: Mapping[str, str], values: Mapping[str, AttributeValue]) -> KeyCondition:
    parsed = parse_condition(text, "KeyConditionExpression")
    condition = bind_condition(parsed, "KeyConditionExpression", names, values)
    check_used(names, values, [parsed.used])
    return build_key_condition(parsed.tree, condition)


@cache_trees
def _find_outlines(
    text: str, names: tuple[tuple[str, str], ...], kinds: tuple[tuple[str, ...], ...]
) -> tuple[_Outline, ...] | None:
    """Return the outline of every term; None if the check depends on the values."""
    lower = text.lower()
    if "between" in lower or "size" in lower or any(len(name) > _LONGEST_OUTLINE_NAME for _, name in names):
        return None
    # Each value is its own placeholder.
    marked: dict[str, AttributeValue] = {name: {kind: name} for name, kind in kinds}
    try:
        terms = _bind(text, dict(names), marked)
    except ServiceError:
        return None
    return tuple((term.name, term.operator, next(iter(term.values[0].values()))) for term in terms)


def build_key_condition(written: UnboundCondition, bound: Condition) -> KeyCondition:
    """Return the terms of a key condition, or raise DynamoDB's error for it."""
    terms: dict[str, KeyTerm] = {}
    # DynamoDB: allows any grouping of ANDs.
    todo = [(written, bound)]
    while todo:
        wrote, node = todo.pop()
        if isinstance(wrote, Conjunction) and isinstance(node, And):
            todo.extend(zip(reversed(wrote.terms), reversed(node.terms), strict=True))
            continue
        term = _build_term(wrote, node)
        if term.name in terms:
            raise invalid(
                "Invalid KeyConditionExpression: "
                "KeyConditionExpressions must only contain one condition per key"
            )
        terms[term.name] = term
    return tuple(terms.values())


def _build_term(wrote: UnboundCondition, node: Condition) -> KeyTerm:
    match wrote, node:
        case Comparison(), Compare(comparator, left, right) if comparator != "<>":
            name = _find_only_name((wrote.left, left), (wrote.right, right))
            if isinstance(left, Attr):
                return KeyTerm(name, comparator, _values_of(right))
            return KeyTerm(name, _FLIPPED[comparator], _values_of(left))
        case Range(), Between(operand, low, high):
            _check_first("BETWEEN", wrote.operand)
            name = _find_only_name((wrote.operand, operand), (wrote.low, low), (wrote.high, high))
            return KeyTerm(name, "BETWEEN", _values_of(low, high))
        case Call(), BeginsWith(operand, prefix):
            _check_first("begins_with", wrote.arguments[0])
            name = _find_only_name((wrote.arguments[0], operand), (wrote.arguments[1], prefix))
            return KeyTerm(name, "begins_with", _values_of(prefix))
        case _:
            raise invalid(f"Invalid operator used in KeyConditionExpression: {_operator_name(wrote)}")


def _operator_name(wrote: UnboundCondition) -> str:
    match wrote:
        case Call(function):
            return function
        case Comparison(comparator):
            return comparator
        case OneOf():
            return "IN"
        case Negation():
            return "NOT"
        case Disjunction():
            return "OR"
        case _:
            raise AssertionError(wrote)


def _check_first(operator: str, operand: UnboundOperand) -> None:
    if isinstance(operand, Value):
        raise _invalid_condition(f"{operator} operator must have the key attribute as its first operand")


def _find_only_name(*operands: tuple[UnboundOperand, Operand]) -> str:
    """Return the only attribute name among the operands, checked from left to right."""
    name = ""
    for wrote, operand in operands:
        if isinstance(wrote, Call):
            raise invalid("KeyConditionExpressions cannot contain nested operations")
        if not isinstance(operand, Attr):
            continue
        if name:
            raise _invalid_condition("Multiple attribute names used in one condition")
        if len(operand.path) > 1:
            raise invalid(
                "Invalid KeyConditionExpression: "
                "KeyConditionExpressions cannot have conditions on nested attributes"
            )
        name = str(operand.path[0])
    if not name:
        raise _invalid_condition("No key attribute specified")
    return name


def _invalid_condition(message: str) -> ServiceError:
    return invalid(f"Invalid condition in KeyConditionExpression: {message}")


def _values_of(*operands: Operand) -> tuple[AttributeValue, ...]:
    return tuple(operand.value for operand in operands if isinstance(operand, Const))
