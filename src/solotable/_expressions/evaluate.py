"""Evaluate a condition for an item. Never raises: a comparison of values that have no order is false.

`bind` has rejected wrong types in the request. A wrong type in the item, or a missing attribute, makes a
comparison false.

An evaluation takes time in proportion to the item plus the expression, not to their product: a memo caches
what is expensive (the members of a list, the comparison of two documents, decoded bytes).
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from operator import ge, gt, le, lt
from typing import Any

from solotable._values import ORDERED, AttributeValue, Item, sort_key

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

#: Intermediate results of one evaluation.
Memo = dict[Any, Any]

_ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_SCALARS = frozenset({"S", "N", "B", "BOOL", "NULL"})
#: Up to this length, the first search of a list scans it.
_SHORT_LIST = 64
#: Elements that take a fraction of a millisecond.
_STEP = 1024
#: The memo's key of the function that is called between steps.
_PAUSE = None


def evaluate(condition: Condition, item: Item, pause: Callable[[int], None] | None = None) -> bool:
    """Return whether the condition holds for the item; a missing item is {}.

    `pause` is called between the steps of a long evaluation.
    """
    return _TESTS[type(condition)](condition, item, {_PAUSE: pause})


def fetch(path: Path, item: Item) -> AttributeValue | None:
    """Return the value at a path, or None if the item has no value there."""
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
    """Return the result of `size()` for a value, or None for a type that has no size."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            # DynamoDB: counts UTF-16 units, so a character beyond the BMP counts twice.
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
    """Yield every path that the condition reads, in written order."""
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


def _resolve(operand: Operand, item: Item, memo: Memo) -> AttributeValue | None:
    kind = type(operand)
    if kind is Attr:
        path = operand.path  # type: ignore[union-attr] # mypy does not narrow by `type() is`
        return item.get(path[0]) if len(path) == 1 else fetch(path, item)  # type: ignore[arg-type] # the same
    if kind is Const:
        return operand.value  # type: ignore[union-attr] # the same
    if operand not in memo:
        found = fetch(operand.operand.path, item)  # type: ignore[union-attr] # the same
        size = None if found is None else size_of(found)
        memo[operand] = None if size is None else {"N": str(size)}
    return memo[operand]  # type: ignore[no-any-return] # written above


def _memo_key(operand: Operand) -> Any:
    """Return a key for an operand's value within one evaluation, without reading the value."""
    if isinstance(operand, Const):
        return id(operand.value)
    return operand.path if isinstance(operand, Attr) else operand


def _equal(left: Operand, right: Operand, one: AttributeValue, other: AttributeValue, memo: Memo) -> bool:
    """Return whether two operands have the same value; two documents are compared once."""
    if "S" in one or "N" in one:
        return one == other
    key = "=", _memo_key(left), _memo_key(right)
    if key not in memo:
        memo[key] = one == other
    return memo[key]  # type: ignore[no-any-return] # written above


def _decode_bytes(content: str, memo: Memo) -> bytes:
    """Return the bytes behind base64 text."""
    if content not in memo:
        memo[content] = b64decode(content)
    return memo[content]  # type: ignore[no-any-return] # written above


def _compare(test: Compare, item: Item, memo: Memo) -> bool:
    left = _resolve(test.left, item, memo)
    right = test.right.value if type(test.right) is Const else _resolve(test.right, item, memo)
    comparator = test.comparator
    if comparator == "=":
        return left is not None and right is not None and _equal(test.left, test.right, left, right, memo)
    if comparator == "<>":
        # DynamoDB: a missing value differs from every value, another missing one included.
        return left is None or right is None or not _equal(test.left, test.right, left, right, memo)
    return _in_order(_ORDERINGS[comparator], left, right, memo)


