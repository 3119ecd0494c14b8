"""The update of an item by attribute name: a builder that rejects overlapping actions."""

from __future__ import annotations

from typing import Any, Self

from solotable._expressions.ast import (
    Action,
    Add,
    Assign,
    Attr,
    Const,
    Delete,
    IfNotExists,
    ListAppend,
    Remove,
)
from solotable._expressions.ast import Update as UpdateTree
from solotable.errors import DeclarationError

from .codec import encode_value


class ItemUpdate:
    """The actions of one UpdateItem; each changes a different top-level attribute.

    >>> update = ItemUpdate().set("status", "open").add("writes", 1).remove("error")
    >>> len(update.build().actions)
    3
    """

    __slots__ = ("_actions", "_names")

    def __init__(self) -> None:
        self._actions: list[Action] = []
        self._names: set[str] = set()

    def set(self, name: str, value: Any) -> Self:
        """Set an attribute to a value."""
        self._actions.append(Assign(self._path(name), Const(encode_value(value))))
        return self

    def set_if_missing(self, name: str, value: Any) -> Self:
        """Set an attribute to a value if the item does not have it."""
        path = self._path(name)
        self._actions.append(Assign(path, IfNotExists(path, Const(encode_value(value)))))
        return self

    def add(self, name: str, value: Any) -> Self:
        """Add to a number, which starts at 0, or add the members of a set."""
        self._actions.append(Add(self._path(name), encode_value(value)))
        return self

    def copy(self, name: str, source: str) -> Self:
        """Set an attribute to the value that another one has before the update."""
        self._actions.append(Assign(self._path(name), Attr((source,))))
        return self

    def append(self, name: str, members: list[Any]) -> Self:
        """Append to the end of a list."""
        path = self._path(name)
        self._actions.append(Assign(path, ListAppend(Attr(path), Const(encode_value(members)))))
        return self

    def discard(self, name: str, members: Any) -> Self:
        """Remove members from a set (DynamoDB's DELETE action)."""
        self._actions.append(Delete(self._path(name), encode_value(members)))
        return self

    def remove(self, name: str) -> Self:
        """Remove an attribute."""
        self._actions.append(Remove(self._path(name)))
        return self

    def build(self) -> UpdateTree:
        """Return the value of `UpdateItem.update`."""
        return UpdateTree(tuple(self._actions), creates=True)

    def _path(self, name: str) -> tuple[str]:
        if not name or type(name) is not str:
            raise DeclarationError(f"An attribute name is a string that is not empty, got {name!r}.")
        if name in self._names:
            raise DeclarationError(
                f"Attribute {name!r} occurs twice in one update; DynamoDB rejects overlapping paths."
            )
        self._names.add(name)
        return (name,)
