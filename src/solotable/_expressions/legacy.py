"""Convert legacy parameters to trees: Expected, QueryFilter, ScanFilter, KeyConditions and others.

Callers have checked the JSON types. Values become canonical here. The engine checks key attributes.
"""

from __future__ import annotations

from typing import Any, Final

from solotable._values import ORDERED, SETS, AttributeValue, canonical, check_name, kind_of, sort_key
from solotable.errors import invalid, invalid_parameter

from .ast import (
    Action,
    Add,
    And,
    Assign,
    Attr,
    BeginsWith,
    Between,
    Comparator,
    Compare,
    Condition,
    Const,
    Contains,
    Delete,
    Exists,
    In,
    KeyCondition,
    KeyOperator,
    KeyTerm,
    Not,
    Or,
    Projection,
    Remove,
    Update,
)

_COMPARATORS: Final[dict[str, Comparator]] = {
    "EQ": "=",
    "NE": "<>",
    "LE": "<=",
    "LT": "<",
    "GE": ">=",
    "GT": ">",
}
_KEY_OPERATORS: Final[dict[str, KeyOperator]] = {
    "EQ": "=",
    "LE": "<=",
    "LT": "<",
    "GE": ">=",
    "GT": ">",
    "BEGINS_WITH": "begins_with",
    "BETWEEN": "BETWEEN",
}
_COUNTS: Final = {"NULL": 0, "NOT_NULL": 0, "BETWEEN": 2}
# DynamoDB: EQ and NE take every type.
_TYPES: Final = {
    "LE": ORDERED,
    "LT": ORDERED,
    "GE": ORDERED,
    "GT": ORDERED,
    "IN": ORDERED,
    "BETWEEN": ORDERED,
    "BEGINS_WITH": frozenset({"S", "B"}),
    "CONTAINS": ORDERED | {"BOOL", "NULL"},
    "NOT_CONTAINS": ORDERED | {"BOOL", "NULL"},
}


def condition_from_expected(expected: dict[str, Any], operator: str | None) -> Condition:
    """Return the condition of Expected; `operator` is ConditionalOperator."""
    return _join(
        [_build_expectation(check_name(name), wanted) for name, wanted in expected.items()], operator
    )


def filter_from_conditions(conditions: dict[str, Any], operator: str | None) -> Condition:
    """Return the condition of QueryFilter or ScanFilter."""
    return _join(
        [_build_filter(check_name(name), condition) for name, condition in conditions.items()], operator
    )


def key_from_conditions(conditions: dict[str, Any]) -> KeyCondition:
    """Return the terms of KeyConditions."""
    triples = [
        (check_name(name), condition["ComparisonOperator"], _read_arguments(condition))
        for name, condition in conditions.items()
    ]
    terms = []
    for name, comparison, values in triples:
        operator = _KEY_OPERATORS.get(comparison)
        if operator is None:
            raise invalid("Attempted conditional constraint is not an indexable operation")
        terms.append(KeyTerm(name, operator, values))
    return tuple(terms)


def update_from_attribute_updates(updates: dict[str, Any]) -> Update:
    """Return the update of AttributeUpdates; an empty one creates a missing item."""
    actions = tuple(_build_action(check_name(name), update) for name, update in updates.items())
    only_removes = bool(actions) and all(isinstance(action, (Remove, Delete)) for action in actions)
    return Update(actions, creates=not only_removes, legacy=True)


def projection_from_attributes(names: list[str]) -> Projection:
    """Return the paths of AttributesToGet; each is the whole name of an attribute, dots included."""
    seen: set[str] = set()
    for name in names:
        if check_name(name) in seen:
            raise invalid_parameter(f"Duplicate value in attribute name: {name}")
        seen.add(name)
    return tuple((name,) for name in names)


def _join(terms: list[Condition], operator: str | None) -> Condition:
    if len(terms) == 1:
        return terms[0]
    return Or(tuple(terms)) if operator == "OR" and terms else And(tuple(terms))


def _build_filter(name: str, condition: dict[str, Any]) -> Condition:
    return _build_test(name, condition["ComparisonOperator"], _read_arguments(condition))


def _read_arguments(condition: dict[str, Any]) -> tuple[AttributeValue, ...]:
    values = tuple(canonical(value) for value in condition.get("AttributeValueList") or ())
    _check_arguments(condition["ComparisonOperator"], values)
    return values


