"""Stored items -> entities, as quickly as Python can.

An item that has every attribute of its entity is taken apart by calls into C alone, and an entity
whose fields have types and nothing more is made without validating what its attributes' own readers
have just made. Everything else goes the plain way, which also finds the words for what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import call, itemgetter
from typing import TYPE_CHECKING, Any

from solotable.errors import DataError
from solotable.values import AttributeValue, Item

from .attributes import Attribute

if TYPE_CHECKING:
    from .entity import Entity

#: Schemas of Pydantic that check a type, where that is all they are told.
_TYPES = frozenset({"str", "int", "decimal", "float", "bool", "datetime", "date", "time", "uuid", "bytes"})


class Reading:
    """Reads the items of one entity; `names` are the attributes that it knows."""

    __slots__ = ("_all", "_entity", "_fields", "_get", "_names", "_readers", "_trusted", "_ways")

    def __init__(
        self, entity: type[Entity], attributes: Mapping[str, Attribute], names: frozenset[str]
    ) -> None:
        self._entity = entity
        self._names = names
        self._fields = tuple(attributes)
        self._all = frozenset(attributes)
        self._ways = tuple((each, attributes[each].wire, attributes[each]) for each in attributes)
        self._readers = tuple(_reader(attribute) for attribute in attributes.values())
        wires = [attribute.wire for attribute in attributes.values()]
        # itemgetter of one name gives no tuple.
        self._get: Callable[[Item], tuple[AttributeValue, ...]] | None = (
            itemgetter(*wires) if len(wires) > 1 else None
        )
        self._trusted = is_only_types(entity)

    def load(self, item: Item) -> Entity:
        """Return the entity that an item is, or raise Pydantic's ValidationError.

        What the model does not know is kept with the entity.
        """
        if self._get is not None:
            try:
                values = dict(zip(self._fields, map(call, self._readers, self._get(item)), strict=True))
            except KeyError:
                # An attribute is absent, or of another type than the model's.
                values = self._plainly(item)
        else:
            values = self._plainly(item)
        entity = self._made(values) if self._trusted else self._validated(values)
        if not self._names.issuperset(item):
            entity.keep_unknown({name: value for name, value in item.items() if name not in self._names})
        return entity

    def _plainly(self, item: Item) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, wire, attribute in self._ways:
            value = item.get(wire)
            if value is not None:
                values[name] = attribute.load(value)
            elif attribute.missing is not None:
                values[name] = attribute.missing()
        return values

    def _made(self, values: dict[str, Any]) -> Entity:
        if len(values) < len(self._fields):
            return self._validated(values)
        entity = self._entity.__new__(self._entity)
        put = object.__setattr__
        put(entity, "__dict__", values)
        put(entity, "__pydantic_fields_set__", set(self._all))
        put(entity, "__pydantic_extra__", None)
        put(entity, "__pydantic_private__", None)
        return entity

    def _validated(self, values: dict[str, Any]) -> Entity:
        entity: Entity = self._entity.__pydantic_validator__.validate_python(values)
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
                return itemgetter(kind) if attribute.load({kind: probe}) is probe else attribute.load
            except (DataError, ValueError):
                return attribute.load
    return attribute.load
