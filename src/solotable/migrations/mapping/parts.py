"""Parts: several sources give the fields of one entity, each its own.

A part writes the attributes of its fields, and what the primary key implies: the key, the tag and the
defaults of fields that no source gives. All parts write the latter alike, so their order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._values import Item
from solotable.errors import DataError, DeclarationError

from .outputs import Part


class PartFields:
    """The fields of an entity that one rule gives."""

    def __init__(self, entity: type[Entity], fields: Iterable[str], others: Iterable[str]) -> None:
        plan: Plan = entity.plan()
        self.plan = plan
        self.fields = tuple(fields)
        given, elsewhere = set(self.fields), set(others)
        key_fields = set(plan.primary.fields)
        _check_names(plan, given, key_fields)
        self._defaults = _defaults(plan, key_fields | given | elsewhere)
        self._adapters = {name: _adapter(entity, name) for name in (*plan.primary.parts, *self.fields)}
        self._indexes: list[AccessPath] = []
        owned = {plan.attributes[name].wire for name in self.fields}
        for path in plan.indexes:
            needed = set(path.fields) | {attribute.field for attribute, _ in path.when}
            if needed & given and needed & elsewhere:
                raise DeclarationError(
                    f"The index key {plan.name}.{path.name} needs {', '.join(sorted(needed & given))} and "
                    f"{', '.join(sorted(needed & elsewhere))}, which come from two sources; let one source "
                    f"give all of them."
                )
            if not needed & elsewhere:
                self._indexes.append(path)
                if needed & given:
                    owned.update(path.names)
        self.owned = frozenset(owned - set(plan.primary.names))
        if plan.traits or plan.cipher is not None:
            raise DeclarationError(
                f"{plan.name} has traits or encrypted fields, so it cannot come from several sources; "
                f"yield it whole from one rule."
            )

    def encode(self, part: Part) -> Item:
        """Return the key, the shared attributes and the attributes of a part."""
        unknown = part.fields.keys() - set(self.fields)
        if unknown:
            raise DeclarationError(
                f"A rule gives {self.plan.name}.{min(unknown)}, but its parts= do not name the field."
            )
        plan = self.plan
        values: dict[str, Any] = {**self._defaults}
        for name in plan.primary.parts:
            if name not in part.key:
                raise DataError(f"A Part of {plan.name} needs {name} for its key.")
            values[name] = self._validate(name, part.key[name])
        for name in self.fields:
            if name in part.fields:
                values[name] = self._validate(name, part.fields[name])
        item: Item = {**plan.constants, **plan.identity}
        for name, value in values.items():
            attribute = plan.attributes[name]
            encoded = attribute.encode(value) if attribute.stored else None
            if encoded is not None:
                item[attribute.wire] = encoded
        item |= plan.key_of(values)
        complete = {**dict.fromkeys(self.fields), **values}
        for path in self._indexes:
            item |= path.encode(complete) or {}
        return item

    def shared(self, key: Mapping[str, Any]) -> Item:
        """Return the attributes that every part of an entity writes alike."""
        item = self.encode(Part(self.plan.entity, {name: key[name] for name in self.plan.primary.parts}, {}))
        return {name: value for name, value in item.items() if name not in self.owned}

    def _validate(self, name: str, value: Any) -> Any:
        try:
            return self._adapters[name].validate_python(value)
        except ValidationError as error:
            raise DataError(f"{self.plan.name}.{name}: {error.errors()[0]['msg']}.") from None


def check_disjoint(declared: Mapping[str, Mapping[type[Entity], tuple[str, ...]]]) -> None:
    """Raise DeclarationError if two sources give one field of an entity."""
    owners: dict[tuple[str, str], str] = {}
    for source, parts in declared.items():
        for entity, fields in parts.items():
            for name in fields:
                other = owners.setdefault((entity.__name__, name), source)
                if other != source:
                    raise DeclarationError(
                        f"{entity.__name__}.{name} comes from {other!r} and from {source!r}; a field of an "
                        f"entity comes from one source."
                    )


def _check_names(plan: Plan, given: set[str], key_fields: set[str]) -> None:
    for name in sorted(given):
        if name not in plan.attributes:
            raise DeclarationError(f"parts= names {plan.name}.{name}, which is not a field.")
        if name in key_fields:
            raise DeclarationError(f"parts= names {plan.name}.{name}, which is part of the primary key.")


def _defaults(plan: Plan, given: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, field in plan.entity.model_fields.items():
        if name in given:
            continue
        if field.is_required():
            raise DeclarationError(
                f"{plan.name}.{name} has no default and no source gives it; name it in parts=, or declare a "
                f"default."
            )
        found[name] = field.get_default(call_default_factory=True, validated_data={})
        if found[name] != field.get_default(call_default_factory=True, validated_data={}):
            raise DeclarationError(
                f"{plan.name}.{name} has another default each time, so a repeated copy would change it; name "
                f"it in parts=."
            )
    if plan.version is not None and found.get(plan.version) == 0:
        found[plan.version] = 1
    return found


def _adapter(entity: type[Entity], name: str) -> TypeAdapter[Any]:
    field = entity.model_fields[name]
    annotation: Any = field.annotation
    return TypeAdapter(Annotated[annotation, *field.metadata] if field.metadata else annotation)
