"""Convert SET and REMOVE clauses to update trees, and check them without reading an item."""

from __future__ import annotations

from typing import Final, Literal, cast

from solotable._expressions.ast import (
    Action,
    Add,
    Arithmetic,
    Assign,
    Attr,
    Const,
    Delete,
    IfNotExists,
    ListAppend,
    Path,
    Remove,
    SetOperand,
    Update,
)
from solotable._expressions.path_overlap import format_path
from solotable._values import SETS, AttributeValue, kind_of
from solotable.errors import ServiceError, invalid

from .ast import Call, Expr, Missing, Operation, Reference, RemoveClause, SetClause
from .literals import is_value, value_of

_CONDITION_FUNCTIONS: Final = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size"}
)


class Updates:
    """Converts the clauses of one UPDATE to an update tree."""

    def __init__(self, parameters: tuple[AttributeValue, ...]) -> None:
        self._parameters = parameters

    def update(self, changes: tuple[SetClause | RemoveClause, ...]) -> Update:
        """Return the update; reject clauses with overlapping paths."""
        actions = tuple(self._action(change) for change in changes)
        check_overlaps([change.target for change in changes])
        return Update(actions, creates=any(isinstance(action, Assign | Add) for action in actions))

    def _action(self, change: SetClause | RemoveClause) -> Action:
        if isinstance(change, RemoveClause):
            return Remove(change.target)
        value = change.value
        if isinstance(value, Call) and value.name in ("set_add", "set_delete"):
            members = self._set_members(value, change.target)
            return (Add if value.name == "set_add" else Delete)(change.target, members)
        return Assign(change.target, self._operand(value))

    def _set_members(self, call: Call, target: Path) -> AttributeValue:
        name = call.name.upper()
        if len(call.operands) != 2:
            raise invalid(f"{name} must have exactly two arguments at {call.spot}")
        first, second = call.operands
        if not isinstance(first, Reference) or first.steps != target:
            raise invalid(f"The first argument to {name} must equal the assignment value at {call.spot}")
        members = value_of(second, self._parameters) if is_value(second) else {}
        if not members.keys() & SETS:
            # DynamoDB: the error points to the first argument.
            raise invalid(f"The second argument to {name} must be a value with type SET at {first.spot}")
        return members

    def _operand(self, expr: Expr) -> SetOperand:
        match expr:
            case Reference():
                return Attr(expr.steps)
            case Missing():
                raise invalid("MISSING must be compared using IS operator")
            case Operation("+" | "-" as operator, operands):
                return self._arithmetic(operator, operands)
            case Operation():
                raise invalid(f"Unsupported operator in Update Expression. Operator: {expr.operator}")
            case Call():
                return self._function(expr)
            case _ if is_value(expr):
                return Const(value_of(expr, self._parameters))
            case _:
                raise invalid("Unsupported operator in Update Expression. Operator: is")

    def _arithmetic(self, operator: str, operands: tuple[Expr, ...]) -> SetOperand:
        if len(operands) != 2:
            raise _operand_count(operator, len(operands))
        left, right = (self._operand(operand) for operand in operands)
        for operand in (left, right):
            if isinstance(operand, Const) and kind_of(operand.value) != "N":
                raise _operand_type(operator, kind_of(operand.value))
        return Arithmetic(cast(Literal["+", "-"], operator), left, right)

    def _function(self, call: Call) -> SetOperand:
        if call.name in _CONDITION_FUNCTIONS:
            raise invalid(f"The function is not allowed in an update expression; function: {call.name}")
        if call.name not in ("list_append", "if_not_exists"):
            raise invalid(f"Unrecognized function: {call.name} at {call.spot}")
        if len(call.operands) != 2:
            raise _operand_count(call.name, len(call.operands))
        left, right = (self._operand(operand) for operand in call.operands)
        if call.name == "if_not_exists":
            if not isinstance(left, Attr):
                raise invalid(
                    "Operator or function requires a document path; operator or function: if_not_exists"
                )
            return IfNotExists(left.path, right)
        for operand in (left, right):
            if isinstance(operand, Const) and kind_of(operand.value) != "L":
                raise _operand_type("list_append", kind_of(operand.value))
        return ListAppend(left, right)


def check_overlaps(paths: list[Path]) -> None:
    """Reject two paths if one contains the other, or if one needs a list and the other a map."""
    seen: dict[Path, Path] = {}
    inner: dict[Path, Path] = {}
    for path in paths:
        prefixes = [path[:length] for length in range(1, len(path))]
        clash = inner.get(path) or next(
            (seen[prefix] for prefix in (*prefixes, path) if prefix in seen), None
        )
        if clash is not None:
            raise _two_paths("overlap", path, clash)
        for prefix in prefixes:
            other = inner.get(prefix)
            if other is not None and type(other[len(prefix)]) is not type(path[len(prefix)]):
                raise _two_paths("conflict", path, other)
        seen[path] = path
        for prefix in prefixes:
            inner.setdefault(prefix, path)


def _two_paths(how: str, one: Path, two: Path) -> ServiceError:
    # DynamoDB: path one is the later of the two.
    return invalid(
        f"Two document paths {how} with each other; must remove or rewrite one of these paths; "
        f"path one: {format_path(one)}, path two: {format_path(two)}"
    )


def _operand_count(function: str, count: int) -> ServiceError:
    return invalid(
        "Incorrect number of operands for operator or function; "
        f"operator or function: {function}, number of operands: {count}"
    )


def _operand_type(operator: str, kind: str) -> ServiceError:
    return invalid(
        "Incorrect operand type for operator or function; "
        f"operator or function: {operator}, operand type: {kind}"
    )
