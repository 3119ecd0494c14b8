"""Slots: places in a tree for values that come later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from solotable._values import AttributeValue
from solotable.errors import DeclarationError

TreeT = TypeVar("TreeT")


class Slot(dict[str, Any]):
    """A value that each request of a PreparedUpdate fills in; slots are numbered from 0.

    Reading it as a value raises DeclarationError: a slot is not in any request.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        if type(number) is not int or number < 0:
            raise DeclarationError(f"The number of a Slot is 0 or more, got {number!r}.")
        super().__init__()
        self.number = number

    def __repr__(self) -> str:
        return f"Slot({self.number})"

    def __eq__(self, other: object) -> bool:
        return type(other) is Slot and other.number == self.number

    def __hash__(self) -> int:  # type: ignore[override] # a slot is immutable, a dict is not
        return hash((Slot, self.number))

    def _reject(self, *_arguments: object) -> NoReturn:
        raise DeclarationError(
            f"Slot({self.number}) has no value; create the request with PreparedUpdate.request()."
        )

    __getitem__ = __contains__ = __iter__ = items = keys = values = get = _reject


def fill(tree: TreeT, values: Sequence[AttributeValue]) -> TreeT:
    """Return a tree with a value in place of each slot."""
    filled: TreeT = _fill(tree, values)
    return filled


def _fill(node: Any, values: Sequence[AttributeValue]) -> Any:
    if type(node) is Slot:
        return values[node.number]
    if type(node) is tuple:
        return tuple([_fill(part, values) for part in node])
    fields = getattr(node, "__dataclass_fields__", None)
    if fields is None:
        return node
    return type(node)(*[_fill(getattr(node, name), values) for name in fields])


def lift(tree: TreeT, numbers: Mapping[int, int]) -> TreeT:
    """Return a tree with a slot in place of each value; `numbers` has the slots by the values' ids."""
    lifted: TreeT = _lift(tree, numbers)
    return lifted


def _lift(node: Any, numbers: Mapping[int, int]) -> Any:
    if type(node) is dict:
        number = numbers.get(id(node))
        return node if number is None else Slot(number)
    if type(node) is tuple:
        return tuple([_lift(part, numbers) for part in node])
    fields = getattr(node, "__dataclass_fields__", None)
    if fields is None:
        return node
    return type(node)(*[_lift(getattr(node, name), numbers) for name in fields])


def nodes_of(tree: Any) -> Iterator[Any]:
    """Yield every node and value of a tree."""
    if type(tree) is tuple:
        for part in tree:
            yield from nodes_of(part)
        return
    yield tree
    for name in getattr(tree, "__dataclass_fields__", ()):
        yield from nodes_of(getattr(tree, name))
