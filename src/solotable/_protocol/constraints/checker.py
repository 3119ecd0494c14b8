"""Check the members of requests against their constraints.

Each constraint is compiled at import into one function that walks a payload in a single pass: it raises for
wrong JSON types (a SerializationException, DynamoDB's first step), leaves out null and unknown members, and
notes whether a constraint is broken. `report` then walks the request again to word the error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from solotable._protocol import errors
from solotable._protocol.decode.table_names import table_name
from solotable.errors import invalid

from .attribute_values import check_attributes, check_flag, check_text, check_value, measure_attributes
from .kinds import Attributes, Constraint, Flag, ListOf, MapOf, Real, Struct, Text, Unsupported, Value, Whole
from .operations import CONSTRAINTS
from .report import broken_constraints

#: The largest of Java's whole numbers; NaN, which only callers in process can send, fits neither.
_LARGEST = {"Integer": 2**31 - 1, "Long": 2**63 - 1}

_TEXTS = frozenset({str})

#: Takes a value and a list, appends to the list if a constraint is broken, returns the clean value.
Check = Callable[[Any, list[None]], Any]


def check(operation: str, payload: Any) -> dict[str, Any]:
    """Return the payload's known members without nulls, or raise for its types and constraints."""
    check_payload = _CHECKS.get(operation)
    if check_payload is None:
        raise errors.unknown_operation(operation)
    broken: list[None] = []
    clean: dict[str, Any] = check_payload(payload, broken)
    if broken:
        if "TableName" in clean and operation in _NAMED_FIRST:
            table_name(clean["TableName"])
        raise broken_constraints(CONSTRAINTS[operation], clean)
    return clean


def compile_check(constraint: Constraint, *, inner: bool) -> Check:
    """Return the check of a constraint; `inner`: on a member of a list or map."""
    match constraint:
        case Text():
            return _text(constraint)
        case Whole():
            return _whole(constraint)
        case Real():
            return _real
        case Flag():
            return lambda value, _broken: check_flag(value)
        case Value():
            return lambda value, _broken: check_value(value, inner=inner)
        case Attributes():
            check_map = measure_attributes if constraint.measured else check_attributes
            return lambda value, _broken: check_map(value, inner=inner)
        case ListOf():
            return _list(constraint, inner=inner)
        case MapOf():
            return _map(constraint, inner=inner)
        case Struct():
            return _struct(constraint, inner=inner)
        case Unsupported():
            return _unsupported(constraint)
        case _:
            assert_never(constraint)


def _unsupported(constraint: Unsupported) -> Check:
    def check_absent(_value: Any, _broken: list[None]) -> Any:
        raise invalid(errors.unsupported(constraint.name))

    return check_absent


def _text(constraint: Text) -> Check:
    holds = text_holds(constraint)
    if holds is None:
        return lambda value, _broken: check_text(value)

    if constraint.enum is None and constraint.pattern is None:
        return _sized_text(constraint.shortest or 0, constraint.longest)

    def check_constrained(value: Any, broken: list[None]) -> str:
        # Most members are texts: avoid the call.
        text = value if type(value) is str else check_text(value)
        if not holds(text):
            broken.append(None)
        return text

    return check_constrained


def _sized_text(shortest: int, longest: int | None) -> Check:
    most = math.inf if longest is None else longest

    def check_sized(value: Any, broken: list[None]) -> str:
        text = value if type(value) is str else check_text(value)
        if not shortest <= len(text) <= most:
            broken.append(None)
        return text

    return check_sized


def text_holds(constraint: Text) -> Callable[[str], bool] | None:
    """Return the test of a text's constraints, or None if it has none."""
    if constraint.enum is not None:
        return frozenset(constraint.enum).__contains__
    shortest = constraint.shortest or 0
    longest = math.inf if constraint.longest is None else constraint.longest
    if constraint.pattern is not None:
        matches = re.compile(constraint.matcher or constraint.pattern).fullmatch
        return lambda text: shortest <= len(text) <= longest and matches(text) is not None
    if constraint.shortest is None and constraint.longest is None:
        return None
    return lambda text: shortest <= len(text) <= longest


