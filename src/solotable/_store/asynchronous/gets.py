"""Methods of the async store that read entities by their primary keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, overload

from solotable._entities.declare.entity import Entity
from solotable._entities.keys.key import EntityKey
from solotable._flows.reads import get as read
from solotable._flows.reads.transact_get import transact_get
from solotable._store.arguments import check_class, entity_keys
from solotable._store.runner import arun

from .store_base import AsyncStoreBase

A = TypeVar("A", bound=Entity)
B = TypeVar("B", bound=Entity)
C = TypeVar("C", bound=Entity)
D = TypeVar("D", bound=Entity)
E = TypeVar("E", bound=Entity)


class AsyncGets(AsyncStoreBase):
    """The methods that read entities by key."""

    async def get(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> E | None:
        """Return the entity with this key, or None."""
        return await arun(
            read.get(self._scope, check_class("get", entity), key, consistent=consistent),
            self._engine,
            entity,
        )

    async def require(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> E:
        """Return the entity with this key, or raise NotFound."""
        return await self._run(
            read.require(self._scope, check_class("require", entity), key, consistent=consistent), entity
        )

    @overload
    async def get_many(
        self, entity: type[E], keys: Sequence[Mapping[str, Any]], *, consistent: bool = False
    ) -> list[E | None]: ...

    @overload
    async def get_many(
        self,
        one: EntityKey[A],
        /,
        *,
        consistent: bool = False,
    ) -> tuple[A | None]: ...

    @overload
    async def get_many(
        self,
        one: EntityKey[A],
        two: EntityKey[B],
        /,
        *,
        consistent: bool = False,
    ) -> tuple[A | None, B | None]: ...

    @overload
    async def get_many(
        self,
        one: EntityKey[A],
        two: EntityKey[B],
        three: EntityKey[C],
        /,
        *,
        consistent: bool = False,
    ) -> tuple[A | None, B | None, C | None]: ...

    @overload
    async def get_many(
        self,
        one: EntityKey[A],
        two: EntityKey[B],
        three: EntityKey[C],
        four: EntityKey[D],
        /,
        *,
        consistent: bool = False,
    ) -> tuple[A | None, B | None, C | None, D | None]: ...

    @overload
    async def get_many(
        self,
        one: EntityKey[A],
        two: EntityKey[B],
        three: EntityKey[C],
        four: EntityKey[D],
        five: EntityKey[E],
        /,
        *,
        consistent: bool = False,
    ) -> tuple[A | None, B | None, C | None, D | None, E | None]: ...

    @overload
    async def get_many(self, /, *keys: EntityKey[E], consistent: bool = False) -> tuple[E | None, ...]: ...

    async def get_many(
        self, entity: Any = None, keys: Any = None, *more: Any, consistent: bool = False
    ) -> Any:
        """Return entities by key in the same order; None for missing ones.

        `get_many(User, [{"username": "zoe"}])` returns a list of one class, and
        `get_many(User.key(username="zoe"), Order.key(order_id="7"))` a tuple over any classes.
        """
        if isinstance(entity, EntityKey) or entity is keys is None:
            given = entity_keys("get_many", [each for each in (entity, keys) if each is not None] + [*more])
            return await self._run(read.get_keys(self._scope, given, consistent=consistent))
        check_class("get_many", entity)
        return await self._run(read.get_many(self._scope, entity, keys, consistent=consistent), entity)

    @overload
    async def transact_get(
        self,
        one: EntityKey[A],
        /,
    ) -> tuple[A | None]: ...

    @overload
    async def transact_get(
        self,
        one: EntityKey[A],
        two: EntityKey[B],
        /,
    ) -> tuple[A | None, B | None]: ...

    @overload
    async def transact_get(
        self,
        one: EntityKey[A],
        two: EntityKey[B],
        three: EntityKey[C],
        /,
    ) -> tuple[A | None, B | None, C | None]: ...

    @overload
    async def transact_get(
        self,
        one: EntityKey[A],
        two: EntityKey[B],
        three: EntityKey[C],
        four: EntityKey[D],
        /,
    ) -> tuple[A | None, B | None, C | None, D | None]: ...

    @overload
    async def transact_get(
        self,
        one: EntityKey[A],
        two: EntityKey[B],
        three: EntityKey[C],
        four: EntityKey[D],
        five: EntityKey[E],
        /,
    ) -> tuple[A | None, B | None, C | None, D | None, E | None]: ...

    @overload
    async def transact_get(self, /, *keys: EntityKey[E]) -> tuple[E | None, ...]: ...

    async def transact_get(self, /, *keys: EntityKey[Any]) -> Any:
        """Return up to 100 entities by key as they were at one moment; None for missing ones.

        It costs twice as much as a consistent `get_many`. A conflict with a transaction that writes one of
        the items is retried.
        """
        return await self._run(transact_get(self._scope, entity_keys("transact_get", keys)))
