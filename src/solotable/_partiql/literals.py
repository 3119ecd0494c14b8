"""Convert PartiQL literals and parameters to canonical values, or raise DynamoDB's errors."""

from __future__ import annotations

from solotable._values import AttributeValue, canonical
from solotable.errors import ServiceError, invalid

from .ast import TREE_NAMES, Call, Expr, Members, Operation, Parameter, Reference, Scalar, Struct
from .syntax.lex import Spot

_MIXED_BAG = "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags"


def bind(parameters: tuple[AttributeValue, ...]) -> tuple[AttributeValue, ...]:
    """Return the parameters of a statement in canonical form."""
    return tuple(canonical(parameter) for parameter in parameters)


def is_value(expr: Expr) -> bool:
    """Return whether the tree is a literal or a parameter."""
    return isinstance(expr, Scalar | Parameter | Members | Struct)


def value_of(expr: Expr, parameters: tuple[AttributeValue, ...]) -> AttributeValue:
    """Return the value of a literal or of a parameter."""
    if isinstance(expr, Parameter):
        if expr.position >= len(parameters):
            # DynamoDB raises the error only when it needs the value, and ignores surplus parameters.
            raise invalid("Number of parameters in request and statement don't match.")
        return parameters[expr.position]
    return canonical(_literal(expr, "root"))


def item_of(expr: Expr, parameters: tuple[AttributeValue, ...]) -> dict[str, AttributeValue]:
    """Return the item of an INSERT."""
    if not isinstance(expr, Struct):
        raise invalid(
            "Unsupported format in item expression. Please use struct format {...} to express item values "
            f"for insert statement. at {expr.spot}"
        )
    item: dict[str, AttributeValue] = {}
    for key, value in expr.pairs:
        item[_name(key, item, key.spot)] = value_of(value, parameters)
    return item


def _name(key: Expr, known: dict[str, AttributeValue], spot: Spot) -> str:
    if not isinstance(key, Scalar) or "S" not in key.value:
        raise invalid(
            f"Tuple keys must be of type String. Actual type: {_tree_name(key)} under root at {key.spot}"
        )
    name = str(key.value["S"])
    if name in known:
        raise invalid(f"Duplicate keys in tuple. Key: {name} under root at {spot}")
    return name


def _literal(expr: Expr, where: str) -> AttributeValue:
    """Return the value of a literal; `where` is its path inside the attribute's value."""
    match expr:
        case Scalar():
            return _scalar(expr, where)
        case Members(kind="Bag"):
            return _bag(expr, where)
        case Members():
            return {"L": [_literal(member, f"{where}[{i}]") for i, member in enumerate(expr.members)]}
        case Struct():
            members: dict[str, AttributeValue] = {}
            for key, value in expr.pairs:
                # DynamoDB: the error for a duplicate key points to the key in an item, and to the map in a
                # nested map.
                name = _name(key, members, expr.spot)
                members[name] = _literal(value, f"{where}.{name}")
            return {"M": members}
        case _:
            raise invalid(f"Unsupported data type: {_data_name(expr)} under key {where} at {expr.spot}")


def _scalar(expr: Scalar, where: str) -> AttributeValue:
    try:
        return canonical(expr.value)
    except ServiceError as error:
        # DynamoDB: the error for an invalid number literal names its path in the value.
        raise invalid(f"{error.message} under {where}") from error


def _bag(expr: Members, where: str) -> AttributeValue:
    if not expr.members:
        raise invalid("Empty bags are not supported")
    kinds = set()
    contents: list[str] = []
    for member in expr.members:
        if not isinstance(member, Scalar) or not member.value.keys() & {"S", "N"}:
            raise invalid(f"{_MIXED_BAG} at {member.spot}")
        ((kind, content),) = _scalar(member, where).items()
        kinds.add(kind)
        contents.append(content)
    if len(kinds) > 1:
        raise invalid(_MIXED_BAG)
    return {kinds.pop() + "S": contents}


def _data_name(expr: Expr) -> str:
    match expr:
        case Reference():
            return str(expr.steps[0])
        case Call():
            return expr.name
        case Operation():
            return expr.operator
        case _:
            return _tree_name(expr)


def _tree_name(expr: Expr) -> str:
    if isinstance(expr, Reference):
        return "VariableReference"
    return TREE_NAMES.get(type(expr), type(expr).__name__)
