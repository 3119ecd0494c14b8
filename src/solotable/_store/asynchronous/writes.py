"""Methods of the async store that write: each runs one flow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar, Unpack

from solotable._entities.declare.entity import Entity
from solotable._entities.patterns.query import Query
from solotable._flows.retry import Flow
from solotable._flows.traits import soft_delete
from solotable._flows.transactions.conflicts import Conflicts, is_conflict
from solotable._flows.transactions.write import ExpectedVersion
from solotable._flows.writes import delete_partition, hooked, modify
from solotable._flows.writes.changes import Changes
from solotable._store.arguments import (
    PartitionDeletionOptions,
    Where,
    check_class,
    check_instance,
    check_query,
    condition_of,
    target_of,
)
from solotable.errors import SolotableError

from .store_base import AsyncStoreBase
from .units import AsyncBatch, AsyncTransaction

E = TypeVar("E", bound=Entity)
ResultT = TypeVar("ResultT")


class AsyncWrites(AsyncStoreBase):
    """The methods that write entities."""

    async def put(self, entity: E, *, where: Where[E] = None) -> E:
        """Create the entity or replace the stored one, and return the stored entity.

        A versioned entity replaces only the version that was read; version 0 requires that none exists.
        """
        check_instance("put", entity)
        flow = hooked.put(self._scope, entity, where=condition_of(entity, where))
        return await self._run(flow, type(entity))

    async def create(self, entity: E, *, where: Where[E] = None) -> E:
        """Create the entity and return the stored entity, or raise AlreadyExists."""
        check_instance("create", entity)
        flow = hooked.put(self._scope, entity, create=True, where=condition_of(entity, where))
        return await self._run(flow, type(entity))

    async def update(  # noqa: PLR0913 - the kinds of change, each by name
        self,
        entity: type[E] | E,
        /,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own verb
        remove: Iterable[str] = (),
        add: Mapping[str, Any] | None = None,
        append: Mapping[str, Any] | None = None,
        delete: Mapping[str, Any] | None = None,
        set_if_missing: Mapping[str, Any] | None = None,
        prepend: Mapping[str, Any] | None = None,
        where: Where[E] = None,
        version: ExpectedVersion = None,
        **key: Any,
    ) -> E:
        """Change fields of a stored entity and return the stored result; its index keys follow.

        Use the names of the model's fields, with dots for nested ones. Raises NotFound if it does not exist.
        """
        plan, given, mine, expected = target_of("update", entity, key, version)
        changes = Changes.of(
            set=set,
            remove=remove,
            add=add,
            append=append,
            delete=delete,
            set_if_missing=set_if_missing,
            prepend=prepend,
        )
        where_ = condition_of(plan, where)
        changed: E = await self._run(
            hooked.update(self._scope, plan, given, changes, version=expected, mine=mine, where=where_),
            plan,
        )
        return changed

    async def upsert(  # noqa: PLR0913 - the kinds of change, each by name
        self,
        entity: type[E],
        /,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own verb
        set_if_missing: Mapping[str, Any] | None = None,
        remove: Iterable[str] = (),
        add: Mapping[str, Any] | None = None,
        append: Mapping[str, Any] | None = None,
        prepend: Mapping[str, Any] | None = None,
        delete: Mapping[str, Any] | None = None,
        **key: Any,
    ) -> E:
        """Change fields of a stored entity, or create it with these changes; return the stored result.

        It applies to any stored version. A new entity has the model's defaults for the other fields, so every
        field without a default must be in `set` or `set_if_missing`. `add`, `append` and `prepend` start from
        the default of a new entity. Takes whole fields only.
        """
        plan = check_class("upsert", entity).plan()
        changes = Changes.of(
            set=set,
            remove=remove,
            add=add,
            append=append,
            delete=delete,
            set_if_missing=set_if_missing,
            prepend=prepend,
        )
        stored: E = await self._run(hooked.upsert(self._scope, plan, key, changes), plan)
        return stored

    async def delete(
        self, entity: type[E] | E, /, *, where: Where[E] = None, version: ExpectedVersion = None, **key: Any
    ) -> E | None:
        """Delete an entity and return it; None if it did not exist."""
        plan, given, mine, expected = target_of("delete", entity, key, version)
        where_ = condition_of(plan, where)
        flow: Flow[E | None] = hooked.delete(
            self._scope, plan, given, version=expected, mine=mine, where=where_
        )
        return await self._run(flow, plan)

    async def modify(
        self, entity: type[E], change: modify.Change[E], /, *, default: E | None = None, **key: Any
    ) -> E:
        """Read an entity, change it with a function, put it and return the stored entity.

        `change` gets a copy and returns the entity to store, or None to change nothing. It runs again after
        a conflict with another writer, so it must not have side effects. If the entity does not exist,
        `change` gets `default`; without a default, NotFound is raised. Raises TooManyConflicts after the
        last attempt.
        """
        return await self._run(
            modify.modify(self._scope, check_class("modify", entity), change, key, default=default), entity
        )

    async def retry_conflicts(
        self,
        attempt: Callable[[], Awaitable[ResultT]],
        *,
        when: Callable[[SolotableError], bool] = is_conflict,
    ) -> ResultT:
        """Call a function that reads and writes; after a conflict, wait and call it again.

        Use it for transactions over several items, and `modify` for one. Raises the last conflict.
        """
        conflicts = Conflicts(self._scope, when=when)
        while True:
            try:
                return await attempt()
            except SolotableError as error:
                await self._run(conflicts.wait_after(error))

    def transaction(self, *, token: str | None = None) -> AsyncTransaction:
        """Collect writes for one transaction, sent when the block ends without an error.

        With a token, a transaction that is sent again within a day is executed once.
        """
        return AsyncTransaction(self._engine, self._scope, token)

    def batch(self, *, overwrite: bool = False) -> AsyncBatch:
        """Collect independent writes, sent when the block ends without an error.

        Batches have no conditions, so versioned entities need `overwrite=True`.
        """
        return AsyncBatch(self._engine, self._scope, overwrite=overwrite)

    async def delete_partition(
        self, pattern: Query[Any], **options: Unpack[PartitionDeletionOptions]
    ) -> delete_partition.PartitionDeletion:
        """Delete the rows of a query: a whole partition, or a range of it, of one or several entities.

        It reads at most `budget` items and returns a `cursor` for the rest. Items that no entity matches are
        kept, unless `raw=True` deletes every item of the range without traits. See
        `PartitionDeletionOptions`.
        """
        query = check_query("delete_partition", pattern)
        chosen = delete_partition.DeletionOptions(**options)
        return await self._run(delete_partition.delete_partition(self._scope, query, chosen))

    async def undelete(self, entity: type[E], /, **key: Any) -> E:
        """Undelete an entity within the grace period of its SoftDelete."""
        plan = check_class("undelete", entity).plan()
        found: E = await self._do(lambda: soft_delete.plan_undelete(self._scope, plan, key), plan)
        return found

    async def hold(self, entity: type[Entity], /, *, reason: str, **key: Any) -> None:
        """Prevent the purge of an entity, deleted or not, until the hold is released."""
        await self._run(
            soft_delete.hold(self._scope, check_class("hold", entity).plan(), key, reason), entity
        )

    async def release_hold(self, entity: type[Entity], /, **key: Any) -> None:
        """Release a hold, so that the entity can be purged."""
        await self._run(
            soft_delete.release_hold(self._scope, check_class("release_hold", entity).plan(), key), entity
        )