def _in_order(
    ordering: Callable[[Any, Any], bool],
    left: AttributeValue | None,
    right: AttributeValue | None,
    memo: Memo,
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
    if left_kind == "B":
        return ordering(_decode_bytes(left_content, memo), _decode_bytes(right_content, memo))
    return ordering(sort_key(left_kind, left_content), sort_key(right_kind, right_content))


def _between(test: Between, item: Item, memo: Memo) -> bool:
    value = _resolve(test.operand, item, memo)
    low, high = _resolve(test.low, item, memo), _resolve(test.high, item, memo)
    return _in_order(le, low, value, memo) and _in_order(le, value, high, memo)


def _in(test: In, item: Item, memo: Memo) -> bool:
    value = _resolve(test.operand, item, memo)
    if value is None:
        return False
    for option in test.options:
        other = _resolve(option, item, memo)
        if other is not None and _equal(test.operand, option, value, other, memo):
            return True
    return False


def _exists(test: Exists, item: Item, _memo: Memo) -> bool:
    path = test.path
    return path[0] in item if len(path) == 1 else fetch(path, item) is not None


def _type_is(test: TypeIs, item: Item, memo: Memo) -> bool:
    value = _resolve(test.operand, item, memo)
    return value is not None and test.kind in value


def _begins_with(test: BeginsWith, item: Item, memo: Memo) -> bool:
    value = _resolve(test.operand, item, memo)
    prefix = _resolve(test.prefix, item, memo)
    if value is None or prefix is None:
        return False
    if "S" in value and "S" in prefix:
        return bool(value["S"].startswith(prefix["S"]))
    if "B" in value and "B" in prefix:
        return _decode_bytes(value["B"], memo).startswith(_decode_bytes(prefix["B"], memo))
    return False


def _contains(test: Contains, item: Item, memo: Memo) -> bool:
    value = _resolve(test.operand, item, memo)
    member = _resolve(test.member, item, memo)
    if value is None or member is None:
        return False
    ((kind, content),) = value.items()
    ((member_kind, member_content),) = member.items()
    match kind:
        case "L":
            return _has_element(test, content, member, memo)
        case "S":
            return member_kind == "S" and member_content in content
        case "B":
            return member_kind == "B" and _decode_bytes(member_content, memo) in _decode_bytes(content, memo)
        case "SS" | "NS" | "BS":
            return member_kind == kind[0] and _has_member(test, content, member_content, memo)
        case _:
            return False


def _has_member(test: Contains, content: list[str], member: str, memo: Memo) -> bool:
    if len(content) <= _SHORT_LIST:
        return member in content
    key = "set", _memo_key(test.operand)
    if key not in memo:
        memo[key] = frozenset(content)
    return member in memo[key]


def _has_element(test: Contains, content: list[AttributeValue], member: AttributeValue, memo: Memo) -> bool:
    ((kind, member_content),) = member.items()
    key = "list", _memo_key(test.operand), kind
    if key not in memo and len(content) <= _SHORT_LIST:
        memo[key] = None
        return member in content
    if memo.get(key) is None:
        memo[key] = _collect_elements(content, kind, memo[_PAUSE])
    looked_up = "in", _memo_key(test.operand), _memo_key(test.member)
    if looked_up not in memo:
        memo[looked_up] = _freeze(kind, member_content) in memo[key]
    return memo[looked_up]  # type: ignore[no-any-return] # written above


def _collect_elements(
    content: list[AttributeValue], kind: str, pause: Callable[[int], None] | None
) -> AbstractSet[Any]:
    """Return the elements of one type, for looking up."""
    found: set[Any] = set()
    for start in range(0, len(content), _STEP):
        if pause is not None:
            pause(0)
        some = content[start : start + _STEP]
        if kind in _SCALARS:
            found.update([element[kind] for element in some if kind in element])
        else:
            found.update([_freeze(kind, element[kind]) for element in some if kind in element])
    return found


def _freeze(kind: str, content: Any) -> Any:
    """Return the content of a value in a hashable form; equal contents have equal forms."""
    if kind in _SCALARS:
        return content
    if kind == "L":
        return tuple(
            [(inner, _freeze(inner, each)) for element in content for inner, each in element.items()]
        )
    if kind == "M":
        return frozenset(
            [
                (name, inner, _freeze(inner, each))
                for name, value in content.items()
                for inner, each in value.items()
            ]
        )
    return tuple(content)


def _not(test: Not, item: Item, memo: Memo) -> bool:
    return not _TESTS[type(test.condition)](test.condition, item, memo)


def _and(test: And, item: Item, memo: Memo) -> bool:
    for term in test.terms:  # noqa: SIM110 - a loop takes one frame a level, a generator three
        if not _TESTS[type(term)](term, item, memo):
            return False
    return True


def _or(test: Or, item: Item, memo: Memo) -> bool:
    for term in test.terms:  # noqa: SIM110 - the same
        if _TESTS[type(term)](term, item, memo):
            return True
    return False


def _same(test: Same, item: Item, memo: Memo) -> bool:
    # Evaluates each side once: AND, OR and NOT would evaluate it twice, and 2**n times when nested.
    left = _TESTS[type(test.left)](test.left, item, memo)
    return left is _TESTS[type(test.right)](test.right, item, memo)


_TESTS: dict[type, Callable[[Any, Item, Memo], bool]] = {
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
