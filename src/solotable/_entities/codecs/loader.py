"""Stored items -> entities, as quickly as Python can.

Items with the same attributes are taken apart by the same calls into C, found once, and an entity whose
fields have types and nothing more is made without validating what its attributes' own readers have just
made. Everything else goes the plain way, which also finds the words for what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import call, itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationInfo

from solotable._values import AttributeValue, Item
from solotable.errors import DataError

from .containers import REFUSALS
from .field_codecs import Attribute

if TYPE_CHECKING:
    from solotable._entities.declare.entity import Entity

#: What validators are given as their context when an entity is read as it was stored.
STORED: Final[Mapping[str, bool]] = MappingProxyType({"stored": True})
#: So many shapes of items are remembered; further ones are looked at each time.
_MOST_SHAPES = 64
#: Schemas of Pydantic that check a type, where that is all they are told.
_TYPES = frozenset({"str", "int", "decimal", "float", "bool", "datetime", "date", "time", "uuid", "bytes"})


def is_stored(info: ValidationInfo) -> bool:
    """Say to a validator whether its value was read from the table, where it went by the same validator.

    A rule that costs as much as the reading itself, as one about the size of a tree, may let it pass.
    """
    return info.context is STORED


class _Shape(NamedTuple):
    """How items are read that have the same attributes; `get` is None where there is no quick way."""

    fields: tuple[str, ...]
    get: Callable[[Item], tuple[AttributeValue, ...]] | None
    readers: tuple[Callable[[AttributeValue], Any], ...]
    unknown: tuple[str, ...]


class Reading:
    """Reads the items of one entity; `names` are the attributes that it knows."""

    __slots__ = ("_all", "_attributes", "_entity", "_names", "_readers", "_shapes", "_trusted")

    def __init__(
        self, entity: type[Entity], attributes: Mapping[str, Attribute], names: frozenset[str]
    ) -> None:
        self._entity = entity
        self._names = names
        self._attributes = attributes
        self._all = frozenset(attributes)
        self._readers = {name: _reader(attribute) for name, attribute in attributes.items()}
        self._trusted = is_only_types(entity)
        self._shapes: dict[tuple[str, ...], _Shape] = {}

    def load(self, item: Item, context: Mapping[str, bool] | None = None) -> Entity:
        """Return the entity that an item is, or raise Pydantic's ValidationError.

        What the model does not know is kept with the entity. `context` is for the validators.
        """
        shape = self._shapes.get(tuple(item)) or self._shape(item)
        if shape.get is None:
            values = self._plainly(item)
        else:
            try:
                values = dict(zip(shape.fields, map(call, shape.readers, shape.get(item)), strict=True))
            except (KeyError, *REFUSALS):
                # An attribute is NULL, or something that the model cannot read; this finds the words for it.
                values = self._plainly(item)
        if self._trusted and len(values) == len(self._all):
            entity = self._made(values)
        else:
            entity = self._entity.__pydantic_validator__.validate_python(values, context=context)
        if shape.unknown:
            entity.keep_unknown({name: item[name] for name in shape.unknown})
        return entity

    def _shape(self, item: Item) -> _Shape:
        """Find how an item is read, and remember it: the items of an entity have few shapes."""
        present = [(name, each.wire) for name, each in self._attributes.items() if each.wire in item]
        filled = any(each.missing is not None and each.wire not in item for each in self._attributes.values())
        # itemgetter of one name gives no tuple.
        quick = len(present) > 1 and not filled
        shape = _Shape(
            fields=tuple(name for name, _ in present),
            get=itemgetter(*(wire for _, wire in present)) if quick else None,
            readers=tuple(self._readers[name] for name, _ in present),
            unknown=tuple(name for name in item if name not in self._names),
        )
        if len(self._shapes) < _MOST_SHAPES:
            self._shapes[tuple(item)] = shape
        return shape

    def _plainly(self, item: Item) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, attribute in self._attributes.items():
            value = item.get(attribute.wire)
            if value is not None:
                values[name] = attribute.load(value)
            elif attribute.missing is not None:
                values[name] = attribute.missing()
        return values

    def _made(self, values: dict[str, Any]) -> Entity:
        entity = self._entity.__new__(self._entity)
        put = object.__setattr__
        put(entity, "__dict__", values)
        put(entity, "__pydantic_fields_set__", set(self._all))
        put(entity, "__pydantic_extra__", None)
        put(entity, "__pydantic_private__", None)
        return entity


def is_only_types(entity: type[Entity]) -> bool:
    """Whether an entity's fields are checked for their types alone: no constraint, validator or hook."""
    schema: Any = entity.__pydantic_core_schema__
    if schema.get("type") != "model" or schema.get("post_init") or schema.get("custom_init"):
        return False
    fields = schema["schema"]
    return fields.get("type") == "model-fields" and all(
        _only_type(field["schema"]) for field in fields["fields"].values()
    )


def _only_type(schema: Mapping[str, Any]) -> bool:
    kind = schema["type"]
    if kind == "default":
        return _only_type(schema["schema"])
    if kind == "nullable":
        return set(schema) <= {"type", "schema"} and _only_type(schema["schema"])
    if kind in ("set", "frozenset", "list"):
        return set(schema) <= {"type", "items_schema"} and _only_type(
            schema.get("items_schema", {"type": "any"})
        )
    if kind == "datetime":
        # Pydantic tells what a datetime may lose, which cannot happen to one that is read from text.
        return set(schema) <= {"type", "microseconds_precision"}
    return kind in _TYPES and set(schema) == {"type"}


def _reader(attribute: Attribute) -> Callable[[AttributeValue], Any]:
    """Return how an attribute is read; where its content is the value as it is, a call into C."""
    for kind, probe in (("S", "\N{NO-BREAK SPACE}probe"), ("BOOL", True)):
        if attribute.kind == kind:
            try:
                if attribute.load({kind: probe}) is probe:
                    return itemgetter(kind)
            except (DataError, ValueError):
                pass
    scalar = attribute.scalar
    if scalar is None:
        return attribute.load
    kind, read = scalar.kind, scalar.read
    return lambda value: read(value[kind])
