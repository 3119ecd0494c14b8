"""Traits: what is kept along with an entity, in the transaction of each write to it.

A trait is declared on the entity, as a class attribute (`history = History(...)`) or by a marker of
a field (`Unique()`). Here is what they have in common; what a trait writes is in `flows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Draft
    from solotable._entities.keys.templates import Template
    from solotable._values import Item


class Trait:
    """Something declared on an entity whose facts follow from it."""

    #: The name under which the entity declares it.
    name: str = ""
    #: Whether it follows from the whole item; such an entity needs a version.
    whole: bool = False
    #: Attributes of the stored item that the trait keeps for itself; no put changes them.
    carries: tuple[str, ...] = ()
    #: Whether items of the trait stand under keys that entities of the class could have.
    stands_in: bool = False
    #: Whether items are written along with the entity; if not, it is only a rule for its fields.
    writes_along: bool = True

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def bind(self, draft: Draft) -> Self:
        """Check the declaration against its entity and return what the entity keeps; may be itself."""
        return self

    @property
    def depends(self) -> tuple[str, ...]:
        """The fields whose stored values the trait follows from."""
        return ()

    @property
    def sort_templates(self) -> Iterable[Template]:
        """The sort keys of what the trait keeps in the entity's own partition, for the linter."""
        return ()

    def occupied(self, item: Item, values: Mapping[str, Any]) -> str | None:
        """Say what stands under an entity's key instead of it; None for what is not the trait's."""
        return None
