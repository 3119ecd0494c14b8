"""Convert Python values to DynamoDB values and back, without loss.

`dump` takes str, bytes, bool, None, int, Decimal, float, lists, tuples, dicts and sets of one type.
`load` returns whole numbers as int and other numbers as Decimal. NaN, empty sets and mixed sets raise
DataError: DynamoDB has no value for them.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any

from solotable.errors import DataError, ServiceError

from .canonical import AttributeValue, Item, sort_members
from .number import canonical_number


def dump_item(record: Mapping[str, Any]) -> Item:
    """Return a DynamoDB item for a mapping of Python values."""
    return {_name(name): dump(value) for name, value in record.items()}


def load_item(item: Item) -> dict[str, Any]:
    """Return the Python values of a DynamoDB item."""
    return {name: load(value) for name, value in item.items()}


def dump(value: Any) -> AttributeValue:
    """Return the canonical DynamoDB value of a Python value.

    >>> dump({"price": 9.5, "tags": {"b", "a"}})
    {'M': {'price': {'N': '9.5'}, 'tags': {'SS': ['a', 'b']}}}
    """
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int() | float() | Decimal():
            return {"N": _number(value)}
        case bytes() | bytearray() | memoryview():
            return {"B": b64encode(bytes(value)).decode("ascii")}
        case AbstractSet():
            return _dump_set(value)
        case Mapping():
            return {"M": {_name(name): dump(member) for name, member in value.items()}}
        case Sequence():
            return {"L": [dump(member) for member in value]}
        case _:
            raise DataError(f"DynamoDB has no value for {type(value).__name__}; pass it as text or a number.")


def load(value: AttributeValue) -> Any:
    """Return the Python value of a DynamoDB value."""
    ((kind, content),) = value.items()
    match kind:
        case "S" | "BOOL":
            return content
        case "N":
            return _load_number(content)
        case "B":
            return b64decode(content)
        case "NULL":
            return None
        case "M":
            return load_item(content)
        case "L":
            return [load(member) for member in content]
        case _:
            return {load({kind[0]: member}) for member in content}


def is_wire_value(value: Any) -> bool:
    """Return whether a value and its members have wire form: one type and its content, as `{"S": "a"}`."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    ((kind, content),) = value.items()
    if kind == "L":
        return isinstance(content, list) and all(map(is_wire_value, content))
    if kind == "M":
        return isinstance(content, Mapping) and all(map(is_wire_value, content.values()))
    return True


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise DataError(f"The keys of a DynamoDB map are strings, got {name!r} ({type(name).__name__}).")
    if not name:
        raise DataError("An attribute name is empty; DynamoDB requires at least one character.")
    return name


def _number(value: int | float | Decimal) -> str:
    # repr() is the shortest text that parses to the same float.
    text = repr(value) if isinstance(value, float) else str(value)
    try:
        return canonical_number(text)
    except ServiceError as rejected:
        raise DataError(f"{text} is not a DynamoDB number: {rejected.message}") from rejected


def _load_number(text: str) -> int | Decimal:
    return Decimal(text) if "." in text else int(text)


def _dump_set(members: AbstractSet[Any]) -> AttributeValue:
    if not members:
        raise DataError("DynamoDB has no empty set; leave the attribute out.")
    dumped = [dump(member) for member in members]
    kinds = {next(iter(value)) for value in dumped}
    kind = min(kinds)
    if len(kinds) > 1 or kind not in ("S", "N", "B"):
        raise DataError("A DynamoDB set holds only strings, only numbers or only bytes.")
    return {kind + "S": sort_members(kind + "S", [value[kind] for value in dumped])}
