"""The trees that DynamoDB's expressions, its legacy parameters and PartiQL all become.

Trees are bound: names are attribute names and values are canonical, no placeholder is left.
Nothing here parses, checks or evaluates.
"""

from __future__ import annotations

from typing import Literal, Union

from solotable._values import AttributeValue
from solotable._values.lazy_dataclass import dataclass

#: Where an attribute is: a top-level name, then map keys (str) and list places (int).
Path = tuple[Union[str, int], ...]

Comparator = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Attr:
    """The value at a path of the item; may be missing."""

    path: Path


@dataclass(frozen=True, slots=True)
class Const:
    """A value that came with the request."""

    value: AttributeValue


@dataclass(frozen=True, slots=True)
class Size:
    """`size(path)`; missing when the operand is missing or has no size."""

    operand: Attr


Operand = Union[Attr, Const, Size]


@dataclass(frozen=True, slots=True)
class Compare:
    comparator: Comparator
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Between:
    operand: Operand
    low: Operand
    high: Operand


@dataclass(frozen=True, slots=True)
class In:
    operand: Operand
    options: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """`attribute_exists(path)`."""

    path: Path


@dataclass(frozen=True, slots=True)
class TypeIs:
    """`attribute_type(path, type)`."""

    operand: Operand
    kind: str


@dataclass(frozen=True, slots=True)
class BeginsWith:
    operand: Operand
    prefix: Operand


@dataclass(frozen=True, slots=True)
class Contains:
    operand: Operand
    member: Operand


@dataclass(frozen=True, slots=True)
class Not:
    condition: Condition


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Same:
    """Both conditions hold or neither does; only PartiQL can say that."""

    left: Condition
    right: Condition


Condition = Union[Compare, Between, In, Exists, TypeIs, BeginsWith, Contains, Not, And, Or, Same]


KeyOperator = Literal["=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"]


@dataclass(frozen=True, slots=True)
class KeyTerm:
    """One condition on one key attribute; BETWEEN has two values, everything else one."""

    name: str
    operator: KeyOperator
    values: tuple[AttributeValue, ...]


#: The terms of a key condition in the order they were written; which one is the partition's is
#: decided against the table's schema.
KeyCondition = tuple[KeyTerm, ...]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: Literal["+", "-"]
    left: SetOperand
    right: SetOperand


@dataclass(frozen=True, slots=True)
class IfNotExists:
    path: Path
    default: SetOperand


@dataclass(frozen=True, slots=True)
class ListAppend:
    left: SetOperand
    right: SetOperand


SetOperand = Union[Attr, Const, Arithmetic, IfNotExists, ListAppend]


@dataclass(frozen=True, slots=True)
class Assign:
    """`SET path = operand`."""

    path: Path
    operand: SetOperand


@dataclass(frozen=True, slots=True)
class Remove:
    """`REMOVE path`."""

    path: Path


@dataclass(frozen=True, slots=True)
class Add:
    """`ADD path value`: a number to a number, members to a set.

    `to_list` is the legacy AttributeUpdates action, which also appends to a list.
    """

    path: Path
    value: AttributeValue
    to_list: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """`DELETE path value`: members from a set."""

    path: Path
    value: AttributeValue


Action = Union[Assign, Remove, Add, Delete]


@dataclass(frozen=True, slots=True)
class Update:
    """The actions of one update, in the order they were written.

    `creates` says whether an update of a missing item makes one: DynamoDB does not for an update
    that only removes, and does for one with no actions at all.
    """

    actions: tuple[Action, ...]
    creates: bool
    #: Came from AttributeUpdates, whose refusals read differently.
    legacy: bool = False


#: The paths to keep, in the order they were written.
Projection = tuple[Path, ...]
