"""What an entity class becomes once it is defined: its attributes, keys and roles, ready for use.

Built at class definition, so that a mistake is found there. `dump` and `load` are the only way
between an entity and its stored item.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from solotable.errors import DataError, DeclarationError, ItemTooLarge
from solotable.values import DEEPEST, AttributeValue, Item, item_size, levels, value_size

from .attributes import Attribute, attribute_of
from .deletion import HIDING, SoftDelete
from .fields import is_from_scope
from .keys import AccessPath, Key, compile_key
from .lanes import settle_keys
from .reading import Reading
from .retention import Retention
from .shapes import Newer, Shapes, build_shapes
from .sides import Composed, Native
from .table import Table, suggestion
from .traits import Trait

if TYPE_CHECKING:
    from .entity import Entity
    from .patterns import Pattern

#: DynamoDB: the largest item, names included.
LARGEST_ITEM = 400 * 1024
_NAMED_FIELDS = 3


class UniqueRule(Trait):
    """A field whose values are unique: among a tenant's entities, or within some of their fields."""

    def __init__(
        self, attribute: Attribute, within: tuple[Attribute, ...], normalise: str, ends: tuple[str, ...]
    ) -> None:
        self.name = self.field = attribute.field
        self.attribute = attribute
        self.within = within
        self.normalise = normalise
        #: The field that says when the entity ends, and its lock with it; none without a time to live.
        self.ends = ends

    @property
    def depends(self) -> tuple[str, ...]:
        """The fields that the lock's key and its end are made of."""
        return (self.field, *(each.field for each in self.within), *self.ends)

    def key_of(self, values: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the parts of the lock's key; None while the field has no value."""
        texts = []
        for attribute in (*self.within, self.attribute):
            value = attribute.dump(values[attribute.field])
            if value is None or "NULL" in value:
                return None
            ((kind, content),) = value.items()
            texts.append(self._normal(content) if kind == "S" else str(content))
        return tuple(texts)

    def _normal(self, text: str) -> str:
        if self.normalise == "exact":
            return text
        normal = unicodedata.normalize("NFC", text)
        # Folding may leave a form that is not composed.
        return unicodedata.normalize("NFC", normal.casefold()) if self.normalise == "casefold" else normal


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entity as far as it is known when its traits are checked."""

    name: str
    tag: str
    table: Table
    attributes: Mapping[str, Attribute]
    annotations: Mapping[str, Any]
    keys: Mapping[str, AccessPath]
    tenant: str | None
    version: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything the store needs to know of an entity class."""

    entity: type[Entity]
    name: str
    tag: str
    table: Table
    attributes: Mapping[str, Attribute]
    keys: Mapping[str, AccessPath]
    primary: AccessPath
    indexes: tuple[AccessPath, ...]
    patterns: Mapping[str, Pattern]
    #: The field that holds the tenant; None for global entities.
    tenant: str | None
    version: str | None
    ttl: str | None
    created: str | None
    updated: str | None
    traits: tuple[Trait, ...]
    #: Numbers that the store keeps; a put carries the stored ones on.
    counters: tuple[str, ...]
    by_wire: Mapping[str, Attribute]
    #: How deleted entities can be had back, and how long entities are kept; None where it is not declared.
    deletion: SoftDelete | None
    retention: Retention | None
    #: Names of derived attributes: keys, the tag, what a soft delete adds. They are never fields.
    derived: frozenset[str]
    shapes: Shapes
    _dumpers: tuple[tuple[str, str, Any], ...]
    _reading: Reading
    tag_value: AttributeValue = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tag_value", {"S": self.tag})

    def dump(self, values: Mapping[str, Any], unknown: Item | None = None) -> Item:
        """Return the item of these field values, its keys derived, within DynamoDB's limits."""
        item: Item = dict(unknown) if unknown else {}
        item[self.table.tag] = self.tag_value
        for name, wire, dump in self._dumpers:
            try:
                value = dump(values[name])
            except DataError as refused:
                raise DataError(_named(self.name, name, refused)) from refused
            if value is not None:
                item[wire] = value
                if ("L" in value or "M" in value) and levels(value) >= DEEPEST:
                    raise DataError(too_deep(f"{self.name}.{name}"))
        item |= self.key_of(values)
        for path in self.indexes:
            more = path.dump(values)
            if more is not None:
                item |= more
        if self.shapes.current > 1:
            self.shapes.finish(item)
        if (size := item_size(item)) > LARGEST_ITEM:
            raise self.too_large(item, size)
        return item

    def check(self, values: Mapping[str, Any]) -> None:
        """Refuse values that could not be read back: copies and lists are changed without Pydantic's eye."""
        try:
            self.entity.__pydantic_validator__.validate_python(dict(values))
        except ValidationError as refused:
            first = refused.errors()[0]
            where = ".".join(str(part) for part in (self.name, *first["loc"]))
            raise DataError(
                f"{where} = {first['input']!r} does not fit its model: {first['msg']}."
            ) from refused

    def load(self, item: Item) -> Entity:
        """Return the entity that an item is; what the model does not know is kept with it."""
        shapes = self.shapes
        if shapes.current > 1 or shapes.attribute in item:
            item = shapes.raised(item)
        try:
            return self._reading.load(item)
        except ValidationError as refused:
            raise DataError(self._unreadable(item, refused)) from refused

    def key_of(self, values: Mapping[str, Any]) -> Item:
        """Return the primary key of these values, or say what is missing."""
        key = self.primary.dump(values)
        if key is None:
            missing = [part for part in self.primary.parts if values.get(part) is None]
            raise DataError(f"{self.name} needs {' and '.join(missing)} for its key; None was given.")
        return key

    def key_from(self, arguments: Mapping[str, Any]) -> Item:
        """Return the primary key for a caller's arguments, refusing too many and too few."""
        self.primary.judge(arguments)
        missing = [part for part in self.primary.parts if part not in arguments]
        if missing:
            raise DataError(
                f"{self.name} needs {' and '.join(self.primary.parts)} ({self.describe()}); "
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing."
            )
        return self.key_of(arguments)

    def arguments_of(self, key: Item) -> dict[str, Any] | None:
        """Return the fields that a primary key was made of; None if it is not one of this entity."""
        found: dict[str, Any] = {}
        for side in (self.primary.partition, self.primary.sort):
            if isinstance(side, Composed):
                parts = side.parse(key.get(side.attribute, {}).get("S", ""))
                if parts is None:
                    return None
                found |= parts
            elif side is not None:
                for attribute in side.attributes:
                    if attribute.wire not in key:
                        return None
                    found[attribute.field] = attribute.load(key[attribute.wire])
        # The shard and the bucket follow from the other parts; a key with others is no key of this entity.
        if self.primary.scattered and not self.key_of(found).items() <= key.items():
            return None
        return found

    def describe(self) -> str:
        """Return the primary key's templates as one line."""
        sides = [side for side in (self.primary.partition, self.primary.sort) if side is not None]
        return ", ".join(
            f"{side.attribute}={side.shown}" if isinstance(side, Composed) else "+".join(side.fields)
            for side in sides
        )

    def too_large(self, item: Item, size: int) -> ItemTooLarge:
        """Return the error for an item over the limit, its heaviest fields named."""
        weights = sorted(
            ((len(name.encode()) + value_size(value), name) for name, value in item.items()), reverse=True
        )
        largest = [(self.by_wire[name].field if name in self.by_wire else name, n) for n, name in weights]
        heavy = ", ".join(f"{name} ({n:,} bytes)" for name, n in largest[:_NAMED_FIELDS])
        return ItemTooLarge(
            f"{self.name} has {size:,} bytes and DynamoDB takes {LARGEST_ITEM:,}; the largest fields are "
            f"{heavy}: split the item or keep them elsewhere.",
            size=size,
            largest=largest,
        )

    def _unreadable(self, item: Item, refused: ValidationError) -> str:
        first = refused.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        key = {name: item.get(name) for name in self.primary.names}
        return f"The stored {self.name} {key} does not fit its model: {where}: {first['msg']}."


def too_deep(owner: str) -> str:
    """Return the sentence for a value that DynamoDB would not take, however small."""
    deepest = DEEPEST - 1
    return f"{owner} has lists and maps more than {deepest} deep, which DynamoDB refuses; keep it as Json()."


def _named(entity: str, name: str, refused: DataError) -> str:
    text = str(refused)
    return text if text.startswith(entity) else f"{entity}.{name}: {text}"


def build_plan(
    entity: type[Entity],
    table: Table,
    *,
    tag: str,
    flat: bool,
    is_global: bool,
    shape: int | None = None,
    newer: Newer = "refuse",
) -> Plan:
    """Compile an entity class, or raise the DeclarationError that says what is wrong with it."""
    name = entity.__name__
    infos = entity.model_fields
    annotations = {each: info.annotation for each, info in infos.items()}
    attributes = {each: attribute_of(name, each, info, flat=flat) for each, info in infos.items()}
    declared = _declared_keys(entity)
    if "key" not in declared:
        raise DeclarationError(f'{name} has no key; write key = Key("...", "...") in it.')
    if declared["key"].index is not None:
        raise DeclarationError(
            f"{name}.key is the table's own key and takes no index=; name an index key otherwise."
        )
    keys = {
        each: compile_key(key, owner=name, table=table, attributes=attributes, annotations=annotations)
        for each, key in declared.items()
    }
    for each, path in keys.items():
        if each != "key" and path.index is None:
            raise DeclarationError(f"{name}.{each} names no index; only `key` is the table's own.")
        if (
            path.index is not None
            and path.index.local
            and _text(path.partition) != _text(keys["key"].partition)
        ):
            raise DeclarationError(
                f"{name}.{each} has the partition {_text(path.partition)}, but index {path.index.name!r} is "
                f"local and shares that of {name}.key; write {_text(keys['key'].partition)}."
            )
    keys = settle_keys(declared, keys)
    tenant = None if is_global else table.tenant
    if tenant is not None:
        _judge_tenant(name, tenant, infos, keys)
    by_wire = _by_wire(name, table, attributes, keys)
    # Also the keys of indexes that the entity is not in: one that it has left is not kept as unknown.
    indexed = {each.name for index in table.indexes.values() for each in (*index.partition, *index.sort)}
    of_keys = {each for path in keys.values() for each in path.derived}
    derived = frozenset({table.tag, *of_keys, *indexed.difference(by_wire)})
    _judge_one_per_index(name, keys)
    roles = {role: _role(name, role, attributes) for role in ("version", "ttl", "created", "updated")}
    if roles["ttl"] is not None and table.ttl != attributes[roles["ttl"]].wire:
        raise DeclarationError(
            f"{name}.{roles['ttl']} is the time to live, but the table's TTL attribute is {table.ttl!r}; "
            f"write Table(..., ttl={attributes[roles['ttl']].wire!r}) or rename the field with Attr()."
        )
    draft = Draft(
        name=name,
        tag=tag,
        table=table,
        attributes=attributes,
        annotations=annotations,
        keys=keys,
        tenant=tenant,
        version=roles["version"],
    )
    traits = _traits(entity, draft)
    deletion = next((trait for trait in traits if isinstance(trait, SoftDelete)), None)
    if deletion is not None:
        derived |= HIDING
    shapes = build_shapes(
        entity,
        shape=shape,
        newer=newer,
        attribute=table.shape,
        derived=derived,
        wires=by_wire,
        key_names=keys["key"].names,
        key_fields=[attributes[each].wire for each in keys["key"].fields],
    )
    return Plan(
        entity=entity,
        name=name,
        tag=tag,
        table=table,
        attributes=attributes,
        keys=keys,
        primary=keys["key"],
        indexes=tuple(path for path in keys.values() if path.index is not None and path.derived),
        patterns=_declared_patterns(entity),
        counters=tuple(each for each, attribute in attributes.items() if attribute.counter),
        traits=tuple(trait for trait in traits if trait.writes_along),
        deletion=deletion,
        retention=next((trait for trait in traits if isinstance(trait, Retention)), None),
        tenant=tenant,
        by_wire=by_wire,
        derived=derived,
        shapes=shapes,
        _dumpers=tuple((each, attribute.wire, attribute.dump) for each, attribute in attributes.items()),
        _reading=Reading(entity, attributes, shapes.dropped | by_wire.keys()),
        **roles,
    )


def _traits(entity: type[Entity], draft: Draft) -> tuple[Trait, ...]:
    declared: dict[str, Trait] = {}
    for owner in reversed(entity.__mro__):
        declared |= {each: value for each, value in vars(owner).items() if isinstance(value, Trait)}
    for each, trait in declared.items():
        if trait.whole and draft.version is None:
            raise DeclarationError(
                f"{draft.name}.{each} follows every change of the entity and needs its version; "
                f"add a field: version: Annotated[int, Version()] = 0."
            )
    return (*_uniques(draft.name, draft.attributes), *(trait.bind(draft) for trait in declared.values()))


def _uniques(name: str, attributes: Mapping[str, Attribute]) -> tuple[UniqueRule, ...]:
    rules = []
    ends = tuple(each.field for each in attributes.values() if each.ttl)
    for attribute in attributes.values():
        marker = attribute.unique
        if marker is None:
            continue
        for each in (attribute.field, *marker.within):
            if each not in attributes:
                raise DeclarationError(
                    f"{name}.{attribute.field} is unique within {each!r}, which is no field; "
                    f"{suggestion(each, attributes)}"
                )
            if attributes[each].kind not in ("S", "N", "B"):
                raise DeclarationError(
                    f"{name}.{each} cannot be part of a unique value: it is kept as "
                    f"{attributes[each].kind or 'several types'}; only texts, numbers and bytes can."
                )
        within = tuple(attributes[each] for each in marker.within)
        rules.append(UniqueRule(attribute, within, marker.normalise, ends))
    return tuple(rules)


def _declared_keys(entity: type[Entity]) -> dict[str, Key]:
    found: dict[str, Key] = {}
    for owner in reversed(entity.__mro__):
        found |= {name: value for name, value in vars(owner).items() if isinstance(value, Key)}
    return found


def _declared_patterns(entity: type[Entity]) -> dict[str, Pattern]:
    from .patterns import Pattern

    found: dict[str, Pattern] = {}
    for owner in reversed(entity.__mro__):
        found |= {name: value for name, value in vars(owner).items() if isinstance(value, Pattern)}
    return found


def _judge_tenant(name: str, tenant: str, infos: Mapping[str, Any], keys: Mapping[str, AccessPath]) -> None:
    if tenant not in infos:
        raise DeclarationError(
            f"{name} has no field {tenant!r}, which keeps the tenants of its table apart; "
            f"write `{tenant}: str = FROM_SCOPE`, or scope='global' for an entity of no tenant."
        )
    if infos[tenant].annotation is not str:
        raise DeclarationError(f"{name}.{tenant} is the tenant and must be a plain str.")
    default = infos[tenant].default
    if not infos[tenant].is_required() and not is_from_scope(default):
        raise DeclarationError(f"{name}.{tenant} is the tenant; its only default is FROM_SCOPE.")
    for path in keys.values():
        if tenant not in path.partition.fields:
            raise DeclarationError(
                f"{name}.{path.name} has no {{{tenant}}} in its partition key, so tenants would share it; "
                f"add it, or declare the entity with scope='global'."
            )


def _by_wire(
    name: str, table: Table, attributes: Mapping[str, Attribute], keys: Mapping[str, AccessPath]
) -> dict[str, Attribute]:
    by_wire: dict[str, Attribute] = {}
    derived = {each for path in keys.values() for each in path.derived}
    reserved = derived | {table.tag}
    reserved |= {each.name for index in table.indexes.values() for each in (*index.partition, *index.sort)}
    native = {each for path in keys.values() for each in path.names} - derived
    for each, attribute in attributes.items():
        if attribute.wire in by_wire:
            raise DeclarationError(
                f"{name} keeps two fields as {attribute.wire!r}: {by_wire[attribute.wire].field}, {each}."
            )
        if attribute.wire in reserved - native:
            raise DeclarationError(
                f"{name}.{each} is kept as {attribute.wire!r}, which is a key attribute or the type tag of "
                f"table {table.name!r}; rename it on the wire with Attr(...)."
            )
        by_wire[attribute.wire] = attribute
    return by_wire


def _text(side: Composed | Native) -> str:
    return repr(side.template.text if isinstance(side, Composed) else side.fields)


def _judge_one_per_index(name: str, keys: Mapping[str, AccessPath]) -> None:
    seen: dict[str, str] = {}
    for path in keys.values():
        for attribute in path.derived:
            if attribute in seen:
                raise DeclarationError(
                    f"{name}.{path.name} and {name}.{seen[attribute]} both fill {attribute!r}; "
                    f"use another index for one of them."
                )
            seen[attribute] = path.name


def _role(name: str, role: str, attributes: Mapping[str, Attribute]) -> str | None:
    found = [each for each, attribute in attributes.items() if getattr(attribute, role)]
    if len(found) > 1:
        raise DeclarationError(f"{name} has more than one {role} field: {', '.join(found)}.")
    return found[0] if found else None
