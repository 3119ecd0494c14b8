"""Key declarations: `Key("ORG#{org}", "USER#{user_id}")`. A declaration loads no codec."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError, DeclarationError

if TYPE_CHECKING:
    from solotable._entities.declare.entity import Entity
    from solotable._entities.patterns.query import Query

    from .access_path import AccessPath

EntityT = TypeVar("EntityT", bound="Entity")
EntityT_co = TypeVar("EntityT_co", bound="Entity", covariant=True)


@dataclass(frozen=True, slots=True)
class KeyFormat:
    """How keys are written: give one to a table or a key to read and write the keys of another program.

    - `delimiter` ends a value that other text follows.
    - `escape=False` writes values as they are, and rejects a value that contains the delimiter. Literals may
      then contain any printable character. Escaping needs the delimiter `#`.
    - `case` folds the whole key to "lower" or "upper"; fields keep their case. Values that differ only in
      case have the same key.
    """

    delimiter: str = "#"
    escape: bool = True
    case: Literal["lower", "upper"] | None = None

    def __post_init__(self) -> None:
        text = self.delimiter
        if not text or not text.isprintable() or any(each.isalnum() or each in "{}" for each in text):
            raise DeclarationError(
                f"KeyFormat(delimiter={text!r}): a delimiter is printable, without letters, digits and "
                f"braces; use one such as '#' or '::'."
            )
        if self.escape and text != "#":
            raise DeclarationError(
                f"KeyFormat(delimiter={text!r}) escapes values, which keeps their order only with the "
                f"delimiter '#'; add escape=False."
            )
        if self.case not in (None, "lower", "upper"):
            raise DeclarationError(f"KeyFormat(case={self.case!r}): use 'lower', 'upper' or None.")

    def fold(self, text: str) -> str:
        """Return a text in the case of the keys."""
        return text if self.case is None else text.lower() if self.case == "lower" else text.upper()


class Key:
    """A key of an entity: `Key("ORG#{org}", "USER#{user_id}")`, or with `index="GSI1"` an index key.

    The partition key and the sort key are templates, or tuples of fields whose attributes form the key
    (multi-attribute keys). `key` is the table's primary key. `query(...)` of a key returns a `Query`.

    - `shards=8` stores each partition as eight; `shard_by=` names the fields that choose the shard. `was=` is
      the previous number of shards; keep it until all items are rewritten.
    - `most_buckets` limits how many time buckets, such as `{at:day}`, one query reads.
    - `format` is the format of the templates; the default is the table's `key_format`.
    - `when={"status": "open"}` puts only entities with this value of a field into the index; a set lists
      several values. Keys of one index whose conditions exclude each other are alternatives.
    """

    def __init__(  # noqa: PLR0913 - the settings of a key, each by name
        self,
        partition: str | tuple[str, ...],
        sort: str | tuple[str, ...] | None = None,
        *,
        index: str | None = None,
        shards: int | None = None,
        shard_by: tuple[str, ...] | None = None,
        was: int | None = None,
        most_buckets: int | None = None,
        format: KeyFormat | None = None,  # noqa: A002 - the public name
        when: Mapping[str, Any] | None = None,
    ) -> None:
        self.partition = partition
        self.sort = sort
        self.index = index
        self.shards = shards
        self.shard_by = shard_by
        self.was = was
        self.most_buckets = most_buckets
        self.format = format
        self.when = when
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[EntityT]) -> BoundKey[EntityT]:
        return BoundKey(owner, self.name)

    def __repr__(self) -> str:
        parts = [repr(each) for each in (self.partition, self.sort) if each is not None]
        index = f", index={self.index!r}" if self.index else ""
        return f"Key({', '.join(parts)}{index}{f', shards={self.shards}' if self.shards else ''})"


class BoundKey(Generic[EntityT_co]):
    """A key of one entity class; `query(...)` returns a query along it, a call the key of one entity."""

    __slots__ = ("_entity", "_name")

    def __init__(self, entity: type[EntityT_co], name: str) -> None:
        self._entity = entity
        self._name = name

    @property
    def entity(self) -> type[EntityT_co]:
        """The entity class that the key belongs to."""
        return self._entity

    @property
    def path(self) -> AccessPath:
        """The compiled key."""
        return self._entity.plan().keys[self._name]

    def query(self, /, **arguments: Any) -> Query[EntityT_co]:
        """Return a query of the items whose key starts with these parts; pass each part in full."""
        from solotable._entities.patterns.query import Query

        return Query.over(self._entity, self.path, arguments)

    def __call__(self, /, **parts: Any) -> EntityKey[EntityT_co]:
        """Return the primary key of one entity, for `get_many` and `transact_get`."""
        return EntityKey(self, parts)

    def __repr__(self) -> str:
        return f"{self._entity.__name__}.{self._name}"


class EntityKey(Generic[EntityT_co]):
    """The primary key of one entity, by its parts; the store adds the tenant."""

    __slots__ = ("entity", "parts")

    def __init__(self, key: BoundKey[EntityT_co], parts: Mapping[str, Any]) -> None:
        plan = key.entity.plan()
        if key.path is not plan.primary:
            raise DataError(
                f"{key!r}(...) is not a primary key, and an index key may have several items; "
                f"use {key!r}.query(...), or {plan.name}.key(...)."
            )
        plan.primary.check_arguments(parts)
        self.entity: type[EntityT_co] = key.entity
        self.parts = MappingProxyType(dict(parts))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EntityKey):
            return NotImplemented
        return self.entity is other.entity and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((self.entity, frozenset(self.parts.items())))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.parts.items())
        return f"{self.entity.__name__}.key({shown})"
