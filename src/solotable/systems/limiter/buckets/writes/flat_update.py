"""Updates of flat items: strings and whole numbers in top-level attributes, and nothing else.

The four checks before an UpdateExpression (S1.12), and what ensures each:

1. flat: a name is one top-level attribute, a value is a string or a whole number;
2. SET, ADD and REMOVE are of different attributes: `ItemUpdate` rejects a name that occurs twice;
3. first writes do not overwrite: `set_if_missing` for identity, `add` starts at 0 (C1.1), `set` for state
   (C1.4);
4. reserved words: the update is a tree, and the encoder gives every name an alias (S1.4).
"""

from __future__ import annotations

from typing import Self

from solotable.errors import DeclarationError
from solotable.flow import ItemUpdate, Slot

#: A slot of a prepared update gets a string or a whole number too.
_FLAT = frozenset({str, int, Slot})
_ADDED = frozenset({int, Slot})


class FlatUpdate(ItemUpdate):
    """The actions of one update of one flat item."""

    __slots__ = ()

    def set(self, name: str, value: str | int | Slot) -> Self:
        """Set an attribute to a value."""
        if type(value) not in _FLAT:
            raise _not_flat(value)
        return super().set(name, value)

    def set_if_missing(self, name: str, value: str | int) -> Self:
        """Set an attribute unless the item has it: for what an item is, not for what changes."""
        if type(value) not in _FLAT:
            raise _not_flat(value)
        return super().set_if_missing(name, value)

    def add(self, name: str, value: int | Slot) -> Self:
        """Add to a number, which starts at 0."""
        if type(value) not in _ADDED:
            raise _not_flat(value)
        return super().add(name, value)


def _not_flat(value: object) -> DeclarationError:
    return DeclarationError(f"A flat item has strings and whole numbers; {type(value).__name__} is neither.")
