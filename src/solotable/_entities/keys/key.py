"""Key declarations: `Key("ORG#{org}", "USER#{user_id}")`. A declaration loads no codec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from solotable._entities.declare.entity import Entity
    from solotable._entities.patterns.query import Query

    from .access_path import AccessPath

EntityT = TypeVar("EntityT", bound="Entity")
EntityT_co = TypeVar("EntityT_co", bound="Entity", covariant=True)


class Key:
    """A key of an entity: `Key("ORG#{org}", "USER#{user_id}")`, or with `index="GSI1"` an index key.

    The partition key and the sort key are templates, or tuples of fields whose attributes form the key
    (multi-attribute keys). `key` is the table's primary key. `query(...)` of a key returns a `Query`.

    - `shards=8` stores each partition as eight; `shard_by=` names the fields that choose the shard. `was=` is
      the previous number of shards; keep it until all items are rewritten.
    - `most_buckets` limits how many time buckets, such as `{at:day}`, one query reads.
    """

    def __init__(
        self,
        partition: str | tuple[str, ...],
        sort: str | tuple[str, ...] | None = None,
        *,
        index: str | None = None,
        shards: int | None = None,
        shard_by: tuple[str, ...] | None = None,
        was: int | None = None,
        most_buckets: int | None = None,
    ) -> None:
        self.partition = partition
        self.sort = sort
        self.index = index
        self.shards = shards
        self.shard_by = shard_by
        self.was = was
        self.most_buckets = most_buckets
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
    """A key of one entity class; `query(...)` returns a query along it."""

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

    def query(self, **arguments: Any) -> Query[EntityT_co]:
        """Return a query of the items whose key starts with these parts; pass each part in full."""
        from solotable._entities.patterns.query import Query

        return Query.over(self._entity, self.path, arguments)

    def __repr__(self) -> str:
        return f"{self._entity.__name__}.{self._name}"
