"""Convert WHERE clauses to condition trees, and check them without reading an item.

The checks and error texts are those of condition expressions, but without the parameter's name.
"""

from __future__ import annotations

from typing import Final, cast

from solotable._expressions.ast import (
    And,
    Attr,
    BeginsWith,
    Between,
    Comparator,
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
    Same,
    Size,
    TypeIs,
)
from solotable._expressions.path_overlap import format_path
from solotable._values import ORDERED, TYPES, AttributeValue, kind_of, sort_key, text_size, value_size
from solotable._values.limits import MOST_IN_OPERANDS
from solotable.errors import ServiceError, invalid

from .ast import Call, Expr, Members, Missing, Operation, Parameter, Reference, Scalar, TypeTest
from .literals import is_value, value_of
from .syntax.reserved_words import TYPE_NAMES, UNSUPPORTED_TYPE_NAMES

_NO_BOOLEAN = "WHERE clause must contain an expression that resolves to a boolean"
_BAD_IN = (
    "IN operator must have a left hand argument of type Variable Reference "
    "and right hand argument of type Seq with at least one member"
)
_COMPARATORS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
_CONDITION_FUNCTIONS: Final = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
}
_UPDATE_FUNCTIONS: Final = frozenset({"if_not_exists", "list_append"})
_IS_TYPES = "[MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST]"


class Conditions:
    """Converts the WHERE clause of one statement to a condition."""

    def __init__(self, parameters: tuple[AttributeValue, ...]) -> None:
        self._parameters = parameters

    def where(self, expr: Expr) -> Condition:
        """Return the condition of a WHERE clause."""
        if not _is_condition(expr):
            if isinstance(expr, Call | Operation):
                self.operand(expr)
            raise invalid(_NO_BOOLEAN)
        return self._condition(expr)

    def _condition(self, expr: Expr) -> Condition:
        match expr:
            case Operation("and" | "or" as operator, operands):
                terms = tuple(self._argument(operand, operator) for operand in operands)
                return And(terms) if operator == "and" else Or(terms)
            case Operation("not", (operand,)):
                if not _is_condition(operand):
                    if isinstance(operand, Call | Operation):
                        self.operand(operand)
                    raise invalid("The argument to NOT must be a Type or Expression")
                return Not(self._condition(operand))
            case Operation("between", (operand, low, high)):
                return self._between(operand, low, high)
            case Operation("in", (operand, options)):
                return self._in(operand, options)
            case Operation(operator, (left, right)) if operator in _COMPARATORS:
                return self._compare(cast(Comparator, operator), left, right)
            case TypeTest():
                return self._type_test(expr)
            case Call():
                return self._function(expr)
            case _:
                raise invalid(_NO_BOOLEAN)

    def _argument(self, expr: Expr, operator: str) -> Condition:
        if _is_condition(expr):
            return self._condition(expr)
        if isinstance(expr, Call | Operation):
            self.operand(expr)
            raise _operand_type(operator.upper(), "N")
        raise invalid("The arguments to AND/OR must be Expressions")

    def operand(self, expr: Expr) -> Operand:
        """Return an attribute, a value or a size."""
        match expr:
            case Reference():
                return Attr(expr.steps)
            case Missing():
                raise invalid("MISSING must be compared using IS operator")
            case Call(name="size"):
                return self._size(expr)
            case Call():
                raise _no_function(expr)
            case Operation() if not _is_condition(expr):
                raise invalid(f"Unsupported operator in Condition Expression. Operator: {expr.operator}")
            case _ if is_value(expr):
                return Const(value_of(expr, self._parameters))
            case _:
                raise invalid(_NO_BOOLEAN)

    def _compare(self, comparator: Comparator, left: Expr, right: Expr) -> Condition:
        if _is_condition(left) or _is_condition(right):
            return self._compare_truths(comparator, left, right)
        operands = self.operand(left), self.operand(right)
        if comparator not in ("=", "<>"):
            for operand in operands:
                _check_ordered(operand, comparator)
        _check_distinct(comparator, *operands)
        return Compare(comparator, *operands)

    def _compare_truths(self, comparator: Comparator, left: Expr, right: Expr) -> Condition:
        # DynamoDB allows `contains(a, 'x') = true`, and comparing two conditions for equality.
        if comparator not in ("=", "<>"):
            raise _operand_type(comparator, "BOOL")
        one, other = self._truth(left), self._truth(right)
        if isinstance(one, bool):
            one, other = other, one
        if isinstance(one, bool):
            raise invalid(_NO_BOOLEAN)
        if isinstance(other, bool):
            return one if other is (comparator == "=") else Not(one)
        same = Same(one, other)
        return same if comparator == "=" else Not(same)

    def _truth(self, expr: Expr) -> Condition | bool:
        if _is_condition(expr):
            return self._condition(expr)
        match self.operand(expr):
            case Const({"BOOL": bool(truth)}):
                return truth
            case _:
                raise invalid(_NO_BOOLEAN)

    def _between(self, operand: Expr, low: Expr, high: Expr) -> Condition:
        subject, bottom, top = self.operand(operand), self.operand(low), self.operand(high)
        for each in (subject, bottom, top):
            _check_ordered(each, "BETWEEN")
        if isinstance(bottom, Const) and isinstance(top, Const):
            _check_bounds(bottom.value, top.value)
        return Between(subject, bottom, top)

    def _in(self, operand: Expr, options: Expr) -> Condition:
        members = options.members if isinstance(options, Members) else ()
        if not members:
            raise invalid(_BAD_IN)
        if len(members) > MOST_IN_OPERANDS:
            raise invalid(
                f"The IN operator is provided with too many operands; number of operands: {len(members)}"
            )
        subject = self.operand(operand)
        choices = tuple(self.operand(member) for member in members)
        _check_distinct("IN", subject, *choices)
        return In(subject, choices)

    def _type_test(self, expr: TypeTest) -> Condition:
        if expr.type in UNSUPPORTED_TYPE_NAMES:
            raise invalid(
                f"Unsupported data type for IS operator: {UNSUPPORTED_TYPE_NAMES[expr.type]}. "
                f"Supported data types are {_IS_TYPES} at {expr.spot}"
            )
        if isinstance(expr.operand, Parameter) or not isinstance(expr.operand, Reference | Scalar):
            raise invalid("The left hand side argument to IS must be a Variable Reference, Literal, or Path")
        kind = TYPE_NAMES[expr.type]
        operand = self.operand(expr.operand)
        if kind == "MISSING":
            if not isinstance(operand, Attr):
                raise _needs_path("attribute_not_exists")
            return Not(Exists(operand.path))
        return TypeIs(operand, kind)

    def _function(self, call: Call) -> Condition:
        count = _CONDITION_FUNCTIONS.get(call.name)
        if count is None:
            raise _no_function(call)
        if len(call.operands) != count:
            raise _operand_count(call.name, len(call.operands))
        operands = tuple(self.operand(operand) for operand in call.operands)
        match call.name:
            case "attribute_exists" | "attribute_not_exists":
                path = _path(operands[0], call.name)
                return Exists(path) if call.name == "attribute_exists" else Not(Exists(path))
            case "attribute_type":
                return TypeIs(operands[0], _type_name(operands[1]))
        _check_distinct(call.name, *operands)
        if call.name == "contains":
            return Contains(operands[0], operands[1])
        for operand in operands:
            if isinstance(operand, Const) and kind_of(operand.value) not in ("S", "B"):
                raise _operand_type("begins_with", kind_of(operand.value))
        return BeginsWith(operands[0], operands[1])

    def _size(self, call: Call) -> Operand:
        if len(call.operands) != 1:
            raise _operand_count("size", len(call.operands))
        match self.operand(call.operands[0]):
            case Attr() as attribute:
                return Size(attribute)
            case Const(value):
                return Const({"N": str(_constant_size(value))})
            case _:
                raise invalid(
                    "The function is not allowed to be used this way in an expression; function: size"
                )


