"""Bind placeholders: unbound trees to bound trees, with DynamoDB's checks in DynamoDB's order.

Values must be canonical. The engine checks which attributes are keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from solotable._expressions.ast import (
    Action,
    Add,
    And,
    Arithmetic,
    Assign,
    Attr,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Const,
    Contains,
    Delete,
    Exists,
    IfNotExists,
    In,
    ListAppend,
    Not,
    Operand,
    Or,
    Path,
    Projection,
    Remove,
    SetOperand,
    Size,
    TypeIs,
    Update,
)
from solotable._expressions.evaluate import size_of
from solotable._expressions.path_overlap import find_clash, format_path, hashed_order
from solotable._values import ORDERED, SETS, TYPES, AttributeValue, kind_of, sort_key
from solotable._values.limits import DEEPEST_PATH, MOST_IN_OPERANDS
from solotable.errors import ServiceError, invalid

from .grammar import Label, invalid_expression
from .unbound import (
    Alias,
    Call,
    Comparison,
    Conjunction,
    Disjunction,
    NamedPath,
    Negation,
    OneOf,
    ParsedCondition,
    ParsedProjection,
    ParsedUpdate,
    Range,
    Removal,
    SetChange,
    Setting,
    Sum,
    UnboundAction,
    UnboundCondition,
    UnboundOperand,
    UnboundPath,
    UsedPlaceholders,
    Value,
)

_ARGUMENTS = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
    "if_not_exists": 2,
    "list_append": 2,
    "size": 1,
}
_SIZELESS = frozenset({"N", "BOOL", "NULL"})
_PREFIXED = frozenset({"S", "B"})
_LONG_NAMES = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "NULL": "NULL",
    "BOOL": "BOOLEAN",
    "L": "LIST",
    "M": "MAP",
}
# DynamoDB: in the order of its hash tables.
_ANY_TYPE = "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"
_TYPE_NAMES = "{B,NULL,SS,BOOL,L,BS,N,NS,S,M}"


def bind_condition(
    parsed: ParsedCondition, label: Label, names: Mapping[str, str], values: Mapping[str, AttributeValue]
) -> Condition:
    """Return the condition with its placeholders replaced."""
    return _Binder(label, names, values).condition(parsed.tree)


def bind_projection(parsed: ParsedProjection, names: Mapping[str, str]) -> Projection:
    """Return the paths of a projection; no two of them may overlap."""
    binder = _Binder("ProjectionExpression", names, {})
    paths = tuple(binder.path(path) for path in parsed.paths)
    binder.check_apart(paths)
    return paths


def bind_update(
    parsed: ParsedUpdate, names: Mapping[str, str], values: Mapping[str, AttributeValue]
) -> Update:
    """Return the update with its placeholders replaced; the paths of two actions may not overlap."""
    binder = _Binder("UpdateExpression", names, values)
    # DynamoDB: checks the last action first, and all paths before any value.
    paths = [binder.path(action.path) for action in reversed(parsed.actions)]
    binder.check_apart(tuple(reversed(paths)))
    bound = [
        binder.action(action, path) for action, path in zip(reversed(parsed.actions), paths, strict=True)
    ]
    creates = not all(type(action) in (Remove, Delete) for action in bound)
    return Update(tuple(reversed(bound)), creates)


def check_used(names: Iterable[str], values: Iterable[str], used: list[UsedPlaceholders]) -> None:
    """Reject placeholders of a request that none of its expressions mentions."""
    _check_used("Names", names, [mentioned.names for mentioned in used])
    _check_used("Values", values, [mentioned.values for mentioned in used])


def _check_used(kind: str, given: Iterable[str], used: list[frozenset[str]]) -> None:
    if len(used) == 1 and used[0].issuperset(given):
        return
    unused = [key for key in given if not any(key in mentioned for mentioned in used)]
    if unused:
        keys = ", ".join(hashed_order(unused))
        raise invalid(f"Value provided in ExpressionAttribute{kind} unused in expressions: keys: {{{keys}}}")


class _Binder:
    __slots__ = ("label", "names", "values")

    def __init__(self, label: Label, names: Mapping[str, str], values: Mapping[str, AttributeValue]) -> None:
        self.label = label
        self.names = names
        self.values = values

    def invalid(self, message: str) -> ServiceError:
        return invalid_expression(self.label, message)

    def path(self, node: UnboundPath) -> Path:
        if isinstance(node, Attr):
            return node.path
        parts = tuple(self._bind_name(part) if isinstance(part, Alias) else part for part in node.parts)
        if len(parts) > DEEPEST_PATH:
            raise self.invalid(f"The document path has too many nesting levels; nesting levels: {len(parts)}")
        return parts

    def _bind_name(self, alias: str) -> str:
        name = self.names.get(alias)
        if name is None:
            raise self.invalid(
                "An expression attribute name used in the document path is not defined; "
                f"attribute name: {alias}"
            )
        return name

    def const(self, node: Value) -> Const:
        value = self.values.get(node.name)
        if value is None:
            raise self.invalid(
                "An expression attribute value used in expression is not defined; "
                f"attribute value: {node.name}"
            )
        return Const(value)

    def condition(self, node: UnboundCondition) -> Condition:
        match node:
            case Comparison(comparator, unbound_left, unbound_right):
                left = self.operand(unbound_left)
                right = self.operand(unbound_right)
                self._check_distinct(comparator, left, right)
                if comparator not in ("=", "<>"):
                    self._check_ordered(comparator, left, right)
                return Compare(comparator, left, right)
            case Conjunction(terms):
                return And(tuple(map(self.condition, terms)))
            case Disjunction(terms):
                return Or(tuple(map(self.condition, terms)))
            case Negation():
                return self._bind_negation(node)
            case Call():
                return self._bind_test(node)
            case Range():
                return self._bind_between(node)
            case OneOf():
                return self._bind_in(node)

    def _bind_negation(self, node: Negation) -> Condition:
        # A loop: NOTs in parentheses may nest as deep as the limit of operators.
        negated = True
        while isinstance(node.term, Negation):
            node = node.term
            negated = not negated
        term = self.condition(node.term)
        return Not(term) if negated else term

    def operand(self, node: UnboundOperand) -> Operand:
        if isinstance(node, Attr):
            return node
        if isinstance(node, Value):
            return self.const(node)
        if isinstance(node, Call):
            return self._bind_size(node)
        return Attr(self.path(node))

    def _bind_between(self, node: Range) -> Between:
        operand, low, high = self.operand(node.operand), self.operand(node.low), self.operand(node.high)
        self._check_ordered("BETWEEN", operand, low, high)
        self._check_distinct("BETWEEN", operand, low, high)
        if type(low) is Const and type(high) is Const:
            bounds = f"lower bound operand: {_format_value(low)}, upper bound operand: {_format_value(high)}"
            ((low_kind, low_content),) = low.value.items()
            ((high_kind, high_content),) = high.value.items()
            if low_kind != high_kind:
                raise self.invalid(
                    f"The BETWEEN operator requires same data type for lower and upper bounds; {bounds}"
                )
            if sort_key(low_kind, low_content) > sort_key(high_kind, high_content):
                raise self.invalid(
                    "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
                    + bounds
                )
        return Between(operand, low, high)

    def _bind_in(self, node: OneOf) -> In:
        operand = self.operand(node.operand)
        options = tuple(map(self.operand, node.options))
        if len(options) > MOST_IN_OPERANDS:
            raise self.invalid(
                f"The IN operator is provided with too many operands; number of operands: {len(options)}"
            )
        self._check_distinct("IN", operand, *options)
        return In(operand, options)

    def _bind_test(self, node: Call) -> Condition:
        name = node.function
        operands = tuple(map(self.operand, node.arguments))
        self._check_count(node)
        self._check_distinct(name, *operands)
        first = operands[0]
        match name:
            case "attribute_exists" | "attribute_not_exists":
                if not isinstance(first, Attr):
                    raise self.invalid(
                        f"Operator or function requires a document path; operator or function: {name}"
                    )
                exists = Exists(first.path)
                return exists if name == "attribute_exists" else Not(exists)
            case "attribute_type":
                return TypeIs(first, self._type_name(operands[1]))
            case "begins_with":
                for operand in operands:
                    kind = _fixed_type(operand)
                    if kind is not None and kind not in _PREFIXED:
                        raise self._wrong_type(name, kind)
                return BeginsWith(first, operands[1])
            case _:
                return Contains(first, operands[1])

    def _type_name(self, operand: Operand) -> str:
        kind = _fixed_type(operand)
        if not isinstance(operand, Const) or kind != "S":
            raise self._wrong_type("attribute_type", kind or _ANY_TYPE)
        name: str = operand.value["S"]
        if name not in TYPES:
            raise self.invalid(f"Invalid attribute type name found; type: {name}, valid types: {_TYPE_NAMES}")
        return name

    def _bind_size(self, node: Call) -> Operand:
        operands = tuple(map(self.operand, node.arguments))
        self._check_count(node)
        operand = operands[0]
        kind = _fixed_type(operand)
        if kind in _SIZELESS:
            raise self._wrong_type("size", kind)
        if isinstance(operand, Attr):
            return Size(operand)
        assert isinstance(operand, Const)
        return Const({"N": str(size_of(operand.value))})

    def _check_count(self, node: Call) -> None:
        if len(node.arguments) != _ARGUMENTS[node.function]:
            raise self.invalid(
                "Incorrect number of operands for operator or function; "
                f"operator or function: {node.function}, number of operands: {len(node.arguments)}"
            )

    def _check_distinct(self, operator: str, first: Operand, *others: Operand) -> None:
        if type(first) is Attr and first in [other for other in others if type(other) is Attr]:
            raise self.invalid(
                "The first operand must be distinct from the remaining operands for this operator or "
                f"function; operator: {operator}, first operand: {format_path(first.path)}"
            )

    def _check_ordered(self, operator: str, *operands: Operand) -> None:
        for operand in operands:
            if type(operand) is Const:
                kind = kind_of(operand.value)
                if kind not in ORDERED:
                    raise self._wrong_type(operator, kind)

    def _wrong_type(self, operator: str, kind: str) -> ServiceError:
        return self.invalid(
            "Incorrect operand type for operator or function; "
            f"operator or function: {operator}, operand type: {kind}"
        )

    def action(self, node: UnboundAction, path: Path) -> Action:
        match node:
            case Setting():
                return Assign(path, self._bind_setting(node.value))
            case Removal():
                return Remove(path)
            case SetChange():
                value = self.const(node.value).value
                kind = kind_of(value)
                if kind not in SETS and not (kind == "N" and node.keyword == "ADD"):
                    raise self.invalid(
                        "Incorrect operand type for operator or function; "
                        f"operator: {node.keyword}, operand type: {_LONG_NAMES[kind]}, "
                        f"typeSet: ALLOWED_FOR_{node.keyword}_OPERAND"
                    )
                return Add(path, value) if node.keyword == "ADD" else Delete(path, value)

    def _bind_setting(self, node: UnboundOperand | Sum) -> SetOperand:
        match node:
            case Attr() | NamedPath():
                return Attr(self.path(node))
            case Value():
                return self.const(node)
            case Sum(operator, unbound_left, unbound_right):
                left, right = self._bind_setting(unbound_left), self._bind_setting(unbound_right)
                self._all_of_type("N", operator, left, right)
                return Arithmetic(operator, left, right)
            case Call(function, arguments):
                operands = tuple(map(self._bind_setting, arguments))
                self._check_count(node)
                first, second = operands
                if function == "list_append":
                    self._all_of_type("L", function, first, second)
                    return ListAppend(first, second)
                if not isinstance(first, Attr):
                    raise self.invalid(
                        f"Operator or function requires a document path; operator or function: {function}"
                    )
                return IfNotExists(first.path, second)

    def _all_of_type(self, kind: str, operator: str, *operands: SetOperand) -> None:
        for operand in operands:
            if isinstance(operand, Const) and kind not in operand.value:
                raise self._wrong_type(operator, kind_of(operand.value))

    def check_apart(self, paths: tuple[Path, ...]) -> None:
        found = find_clash(paths)
        if found is not None:
            verb, one, two = found
            raise self.invalid(
                f"Two document paths {verb} with each other; must remove or rewrite one of these paths; "
                f"path one: {format_path(one)}, path two: {format_path(two)}"
            )


def _fixed_type(operand: Operand) -> str | None:
    """Return the type of an operand, if it is the same for every item."""
    if isinstance(operand, Const):
        return kind_of(operand.value)
    return "N" if isinstance(operand, Size) else None


def _format_value(operand: Const) -> str:
    ((kind, content),) = operand.value.items()
    if kind == "B":
        size = len(content) // 4 * 3 - content[-2:].count("=")
        content = f"java.nio.HeapByteBuffer[pos=0 lim={size} cap={size}]"
    return f"AttributeValue: {{{kind}:{content}}}"
