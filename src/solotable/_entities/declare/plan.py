"""Plan: a compiled entity class. It encodes field values to items and decodes items to entities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from solotable._entities.codecs.field_codecs import Attribute
from solotable._entities.codecs.item_decoder import Checks, ItemDecoder, Locate, MakeAdmit
from solotable._entities.item_encoder import Fill, KeyEncoders, compile_encoder, is_counted_once
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.key_check import KeyCheck, compared_names, key_checks
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.schema.versions import SchemaVersions
from solotable._entities.synced import Synced
from solotable._entities.traits.retention import Retention
from solotable._entities.traits.soft_delete import SoftDelete
from solotable._entities.traits.trait import Trait
from solotable._expressions.ast import Condition, Exists, Not, Or
from solotable._values import AttributeValue, Item, item_size, value_size
from solotable._values.lazy_dataclass import dataclass
from solotable._values.limits import DEEPEST_VALUE, LARGEST_ITEM
from solotable.errors import DataError, ItemTooLarge, StoredDataError

from . import recognition
from .fields import truncate
from .table import Table

if TYPE_CHECKING:
    from solotable._entities.codecs.opaque.encryption import ItemCipher
    from solotable._entities.codecs.opaque.offloading import ItemBlobs
    from solotable._entities.hooks import Hooks
    from solotable._entities.patterns.pattern import Pattern

    from .entity import Entity

_NAMED_FIELDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The parts of an entity against which its traits are checked."""

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
    """A compiled entity class."""

    entity: type[Entity]
    name: str
    tag: str
    #: Whether the class has no items, only its subclasses have.
    abstract: bool
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
    #: Fields that only the store changes; a put keeps their stored values.
    counters: tuple[str, ...]
    by_wire: Mapping[str, Attribute]
    #: The declared soft delete and retention.
    deletion: SoftDelete | None
    retention: Retention | None
    #: The declared replication to clients; None for an entity that stays on the server.
    synced: Synced | None
    #: Attributes that are not fields: keys, the tag, and those of traits.
    derived: frozenset[str]
    #: Attributes that only the store sets: those above, the fields, and the primary key.
    reserved: frozenset[str]
    schema_versions: SchemaVersions
    #: The precision of a stamp in microseconds, by field: the coarsest precision of its keys.
    stamp_steps: Mapping[str, int]
    #: The fields with a declared precision of times, in microseconds.
    truncated: tuple[tuple[str, int], ...]
    _decoder: ItemDecoder
    #: Returns True only if the stored primary key of an item is the one that its attributes derive.
    key_check: KeyCheck | None
    #: Encrypts and decrypts items; None without an encrypted field.
    cipher: ItemCipher | None = None
    #: Finds the objects of offloaded fields; None without such a field.
    blobs: ItemBlobs | None = None
    #: The methods to call before and after writes; None without hooks.
    hooks: Hooks | None = None
    #: The methods to call after reads; None without hooks.
    read_hooks: Hooks | None = None
    #: Fields that a backfill compresses or offloads if they are stored plain.
    reencoded: tuple[Attribute, ...] = field(init=False)
    #: The subclasses with the same primary key, by tag; reads of this entity return them too.
    subclasses: dict[str, Plan] = field(init=False)
    tag_value: AttributeValue = field(init=False)
    #: The attributes that name the entity in an item: the type tag, or none.
    identity: Item = field(init=False)
    #: The attributes that another library adds to each new item.
    constants: Item = field(init=False)
    #: The condition of a write that the stored item is of this entity.
    is_entity: Condition = field(init=False)
    #: The condition of a write that the key is free, or that the stored item is of this entity.
    is_replaceable: Condition = field(init=False)
    #: The filters of a Query and a Scan. If tags are not required, they may let items of other entities pass.
    entity_filter: Condition | None = field(init=False)
    scan_filter: Condition | None = field(init=False)
    #: Whether a put reads the stored entity first: it has derived writes or counters.
    is_derived_from: bool = field(init=False)
    #: Whether a put sets fields from the clock: stamps, or the end of a retention period.
    is_stamped: bool = field(init=False)
    #: Whether reads of this entity, or of a subclass, call hooks.
    hooks_reads: bool = field(init=False)
    #: Whether reads of this entity, or of a subclass, need the keys of data subjects.
    loads_keys: bool = field(init=False)
    #: The fields whose stored values a key contains: the parts of the primary key that are not folded.
    known_parts: tuple[str, ...] = field(init=False)
    #: Attributes of the traits, whose stored values a put keeps.
    carried: frozenset[str] = field(init=False)
    #: Fills an item with attributes and keys; it is compiled at its first call.
    _fill: Fill = field(init=False)
    #: The bytes of an item beside those that `_fill` returns; None if `item_size` must count them all.
    _more_bytes: int | None = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        table, tags = self.table, (self.tag,)
        put(self, "subclasses", {})
        # Without a declared tag, no value of the attribute is a tag of the entity.
        put(self, "tag_value", {} if table.tag is None else {"S": self.tag})
        attributes = self.attributes.values()
        opaque = ("compressed", "offloaded")
        put(self, "reencoded", tuple(each for each in attributes if each.opaque in opaque))
        put(self, "identity", {} if table.tag is None else {table.tag: self.tag_value})
        put(self, "constants", {} if table.preset is None else table.preset.constants)
        put(self, "is_entity", recognition.is_entity(table, tags))
        put(self, "is_replaceable", Or((Not(Exists((table.partition.name,))), self.is_entity)))
        put(self, "entity_filter", recognition.entity_filter(table, tags))
        put(self, "scan_filter", recognition.scan_filter(table, tags, self.primary))
        put(self, "is_derived_from", bool(self.traits or self.counters))
        put(self, "is_stamped", bool(self.created or self.updated or self.retention or self.truncated))
        put(self, "hooks_reads", self.read_hooks is not None)
        put(self, "loads_keys", self.cipher is not None and bool(self.cipher.subjects))
        unknown = self.primary.inexact
        put(self, "known_parts", tuple(part for part in self.primary.parts if part not in unknown))
        put(self, "carried", frozenset(name for trait in self.traits for name in trait.carries))
        put(self, "_fill", self._compile_and_fill)
        put(self, "_more_bytes", None)

    def encode(self, values: Mapping[str, Any], unknown: Item | None = None) -> Item:
        """Encode field values to an item with its keys, or raise ItemTooLarge."""
        return self.encode_sized(values, unknown)[0]

    def encode_sized(self, values: Mapping[str, Any], unknown: Item | None = None) -> tuple[Item, int]:
        """Encode field values to an item, and return its bytes too, or raise ItemTooLarge."""
        if self.abstract:
            raise DataError(f"{self.name} is abstract and has no items; write one of its subclasses.")
        item: Item = {**self.constants, **unknown} if unknown else {**self.constants}
        item |= self.identity
        try:
            size = self._fill(values, item)
        except DataError as error:
            named = self._named(values, error)
            if named is error:
                raise
            raise named from error
        if self.schema_versions.current > 1:
            self.schema_versions.complete(item)
        if self.cipher is not None:
            self.cipher.encrypt(item)
        size = item_size(item) if unknown or self._more_bytes is None else size + self._more_bytes
        if size > LARGEST_ITEM:
            raise self.too_large(item, size)
        return item, size

    def _compile_and_fill(self, values: Mapping[str, Any], item: Item) -> int:
        keys = KeyEncoders(self.primary, self.key_of, self.indexes)
        put, fill = object.__setattr__, compile_encoder(self.attributes, keys, self._depth_error)
        put(self, "_fill", fill)
        changes = bool(self.constants) or self.schema_versions.current > 1 or self.cipher is not None
        if not changes and is_counted_once(self.attributes.values(), keys):
            put(self, "_more_bytes", item_size(self.identity))
        return fill(values, item)

    def _named(self, values: Mapping[str, Any], error: DataError) -> DataError:
        """Return an error of a codec with the name of its field; the error of a key as it is."""
        for name, attribute in self.attributes.items():
            try:
                if attribute.stored:
                    attribute.encode(values[name])
            except DataError:
                return DataError(_named(self.name, name, error), public_message=error.public_message)
        return error

    def _depth_error(self, name: str) -> DataError:
        return depth_error(f"{self.name}.{name}")

    def add_subclass(self, plan: Plan) -> None:
        """Add a subclass with the same primary key, whose items reads of this entity return."""
        recognition.check_subclass(self, plan)
        self.subclasses[plan.tag] = plan
        put, tags = object.__setattr__, (self.tag, *self.subclasses)
        put(self, "hooks_reads", self.hooks_reads or plan.hooks_reads)
        put(self, "loads_keys", self.loads_keys or plan.loads_keys)
        put(self, "entity_filter", recognition.entity_filter(self.table, tags))
        put(self, "scan_filter", recognition.scan_filter(self.table, tags, self.primary))

    def covers(self, plan: Plan) -> bool:
        """Return whether reads of this entity return the entities of a plan: its own, and of subclasses."""
        return plan is self or self.subclasses.get(plan.tag) is plan

    def recognises(self, item: Item) -> bool:
        """Return whether an item is of this entity: by its tag or, if tags are not required, by its key."""
        table = self.table
        if item.get(table.internal_tag) == self.tag_value:
            return True
        return not table.tag_required and recognition.recognise(table, item) is self

    def kept(self, entity: Entity, values: Mapping[str, Any]) -> Item:
        """Return the attributes that a put writes back as read: unknown ones, and keys of other indexes.

        An index key belongs to the item from which it was read. A copy under another key does not get it,
        because it would appear in partitions of the original, or of another tenant.
        """
        private = entity.__pydantic_private__
        if not private or "index_keys" not in private:
            return entity.unknown_attributes
        key, index_keys = private["index_keys"]
        if self.key_of(values) != key:
            return entity.unknown_attributes
        return {**entity.unknown_attributes, **index_keys}

    def check(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Validate values before a write; Pydantic does not see changes inside lists or in copies.

        Return the values that the validators give; None if the model has only types, which change nothing.
        """
        try:
            validated = self.entity.__pydantic_validator__.validate_python(dict(values))
        except ValidationError as error:
            if not values.keys() <= self.attributes.keys():
                # A cached_property keeps its value beside the fields.
                return self.check({name: values[name] for name in self.attributes})
            first = error.errors()[0]
            where = ".".join(str(part) for part in (self.name, *first["loc"]))
            public = f"{where} does not fit its model: {first['msg']}."
            if self.is_secret(first["loc"]):
                raise DataError(public, public_message=public) from None
            shown = f"{where} = {first['input']!r} does not fit its model: {first['msg']}."
            raise DataError(shown, public_message=public) from error
        return (
            None if self._decoder.is_trusted else {name: validated.__dict__[name] for name in self.attributes}
        )

    def decode(self, item: Item, context: Mapping[str, bool] | None = None) -> Entity:
        """Decode an item to its entity; the entity keeps attributes that the model does not know.

        The validators get `context`: STORED for an item from the table, None for an item before a write.
        """
        versions = self.schema_versions
        if versions.current > 1 or versions.attribute in item:
            item = versions.upgrade(item)
        if self.cipher is not None:
            item = self.cipher.decrypt(item)
        if self.blobs is not None:
            item = self.blobs.locate(item)
        try:
            return self._decoder.decode(item, context)
        except ValidationError as error:
            # Pydantic's error contains the values, so do not chain it if one of them is encrypted.
            cause = error if self.cipher is None else None
            raise StoredDataError(self._decoding_error(item, error)) from cause

    def make_admit(self, item: Item) -> MakeAdmit | None:
        """Return what makes the function that checks and decodes stored items with the same attributes.

        None if no compiled function does, such as for an item of another entity.
        """
        table, versions = self.table, self.schema_versions
        if versions.current > 1 or versions.attribute in item or self.cipher is not None:
            return None
        if self.blobs is not None or table.tag is None or item.get(table.tag) != self.tag_value:
            return None
        return self._decoder.make_admit(item, self._checks)

    def _checks(self, locate: Locate) -> Checks:
        """Return the checks of a stored item: its entity, tenant, time to live and key."""
        terms = [f"{locate(self.table.internal_tag)}['S'] == {self.tag!r}"]
        if self.tenant is not None:
            terms.append(f"(tenant is None or {locate(self.attributes[self.tenant].wire)}['S'] == tenant)")
        if self.deletion is not None or self.ttl is not None:
            terms.append("not is_hidden(item)")
        key = key_checks(self.primary, self.attributes, locate)
        return Checks([*terms, *key.terms], key.names)

    def raw_values(self, item: Item) -> dict[str, Any]:
        """Return the decoded fields of an item without defaults and without the model's validators."""
        return self._decoder.raw_values(item if self.cipher is None else self.cipher.decrypt(item))

    def check_key(self, item: Item, entity: Entity) -> None:
        """Raise StoredDataError if the key of a stored item is not the one that its fields derive.

        A write of such an entity would go to the derived key: an update would not find the item, and a put
        would add a second one.
        """
        check = self.key_check
        try:
            if check is None or check(item):
                return
        except KeyError:
            # Only the key or an older schema version contains the field.
            pass
        names = compared_names(self.primary)
        stored = {name: item.get(name) for name in names}
        try:
            key = self.key_of(entity.__dict__)
        except DataError as error:
            raise StoredDataError(f"The stored {self.name} {stored} has no key: {error}") from error
        derived = {name: key[name] for name in names}
        if stored != derived:
            raise StoredDataError(
                f"The stored {self.name} {stored} has fields that derive another key, {derived}, so a write "
                f"would not find it; declare the format of its keys with KeyFormat, or of its times with Iso "
                f"or Epoch, or move the item."
            )

    def is_secret(self, location: Sequence[Any]) -> bool:
        """Return whether an error at this location of the model would show an encrypted value."""
        if self.cipher is None:
            return False
        # An error of a model validator has no location, and shows all values. A location may be an alias.
        attribute = self.attributes.get(str(location[0])) if location else None
        return attribute is None or attribute.encrypted is not None

    @property
    def partition_template(self) -> str | None:
        """The declared template of the primary partition key; None for a key of plain attributes."""
        partition = self.primary.partition
        return partition.template.text if isinstance(partition, TemplateLayout) else None

    def stamp(self, field: str, now: datetime) -> datetime:
        """Return the time that the store writes into a field, with the precision of the field's keys."""
        moment: datetime = truncate(now, self.stamp_steps.get(field, 1))
        return moment

    def index_keys(
        self, values: Mapping[str, Any], changed: AbstractSet[str] | None = None
    ) -> dict[str, AttributeValue | None]:
        """Return the attributes of the index keys; None for those that an item must not have.

        With `changed`, return only the keys that depend on these fields.
        """
        found: dict[str, AttributeValue | None] = {}
        for path in self.indexes:
            if changed is not None and not path.sources & changed:
                continue
            key = path.encode(values)
            for name in path.derived:
                # Of the alternatives of an index, at most one applies.
                if key is not None:
                    found[name] = key[name]
                else:
                    found.setdefault(name, None)
        return found

    def key_of(self, values: Mapping[str, Any]) -> Item:
        """Return the primary key of these values, or raise DataError when a part is None."""
        key = self.primary.encode(values)
        if key is None:
            missing = [part for part in self.primary.parts if values.get(part) is None]
            raise DataError(f"{self.name} needs {' and '.join(missing)} for its key, got None.")
        return key

    def key_from(self, arguments: Mapping[str, Any]) -> Item:
        """Return the primary key of a caller's arguments; unknown and missing ones raise DataError."""
        if arguments.keys() == self.primary.fields:
            return self.key_of(arguments)
        self.primary.check_arguments(arguments)
        missing = [part for part in self.primary.parts if part not in arguments]
        if missing:
            raise DataError(
                f"{self.name} needs {' and '.join(self.primary.parts)} ({self.describe()}); "
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing."
            )
        return self.key_of(arguments)

    def arguments_of(self, key: Item) -> dict[str, Any] | None:
        """Return the fields of a primary key; None if it is not a key of this entity."""
        found = self.primary.parse(key)
        # The shard and the bucket follow from the other parts; a key with a different one is not of this
        # entity.
        if found is not None and self.primary.is_split and not self.key_of(found).items() <= key.items():
            return None
        return found

    def tenant_of(self, item: Item) -> str | None:
        """Return the tenant of an item or of a primary key; None for a global entity."""
        if self.tenant is None:
            return None
        value = item.get(self.attributes[self.tenant].wire)
        if value is not None:
            return str(value["S"])
        found = self.arguments_of({name: item[name] for name in self.primary.names})
        return None if found is None else str(found[self.tenant])

    def tenant_attribute(self, values: Mapping[str, Any]) -> Item:
        """Return the attribute of the tenant in these values; nothing for a global entity."""
        return {} if self.tenant is None else {self.attributes[self.tenant].wire: {"S": values[self.tenant]}}

    def describe(self) -> str:
        """Return the primary key's templates as one line."""
        layouts = [each for each in (self.primary.partition, self.primary.sort) if each is not None]
        return ", ".join(
            f"{layout.attribute}={layout.shown}"
            if isinstance(layout, TemplateLayout)
            else "+".join(layout.fields)
            for layout in layouts
        )

    def too_large(self, item: Item, size: int) -> ItemTooLarge:
        """Return the error for an item over the limit, with its largest fields."""
        weights = sorted(
            ((len(name.encode()) + value_size(value), name) for name, value in item.items()), reverse=True
        )
        largest = [(self.by_wire[name].field if name in self.by_wire else name, n) for n, name in weights]
        heavy = ", ".join(f"{name} ({n:,} bytes)" for name, n in largest[:_NAMED_FIELDS])
        return ItemTooLarge(
            f"{self.name} has {size:,} bytes, but DynamoDB takes at most {LARGEST_ITEM:,}; the largest "
            f"fields are "
            f"{heavy}: split the item or store them elsewhere.",
            size=size,
            largest=largest,
        )

    def _decoding_error(self, item: Item, error: ValidationError) -> str:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        key = {name: item.get(name) for name in self.primary.names}
        return f"The stored {self.name} {key} does not fit its model: {where}: {first['msg']}."


def _named(entity: str, name: str, error: DataError) -> str:
    text = str(error)
    return text if text.startswith(entity) else f"{entity}.{name}: {text}"


def depth_error(owner: str) -> DataError:
    """Return the error for a value that nests deeper than DynamoDB allows."""
    deepest = DEEPEST_VALUE - 1
    return DataError(
        f"{owner} has lists and maps more than {deepest} levels deep, which DynamoDB rejects; mark it Json()."
    )
