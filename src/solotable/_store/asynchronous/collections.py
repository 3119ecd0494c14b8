"""Collections of the async store: the entities of one partition by class."""

from __future__ import annotations

from typing import Any, Literal, TypeVar, overload

from solotable._entities.declare.entity import Entity
from solotable._flows.reads import collection
from solotable._flows.scope import Unknown
from solotable._store.arguments import Member, members_of
from solotable._store.page import Collection

from .store_base import AsyncStoreBase

A = TypeVar("A", bound=Entity)
B = TypeVar("B", bound=Entity)
C = TypeVar("C", bound=Entity)
D = TypeVar("D", bound=Entity)
E = TypeVar("E", bound=Entity)
F = TypeVar("F", bound=Entity)


class AsyncCollections(AsyncStoreBase):
    """The method that reads collections."""

    @overload
    async def collection(
        self,
        first: Member[A],
        one: Member[B],
        /,
        *,
        root: Literal[True] = True,
        limit: int | None = None,
        cursor: str | None = None,
        descending: bool = False,
        most: int = 10_000,
        unknown: Unknown = "raise",
        **key: Any,
    ) -> Collection[A | None, list[B]]: ...

    @overload
    async def collection(
        self,
        first: Member[A],
        one: Member[B],
        two: Member[C],
        /,
        *,
        root: Literal[True] = True,
        limit: int | None = None,
        cursor: str | None = None,
        descending: bool = False,
        most: int = 10_000,
        unknown: Unknown = "raise",
        **key: Any,
    ) -> Collection[A | None, list[B], list[C]]: ...

    @overload
    async def collection(
        self,
        first: Member[A],
        one: Member[B],
        two: Member[C],
        three: Member[D],
        /,
        *,
        root: Literal[True] = True,
        limit: int | None = None,
        cursor: str | None = None,
        descending: bool = False,
        most: int = 10_000,
        unknown: Unknown = "raise",
        **key: Any,
    ) -> Collection[A | None, list[B], list[C], list[D]]: ...

    @overload
    async def collection(
        self,
        first: Member[A],
        one: Member[B],
        two: Member[C],
        three: Member[D],
        four: Member[E],
        /,
        *,
        root: Literal[True] = True,
        limit: int | None = None,
        cursor: str | None = None,
        descending: bool = False,
        most: int = 10_000,
        unknown: Unknown = "raise",
        **key: Any,
    ) -> Collection[A | None, list[B], list[C], list[D], list[E]]: ...

    @overload
    async def collection(
        self,
        first: Member[A],
        one: Member[B],
        two: Member[C],
        three: Member[D],
        four: Member[E],
        five: Member[F],
        /,
        *,
        root: Literal[True] = True,
        limit: int | None = None,
        cursor: str | None = None,
        descending: bool = False,
        most: int = 10_000,
        unknown: Unknown = "raise",
        **key: Any,
    ) -> Collection[A | None, list[B], list[C], list[D], list[E], list[F]]: ...

    @overload
    async def collection(
        self,
        first: Member[A],
        one: Member[B],
        /,
        *,
        root: Literal[False],
        limit: int | None = None,
        cursor: str | None = None,
        descending: bool = False,
        most: int = 10_000,
        unknown: Unknown = "raise",
        **key: Any,
    ) -> Collection[list[A], list[B]]: ...

    @overload
    async def collection(
        self,
        first: Member[A],
        one: Member[B],
        two: Member[C],
        /,
        *,
        root: Literal[False],
        limit: int | None = None,
        cursor: str | None = None,
        descending: bool = False,
        most: int = 10_000,
        unknown: Unknown = "raise",
        **key: Any,
    ) -> Collection[list[A], list[B], list[C]]: ...

    @overload
    async def collection(
        self,
        first: Member[A],
        one: Member[B],
        two: Member[C],
        three: Member[D],
        /,
        *,
        root: Literal[False],
        limit: int | None = None,
        cursor: str | None = None,
        descending: bool = False,
        most: int = 10_000,
        unknown: Unknown = "raise",
        **key: Any,
    ) -> Collection[list[A], list[B], list[C], list[D]]: ...

    @overload
    async def collection(
        self,
        first: Member[A],
        one: Member[B],
        two: Member[C],
        three: Member[D],
        four: Member[E],
        /,
        *,
        root: Literal[False],
        limit: int | None = None,
        cursor: str | None = None,
        descending: bool = False,
        most: int = 10_000,
        unknown: Unknown = "raise",
        **key: Any,
    ) -> Collection[list[A], list[B], list[C], list[D], list[E]]: ...

    @overload
    async def collection(
        self,
        first: Member[A],
        one: Member[B],
        two: Member[C],
        three: Member[D],
        four: Member[E],
        five: Member[F],
        /,
        *,
        root: Literal[False],
        limit: int | None = None,
        cursor: str | None = None,
        descending: bool = False,
        most: int = 10_000,
        unknown: Unknown = "raise",
        **key: Any,
    ) -> Collection[list[A], list[B], list[C], list[D], list[E], list[F]]: ...

    @overload
    async def collection(
        self,
        /,
        *members: Member[Any],
        root: bool = True,
        limit: int | None = None,
        cursor: str | None = None,
        descending: bool = False,
        most: int = 10_000,
        unknown: Unknown = "raise",
        **key: Any,
    ) -> Collection[*tuple[Any, ...]]: ...

    async def collection(
        self,
        /,
        *members: Member[Any],
        root: bool = True,
        limit: int | None = None,
        cursor: str | None = None,
        descending: bool = False,
        most: int = 10_000,
        unknown: Unknown = "raise",
        **key: Any,
    ) -> Any:
        """Return an entity and its related entities with one Query: `(survey, sections)`.

        A member is a class, a key, or a query with its own range. `key` gives the parts of the others. The
        first member is one entity or None; with `root=False` it is a list too. With `limit`, the result is
        a page of that many items in the order of the key, with `cursor` and `previous`.
        """
        parts = members_of(members, key)
        found = await self._run(
            collection.collection(
                self._scope.reading(unknown),
                parts,
                limit=limit,
                cursor=cursor,
                descending=descending,
                most=most,
            )
        )
        return Collection.of(collection.grouped(parts, found.rows, root=root), found)
