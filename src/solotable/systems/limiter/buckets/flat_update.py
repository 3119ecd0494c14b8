"""FlatUpdate updates: a builder that cannot write what DynamoDB refuses, or what a flat item must not have.

The four checks before any UpdateExpression (S1.12), and how each is kept:

1. all flat: a name is one top-level attribute, a value is a text or a whole number; there is no path;
2. SET, ADD and REMOVE are of different attributes: a name is taken once, the second time is refused;
3. first writes are guarded where they must be: `first` never overwrites (identity), `add` begins at 0 by
   itself (C1.1), and what changes is `set` (C1.4);
4. reserved words: a tree of names is built and no text; whoever renders it gives every name an alias (S1.4).
"""

from __future__ import annotations

from typing import Self

from solotable._expressions.ast import Action, Add, Assign, Const, IfNotExists, Remove, Update
from solotable._values import AttributeValue
from solotable.errors import DeclarationError


def number(value: int) -> AttributeValue:
    """Return a whole number as DynamoDB has it."""
    return {"N": str(value)}


def scalar(value: str | int) -> AttributeValue:
    """Return a text or a whole number as DynamoDB has it; nothing else is flat."""
    if type(value) is int:
        return {"N": str(value)}
    if type(value) is str:
        return {"S": value}
    raise DeclarationError(f"A flat item has texts and whole numbers; {type(value).__name__} is neither.")


class FlatUpdate:
    """The actions of one update of one flat item."""

    __slots__ = ("_actions", "_taken")

    def __init__(self) -> None:
        self._actions: list[Action] = []
        self._taken: set[str] = set()

    def set(self, name: str, value: str | int) -> Self:
        """Give an attribute a value, whatever it had."""
        self._take(name)
        self._actions.append(Assign((name,), Const(scalar(value))))
        return self

    def first(self, name: str, value: str | int) -> Self:
        """Give an attribute a value unless it has one: for what an item is, never for what changes."""
        self._take(name)
        self._actions.append(Assign((name,), IfNotExists((name,), Const(scalar(value)))))
        return self

    def add(self, name: str, amount: int) -> Self:
        """Add to a number; one that is not there begins at 0."""
        self._take(name)
        self._actions.append(Add((name,), number(amount)))
        return self

    def remove(self, name: str) -> Self:
        """Take an attribute away."""
        self._take(name)
        self._actions.append(Remove((name,)))
        return self

    def update(self) -> Update:
        """Return the update."""
        return Update(tuple(self._actions), creates=True)

    def _take(self, name: str) -> None:
        if not name or type(name) is not str:
            raise DeclarationError(f"An attribute has a name that is not empty; {name!r} was given.")
        if name in self._taken:
            raise DeclarationError(
                f"Attribute {name!r} is written twice in one update; DynamoDB refuses overlapping paths."
            )
        self._taken.add(name)
