"""Trees of PartiQL statements, before parameters are bound and the table is known."""

from __future__ import annotations

from typing import Literal, Union

from solotable._values import AttributeValue
from solotable._values.lazy_dataclass import dataclass

from .syntax.lex import Spot

StatementKind = Literal["SELECT", "INSERT", "UPDATE", "DELETE"]
Returning = Literal["ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"]

#: A top-level name, then map keys (str) and list indexes (int).
Steps = tuple[Union[str, int], ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A literal; a number keeps its text from the statement."""

    value: AttributeValue
    spot: Spot


@dataclass(frozen=True, slots=True)
class Missing:
    spot: Spot


@dataclass(frozen=True, slots=True)
class Parameter:
    """A `?`; `position` counts from 0."""

    position: int
    spot: Spot


@dataclass(frozen=True, slots=True)
class Reference:
    """An attribute, or a path in it."""

    steps: Steps
    spot: Spot


@dataclass(frozen=True, slots=True)
class Members:
    """`[...]`, `<<...>>` or `(..., ...)`."""

    kind: Literal["List", "Bag", "Seq"]
    members: tuple[Expr, ...]
    spot: Spot
    height: int


@dataclass(frozen=True, slots=True)
class Struct:
    pairs: tuple[tuple[Expr, Expr], ...]
    spot: Spot
    height: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function call, with its name in lower case."""

    name: str
    operands: tuple[Expr, ...]
    spot: Spot
    height: int


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator with its operands: and, or, not, between, in, like, comparisons, arithmetic."""

    operator: str
    operands: tuple[Expr, ...]
    spot: Spot
    height: int


@dataclass(frozen=True, slots=True)
class TypeTest:
    """`operand IS type`; `type` is the type's name in lower case."""

    operand: Expr
    type: str
    spot: Spot
    height: int


Expr = Union[Scalar, Missing, Parameter, Reference, Members, Struct, Call, Operation, TypeTest]

#: DynamoDB's names of trees in its errors.
TREE_NAMES = {
    Scalar: "Literal",
    Missing: "MISSING",
    Parameter: "Parameter",
    Struct: "Struct",
    TypeTest: "IsType",
}


@dataclass(frozen=True, slots=True)
class OrderTerm:
    expr: Expr
    ascending: bool


@dataclass(frozen=True, slots=True)
class SetClause:
    target: Steps
    value: Expr


@dataclass(frozen=True, slots=True)
class RemoveClause:
    target: Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A parsed statement; its kind decides which clauses it has."""

    kind: StatementKind
    table: str
    index: str | None = None
    #: The number of `?`.
    parameters: int = 0
    #: None for `*`.
    columns: tuple[Expr, ...] | None = None
    where: Expr | None = None
    order: tuple[OrderTerm, ...] = ()
    item: Expr | None = None
    changes: tuple[SetClause | RemoveClause, ...] = ()
    returning: Returning | None = None
    #: Whether the statement is `EXISTS(SELECT ...)`.
    exists: bool = False


def height_of(expr: Expr) -> int:
    """Return the height of a tree."""
    match expr:
        case Scalar() | Missing() | Parameter() | Reference():
            return 0
        case _:
            return expr.height
