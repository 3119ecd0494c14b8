"""Whether a condition holds for an item. Never raises: what cannot be compared is just not so.

A wrong type in the request was refused when the condition was bound; a wrong type in the item, or
an attribute that is not there, makes a comparison false.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from operator import ge, gt, le, lt
from typing import Any

from solotable.values import ORDERED, AttributeValue, Item, sort_key

from .ast import (
    And,
    Attr,
    BeginsWith,
    Between,
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

_ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def evaluate(condition: Condition, item: Item) -> bool:
    """Return whether the condition holds for the item; a missing item is {}."""
    return _TESTS[type(condition)](condition, item)


def fetch(path: Path, item: Item) -> AttributeValue | None:
    """Return the value at a path, or None when there is none."""
    value = item.get(path[0])  # type: ignore[arg-type] # the first part of a path is a name
    if len(path) == 1:
        return value
    for step in path[1:]:
        if value is None:
            return None
        if isinstance(step, str):
            value = value["M"].get(step) if "M" in value else None
        elif "L" in value and step < len(value["L"]):
            value = value["L"][step]
        else:
            return None
    return value


def size_of(value: AttributeValue) -> int | None:
    """Return what `size()` says of a value, or None for a type that has no size."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            # DynamoDB: counted in UTF-16 units, so a character beyond the BMP counts twice.
            return (
                len(content) if content.isascii() else len(content.encode("utf-16-le", "surrogatepass")) // 2
            )
        case "B":
            return len(b64decode(content))
        case "N" | "BOOL" | "NULL":
            return None
        case _:
            return len(content)


def paths_of(condition: Condition) -> Iterator[Path]:
    """Yield every path that the condition reads, in the order they were written."""
    match condition:
        case And(terms) | Or(terms):
            for term in terms:
                yield from paths_of(term)
        case Not(term):
            yield from paths_of(term)
        case Same(one, other):
            yield from paths_of(one)
            yield from paths_of(other)
        case Exists(path):
            yield path
        case Compare(_, left, right):
            yield from _operand_paths(left, right)
        case Between(operand, low, high):
            yield from _operand_paths(operand, low, high)
        case In(operand, options):
            yield from _operand_paths(operand, *options)
        case TypeIs(operand, _):
            yield from _operand_paths(operand)
        case BeginsWith(operand, part) | Contains(operand, part):
            yield from _operand_paths(operand, part)


def _operand_paths(*operands: Operand) -> Iterator[Path]:
    for operand in operands:
        if isinstance(operand, Attr):
            yield operand.path
        elif isinstance(operand, Size):
            yield operand.operand.path


def _resolve(operand: Operand, item: Item) -> AttributeValue | None:
    kind = type(operand)
    if kind is Attr:
        path = operand.path  # type: ignore[union-attr] # mypy does not narrow by `type() is`
        return item.get(path[0]) if len(path) == 1 else fetch(path, item)  # type: ignore[arg-type] # the same
    if kind is Const:
        return operand.value  # type: ignore[union-attr] # the same
    found = fetch(operand.operand.path, item)  # type: ignore[union-attr] # the same
    size = None if found is None else size_of(found)
    return None if size is None else {"N": str(size)}


def _compare(test: Compare, item: Item) -> bool:
    left = _resolve(test.left, item)
    right = test.right.value if type(test.right) is Const else _resolve(test.right, item)
    comparator = test.comparator
    if comparator == "=":
        return left is not None and left == right
    if comparator == "<>":
        # DynamoDB: what is not there differs from everything, itself included.
        return left is None or left != right
    return _in_order(_ORDERINGS[comparator], left, right)


def _in_order(
    ordering: Callable[[Any, Any], bool], left: AttributeValue | None, right: AttributeValue | None
) -> bool:
    if left is None or right is None:
        return False
    if "N" in left and "N" in right:
        one, other = left["N"], right["N"]
        if "." not in one and "." not in other:
            return ordering(int(one), int(other))
    ((left_kind, left_content),) = left.items()
    ((right_kind, right_content),) = right.items()
    if left_kind != right_kind or left_kind not in ORDERED:
        return False
    return ordering(sort_key(left_kind, left_content), sort_key(right_kind, right_content))


def _between(test: Between, item: Item) -> bool:
    value = _resolve(test.operand, item)
    return _in_order(le, _resolve(test.low, item), value) and _in_order(le, value, _resolve(test.high, item))


def _in(test: In, item: Item) -> bool:
    value = _resolve(test.operand, item)
    return value is not None and any(value == _resolve(option, item) for option in test.options)


def _exists(test: Exists, item: Item) -> bool:
    path = test.path
    return path[0] in item if len(path) == 1 else fetch(path, item) is not None


def _type_is(test: TypeIs, item: Item) -> bool:
    value = _resolve(test.operand, item)
    return value is not None and test.kind in value


def _begins_with(test: BeginsWith, item: Item) -> bool:
    value = _resolve(test.operand, item)
    prefix = _resolve(test.prefix, item)
    if value is None or prefix is None:
        return False
    if "S" in value and "S" in prefix:
        return bool(value["S"].startswith(prefix["S"]))
    if "B" in value and "B" in prefix:
        return b64decode(value["B"]).startswith(b64decode(prefix["B"]))
    return False


def _contains(test: Contains, item: Item) -> bool:
    value = _resolve(test.operand, item)
    member = _resolve(test.member, item)
    if value is None or member is None:
        return False
    ((kind, content),) = value.items()
    if kind == "L":
        return member in content
    ((member_kind, member_content),) = member.items()
    match kind:
        case "S":
            return member_kind == "S" and member_content in content
        case "B":
            return member_kind == "B" and b64decode(member_content) in b64decode(content)
        case "SS" | "NS" | "BS":
            return member_kind == kind[0] and member_content in content
        case _:
            return False


def _not(test: Not, item: Item) -> bool:
    return not _TESTS[type(test.condition)](test.condition, item)


def _and(test: And, item: Item) -> bool:
    for term in test.terms:  # noqa: SIM110 - a loop takes one frame a level, a generator three
        if not _TESTS[type(term)](term, item):
            return False
    return True


def _or(test: Or, item: Item) -> bool:
    for term in test.terms:  # noqa: SIM110 - the same
        if _TESTS[type(term)](term, item):
            return True
    return False


def _same(test: Same, item: Item) -> bool:
    # Each side once: written with AND, OR and NOT it would be twice, and 2**n times when nested.
    return evaluate(test.left, item) is evaluate(test.right, item)


_TESTS: dict[type, Callable[[Any, Item], bool]] = {
    And: _and,
    BeginsWith: _begins_with,
    Between: _between,
    Compare: _compare,
    Contains: _contains,
    Exists: _exists,
    In: _in,
    Not: _not,
    Or: _or,
    Same: _same,
    TypeIs: _type_is,
}
