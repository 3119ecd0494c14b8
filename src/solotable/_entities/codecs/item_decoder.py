"""Decode stored items to entities, with a fast path for items that have the same attributes.

The decoder looks up the codecs for a set of attributes once. It skips Pydantic's validation for entities
whose fields have types and no other rules, because the codecs return values of these types. Every other
item takes the slow path, which also finds the error for a value that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationInfo

from solotable._entities.declare.fields import Epoch, Iso
from solotable._values import Item
from solotable.errors import DataError

from .containers import CODEC_ERRORS
from .field_codecs import Attribute

if TYPE_CHECKING:
    from solotable._entities.declare.entity import Entity
    from solotable._entities.keys.access_path import AccessPath

#: The validation context of an entity that is read from the table.
STORED: Final[Mapping[str, bool]] = MappingProxyType({"stored": True})
#: The most attribute sets that one decoder caches; it looks up the codecs of other sets for each item.
_MOST_ATTRIBUTE_SETS = 64
#: Pydantic's schema types that check only the type of a value.
_TYPES = frozenset({"str", "int", "decimal", "float", "bool", "datetime", "date", "time", "uuid", "bytes"})


def is_stored(info: ValidationInfo) -> bool:
    """Return whether a validator's value comes from the table; it passed the validator when it was written.

    A rule that is expensive to check, such as the size of a tree, may skip such a value.
    """
    return info.context is STORED


class _AttributeSet(NamedTuple):
    """How items with the same attributes are decoded; `read` is None without a fast path."""

    read: Callable[[Item], dict[str, Any]] | None
    unknown: tuple[str, ...]
    #: Keys of indexes on which this class has no Key.
    index_keys: tuple[str, ...]


class ItemDecoder:
    """Decodes the items of one entity.

    `names` are the known attributes, `other_keys` the keys of indexes on which the class has no Key. A field
    of the primary key whose attribute is missing is read from the key; a required field also from the key of
    an index.
    """

    __slots__ = (
        "_all",
        "_attribute_sets",
        "_attributes",
        "_entity",
        "_in_indexes",
        "_in_key",
        "_in_primary",
        "_names",
        "_other_keys",
        "_primary",
        "_trusted",
    )

    def __init__(
        self,
        entity: type[Entity],
        attributes: Mapping[str, Attribute],
        names: frozenset[str],
        primary: AccessPath,
        index_paths: tuple[AccessPath, ...] = (),
        other_keys: frozenset[str] = frozenset(),
    ) -> None:
        self._entity = entity
        self._names = names - {each.wire for each in attributes.values() if not each.stored}
        self._other_keys = other_keys
        self._primary = primary
        required = {name for name, field in entity.model_fields.items() if field.is_required()}
        # An absent attribute of a field that may be None is None, also if an old index key has a value.
        optional = {name for name, each in attributes.items() if each.missing is not None}
        wanted = required - optional - primary.invertible
        self._in_indexes = [(path, found) for path in index_paths if (found := path.invertible & wanted)]
        self._in_primary = primary.invertible
        self._in_key = self._in_primary.union(*(names for _, names in self._in_indexes))
        self._attributes = attributes
        self._all = frozenset(attributes)
        self._trusted = is_only_types(entity)
        self._attribute_sets: dict[tuple[str, ...], _AttributeSet] = {}

    def decode(self, item: Item, context: Mapping[str, bool] | None = None) -> Entity:
        """Return the entity of an item, or raise Pydantic's ValidationError.

        The entity keeps attributes that the model does not know. The validators get `context`.
        """
        found = self._attribute_sets.get(tuple(item)) or self._attribute_set(item)
        if found.read is None:
            values = self._decode_slowly(item)
        else:
            try:
                values = found.read(item)
            except (KeyError, *CODEC_ERRORS):
                # An attribute is NULL or does not fit the model; the slow path finds the error.
                values = self._decode_slowly(item)
        if self._trusted and len(values) == len(self._all):
            entity = self._construct(values)
        else:
            entity = self._entity.__pydantic_validator__.validate_python(values, context=context)
        if found.unknown:
            entity.keep_unknown({name: item[name] for name in found.unknown})
        if found.index_keys:
            kept = {name: item[name] for name in found.index_keys}
            # Imported here, because entities import codecs.
            from solotable._entities.declare.entity import set_private

            set_private(entity, "index_keys", ({name: item.get(name) for name in self._primary.names}, kept))
        return entity

    def _attribute_set(self, item: Item) -> _AttributeSet:
        """Return the decoders for an item's attributes, and cache them: an entity has few attribute sets."""
        present = [name for name, each in self._attributes.items() if each.stored and each.wire in item]
        filled = any(
            (each.missing is not None or name in self._in_key) and name not in present
            for name, each in self._attributes.items()
        )
        found = _AttributeSet(
            read=None if filled else _compile([self._attributes[name] for name in present]),
            unknown=tuple(name for name in item if name not in self._names),
            index_keys=tuple(name for name in item if name in self._other_keys),
        )
        if len(self._attribute_sets) < _MOST_ATTRIBUTE_SETS:
            self._attribute_sets[tuple(item)] = found
        return found

    @property
    def is_trusted(self) -> bool:
        """Whether the model's fields have only types, so that validation changes no value."""
        return self._trusted

    def raw_values(self, item: Item) -> dict[str, Any]:
        """Return the decoded fields of an item, without defaults and without validation."""
        return {
            name: attribute.decode(item[attribute.wire])
            for name, attribute in self._attributes.items()
            if attribute.stored and attribute.wire in item
        }

    def _decode_slowly(self, item: Item) -> dict[str, Any]:
        values: dict[str, Any] = {}
        in_key: dict[str, Any] | None = None
        for name, attribute in self._attributes.items():
            # Another program's attribute may have the name of a field that only the key contains.
            value = item.get(attribute.wire) if attribute.stored else None
            if value is not None:
                values[name] = attribute.decode(value)
                continue
            if name in self._in_key:
                in_key = self._key_values(item) if in_key is None else in_key
                if name in in_key:
                    values[name] = in_key[name]
                    continue
            if attribute.missing is not None:
                values[name] = attribute.missing()
        return values

    def _key_values(self, item: Item) -> dict[str, Any]:
        """Return the fields that the keys of an item contain whole."""
        parsed = self._primary.parse(item) or {}
        found = {name: value for name, value in parsed.items() if name in self._in_primary}
        for path, names in self._in_indexes:
            if any(name not in found and self._attributes[name].wire not in item for name in names):
                parsed = path.parse(item) or {}
                found |= {name: parsed[name] for name in names if name in parsed}
        return found

    def _construct(self, values: dict[str, Any]) -> Entity:
        entity = self._entity.__new__(self._entity)
        put = object.__setattr__
        put(entity, "__dict__", values)
        put(entity, "__pydantic_fields_set__", set(self._all))
        put(entity, "__pydantic_extra__", None)
        put(entity, "__pydantic_private__", None)
        return entity


