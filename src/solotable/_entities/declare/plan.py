"""What an entity class becomes once it is defined: its attributes, keys and roles, ready for use.

Built at class definition, so that a mistake is found there. `dump` and `load` are the only way
between an entity and its stored item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from solotable._entities.codecs.field_codecs import Attribute
from solotable._entities.codecs.loader import Reading
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import Composed
from solotable._entities.schema.versions import Shapes
from solotable._entities.traits.retention import Retention
from solotable._entities.traits.soft_delete import SoftDelete
from solotable._entities.traits.trait import Trait
from solotable._values import AttributeValue, Item, item_size, levels, value_size
from solotable._values.lazy_dataclass import dataclass
from solotable._values.limits import DEEPEST_VALUE, LARGEST_ITEM
from solotable.errors import DataError, ItemTooLarge, StoredDataError

from .table import Table

if TYPE_CHECKING:
    from solotable._entities.patterns.pattern import Pattern

    from .entity import Entity

_NAMED_FIELDS = 3


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
    #: Microseconds to which a stamp is cut, by field: the coarsest precision that a key has for it.
    stamp_steps: Mapping[str, int]
    _dumpers: tuple[tuple[str, str, Any], ...]
    _reading: Reading
    tag_value: AttributeValue = field(init=False)
    #: Whether a put reads the stored entity first: it has derived writes or counters.
    is_derived_from: bool = field(init=False)
    #: Whether a put sets fields by the clock: stamps, or the end of a retention period.
    is_stamped: bool = field(init=False)
    #: Attributes of the stored item that a put takes over unchanged, for the traits.
    carried: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "tag_value", {"S": self.tag})
        put(self, "is_derived_from", bool(self.traits or self.counters))
        put(self, "is_stamped", bool(self.created or self.updated or self.retention))
        put(self, "carried", frozenset(name for trait in self.traits for name in trait.carries))

    def dump(self, values: Mapping[str, Any], unknown: Item | None = None) -> Item:
        """Return the item of these field values, its keys derived, within DynamoDB's limits."""
        item: Item = dict(unknown) if unknown else {}
        item[self.table.tag] = self.tag_value
        for name, wire, dump in self._dumpers:
            try:
                value = dump(values[name])
            except DataError as refused:
                raise DataError(_named(self.name, name, refused), told=refused.told) from refused
            if value is not None:
                item[wire] = value
                if ("L" in value or "M" in value) and levels(value) >= DEEPEST_VALUE:
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
                f"{where} = {first['input']!r} does not fit its model: {first['msg']}.",
                told=f"{where} does not fit its model: {first['msg']}.",
            ) from refused

    def load(self, item: Item, context: Mapping[str, bool] | None = None) -> Entity:
        """Return the entity that an item is; what the model does not know is kept with it.

        `context` is for its validators: STORED for what is read, None for what is to be written.
        """
        shapes = self.shapes
        if shapes.current > 1 or shapes.attribute in item:
            item = shapes.raised(item)
        try:
            return self._reading.load(item, context)
        except ValidationError as refused:
            raise StoredDataError(self._unreadable(item, refused)) from refused

    @property
    def partition_template(self) -> str | None:
        """The template of the primary partition key, as declared; None for a native key."""
        partition = self.primary.partition
        return partition.template.text if isinstance(partition, Composed) else None

    def stamp(self, field: str, now: datetime) -> datetime:
        """Return the time that the store writes into a field, as precise as the field's keys are."""
        step = self.stamp_steps.get(field)
        return now if step is None else now.replace(microsecond=now.microsecond // step * step)

    def key_of(self, values: Mapping[str, Any]) -> Item:
        """Return the primary key of these values, or say what is missing."""
        key = self.primary.dump(values)
        if key is None:
            missing = [part for part in self.primary.parts if values.get(part) is None]
            raise DataError(f"{self.name} needs {' and '.join(missing)} for its key; None was given.")
        return key

    def key_from(self, arguments: Mapping[str, Any]) -> Item:
        """Return the primary key for a caller's arguments, refusing too many and too few."""
        if arguments.keys() == self.primary.fields:
            return self.key_of(arguments)
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


def _named(entity: str, name: str, refused: DataError) -> str:
    text = str(refused)
    return text if text.startswith(entity) else f"{entity}.{name}: {text}"


def too_deep(owner: str) -> str:
    """Return the sentence for a value that DynamoDB would not take, however small."""
    deepest = DEEPEST_VALUE - 1
    return f"{owner} has lists and maps more than {deepest} deep, which DynamoDB refuses; keep it as Json()."
