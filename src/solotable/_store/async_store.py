"""The async store: the methods of the blocking store, with `await`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

from pydantic import BaseModel

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.table import Table
from solotable._entities.keys.key import BoundKey
from solotable._entities.patterns.query import Query
from solotable._entities.traits.events import Actor, Event
from solotable._flows.feed.changes import Changed
from solotable._flows.jobs import purge_queue, tenant_erasure
from solotable._flows.jobs.tenant_erasure import Erasure
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.traits import leases, outbox, soft_delete
from solotable._flows.transactions import commit
from solotable._flows.transactions.conflicts import Conflicts, is_conflict
from solotable._flows.transactions.write import ExpectedVersion
from solotable._flows.verbs import get as read
from solotable._flows.verbs import modify, put, query, scan, update
from solotable._protocol.engine import AsyncEngine
from solotable.errors import SolotableError

from .arguments import (
    Where,
    check_class,
    check_instance,
    check_query,
    condition_of,
    filtered,
    members_of,
    target_of,
)
from .handles.changes import AsyncChanges, FeedOptions, feed_of
from .handles.counters import AsyncShardedCounter
from .handles.history import AsyncEntityHistory
from .handles.leases import AsyncLease
from .handles.names import AsyncEntityNames
from .page import Page
from .runner import arun
from .unit_of_work import BatchWork, TransactionWork

A = TypeVar("A", bound=Entity)
B = TypeVar("B", bound=Entity)
C = TypeVar("C", bound=Entity)
D = TypeVar("D", bound=Entity)
E = TypeVar("E", bound=Entity)
RowT = TypeVar("RowT", bound=BaseModel)
ResultT = TypeVar("ResultT")


class AsyncVerbs:
    """The methods of every store."""

    def __init__(self, engine: AsyncEngine, scope: Scope) -> None:
        self._engine = engine
        self._scope = scope

    async def get(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> E | None:
        """Return the entity with this key, or None."""
        return await arun(
            read.get(self._scope, check_class("get", entity), key, consistent=consistent), self._engine
        )

    async def require(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> E:
        """Return the entity with this key, or raise NotFound."""
        return await self._run(
            read.require(self._scope, check_class("require", entity), key, consistent=consistent)
        )

    async def get_many(
        self, entity: type[E], keys: Sequence[Mapping[str, Any]], *, consistent: bool = False
    ) -> list[E | None]:
        """Return the entities with these keys in the same order; None for missing ones."""
        return await self._run(
            read.get_many(self._scope, check_class("get_many", entity), keys, consistent=consistent)
        )

    async def put(self, entity: E, *, where: Where[E] = None) -> E:
        """Create the entity or replace the stored one, and return the stored entity.

        A versioned entity replaces only the version that was read; version 0 requires that none exists.
        """
        check_instance("put", entity)
        flow = put.put_entity(self._scope, entity, where=condition_of(entity, where))
        return await self._run(flow)

    async def create(self, entity: E, *, where: Where[E] = None) -> E:
        """Create the entity and return the stored entity, or raise AlreadyExists."""
        check_instance("create", entity)
        flow = put.put_entity(self._scope, entity, create=True, where=condition_of(entity, where))
        return await self._run(flow)

    async def update(  # noqa: PLR0913 - DynamoDB's five kinds of change, each by name
        self,
        entity: type[E] | E,
        /,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own verb
        remove: Iterable[str] = (),
        add: Mapping[str, Any] | None = None,
        append: Mapping[str, Any] | None = None,
        delete: Mapping[str, Any] | None = None,
        where: Where[E] = None,
        version: ExpectedVersion = None,
        **key: Any,
    ) -> E:
        """Change parts of a stored entity, its index keys with them, and return it as it is now.

        Names are the model's own, nested ones dotted. Raises NotFound where nothing is stored.
        """
        plan, given, mine, expected = target_of("update", entity, key, version)
        changes = update.Changes(
            set=set or {}, remove=remove, add=add or {}, append=append or {}, delete=delete or {}
        )
        where_ = condition_of(plan, where)
        changed: E = await self._do(
            lambda: update.plan_update(
                self._scope, plan, given, changes, version=expected, mine=mine, where=where_
            )
        )
        return changed

    async def delete(
        self, entity: type[E] | E, /, *, where: Where[E] = None, version: ExpectedVersion = None, **key: Any
    ) -> E | None:
        """Delete an entity and return it; None if it did not exist."""
        plan, given, mine, expected = target_of("delete", entity, key, version)
        where_ = condition_of(plan, where)
        flow: Flow[E | None] = put.delete_entity(
            self._scope, plan, given, version=expected, mine=mine, where=where_
        )
        return await self._run(flow)

    async def modify(
        self, entity: type[E], change: modify.Change[E], /, *, default: E | None = None, **key: Any
    ) -> E:
        """Read an entity, change it by a function, put it, and return it as stored.

        `change` gets a copy and returns the entity to store, or None to leave it as it is. It runs again
        after a conflict with another writer, so it has no side effects; what it raises ends the call.
        Without a stored entity it gets `default`, or NotFound is raised. Raises TooManyConflicts in the end.
        """
        return await self._run(
            modify.modify(self._scope, check_class("modify", entity), change, key, default=default)
        )

    async def retry_conflicts(
        self,
        attempt: Callable[[], Awaitable[ResultT]],
        *,
        when: Callable[[SolotableError], bool] = is_conflict,
    ) -> ResultT:
        """Call a function that reads and writes, and again after a wait while it meets a conflict.

        For transactions over several items; `modify` does it for one. The last conflict is raised.
        """
        conflicts = Conflicts(self._scope, when=when)
        while True:
            try:
                return await attempt()
            except SolotableError as error:
                await self._run(conflicts.wait_after(error))

    async def page(
        self,
        pattern: Query[RowT],
        *,
        limit: int = 50,
        cursor: str | None = None,
        where: Where[RowT] = None,
        work: int = query.DEFAULT_WORK,
    ) -> Page[RowT]:
        """Return a page of up to `limit` rows and the cursor of the next.

        Under a filter it reads on until the page is full or `work` items were read.
        """
        asked = filtered("page", pattern, where)
        return Page.of(await self._run(query.page(self._scope, asked, limit=limit, cursor=cursor, work=work)))

    async def all(self, pattern: Query[RowT], *, where: Where[RowT] = None) -> AsyncIterator[RowT]:
        """Iterate over all rows, page by page as they are needed."""
        prepared = query.prepare(self._scope, filtered("all", pattern, where))
        start = None
        while True:
            some = await self._run(query.rows(self._scope, prepared, start, None))
            for row in some.rows:
                yield row
            start = some.last_key
            if start is None:
                return

    async def first(self, pattern: Query[RowT], *, where: Where[RowT] = None) -> RowT | None:
        """Return the first row, or None."""
        return next(iter((await self.page(check_query("first", pattern), limit=1, where=where)).items), None)

    async def count(self, pattern: Query[RowT], *, where: Where[RowT] = None) -> int:
        """Return the number of rows; DynamoDB charges for reading them, but does not return them."""
        return await self._run(query.count(self._scope, filtered("count", pattern, where)))

    @overload
    async def collection(
        self, root: type[A] | BoundKey[A], one: type[B] | BoundKey[B], /, *, most: int = 10_000, **key: Any
    ) -> tuple[A | None, list[B]]: ...
    @overload
    async def collection(
        self,
        root: type[A] | BoundKey[A],
        one: type[B] | BoundKey[B],
        two: type[C] | BoundKey[C],
        /,
        *,
        most: int = 10_000,
        **key: Any,
    ) -> tuple[A | None, list[B], list[C]]: ...
    @overload
    async def collection(
        self,
        root: type[A] | BoundKey[A],
        one: type[B] | BoundKey[B],
        two: type[C] | BoundKey[C],
        three: type[D] | BoundKey[D],
        /,
        *,
        most: int = 10_000,
        **key: Any,
    ) -> tuple[A | None, list[B], list[C], list[D]]: ...
    async def collection(self, /, *members: type[Any] | BoundKey[Any], most: int = 10_000, **key: Any) -> Any:
        """Return an entity and its related entities with one Query: `(survey, sections)`."""
        found = await self._run(query.collection(self._scope, members_of(members), key, most=most))
        return query.split_root(members[0], found)

    def transaction(self, *, token: str | None = None) -> AsyncTransaction:
        """Collect writes for one transaction, sent when the block ends without an error.

        With a token, a transaction that is sent again within a day is executed once.
        """
        return AsyncTransaction(self._engine, self._scope, token)

    def batch(self, *, overwrite: bool = False) -> AsyncBatch:
        """Collect writes that need not go together, sent when the block ends without an error.

        Batches know no conditions, so versioned entities need `overwrite=True`.
        """
        return AsyncBatch(self._engine, self._scope, overwrite=overwrite)

    def counter(self, table: Table, name: str, *, shards: int = 16) -> AsyncShardedCounter:
        """Return a counter in several items, for many concurrent additions."""
        return AsyncShardedCounter(self._engine, self._scope, table, name, shards)

    def history(self, entity: type[E], /, **key: Any) -> AsyncEntityHistory[E]:
        """Return the history of one entity, which lists and restores former versions."""
        return AsyncEntityHistory(self._engine, self._scope, check_class("history", entity), key)

    def names(self, entity: type[E], /) -> AsyncEntityNames[E]:
        """Return the names of the entities of a class: renaming them, and resolving former names."""
        return AsyncEntityNames(self._engine, self._scope, check_class("names", entity))

    @overload
    def changes(self, /, **options: Unpack[FeedOptions]) -> AsyncChanges[Changed[Entity]]: ...
    @overload
    def changes(
        self, entity: type[E], /, *more: type[E], **options: Unpack[FeedOptions]
    ) -> AsyncChanges[Changed[E]]: ...
    def changes(self, /, *entities: type[Any], **options: Unpack[FeedOptions]) -> AsyncChanges[Changed[Any]]:
        """Read what changed, as entities, in order within a shard: of these classes, or of all.

        A `consumer` continues after its last commit; `since` ("earliest", "latest", a moment, a
        checkpoint) is where a new one begins. See `FeedOptions`.
        """
        return AsyncChanges(self._engine, feed_of(self._scope, entities, options), **options)

    def acting(self, actor: Actor, *, request_id: str | None = None) -> Self:
        """Return this store for the writes of an actor, which their events name."""
        return type(self)(self._engine, self._scope.acting(actor, request_id))

    async def audit(
        self, *, limit: int = 50, cursor: str | None = None, table: Table | None = None
    ) -> Page[Event]:
        """Return a page of the delivered events of this scope, newest first."""
        return Page.of(await self._run(outbox.audit_page(self._scope, table, limit=limit, cursor=cursor)))

    def lease(
        self,
        name: str,
        *,
        seconds: float = 30.0,
        owner: str | None = None,
        wait_seconds: float = 0.0,
        skew_seconds: float = 1.0,
        table: Table | None = None,
    ) -> AsyncLease:
        """Return a lease that one at a time can hold, for `async with`; see `tx.check_lease`.

        It is safe while clocks differ by less than `skew_seconds`; transactions that check it always are.
        """
        terms = leases.lease_terms(
            self._scope, name, seconds=seconds, owner=owner, skew_seconds=skew_seconds, table=table
        )
        return AsyncLease(self._engine, self._scope, terms, wait_seconds=wait_seconds)

    async def undelete(self, entity: type[E], /, **key: Any) -> E:
        """Undelete an entity within the grace period of its SoftDelete."""
        plan = check_class("undelete", entity).plan()
        found: E = await self._do(lambda: soft_delete.plan_undelete(self._scope, plan, key))
        return found

    async def hold(self, entity: type[Entity], /, *, reason: str, **key: Any) -> None:
        """Prevent the purge of an entity, deleted or not, until the hold is released."""
        await self._run(soft_delete.hold(self._scope, check_class("hold", entity).plan(), key, reason))

    async def release_hold(self, entity: type[Entity], /, **key: Any) -> None:
        """Release a hold, so that the entity can be purged."""
        await self._run(
            soft_delete.release_hold(self._scope, check_class("release_hold", entity).plan(), key)
        )

    def explain(self, pattern: Query[Any]) -> query.PreparedQuery:
        """Return the request of a query without sending it."""
        return query.prepare(self._scope, check_query("explain", pattern))

    async def _do(self, planner: commit.Planner) -> Any:
        return await self._run(commit.perform(self._scope, planner))

    async def _run(self, flow: Flow[ResultT]) -> ResultT:
        return await arun(flow, self._engine)


class AsyncStore(AsyncVerbs):
    """A store scoped to one tenant, or to the entities of no tenant."""

    @property
    def tenant_id(self) -> str | None:
        """The tenant of the store; None for global entities."""
        return self._scope.tenant

    def __repr__(self) -> str:
        return f"AsyncStore(tenant={self._scope.tenant!r})"


class _AsyncOpenStore(AsyncVerbs):
    """A store that shows what it stands on; a tenant's does not, as that would lead out of the tenant."""

    @property
    def scope(self) -> Scope:
        """The scope of the store."""
        return self._scope

    @property
    def engine(self) -> AsyncEngine:
        """The engine behind the store."""
        return self._engine


