"""Conditions on attributes of an item, by attribute name; for fields of an entity use `condition`.

>>> from solotable.flow.conditions import all_of, at_most, equals, missing, any_of
>>> free = all_of(equals("status", "open"), any_of(missing("used"), at_most("used", 9)))
"""

from __future__ import annotations

from typing import Any

from solotable._expressions.ast import (
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
    KeyTerm,
    Not,
    Or,
)

from .codec import encode_value

__all__ = [
    "Condition",
    "KeyTerm",
    "all_of",
    "any_of",
    "at_least",
    "at_most",
    "begins_with",
    "between",
    "contains",
    "differs",
    "equals",
    "exists",
    "greater_than",
    "key_begins_with",
    "key_equals",
    "less_than",
    "missing",
    "none_of",
    "one_of",
]


def equals(name: str, value: Any) -> Condition:
    """Require that an attribute has a value."""
    return Compare("=", Attr((name,)), Const(encode_value(value)))


def differs(name: str, value: Any) -> Condition:
    """Require that an attribute has another value, or is absent."""
    return Compare("<>", Attr((name,)), Const(encode_value(value)))


def less_than(name: str, value: Any) -> Condition:
    """Require that an attribute is less than a value."""
    return Compare("<", Attr((name,)), Const(encode_value(value)))


def at_most(name: str, value: Any) -> Condition:
    """Require that an attribute is less than a value, or equal to it."""
    return Compare("<=", Attr((name,)), Const(encode_value(value)))


def greater_than(name: str, value: Any) -> Condition:
    """Require that an attribute is greater than a value."""
    return Compare(">", Attr((name,)), Const(encode_value(value)))


def at_least(name: str, value: Any) -> Condition:
    """Require that an attribute is greater than a value, or equal to it."""
    return Compare(">=", Attr((name,)), Const(encode_value(value)))


def between(name: str, low: Any, high: Any) -> Condition:
    """Require that an attribute is in a range, both ends included."""
    return Between(Attr((name,)), Const(encode_value(low)), Const(encode_value(high)))


def one_of(name: str, *values: Any) -> Condition:
    """Require that an attribute has one of some values."""
    return In(Attr((name,)), tuple(Const(encode_value(value)) for value in values))


def begins_with(name: str, prefix: str) -> Condition:
    """Require that a string attribute begins with a prefix."""
    return BeginsWith(Attr((name,)), Const({"S": prefix}))


def contains(name: str, member: Any) -> Condition:
    """Require that a string, list or set attribute contains a value."""
    return Contains(Attr((name,)), Const(encode_value(member)))


def exists(name: str) -> Condition:
    """Require that an item has an attribute."""
    return Exists((name,))


def missing(name: str) -> Condition:
    """Require that an item does not have an attribute."""
    return Not(Exists((name,)))


def all_of(*conditions: Condition) -> Condition:
    """Require all of some conditions."""
    return conditions[0] if len(conditions) == 1 else And(conditions)


def any_of(*conditions: Condition) -> Condition:
    """Require at least one of some conditions."""
    return conditions[0] if len(conditions) == 1 else Or(conditions)


def none_of(*conditions: Condition) -> Condition:
    """Require that none of some conditions holds."""
    return Not(any_of(*conditions))


def key_equals(name: str, value: Any) -> KeyTerm:
    """Return the term of a Query's `key` that a key attribute has a value."""
    return KeyTerm(name, "=", (encode_value(value),))


def key_begins_with(name: str, prefix: str) -> KeyTerm:
    """Return the term of a Query's `key` that a string sort key begins with a prefix."""
    return KeyTerm(name, "begins_with", ({"S": prefix},))
