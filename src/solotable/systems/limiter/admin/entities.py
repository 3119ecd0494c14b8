"""What the limiter keeps besides its buckets: entities, how many children each has, and stored limits.

Every item is flat: metadata is one JSON text, and a stored record with a map or a list in it is refused, not
read around (S1.1-S1.3). The items that one acquire looks up are small and lie under keys that are known
beforehand, so that they come with one BatchGetItem.

Two levels only: an entity of no parent has a `Family` beside it, which counts its children. A child is
counted there in its own transaction, so the parent is there, has no parent itself, and goes last.

Stored limits are never removed but emptied: a `revision` that went back to nothing would make older limits
look newer to a bucket.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.fields import FROM_SCOPE, Counter, Created, Json, Version
from solotable._entities.keys.key import Key
from solotable._entities.patterns.pattern import pattern
from solotable._entities.patterns.query import Query
from solotable._entities.traits.counters import Counted
from solotable._entities.traits.outbox import Outbox
from solotable._values import Item
from solotable.errors import DataError
from solotable.systems.limiter.table import limiter

from .limits import Limits, parse
from .names import DEFAULT

#: What an entity may say of itself; more would make every lookup dearer.
MOST_METADATA = 2_000
#: The namespace that nobody can have; the registry's own trail is there.
RESERVED = "_"
OnUnavailable = Literal["block", "allow"]


def _small(given: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(json.dumps(given, allow_nan=False).encode())
    except (TypeError, ValueError) as refused:
        raise ValueError(f"metadata is JSON: {refused}") from refused
    if size > MOST_METADATA:
        raise ValueError(f"metadata is at most {MOST_METADATA} bytes of JSON; these are {size}")
    return given


class FlatEntity(Entity):
    """An entity whose stored items have neither maps nor lists, known ones or not."""

    def keep_unknown(self, attributes: Item) -> None:
        """Keep attributes that the model has no field for, or refuse the item for a nested one (S1.2)."""
        nested = next((name for name, value in attributes.items() if "M" in value or "L" in value), None)
        if nested is not None:
            raise DataError(
                f"A stored {type(self).__name__} has the nested attribute {nested!r}; the limiter's items "
                f"are flat, so write it anew with its fields beside each other."
            )
        super().keep_unknown(attributes)


class Family(FlatEntity, table=limiter):
    """How many children an entity of no parent has; it is there exactly as long as that entity."""

    key = Key("{namespace}#ENTITY#{entity_id}", "FAMILY")

    namespace: str = FROM_SCOPE
    entity_id: str
    children: Annotated[int, Counter()] = 0


class LimitedEntity(FlatEntity, table=limiter):
    """Whose calls are limited: a user, a project, an API key; it may belong to a parent.

    `cascade` charges the parent with whatever is charged here. `family` and `level` follow from the parent
    (`made` fills them in) and order the list: a parent, then its children.
    """

    key = Key("{namespace}#ENTITY#{entity_id}", "ENTITY")
    by_family = Key("{namespace}#ENTITIES", "{family}#{level:01d}#{entity_id}", index="GSI1")
    counted = Counted(Family, "children", by={"entity_id": "parent_id"})
    events = Outbox(title="name", snapshot=("entity_id", "name", "parent_id", "cascade", "metadata"))

    namespace: str = FROM_SCOPE
    entity_id: str
    name: Annotated[str, Field(max_length=256)]
    parent_id: str | None = None
    cascade: bool = False
    metadata: Annotated[dict[str, Any], AfterValidator(_small), Json()] = Field(default_factory=dict)
    family: str
    level: Annotated[int, Field(ge=1, le=2)] = 1
    version: Annotated[int, Version()] = 0
    created: Annotated[datetime | None, Created()] = None

    @classmethod
    def made(
        cls,
        entity_id: str,
        *,
        name: str | None,
        parent: str | None,
        cascade: bool,
        metadata: dict[str, Any] | None,
    ) -> Self:
        """Return a new entity."""
        return cls(
            entity_id=entity_id,
            name=entity_id if name is None else name,
            parent_id=parent,
            cascade=cascade,
            metadata=metadata or {},
            family=entity_id if parent is None else parent,
            level=1 if parent is None else 2,
        )

    @pattern
    @classmethod
    def of_namespace(cls) -> Query[Self]:
        """All entities of a namespace, each parent before its children."""
        return cls.by_family.query()

    @pattern
    @classmethod
    def of_parent(cls, parent_id: str) -> Query[Self]:
        """The children of an entity."""
        return cls.by_family.query(family=parent_id, level=2)


class StoredLimits(FlatEntity, table=limiter):
    """The limits of one level: of an entity or of all (`_default_`), on a resource or on all.

    `state` is None once they were deleted; then the item stays for its revision alone and is in no list.
    `rules` is None also where only `on_unavailable` is set, which the system level alone may do.
    """

    key = Key("{namespace}#LIMITS#{owner}", "LIMITS#{resource}")
    by_state = Key("{namespace}#LIMITS#{state}", "{owner}#{resource}", index="GSI1")
    events = Outbox(snapshot=("owner", "resource", "rules", "on_unavailable", "state", "revision"))

    namespace: str = FROM_SCOPE
    owner: str
    resource: str
    rules: str | None = None
    #: In microseconds of the store's clock, and higher with every change of this item.
    revision: int
    on_unavailable: OnUnavailable | None = None
    state: Literal["set"] | None = "set"
    version: Annotated[int, Version()] = 0

    @property
    def limits(self) -> Limits | None:
        """The limits of this level, None where there are none."""
        return None if self.rules is None or self.state is None else parse(self.rules)

    @property
    def entity(self) -> str | None:
        """The entity that they are of, None: of all."""
        return None if self.owner == DEFAULT else self.owner

    @pattern
    @classmethod
    def of_owner(cls, owner: str) -> Query[Self]:
        """The limits of an entity, or those of all entities, by resource."""
        return cls.key.query(owner=owner)

    @pattern
    @classmethod
    def of_namespace(cls) -> Query[Self]:
        """Every level that is set in a namespace."""
        return cls.by_state.query(state="set")
