"""Models of limited entities, their child counts and stored limits; buckets are elsewhere.

Every item is flat: metadata is one JSON string, and a stored item with a map or a list is rejected
(S1.1-S1.3). The items that an acquire needs are small and have known keys, so that one BatchGetItem reads
them.

There are two levels: an entity without a parent has a `Family`, which counts its children. A child is
counted in its own transaction. So its parent exists, has no parent itself, and is deleted last.

Stored limits are emptied, never deleted: with a lower `revision`, older limits would look newer to a bucket.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field

from solotable import (
    FROM_SCOPE,
    TTL,
    Counted,
    Counter,
    Created,
    Entity,
    Json,
    Key,
    Outbox,
    Query,
    Version,
    pattern,
)
from solotable.errors import DataError
from solotable.flow import Item
from solotable.systems.limiter.table import limiter

from .limits import Limits
from .names import DEFAULT
from .schedule import Schedule, parse_rules

#: The longest metadata, in bytes of JSON; more would make every lookup dearer.
MOST_METADATA = 2_000
#: The namespace of the registry's own audit trail; no user can register it.
RESERVED = "_"
OnUnavailable = Literal["block", "allow"]
#: How the limits of a level apply; an entity may also be admitted, or denied, whatever its limits are.
Mode = Literal["enforce", "shadow", "disabled", "bypass", "deny"]
MODES: tuple[Mode, ...] = get_args(Mode)
ENTITY_MODES: tuple[Mode, ...] = ("bypass", "deny")
#: The key of `StoredLimits.resets` for every limit.
EVERY_LIMIT = "*"


def check_on_unavailable(given: object) -> None:
    """Raise DataError unless a value is "block", "allow" or None."""
    if given not in (None, "block", "allow"):
        raise DataError(f'on_unavailable is "block" or "allow"; got {given!r}.')


def check_mode(given: object, *, entity: str | None) -> None:
    """Raise DataError unless a value is a mode of a level of this entity, or None."""
    if given not in (None, *MODES):
        raise DataError(f"mode is one of {', '.join(MODES)}; got {given!r}.")
    if given in ENTITY_MODES and entity is None:
        raise DataError(f"mode {given!r} is for an entity; name the entity, or use 'disabled'.")


def _check_size(given: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(json.dumps(given, allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata is JSON: {error}") from error
    if size > MOST_METADATA:
        raise ValueError(f"metadata is at most {MOST_METADATA} bytes of JSON; got {size}")
    return given


class FlatEntity(Entity):
    """An entity whose stored items have neither maps nor lists, also in attributes without a field."""

    def keep_unknown(self, attributes: Item) -> None:
        """Keep attributes without a field; reject the item if one is nested (S1.2)."""
        nested = next((name for name, value in attributes.items() if "M" in value or "L" in value), None)
        if nested is not None:
            raise DataError(
                f"A stored {type(self).__name__} has the nested attribute {nested!r}; the limiter's items "
                f"are flat, so write it again with top-level attributes."
            )
        super().keep_unknown(attributes)


class Family(FlatEntity, table=limiter):
    """The number of children of an entity without a parent; it exists as long as that entity."""

    key = Key("{namespace}#ENTITY#{entity_id}", "FAMILY")

    namespace: str = FROM_SCOPE
    entity_id: str
    children: Annotated[int, Counter()] = 0


class LimitedEntity(FlatEntity, table=limiter):
    """What is limited: a user, a project, an API key; it may have a parent.

    `cascade` charges the parent with every charge of this entity. `family` and `level` follow from the
    parent (`new` sets them) and order the list: a parent, then its children.
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
    metadata: Annotated[dict[str, Any], AfterValidator(_check_size), Json()] = Field(default_factory=dict)
    family: str
    level: Annotated[int, Field(ge=1, le=2)] = 1
    version: Annotated[int, Version()] = 0
    created: Annotated[datetime | None, Created()] = None

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
    """The limits of one level: of an entity or of all (`_default_`), for a resource or for all.

    `state` is None after a deletion; the item stays for its revision and its resets and is in no list.
    `rules` is also None if only a mode or, for the system, `on_unavailable` is set.
    """

    key = Key("{namespace}#LIMITS#{owner}", "LIMITS#{resource}")
    by_state = Key("{namespace}#LIMITS#{state}", "{owner}#{resource}", index="GSI1")
    events = Outbox(
        snapshot=("owner", "resource", "rules", "on_unavailable", "mode", "resets", "state", "revision")
    )

    namespace: str = FROM_SCOPE
    owner: str
    resource: str
    rules: str | None = None
    #: In microseconds of the store's clock, and higher with every change of this item.
    revision: int
    on_unavailable: OnUnavailable | None = None
    #: None: enforce.
    mode: Mode | None = None
    mode_since: datetime | None = None
    #: When limits were reset, by name or EVERY_LIMIT, in microseconds.
    resets: Annotated[dict[str, int] | None, Json()] = None
    state: Literal["set"] | None = "set"
    version: Annotated[int, Version()] = 0

    @property
    def limits(self) -> Limits | None:
        """The limits of this level, None without any; of a schedule, those outside of its windows."""
        found = None if self.rules is None or self.state is None else parse_rules(self.rules)
        return found.limits if isinstance(found, Schedule) else found

    @property
    def schedule(self) -> Schedule | None:
        """The schedule of this level, None without one."""
        found = None if self.rules is None or self.state is None else parse_rules(self.rules)
        return found if isinstance(found, Schedule) else None

    @property
    def names(self) -> set[str]:
        """The names of the limits of this level, at whatever time they apply."""
        schedule = self.schedule
        return {limit.name for limit in self.limits or ()} if schedule is None else schedule.names

    @property
    def entity(self) -> str | None:
        """The entity, None for all entities."""
        return None if self.owner == DEFAULT else self.owner

    @property
    def resource_name(self) -> str | None:
        """The resource, None for all resources."""
        return None if self.resource == DEFAULT else self.resource

    def as_dict(self) -> dict[str, Any]:
        """Return the level as JSON has it; None is all entities, or all resources."""
        return {
            "entity": self.entity,
            "resource": self.resource_name,
            "limits": None if self.limits is None else [limit.as_dict() for limit in self.limits],
            "schedule": None if self.schedule is None else self.schedule.as_dict(),
            "on_unavailable": self.on_unavailable,
            "mode": self.mode or "enforce",
        }

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


class TopUp(FlatEntity, table=limiter):
    """Tokens that an operator added to a bucket; a repeated request finds it by its id."""

    key = Key("{namespace}#TOPUP#{top_up_id}", "TOPUP")
    events = Outbox(snapshot=("entity", "resource", "tokens"))

    namespace: str = FROM_SCOPE
    top_up_id: str
    entity: str
    resource: str
    tokens: Annotated[dict[str, int | float], Json()]
    #: Whether the buckets have them.
    applied: int = 0
    #: When a call began to add them, in microseconds.
    claimed: int = 0
    version: Annotated[int, Version()] = 0
    expires: Annotated[datetime | None, TTL()] = None
