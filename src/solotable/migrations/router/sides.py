"""The verbs that a router offers, as flows on either side; what an adapter of old tables implements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

from solotable import flow
from solotable._entities.declare.entity import Entity
from solotable._entities.patterns.query import Query
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._store.page import Page
from solotable.errors import DataError

E = TypeVar("E", bound=Entity)
#: A call of a transaction's verb: its name, its arguments and its keyword arguments.
Call = tuple[str, tuple[Any, ...], Mapping[str, Any]]


class EntitySide(Protocol):
    """The verbs that a router offers. An adapter of old tables implements those that its application calls.

    Each returns a flow: it yields requests and returns the result in terms of the new entities.
    """

    def get(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> Flow[E | None]:
        """Return the entity with this key, or None."""
        ...

    def page(self, query: Query[Any], *, limit: int = 50, cursor: str | None = None) -> Flow[Page[Any]]:
        """Return a page of a query."""
        ...

    def put(self, entity: E, **options: Any) -> Flow[E]:
        """Create or replace an entity."""
        ...

    def create(self, entity: E, **options: Any) -> Flow[E]:
        """Create an entity, or raise AlreadyExists."""
        ...

    def update(self, entity: Any, /, **changes: Any) -> Flow[Any]:
        """Change fields of a stored entity."""
        ...

    def delete(self, entity: Any, /, **key: Any) -> Flow[Any]:
        """Delete an entity."""
        ...

    def modify(
        self, entity: type[E], change: Callable[[E], E | None], /, *, default: E | None = None, **key: Any
    ) -> Flow[E]:
        """Read an entity, change it with a function and put it."""
        ...

    def transact(self, calls: Sequence[Call], token: str | None = None) -> Flow[None]:
        """Execute several writes as one transaction."""
        ...


def verbs_of(adapter: object) -> EntitySide:
    """Return an adapter as one with the store's verbs; a verb that it lacks is an AttributeError."""
    return cast(EntitySide, adapter)


class StoreSide:
    """The verbs of a store, for a side whose items are entities.

    `classes` names the class of the old tables for each class of the new one, if they differ. The two have
    the same field names.
    """

    def __init__(self, scope: Scope, classes: Mapping[type[Entity], type[Entity]] | None = None) -> None:
        self._scope = scope
        self._classes = classes or {}

    @classmethod
    def over(cls, classes: Mapping[type[Entity], type[Entity]]) -> Callable[[Scope], StoreSide]:
        """Return the adapter of tables with their own classes: `old=StoreSide.over({Order: OldOrder})`."""
        return lambda scope: cls(scope, classes)

    def get(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> Flow[E | None]:
        """Return the entity with this key, or None."""
        found = yield from flow.get(self._scope, self._class(entity), consistent=consistent, **key)
        return None if found is None else self._as(entity, found)

    def page(self, query: Query[Any], *, limit: int = 50, cursor: str | None = None) -> Flow[Page[Any]]:
        """Return a page of a query."""
        own = self._query(query)
        found = yield from flow.page(self._scope, own, limit=limit, cursor=cursor)
        if own is query:
            return found
        new = _entity_of(query)
        return replace(found, items=[self._as(new, each) for each in found.items])

    def put(self, entity: E, **options: Any) -> Flow[E]:
        """Create or replace an entity."""
        stored = yield from flow.put(self._scope, self._instance(entity), **options)
        result: E = self._as(type(entity), stored)
        return result

    def create(self, entity: E, **options: Any) -> Flow[E]:
        """Create an entity, or raise AlreadyExists."""
        stored = yield from flow.create(self._scope, self._instance(entity), **options)
        result: E = self._as(type(entity), stored)
        return result

    def update(self, entity: Any, /, **changes: Any) -> Flow[Any]:
        """Change fields of a stored entity."""
        stored = yield from flow.update(self._scope, self._target(entity), **changes)
        return self._as(entity if isinstance(entity, type) else type(entity), stored)

    def delete(self, entity: Any, /, **key: Any) -> Flow[Any]:
        """Delete an entity."""
        found = yield from flow.delete(self._scope, self._target(entity), **key)
        return (
            None if found is None else self._as(entity if isinstance(entity, type) else type(entity), found)
        )

    def modify(
        self, entity: type[E], change: Callable[[E], E | None], /, *, default: E | None = None, **key: Any
    ) -> Flow[E]:
        """Read an entity, change it with a function and put it."""

        def changed(found: Any) -> Any:
            result = change(self._as(entity, found))
            return None if result is None else self._instance(result)

        start = None if default is None else self._instance(default)
        stored = yield from flow.modify(self._scope, self._class(entity), changed, default=start, **key)
        result: E = self._as(entity, stored)
        return result

    def transact(self, calls: Sequence[Call], token: str | None = None) -> Flow[None]:
        """Execute several writes as one transaction."""
        tx = flow.Transaction(self._scope, token=token)
        for verb, arguments, options in calls:
            getattr(tx, verb)(*(self._target(each) for each in arguments), **options)
        yield from tx.commit()

    def _class(self, entity: type[Any]) -> Any:
        return self._classes.get(entity, entity)

    def _instance(self, entity: Any) -> Any:
        return self._as(self._class(type(entity)), entity)

    def _target(self, entity: Any) -> Any:
        return self._class(entity) if isinstance(entity, type) else self._instance(entity)

    def _as(self, entity: type[Any], found: Any) -> Any:
        """Return an entity as one of the other class; itself if it already is."""
        if isinstance(found, entity):
            return found
        fields = {name: value for name, value in found.__dict__.items() if name in entity.model_fields}
        return entity(**fields)

    def _query(self, query: Query[Any]) -> Query[Any]:
        """Return the query of the old class with the same name and arguments."""
        new = _entity_of(query)
        old = self._class(new)
        if old is new:
            return query
        pattern = (query.pattern or "").rpartition(".")[2]
        declared = getattr(old, pattern, None) if pattern else getattr(old, query.path.name, None)
        if declared is None:
            raise DataError(
                f"{old.__name__} has no pattern or key {pattern or query.path.name!r}, which the query of "
                f"{new.__name__} uses; declare it, or write the read with read()."
            )
        named = {name: query.arguments[name] for name in query.arguments if name in old.model_fields}
        made: Query[Any] = declared(**named) if pattern else declared.query(**named)
        return replace(
            made,
            sort_range=query.sort_range or made.sort_range,
            forward=query.forward,
            filter=query.filter or made.filter,
            consistently=query.consistently,
        )


def _entity_of(query: Query[Any]) -> type[Any]:
    return query.plan.entity


def sticky_of(entity: type[Entity], key: Mapping[str, Any]) -> str:
    """Return the text that keeps the reads of one partition on one side."""
    return _sticky(entity.plan().primary.partition.fields, key)


def sticky_of_query(query: Query[Any]) -> str:
    """Return the same for a query: the values of its partition key."""
    return _sticky(query.path.partition.fields, query.arguments)


def _sticky(names: Sequence[str], values: Mapping[str, Any]) -> str:
    return "|".join(f"{name}={values[name]}" for name in sorted(names) if name in values)
