"""Counted: count or sum entities on their parent, with an ADD in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from solotable.errors import DeclarationError

from .trait import Trait

if TYPE_CHECKING:
    from solotable._entities.declare.entity import Entity
    from solotable._entities.declare.plan import Draft, Plan


class Counted(Trait):
    """Count an entity on its parent: `counted = Counted(Survey, "section_count")`.

    Mark the parent's field `Counter()`. `where` is a predicate over the child: only children that meet it
    count. `amount` names a number of the child to sum instead. The child has a field of the same name for
    each part of the parent's key; `by` maps parts to fields with other names.
    """

    def __init__(
        self,
        parent: type[Entity],
        field: str,
        *,
        where: Callable[[Any], bool] | None = None,
        amount: str | None = None,
        by: Mapping[str, str] | None = None,
    ) -> None:
        self.parent = parent
        self.field = field
        self.where = where
        self.amount = amount
        self.by = dict(by or {})
        #: The child's field for each part of the parent's key.
        self.parts: dict[str, str] = {}
        self._depends: tuple[str, ...] = ()

    def bind(self, draft: Draft) -> Counted:
        """Check that the parent has the counter, and the child the fields of the parent's key."""
        where = f"{draft.name}.{self.name}"
        parent = self.parent.plan()
        if self.field not in parent.counters:
            raise DeclarationError(
                f"{where} counts in {parent.name}.{self.field}, which is not a counter; "
                f"write {self.field}: Annotated[int, Counter()] = 0 there."
            )
        bound = Counted(self.parent, self.field, where=self.where, amount=self.amount, by=self.by)
        bound.name = self.name
        for part in parent.primary.parts:
            child_field = self.by.get(part, part)
            if child_field not in draft.attributes:
                raise DeclarationError(
                    f"{where}: {draft.name} has no field {child_field!r} for the {part} of its "
                    f"{parent.name}; "
                    f"name the field: by={{{part!r}: ...}}."
                )
            bound.parts[part] = child_field
        if self.amount is not None and (
            self.amount not in draft.attributes or draft.attributes[self.amount].kind != "N"
        ):
            raise DeclarationError(f"{where} sums {self.amount!r}, which is not a number of {draft.name}.")
        fields = () if self.where is None else _fields_read(self.where, draft)
        bound._depends = tuple(
            dict.fromkeys((*bound.parts.values(), *fields, *([self.amount] if self.amount else [])))
        )
        return bound

    @property
    def depends(self) -> tuple[str, ...]:
        """The fields that decide which amount a child adds, and to which parent."""
        return self._depends

    @property
    def of(self) -> Plan:
        """The plan of the parent."""
        return self.parent.plan()

    def share(self, child: Any) -> tuple[dict[str, Any], Decimal] | None:
        """Return the parent's key and the amount that a child adds; None when it adds nothing."""
        if child is None or (self.where is not None and not self.where(child)):
            return None
        key = {part: getattr(child, child_field) for part, child_field in self.parts.items()}
        if any(value is None for value in key.values()):
            return None
        amount = 1 if self.amount is None else getattr(child, self.amount)
        return (key, Decimal(amount)) if amount else None


def _fields_read(where: Callable[[Any], bool], draft: Draft) -> tuple[str, ...]:
    """Return the fields that a predicate reads, all of them if its code does not show it."""
    # Imported here, because few entities have a predicate.
    from solotable._entities.codecs.computed_fields import UnknownReads, attributes_read

    try:
        found = tuple(dict.fromkeys(attributes_read(where)))
    except UnknownReads:
        return tuple(draft.attributes)
    return found if set(found) <= draft.attributes.keys() else tuple(draft.attributes)
