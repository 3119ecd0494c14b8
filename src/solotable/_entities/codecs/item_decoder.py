"""Decode stored items to entities, with compiled functions for items that have the same attributes.

The decoder compiles a function for each set of attributes that it meets. The function skips Pydantic's
validation for entities whose fields have types and no other rules, because the codecs return values of these
types. Every other item takes the slow path, which also finds the error for a value that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import indent
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import BaseModel, ValidationInfo

from solotable._entities.declare.fields import Epoch, Iso
from solotable._values import Item
from solotable.errors import DataError

from .containers import CODEC_ERRORS
from .field_codecs import Attribute
from .scalars import read_int

if TYPE_CHECKING:
    from solotable._entities.declare.entity import Entity
    from solotable._entities.keys.access_path import AccessPath

#: The validation context of an entity that is read from the table.
STORED: Final[Mapping[str, bool]] = MappingProxyType({"stored": True})
#: The most attribute sets that one decoder compiles; items with other sets take the slow path.
_MOST_ATTRIBUTE_SETS = 64
#: Pydantic's schema types that check only the type of a value.
_TYPES = frozenset({"str", "int", "decimal", "float", "bool", "datetime", "date", "time", "uuid", "bytes"})


def is_stored(info: ValidationInfo) -> bool:
    """Return whether a validator's value comes from the table; it passed the validator when it was written.

    A rule that is expensive to check, such as the size of a tree, may skip such a value.
    """
    return info.context is STORED


#: Pydantic's own ways to fill an instance.
_SETTERS: Final[Mapping[str, Any]] = {
    "new": object.__new__,
    "set_values": BaseModel.__dict__["__dict__"].__set__,
    "set_fields_set": BaseModel.__dict__["__pydantic_fields_set__"].__set__,
    "set_extra": BaseModel.__dict__["__pydantic_extra__"].__set__,
    "set_private": BaseModel.__dict__["__pydantic_private__"].__set__,
}
#: Decodes an item; the validators get the context.
Decode = Callable[[Item, Mapping[str, bool] | None], Any]
#: Decodes an item that passes every check of a stored one, and otherwise calls the given function.
Admit = Callable[[Item], Any]
#: Returns an Admit from the function for other items, the tenant, and the check of a time to live.
MakeAdmit = Callable[[Admit, str | None, Callable[[Item], bool]], Admit]


#: Returns the expression for an attribute of an item by its name.
Locate = Callable[[str], str]


class Checks(NamedTuple):
    """The checks of a stored item as expressions, and the functions in them."""

    terms: Sequence[str]
    names: Mapping[str, Any]


class _AttributeSet(NamedTuple):
    """How items with the same attributes are decoded; `decode` is None without a compiled function."""

    decode: Decode | None
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
        "_makers",
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
        self._makers: dict[tuple[str, ...], MakeAdmit | None] = {}

    def decode(self, item: Item, context: Mapping[str, bool] | None = None) -> Entity:
        """Return the entity of an item, or raise Pydantic's ValidationError.

        The entity keeps attributes that the model does not know. The validators get `context`.
        """
        found = self._attribute_sets.get(tuple(item)) or self._attribute_set(item)
        entity: Entity | None = None
        if found.decode is not None:
            try:
                entity = found.decode(item, context)
            except (KeyError, *CODEC_ERRORS):
                # An attribute is NULL or does not fit the model; the slow path finds the error.
                pass
        if entity is None:
            entity = self._construct(self._decode_slowly(item), context)
        if found.unknown:
            entity.keep_unknown({name: item[name] for name in found.unknown})
        if found.index_keys:
            kept = {name: item[name] for name in found.index_keys}
            # Imported here, because entities import codecs.
            from solotable._entities.declare.entity import set_private

            set_private(entity, "index_keys", ({name: item.get(name) for name in self._primary.names}, kept))
        return entity

    def make_admit(self, item: Item, checks: Callable[[Locate], Checks]) -> MakeAdmit | None:
        """Return what makes the function that checks and decodes items with the attributes of this one.

        None if no compiled function decodes them whole.
        """
        names = tuple(item)
        if names not in self._makers:
            found = self._attribute_sets.get(names) or self._attribute_set(item)
            if found.decode is None or found.unknown or found.index_keys:
                return None
            self._makers[names] = self._compile_admit(item, checks)
        return self._makers[names]

    def _attribute_set(self, item: Item) -> _AttributeSet:
        """Return how an item's attributes are decoded, and cache it: an entity has few attribute sets."""
        has_room = len(self._attribute_sets) < _MOST_ATTRIBUTE_SETS
        found = _AttributeSet(
            self._compile(item) if has_room else None,
            unknown=tuple(name for name in item if name not in self._names),
            index_keys=tuple(name for name in item if name in self._other_keys),
        )
        if has_room:
            self._attribute_sets[tuple(item)] = found
        return found

    def _compile(self, item: Item) -> Decode | None:
        statements = self._statements(item)
        if statements is None:
            return None
        source = f"""
def decode(item, context):
    {_unpacked(item)} = item.values()
{indent(statements, " " * 4)}
    return entity
"""
        decode: Decode = self._run(source, {})["decode"]
        return decode

    def _compile_admit(self, item: Item, checks: Callable[[Locate], Checks]) -> MakeAdmit:
        statements, found = self._statements(item), checks(_locate_in(item))
        assert statements is not None
        source = f"""
def make(otherwise, tenant, is_hidden):
    def admit(item):
        if [*item] == attributes:
            {_unpacked(item)} = item.values()
            try:
                if {" and ".join(found.terms)}:
{indent(statements, " " * 20)}
                    return entity
            except errors:
                pass
        return otherwise(item)
    return admit
"""
        names = {"attributes": [*item], "context": STORED, "errors": (KeyError, *CODEC_ERRORS)}
        make: MakeAdmit = self._run(source, {**names, **found.names})["make"]
        return make

    def _statements(self, item: Item) -> str | None:
        """Return the statements that set `entity` to the entity of an item with these attributes.

        None if only a key contains a field.
        """
        members, locate = [], _locate_in(item)
        for number, (name, attribute) in enumerate(self._attributes.items()):
            if attribute.stored and attribute.wire in item:
                value = locate(attribute.wire)
                members.append(f"{name!r}: {_expression(attribute, value, f'decode{number}')}")
            elif name in self._in_key:
                return None
            elif attribute.missing is not None:
                members.append(f"{name!r}: missing{number}()")
        values = f"{{{', '.join(members)}}}"
        if not self._trusted or len(members) < len(self._all):
            return f"entity = validate({values}, context=context)"
        # Pydantic's own setters take two thirds of the time of object.__setattr__.
        return (
            f"entity = new(cls)\nset_values(entity, {values})\nset_fields_set(entity, all_fields())\n"
            "set_extra(entity, None)\nset_private(entity, None)"
        )

    def _run(self, source: str, more: Mapping[str, Any]) -> dict[str, Any]:
        """Run the source text of a function, which is made of declared names; return its names."""
        names: dict[str, Any] = {
            **more,
            "cls": self._entity,
            "validate": self._entity.__pydantic_validator__.validate_python,
            "all_fields": set(self._all).copy,
            **_SETTERS,
        }
        for number, attribute in enumerate(self._attributes.values()):
            names[f"decode{number}"] = _decoder(attribute)
            names[f"missing{number}"] = attribute.missing
        exec(source, names)  # noqa: S102
        return names

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

    def _construct(self, values: dict[str, Any], context: Mapping[str, bool] | None) -> Entity:
        if not self._trusted or len(values) < len(self._all):
            validated: Entity = self._entity.__pydantic_validator__.validate_python(values, context=context)
            return validated
        entity = object.__new__(self._entity)
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