def _build_expectation(name: str, wanted: dict[str, Any]) -> Condition:
    value, listed = wanted.get("Value"), wanted.get("AttributeValueList")
    exists, comparison = wanted.get("Exists"), wanted.get("ComparisonOperator")
    if value is not None and listed is not None:
        raise invalid_parameter(f"Value and AttributeValueList cannot be used together for Attribute: {name}")
    if comparison is None:
        if listed is not None:
            raise invalid_parameter(
                f"AttributeValueList can only be used with a ComparisonOperator for Attribute: {name}"
            )
        return _build_presence(name, exists, value)
    if exists is not None:
        raise invalid_parameter(
            f"Exists and ComparisonOperator cannot be used together for Attribute: {name}"
        )
    if value is None and listed is None and comparison not in ("NULL", "NOT_NULL"):
        raise invalid_parameter(
            f"Value or AttributeValueList must be used with ComparisonOperator: {comparison} "
            f"for Attribute: {name}"
        )
    given = [value] if value is not None else listed
    return _build_test(
        name, comparison, _read_arguments({"ComparisonOperator": comparison, "AttributeValueList": given})
    )


def _build_presence(name: str, exists: bool | None, value: AttributeValue | None) -> Condition:
    if exists is False:
        if value is not None:
            raise invalid_parameter(f"Value cannot be used when Exists is false for Attribute: {name}")
        return Not(Exists((name,)))
    if value is None:
        shown = "null" if exists is None else "true"
        raise invalid_parameter(f"Value must be provided when Exists is {shown} for Attribute: {name}")
    return Compare("=", Attr((name,)), Const(canonical(value)))


def _check_arguments(comparison: str, values: tuple[AttributeValue, ...]) -> None:
    wanted = _COUNTS.get(comparison, 1)
    if len(values) < 1 if comparison == "IN" else len(values) != wanted:
        raise invalid_parameter(f"Invalid number of argument(s) for the {comparison} ComparisonOperator")
    kinds = [kind_of(value) for value in values]
    allowed = _TYPES.get(comparison)
    for kind in kinds:
        if allowed is not None and kind not in allowed:
            raise invalid_parameter(
                f"ComparisonOperator {comparison} is not valid for {kind} AttributeValue type"
            )
    if len(set(kinds)) > 1:
        raise invalid_parameter("AttributeValues inside AttributeValueList must be of same type")
    if comparison == "BETWEEN":
        low, high = (sort_key(kinds[0], value[kinds[0]]) for value in values)
        if low > high:
            raise invalid(
                "The BETWEEN condition was provided a range where the lower bound is greater than "
                "the upper bound"
            )


def _build_test(name: str, comparison: str, values: tuple[AttributeValue, ...]) -> Condition:
    attribute = Attr((name,))
    operands = tuple(Const(value) for value in values)
    match comparison:
        case "NULL":
            return Not(Exists((name,)))
        case "NOT_NULL":
            return Exists((name,))
        case "BETWEEN":
            return Between(attribute, operands[0], operands[1])
        case "IN":
            return In(attribute, operands)
        case "BEGINS_WITH":
            return BeginsWith(attribute, operands[0])
        case "CONTAINS":
            return Contains(attribute, operands[0])
        case "NOT_CONTAINS":
            # DynamoDB: a missing attribute neither contains a value nor does not contain it.
            return And((Exists((name,)), Not(Contains(attribute, operands[0]))))
        case _:
            return Compare(_COMPARATORS[comparison], attribute, operands[0])


def _build_action(name: str, update: dict[str, Any]) -> Action:
    action = update.get("Action") or "PUT"
    given = update.get("Value")
    if given is None:
        if action != "DELETE":
            raise invalid_parameter("Only DELETE action is allowed when no attribute value is specified")
        return Remove((name,))
    value = canonical(given)
    kind = kind_of(value)
    if action == "PUT":
        return Assign((name,), Const(value))
    if action == "DELETE":
        if kind not in SETS:
            raise invalid_parameter(f"DELETE action with value is not supported for the type {kind}")
        return Delete((name,), value)
    if kind not in SETS and kind not in ("N", "L"):
        raise invalid_parameter(f"ADD action is not supported for the type {kind}")
    return Add((name,), value, to_list=kind == "L")
