"""Trees of conditions, key conditions, projections and updates.

Expressions, legacy parameters and PartiQL all become these trees. They are bound: they hold attribute names
and canonical values, no placeholders.
"""

from __future__ import annotations

from typing import Literal, Union

from solotable._values import AttributeValue
from solotable._values.lazy_dataclass import dataclass

#: A document path: a top-level name, then map keys (str) and list indexes (int).
Path = tuple[Union[str, int], ...]

Comparator = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Attr:
    """The value at a path of the item, which may be missing."""

    path: Path


@dataclass(frozen=True, slots=True)
class Const:
    """A value of the request."""

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
    """Both conditions hold or neither does; only PartiQL can express it."""

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


#: The terms of a key condition in written order; the table's schema decides which is the partition key's.
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
    """The actions of one update, in written order.

    `creates` says whether the update creates a missing item. In DynamoDB an update that only removes does
    not, and an update without actions does.
    """

    actions: tuple[Action, ...]
    creates: bool
    #: Whether it came from AttributeUpdates, whose error texts differ.
    legacy: bool = False


#: The paths to return, in written order.
Projection = tuple[Path, ...]