def _whole(constraint: Whole) -> Check:
    java = constraint.java
    largest = _LARGEST[java]
    least = -math.inf if constraint.least is None else constraint.least
    most = math.inf if constraint.most is None else constraint.most

    def check_whole(value: Any, broken: list[None]) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise errors.not_a_scalar(value, java)
        if not -largest - 1 <= value < largest + 1:
            raise errors.not_a_scalar(value, java)
        # DynamoDB: truncates a fraction.
        number = value if type(value) is int else math.floor(value)
        if not least <= number <= most:
            broken.append(None)
        return number

    return check_whole


def _real(value: Any, _broken: list[None]) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise errors.not_a_scalar(value, "Double")
    return value


def _list(constraint: ListOf, *, inner: bool) -> Check:
    check_member = compile_check(constraint.member, inner=True)
    shortest = constraint.shortest or 0
    longest = math.inf if constraint.longest is None else constraint.longest

    def check_list(value: Any, broken: list[None]) -> list[Any]:
        if not isinstance(value, list):
            raise errors.not_a_list(value, inner=inner)
        # DynamoDB: ignores null members.
        clean = [check_member(member, broken) for member in value if member is not None]
        if not shortest <= len(clean) <= longest:
            broken.append(None)
        return clean

    return check_list


def _map(constraint: MapOf, *, inner: bool) -> Check:
    check_member = compile_check(constraint.member, inner=True)
    java = _java(constraint.member)
    shortest = constraint.shortest or 0
    key_holds = None if constraint.keys is None else text_holds(constraint.keys)
    fewest, most = constraint.values or (0, math.inf)
    sized = constraint.values is not None
    # Most maps are names of attributes: plain texts need no call each.
    is_plain = isinstance(constraint.member, Text) and text_holds(constraint.member) is None

    def check_map(value: Any, broken: list[None]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise errors.not_a_map(value, java, inner=inner)
        if is_plain and _TEXTS.issuperset(map(type, value.values())):
            clean = value
        else:
            clean = {
                name: check_member(member, broken) for name, member in value.items() if member is not None
            }
        if len(clean) < shortest:
            broken.append(None)
        if key_holds is not None and not all(map(key_holds, clean)):
            broken.append(None)
        if sized and not all(fewest <= len(member) <= most for member in clean.values()):
            broken.append(None)
        return clean

    return check_map


def _struct(constraint: Struct, *, inner: bool) -> Check:
    java = constraint.java
    checks: Mapping[str, Check] = {
        name: compile_check(member, inner=False) for name, member in constraint.members.items()
    }
    required = {
        name
        for name, member in constraint.members.items()
        if member.required or (isinstance(member, Text) and member.demanded)
    }

    def check_struct(value: Any, broken: list[None]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise errors.not_a_structure(value, java, inner=inner)
        clean = {}
        for name, member in value.items():
            check_member = checks.get(name)
            if check_member is not None and member is not None:
                clean[name] = check_member(member, broken)
        if not required <= clean.keys():
            broken.append(None)
        return clean

    return check_struct


def _java(constraint: Constraint) -> str:
    match constraint:
        case Struct():
            return errors.JAVA + constraint.java
        case ListOf():
            return f"java.util.List<{_java(constraint.member)}>"
        case Value() | Attributes():
            return errors.JAVA + "AttributeValue"
        case _:
            return "java.lang.String"


# DynamoDB: control operations check the table's name before all other constraints.
_NAMED_FIRST = frozenset(
    operation
    for operation, constraint in CONSTRAINTS.items()
    if isinstance(name := constraint.members.get("TableName"), Text) and name.demanded
)
_CHECKS: dict[str, Check] = {
    operation: compile_check(constraint, inner=True) for operation, constraint in CONSTRAINTS.items()
}