class AsyncAdminStore(_AsyncOpenStore):
    """A store over all tenants, for jobs: the entities name their tenant, and scanning is possible."""

    async def scan(
        self, entity: type[E], *, where: Where[E] = None, budget: int, segments: int = 1
    ) -> AsyncIterator[E]:
        """Iterate over every item of an entity's table; reads at most `budget` items, all paid for."""
        for segment in range(segments):
            start = None
            while True:
                some = await self._run(
                    scan.rows(
                        self._scope,
                        check_class("scan", entity).plan(),
                        condition_of(entity, where),
                        scan.ScanPart(segment=segment, segments=segments, start=start, budget=budget),
                    )
                )
                for row in some.rows:
                    yield row
                budget, start = budget - some.scanned, some.last_key
                if start is None:
                    break

    async def erase_tenant(
        self,
        tenant: str,
        *,
        dry_run: bool = False,
        scan: bool | None = None,
        most: int | None = None,
        progress: Callable[[Erasure], None] | None = None,
    ) -> Erasure:
        """Remove every item of a tenant from the opened tables; it cannot be undone.

        A table is scanned when an entity's partition key does not give the tenant alone; `scan=True` scans
        every table, which also finds leases, tokens and counters, and `scan=False` none. `most` ends it after
        this number of items. Call it again until `done`. Entities on hold, global entities and items of
        undeclared entities stay.
        """
        return await self._run(
            tenant_erasure.erase_tenant(
                self._scope, tenant, dry_run=dry_run, scan=scan, most=most, progress=progress
            )
        )

    async def deleted(
        self, entity: type[Entity], *, limit: int = 50, cursor: str | None = None
    ) -> Page[purge_queue.Deleted]:
        """Return a page of the deleted entities of a class by the time of their purge."""
        plan = check_class("deleted", entity).plan()
        soft_delete.require_soft_delete(plan, "list")
        return Page.of(await self._run(purge_queue.page(self._scope, plan, limit=limit, cursor=cursor)))

    def __repr__(self) -> str:
        return "AsyncAdminStore()"


