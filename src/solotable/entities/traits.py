"""Traits: what is kept along with an entity, in the transaction of each write to it.

A trait is declared on the entity, as a class attribute (`history = History(...)`) or by a marker of
a field (`Unique()`). Here is what they have in common; what a trait writes is in `flows`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from .plan import Draft
    from .templates import Template


class Trait:
    """Something declared on an entity whose facts follow from it."""

    #: The name under which the entity declares it.
    name: str = ""
    #: Whether it follows from the whole item; such an entity needs a version.
    whole: bool = False

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
