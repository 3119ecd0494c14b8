"""The verbs of a routed store as operations: what to read or write, and what decides about the side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._entities.patterns.query import Query
from solotable._flows.retry import Flow
from solotable._store.arguments import check_class, check_query

from .dispatch.cursors import side_of
from .dispatch.dispatcher import Reading
from .sides import Call, sticky_of, sticky_of_query

E = TypeVar("E", bound=Entity)
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Read(Generic[ResultT]):
    """A read of either side."""

    run: Callable[[Any], Flow[ResultT]]
    reading: Reading
    #: What is read, for samples of differences.
    described: str


def get_entity(entity: type[E], key: Mapping[str, Any], *, consistent: bool) -> Read[E | None]:
    """Return the read of one entity by its key."""
    check_class("get", entity)
    return Read(
        lambda side: side.get(entity, consistent=consistent, **key),
        Reading(entity=entity.plan().tag, sticky=sticky_of(entity, key), consistent=consistent),
        f"{entity.__name__} {dict(key)}",
    )


def read_page(query: Query[Any], *, limit: int, cursor: str | None) -> Read[Any]:
    """Return the read of one page; with a cursor, on the side that made it."""
    check_query("page", query)
    side, own = side_of(cursor)
    return Read(
        lambda chosen: chosen.page(query, limit=limit, cursor=own),
        Reading(
            entity=query.plan.tag,
            sticky=sticky_of_query(query),
            consistent=query.consistently,
            side=side,
        ),
        repr(query),
    )


class Recorder:
    """Collects the writes of a transaction, until the side that executes them is known."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def put(self, entity: Entity, **options: Any) -> None:
        """Create or replace an entity."""
        self.calls.append(("put", (entity,), options))

    def create(self, entity: Entity, **options: Any) -> None:
        """Create an entity that must not exist."""
        self.calls.append(("create", (entity,), options))

    def update(self, entity: type[Entity] | Entity, /, **changes: Any) -> None:
        """Change fields of a stored entity."""
        self.calls.append(("update", (entity,), changes))

    def delete(self, entity: type[Entity] | Entity, /, **key: Any) -> None:
        """Delete an entity."""
        self.calls.append(("delete", (entity,), key))

    def check(self, entity: type[Entity], /, **key: Any) -> None:
        """Require that an entity exists and meets a condition."""
        self.calls.append(("check", (entity,), key))