def is_only_types(entity: type[Entity]) -> bool:
    """Return whether an entity's fields have only types: no constraint, validator or hook."""
    schema: Any = entity.__pydantic_core_schema__
    if schema.get("type") != "model" or schema.get("post_init") or schema.get("custom_init"):
        return False
    fields = schema["schema"]
    return fields.get("type") == "model-fields" and all(
        _is_only_type(field["schema"]) for field in fields["fields"].values()
    )


def _is_only_type(schema: Mapping[str, Any]) -> bool:
    kind = schema["type"]
    if kind == "default":
        return _is_only_type(schema["schema"])
    if kind == "nullable":
        return set(schema) <= {"type", "schema"} and _is_only_type(schema["schema"])
    if kind in ("set", "frozenset", "list"):
        return set(schema) <= {"type", "items_schema"} and _is_only_type(
            schema.get("items_schema", {"type": "any"})
        )
    if kind == "function-after":
        # The codec of a time has truncated it already.
        marker = getattr(schema["function"]["function"], "__self__", None)
        return isinstance(marker, Iso | Epoch) and _is_only_type(schema["schema"])
    if kind == "datetime":
        # The precision concerns input finer than a microsecond, which stored texts never have.
        return set(schema) <= {"type", "microseconds_precision"}
    return kind in _TYPES and set(schema) == {"type"}


def _compile(attributes: Sequence[Attribute]) -> Callable[[Item], dict[str, Any]]:
    """Return the function that reads these attributes of an item.

    One expression takes a third of the time of a loop over decoders. It is made of declared names.
    """
    decoders: dict[str, Any] = {}
    members: list[str] = []
    for number, attribute in enumerate(attributes):
        value = f"item[{attribute.wire!r}]"
        kind = _kind_of_content(attribute)
        if kind is not None:
            members.append(f"{attribute.field!r}: {value}[{kind!r}]")
            continue
        scalar = attribute.scalar
        decoders[f"d{number}"] = attribute.decode if scalar is None else scalar.decode
        content = value if scalar is None else f"{value}[{scalar.kind!r}]"
        members.append(f"{attribute.field!r}: d{number}({content})")
    read: Callable[[Item], dict[str, Any]] = eval(  # noqa: S307
        f"lambda item: {{{', '.join(members)}}}", decoders
    )
    return read


def _kind_of_content(attribute: Attribute) -> str | None:
    """Return the type of an attribute whose stored content is the value itself."""
    for kind, probe in (("S", "\N{NO-BREAK SPACE}probe"), ("BOOL", True)):
        if attribute.kind == kind:
            try:
                if attribute.decode({kind: probe}) is probe:
                    return kind
            except (DataError, ValueError):
                pass
    return None
