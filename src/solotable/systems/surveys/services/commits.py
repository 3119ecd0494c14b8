"""A store whose every write is a transaction that a function may add to: the seam for synchronisation.

Pass a `CommitStore` to any service instead of a store. `on_commit` gets each transaction before it is sent,
with what it writes, and adds actions: a record of a version log, the last mutation of a client. They are
stored with the write or not at all. A store without it writes single items, which costs half.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, NoReturn, TypeVar

from solotable import AsyncStore, AsyncTransaction, Entity
from solotable.errors import DataError
from solotable.flow import engine_of, scope_of
from solotable.systems.errors import unwrap_failure

EntityT = TypeVar("EntityT", bound=Entity)
Verb = Literal["create", "put", "update", "delete", "undelete"]
#: The puts of a batch in one transaction; what `on_commit` adds comes on top.
_BATCH_ACTIONS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One write of a transaction: what is written, by its primary key without the tenant.

    Counters that follow a write (`section_count`) and records of photos change with it; the records are
    writes too, the counters are not.
    """

    verb: Verb
    entity: type[Entity]
    key: Mapping[str, Any]


OnCommit = Callable[[AsyncTransaction, Sequence[Written]], Awaitable[None]]


class CommitTransaction(AsyncTransaction):
    """A transaction that calls `on_commit` with its writes before it is sent."""

    def __init__(self, store: AsyncStore, on_commit: OnCommit, token: str | None) -> None:
        super().__init__(engine_of(store), scope_of(store), token)
        self._on_commit = on_commit
        self._written: list[Written] = []

    def put(self, entity: EntityT, **options: Any) -> EntityT:
        """Create or replace an entity; return the entity that will be stored."""
        self._note("put", entity, {})
        return super().put(entity, **options)

    def create(self, entity: EntityT, **options: Any) -> EntityT:
        """Create an entity that must not exist; return the entity that will be stored."""
        self._note("create", entity, {})
        return super().create(entity, **options)

    def update(self, entity: type[EntityT] | EntityT, /, **options: Any) -> None:
        """Change fields of a stored entity."""
        self._note("update", entity, options)
        super().update(entity, **options)

    def delete(self, entity: type[EntityT] | EntityT, /, **options: Any) -> None:
        """Delete an entity."""
        self._note("delete", entity, options)
        super().delete(entity, **options)

    def undelete(self, entity: type[Entity], /, **key: Any) -> None:
        """Undelete an entity."""
        self._note("undelete", entity, key)
        super().undelete(entity, **key)

    def upsert(self, *_: Any, **__: Any) -> NoReturn:
        """Raise DataError: whether it creates or updates is not known before."""
        raise _unsupported("upsert")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._written:
            # What `on_commit` adds is not a write of the caller.
            await self._on_commit(self, tuple(self._written))
        await super().__aexit__(kind, error, trace)

    def _note(self, verb: Verb, entity: type[Entity] | Entity, options: Mapping[str, Any]) -> None:
        kind = entity if isinstance(entity, type) else type(entity)
        self._written.append(Written(verb=verb, entity=kind, key=key_fields(entity, options)))


class TransactionBatch:
    """Puts that need not be atomic together: sent in transactions of some of them.

    Synced entities need it: `store.batch()` cannot log them.
    """

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._entities: list[Entity] = []

    def put(self, entity: EntityT) -> EntityT:
        """Create or replace an entity."""
        self._entities.append(entity)
        return entity

    async def __aenter__(self) -> TransactionBatch:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        for start in range(0, len(self._entities), _BATCH_ACTIONS):
            async with self._store.transaction() as tx:
                for entity in self._entities[start : start + _BATCH_ACTIONS]:
                    tx.put(entity)


class CommitStore(AsyncStore):
    """The store of a tenant, with a function that is called with every transaction before it is sent."""

    def __init__(self, store: AsyncStore, on_commit: OnCommit) -> None:
        super().__init__(engine_of(store), scope_of(store))
        self._on_commit = on_commit

    def transaction(self, *, token: str | None = None) -> AsyncTransaction:
        """Collect writes for one transaction."""
        return CommitTransaction(self, self._on_commit, token)

    def batch(self, *, overwrite: bool = False) -> Any:
        """Collect puts, which are sent in transactions."""
        return TransactionBatch(self)

    async def put(self, entity: EntityT, **options: Any) -> EntityT:
        """Create or replace an entity."""
        with unwrap_failure():
            async with self.transaction() as tx:
                return tx.put(entity, **options)

    async def create(self, entity: EntityT, **options: Any) -> EntityT:
        """Create an entity, or raise AlreadyExists."""
        with unwrap_failure():
            async with self.transaction() as tx:
                return tx.create(entity, **options)

    async def update(self, entity: type[EntityT] | EntityT, /, **options: Any) -> EntityT:
        """Change fields of a stored entity, and return it."""
        with unwrap_failure():
            async with self.transaction() as tx:
                tx.update(entity, **options)
        kind = entity if isinstance(entity, type) else type(entity)
        return await self.require(kind, consistent=True, **key_fields(entity, options))

    async def delete(self, entity: type[EntityT] | EntityT, /, **options: Any) -> EntityT | None:
        """Delete an entity and return it; None if it did not exist."""
        kind = entity if isinstance(entity, type) else type(entity)
        found = await self.get(kind, consistent=True, **key_fields(entity, options))
        if found is None:
            return None
        with unwrap_failure():
            async with self.transaction() as tx:
                tx.delete(entity, **options)
        return found

    async def undelete(self, entity: type[EntityT], /, **key: Any) -> EntityT:
        """Undelete an entity, and return it."""
        with unwrap_failure():
            async with self.transaction() as tx:
                tx.undelete(entity, **key)
        return await self.require(entity, consistent=True, **key)

    async def upsert(self, *_: Any, **__: Any) -> NoReturn:
        """Raise DataError: whether it creates or updates is not known before."""
        raise _unsupported("upsert")

    async def modify(self, *_: Any, **__: Any) -> NoReturn:
        """Raise DataError: it does not write in a transaction."""
        raise _unsupported("modify")

    async def delete_partition(self, *_: Any, **__: Any) -> NoReturn:
        """Raise DataError: it does not write in a transaction."""
        raise _unsupported("delete_partition")


def key_fields(entity: type[Entity] | Entity, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the primary key of an entity without the tenant, from it or from the options of a call."""
    plan = entity.plan()
    names = [name for name in plan.primary.parts if name != plan.tenant]
    if isinstance(entity, type):
        return {name: options[name] for name in names}
    return {name: getattr(entity, name) for name in names}


def _unsupported(verb: str) -> DataError:
    return DataError(f"A CommitStore has no {verb}(); use update() or a transaction.")