def _is_condition(expr: Expr) -> bool:
    match expr:
        case TypeTest():
            return True
        case Operation(operator):
            return operator in _COMPARATORS or operator in ("and", "or", "not", "between", "in")
        case Call(name):
            return name != "size" and name not in _UPDATE_FUNCTIONS
        case _:
            return False


def _constant_size(value: AttributeValue) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return text_size(content)
        case "B":
            return value_size(value)
        case "N" | "BOOL" | "NULL":
            raise _operand_type("size", kind)
        case _:
            return len(content)


def _type_name(operand: Operand) -> str:
    match operand:
        case Const({"S": str(name)}):
            if name not in TYPES:
                raise invalid(
                    f"Invalid attribute type name found; type: {name}, "
                    "valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"
                )
            return name
        case Const(value):
            raise _operand_type("attribute_type", kind_of(value))
        case _:
            # DynamoDB lists every type that an attribute may have.
            raise _operand_type("attribute_type", "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}")


def _path(operand: Operand, function: str) -> Path:
    if not isinstance(operand, Attr):
        raise _needs_path(function)
    return operand.path


def _check_ordered(operand: Operand, operator: str) -> None:
    if isinstance(operand, Const) and kind_of(operand.value) not in ORDERED:
        raise _operand_type(operator, kind_of(operand.value))


def _check_distinct(operator: str, first: Operand, *others: Operand) -> None:
    if isinstance(first, Attr) and first in others:
        raise invalid(
            "The first operand must be distinct from the remaining operands for this operator or function; "
            f"operator: {operator}, first operand: {format_path(first.path)}"
        )


def _check_bounds(low: AttributeValue, high: AttributeValue) -> None:
    ((low_kind, low_content),) = low.items()
    ((high_kind, high_content),) = high.items()
    bounds = (
        f"lower bound operand: AttributeValue: {{{low_kind}:{low_content}}}, "
        f"upper bound operand: AttributeValue: {{{high_kind}:{high_content}}}"
    )
    if low_kind != high_kind:
        raise invalid(f"The BETWEEN operator requires same data type for lower and upper bounds; {bounds}")
    if sort_key(low_kind, low_content) > sort_key(high_kind, high_content):
        raise invalid(
            f"The BETWEEN operator requires upper bound to be greater than or equal to lower bound; {bounds}"
        )


def _no_function(call: Call) -> ServiceError:
    if call.name in _UPDATE_FUNCTIONS:
        return invalid(f"The function is not allowed in a condition expression; function: {call.name}")
    return invalid(f"Unrecognized function: {call.name} at {call.spot}")


def _needs_path(function: str) -> ServiceError:
    return invalid(f"Operator or function requires a document path; operator or function: {function}")


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
