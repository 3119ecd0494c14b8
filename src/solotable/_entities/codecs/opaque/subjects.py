"""Fields with a data subject: the checks of their declaration, and the subject of an item."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from solotable._entities.codecs.computed_fields import computed_from
from solotable._entities.declare.annotations import arms_of
from solotable._entities.declare.table import suggestion
from solotable._values import Item
from solotable.errors import DeclarationError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from solotable._entities.declare.entity import Entity
    from solotable._entities.declare.plan import Draft, Plan


def check_subjects(entity: type[Entity], draft: Draft) -> None:
    """Reject a field whose value stays readable after its subject is forgotten, or which cannot be None."""
    marked = {
        each.field: each.encrypted.subject
        for each in draft.attributes.values()
        if each.encrypted is not None and each.encrypted.subject is not None
    }
    if not marked:
        return
    for name, subject in marked.items():
        where = f"{draft.name}.{name}"
        found = draft.attributes.get(subject)
        if found is None:
            raise DeclarationError(
                f"{where} is encrypted for {subject!r}, which is not a field of {draft.name}; "
                f"{suggestion(subject, draft.attributes)}"
            )
        if found.kind not in ("S", "N"):
            raise DeclarationError(
                f"{where} is encrypted for {subject!r}, which is not stored as a plain string or number; "
                f"name a field with the id of a subject, such as a str, an int or a UUID."
            )
        if not draft.attributes[name].optional:
            raise DeclarationError(
                f"{where} is None after its subject is forgotten; declare it as optional, such as "
                f"`str | None`."
            )
    in_keys = {each.name for path in draft.keys.values() for each in path.computed}
    for name in sorted(in_keys.intersection(computed_from(entity, marked))):
        raise DeclarationError(
            f"{draft.name}.{name} is in a key and reads a field with a subject, or its code does not show "
            f"what it reads; a key stays readable after the subject is forgotten. Store a keyed hash in a "
            f"field, and remove it when you forget the subject."
        )


def check_view(plan: Plan, view: type[BaseModel]) -> None:
    """Reject a view in which the field of a forgotten subject cannot be None."""
    for name, info in view.model_fields.items():
        marker = plan.attributes[name].encrypted
        if marker is not None and marker.subject is not None and type(None) not in arms_of(info.annotation):
            raise DeclarationError(
                f"{view.__name__}.{name} is None after its subject is forgotten; declare it as optional, as "
                f"in {plan.name}."
            )


def subject_of(entity: type[Entity]) -> Callable[[str, Item], str | None]:
    """Return the function that finds the value of a subject field in an item of an entity, as text."""

    def find(field: str, item: Item) -> str | None:
        plan = entity.plan()
        attribute = plan.attributes[field]
        value = item.get(attribute.wire) if attribute.stored else None
        if value is None and field in plan.primary.invertible:
            found = (plan.primary.parse(item) or {}).get(field)
            value = None if found is None else attribute.encode(found)
        return None if value is None or "NULL" in value else str(next(iter(value.values())))

    return find
