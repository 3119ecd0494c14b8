"""Canonical form of attribute values, and DynamoDB's errors for invalid values.

A value is DynamoDB's JSON: `{"S": "text"}`, `{"N": "1"}`, `{"L": [...]}` and so on for ten types.
A canonical value has numbers in one spelling, sets sorted without duplicates, and base64 in one spelling:
two values are equal exactly when their dicts are equal. Callers have checked the JSON types (a string in S,
a list in SS) before.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, Final

from solotable.errors import ServiceError, invalid, invalid_parameter

from .limits import DEEPEST_VALUE, LONGEST_ATTRIBUTE_NAME
from .number import canonical_number, is_plain_number
from .order import sort_key

AttributeValue = dict[str, Any]
Item = dict[str, AttributeValue]

TYPES: Final = ("S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL")
SETS: Final = frozenset({"SS", "NS", "BS"})

_EMPTY = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
_SEVERAL = (
    "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes"
)
_TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)
#: A name of so many characters fits, however many bytes each of them takes.
SHORT_NAME = LONGEST_ATTRIBUTE_NAME // 4


def canonical_item(item: Item) -> Item:
    """Return the item with every value canonical."""
    # DynamoDB: checks all attribute names before any value.
    for name in item:
        if not name or len(name) > SHORT_NAME:
            check_name(name)
    return {
        # Most attributes are text or plain numbers, which are canonical as they are.
        name: value
        if len(value) == 1 and ("S" in value or ("N" in value and is_plain_number(value["N"])))
        else canonical(value)
        for name, value in item.items()
    }


def check_name(name: str) -> str:
    """Return an attribute's name, or raise DynamoDB's error for it."""
    if not name:
        raise invalid("Empty attribute name", family="structure")
    if len(name) > SHORT_NAME and len(name.encode()) > LONGEST_ATTRIBUTE_NAME:
        raise invalid("Attribute name is too large, must be less than 65536 bytes", family="structure")
    return name


def canonical(value: AttributeValue, depth: int = 1) -> AttributeValue:
    """Return the value in canonical form, or raise DynamoDB's error for it."""
    if len(value) != 1:
        # DynamoDB: checks the content before the number of types.
        for kind, content in value.items():
            _canonical(kind, content, depth)
        raise invalid(_SEVERAL if value else _EMPTY, family="structure")
    ((kind, content),) = value.items()
    if kind in ("S", "BOOL"):
        return value
    result = _canonical(kind, content, depth)
    return value if result is content else {kind: result}


def _canonical(kind: str, content: Any, depth: int) -> Any:
    match kind:
        case "S" | "BOOL":
            return content
        case "N":
            return canonical_number(content)
        case "B":
            return canonical_base64(content)
        case "NULL":
            if content is not True:
                raise invalid_parameter("Null attribute value types must have the value of true")
            return content
        case "M":
            if depth >= DEEPEST_VALUE:
                raise invalid(_TOO_DEEP)
            return {
                name if name and len(name) <= SHORT_NAME else check_name(name): member
                if len(member) == 1 and "S" in member
                else canonical(member, depth + 1)
                for name, member in content.items()
            }
        case "L":
            if depth >= DEEPEST_VALUE:
                raise invalid(_TOO_DEEP)
            return [canonical(member, depth + 1) for member in content]
        case "SS" | "NS" | "BS":
            return _canonical_set(kind, content)
        case _:
            raise invalid(_EMPTY, family="structure")


def _canonical_set(kind: str, members: list[str]) -> list[str]:
    # DynamoDB: the texts differ by type, doubled and missing spaces included.
    if not members:
        raise invalid_parameter(
            {
                "SS": "An string set  may not be empty",
                "NS": "An number set  may not be empty",
                "BS": "Binary sets should not be empty",
            }[kind]
        )
    if kind == "NS":
        members = [canonical_number(member) for member in members]
    elif kind == "BS":
        members = [canonical_base64(member) for member in members]
    if len(set(members)) < len(members):
        raise _duplicates(kind, members)
    return sort_members(kind, members)


def _duplicates(kind: str, members: list[str]) -> ServiceError:
    # DynamoDB: the newer validator quotes the members, and sorts those before the first duplicate;
    # conformance: values/refused: a string twice in a set.
    if kind == "NS":
        rejected = invalid("Input collection contains duplicates")
        rejected.newer = invalid_parameter("Input collection contains duplicates.").message
        return rejected
    first = {member: at for at, member in reversed(list(enumerate(members)))}
    repeat = next(at for at, member in enumerate(members) if first[member] < at)
    quoted = [f'"{member}"' for member in sort_members(kind, members[:repeat]) + members[repeat:]]
    older = f"[{', '.join(members)}]"
    if kind == "SS":
        newer = f"[{', '.join(quoted)}]"
        return invalid_parameter(
            f"Input collection {older} contains duplicates.",
            newer=f"Input collection {newer} contains duplicates.",
        )
    newer = f"[{','.join(quoted)}]"
    return invalid_parameter(
        f"Input collection {older}of type BS contains duplicates.",
        newer=f"Input collection {newer}of type BS contains duplicates.",
    )


def sort_members(kind: str, members: list[str]) -> list[str]:
    """Return the members of a set in their canonical order."""
    if kind == "SS":
        return sorted(members)
    return sorted(members, key=lambda member: sort_key(kind[0], member))


def canonical_base64(text: str) -> str:
    """Return the canonical base64 text of these bytes: unused bits of the last character are zero."""
    return b64encode(b64decode(text)).decode("ascii")


def kind_of(value: AttributeValue) -> str:
    """Return the type descriptor of a canonical value: S, N, B, SS, NS, BS, M, L, NULL or BOOL."""
    return next(iter(value))