class AsyncDatabase(AsyncStore, _AsyncOpenStore):
    """What opening a URL gives: the entities of no tenant, and the way to the tenants' stores.

    It alone is closed, and closes them all: a tenant's store must not end what the others stand on.
    """

    def tenant(self, tenant: str) -> AsyncStore:
        """Return the store of one tenant; it comes from a verified credential, never from a header alone."""
        return AsyncStore(self._engine, self._scope.of_tenant(tenant))

    def admin(self) -> AsyncAdminStore:
        """Return the store that sees every tenant."""
        return AsyncAdminStore(self._engine, self._scope.of_admin())

    async def close(self) -> None:
        """Close the engine, and with it every store over it."""
        await self._engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncDatabase({', '.join(self._scope.names.values())})"


class AsyncTransaction(TransactionWork):
    """The writes of one transaction; `async with db.transaction() as tx`."""

    def __init__(self, engine: AsyncEngine, scope: Scope, token: str | None) -> None:
        super().__init__(scope, token)
        self._engine = engine

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await arun(self._commit(), self._engine)


class AsyncBatch(BatchWork):
    """The writes of one batch; `async with db.batch() as batch`."""

    def __init__(self, engine: AsyncEngine, scope: Scope, *, overwrite: bool) -> None:
        super().__init__(scope, overwrite=overwrite)
        self._engine = engine

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await arun(self._write(), self._engine)
