"""Trait: the base class of declarations that add derived writes to an entity.

A trait is a class attribute (`history = History(...)`) or a field's marker (`Unique()`). `_flows.traits`
implements the writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Draft
    from solotable._entities.keys.templates import Template
    from solotable._values import Item


class Trait:
    """A declaration on an entity that adds derived writes, or a rule for its fields."""

    #: The name of the class attribute.
    name: str = ""
    #: Whether its writes depend on the whole item; the entity then needs a version.
    whole: bool = False
    #: Whether every change of the entity has derived writes.
    always: bool = False
    #: Attributes of the stored item that belong to the trait; a put keeps their stored values.
    carries: tuple[str, ...] = ()
    #: Whether the trait writes items under keys of the entity class, such as redirects.
    stands_in: bool = False
    #: Whether the trait adds derived writes; if not, it is only a rule for the fields.
    writes_along: bool = True

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def bind(self, draft: Draft) -> Self:
        """Check the declaration against its entity, and return the trait of the plan."""
        return self

    @property
    def depends(self) -> tuple[str, ...]:
        """The fields that the trait's writes depend on."""
        return ()

    @property
    def sort_templates(self) -> Iterable[Template]:
        """The sort key templates of the trait's items in the entity's partition, for the linter."""
        return ()

    def occupied(self, item: Item, values: Mapping[str, Any]) -> str | None:
        """Describe the trait's item under an entity's key; None if the item is not the trait's."""
        return None