# The items of an attribute set have the same order, so that their values are unpacked without lookups.


def _unpacked(item: Item) -> str:
    return "".join(f"value{number}, " for number in range(len(item)))


def _locate_in(item: Item) -> Locate:
    """Return the function from an attribute's name to the variable of `_unpacked` that holds its value."""
    names = {name: f"value{number}" for number, name in enumerate(item)}
    return lambda name: names.get(name) or f"item[{name!r}]"


def _expression(attribute: Attribute, value: str, decoder: str) -> str:
    """Return the expression that decodes the value of an attribute."""
    kind = _kind_of_content(attribute)
    if kind is not None:
        return f"{value}[{kind!r}]"
    if (container := _set_of_content(attribute)) is not None:
        return f"{container}({value}['SS'])"
    content = value if attribute.scalar is None else f"{value}[{attribute.scalar.kind!r}]"
    return f"{decoder}({content})"


def _decoder(attribute: Attribute) -> Callable[[Any], Any]:
    """Return the function that decodes an attribute, or the content of a scalar.

    It is the fastest one for the usual contents. The slow path decodes what it rejects.
    """
    if attribute.scalar is None:
        return attribute.decode
    return int if attribute.scalar.decode is read_int else attribute.scalar.decode


def _set_of_content(attribute: Attribute) -> str | None:
    """Return the container of an attribute that holds the stored texts themselves."""
    if attribute.kind == "SS":
        probe = "\N{NO-BREAK SPACE}probe"
        try:
            found = attribute.decode({"SS": [probe]})
        except (DataError, ValueError):
            return None
        if type(found) in (set, frozenset) and next(iter(found)) is probe:
            return type(found).__name__
    return None


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
