"""Trees of parsed expressions, with placeholders.

A path or operand without placeholders is the bound tree's node already.
"""

from __future__ import annotations

from typing import Literal, Union

from solotable._expressions.ast import Attr, Comparator
from solotable._values.lazy_dataclass import dataclass


class Alias(str):
    """A placeholder of ExpressionAttributeNames, as part of a path."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class NamedPath:
    """A path with placeholders, or one that is too deep."""

    parts: tuple[str | int, ...]


UnboundPath = Union[Attr, NamedPath]


@dataclass(frozen=True, slots=True)
class Value:
    """A placeholder of ExpressionAttributeValues."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[UnboundOperand, ...]


UnboundOperand = Union[Attr, NamedPath, Value, Call]


@dataclass(frozen=True, slots=True)
class Comparison:
    comparator: Comparator
    left: UnboundOperand
    right: UnboundOperand


@dataclass(frozen=True, slots=True)
class Range:
    operand: UnboundOperand
    low: UnboundOperand
    high: UnboundOperand


@dataclass(frozen=True, slots=True)
class OneOf:
    operand: UnboundOperand
    options: tuple[UnboundOperand, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    term: UnboundCondition


@dataclass(frozen=True, slots=True)
class Conjunction:
    terms: tuple[UnboundCondition, ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    terms: tuple[UnboundCondition, ...]


UnboundCondition = Union[Comparison, Range, OneOf, Call, Negation, Conjunction, Disjunction]


@dataclass(frozen=True, slots=True)
class Sum:
    operator: Literal["+", "-"]
    left: UnboundOperand
    right: UnboundOperand


@dataclass(frozen=True, slots=True)
class Setting:
    path: UnboundPath
    value: UnboundOperand | Sum


@dataclass(frozen=True, slots=True)
class Removal:
    path: UnboundPath


@dataclass(frozen=True, slots=True)
class SetChange:
    """`ADD path value` or `DELETE path value`."""

    keyword: Literal["ADD", "DELETE"]
    path: UnboundPath
    value: Value


UnboundAction = Union[Setting, Removal, SetChange]


@dataclass(frozen=True, slots=True)
class UsedPlaceholders:
    """Every placeholder in an expression's text."""

    names: frozenset[str]
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class ParsedCondition:
    tree: UnboundCondition
    used: UsedPlaceholders


@dataclass(frozen=True, slots=True)
class ParsedUpdate:
    actions: tuple[UnboundAction, ...]
    used: UsedPlaceholders


@dataclass(frozen=True, slots=True)
class ParsedProjection:
    paths: tuple[UnboundPath, ...]
    used: UsedPlaceholders
