"""The blocking store: each method runs one flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from solotable._protocol.engine import Engine
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
from .handles.changes import Changes, FeedOptions, feed_of
from .handles.counters import ShardedCounter
from .handles.history import EntityHistory
from .handles.leases import Lease
from .handles.names import EntityNames
from .page import Page
from .runner import run
from .unit_of_work import BatchWork, TransactionWork

A = TypeVar("A", bound=Entity)
B = TypeVar("B", bound=Entity)
C = TypeVar("C", bound=Entity)
D = TypeVar("D", bound=Entity)
E = TypeVar("E", bound=Entity)
RowT = TypeVar("RowT", bound=BaseModel)
ResultT = TypeVar("ResultT")


class Verbs:
    """The methods of every store."""

    def __init__(self, engine: Engine, scope: Scope) -> None:
        self._engine = engine
        self._scope = scope

    def get(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> E | None:
        """Return the entity with this key, or None."""
        return self._run(read.get(self._scope, check_class("get", entity), key, consistent=consistent))

    def require(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> E:
        """Return the entity with this key, or raise NotFound."""
        return self._run(
            read.require(self._scope, check_class("require", entity), key, consistent=consistent)
        )

    def get_many(
        self, entity: type[E], keys: Sequence[Mapping[str, Any]], *, consistent: bool = False
    ) -> list[E | None]:
        """Return the entities with these keys in the same order; None for missing ones."""
        return self._run(
            read.get_many(self._scope, check_class("get_many", entity), keys, consistent=consistent)
        )

    def put(self, entity: E, *, where: Where[E] = None) -> E:
        """Create the entity or replace the stored one, and return the stored entity.

        A versioned entity replaces only the version that was read; version 0 requires that none exists.
        """
        check_instance("put", entity)
        flow = put.put_entity(self._scope, entity, where=condition_of(entity, where))
        return self._run(flow)

    def create(self, entity: E, *, where: Where[E] = None) -> E:
        """Create the entity and return the stored entity, or raise AlreadyExists."""
        check_instance("create", entity)
        flow = put.put_entity(self._scope, entity, create=True, where=condition_of(entity, where))
        return self._run(flow)

    def update(  # noqa: PLR0913 - DynamoDB's five kinds of change, each by name
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
        changed: E = self._do(
            lambda: update.plan_update(
                self._scope, plan, given, changes, version=expected, mine=mine, where=where_
            )
        )
        return changed

    def delete(
        self, entity: type[E] | E, /, *, where: Where[E] = None, version: ExpectedVersion = None, **key: Any
    ) -> E | None:
        """Delete an entity and return it; None if it did not exist."""
        plan, given, mine, expected = target_of("delete", entity, key, version)
        where_ = condition_of(plan, where)
        flow: Flow[E | None] = put.delete_entity(
            self._scope, plan, given, version=expected, mine=mine, where=where_
        )
        return self._run(flow)

    def modify(
        self, entity: type[E], change: modify.Change[E], /, *, default: E | None = None, **key: Any
    ) -> E:
        """Read an entity, change it by a function, put it, and return it as stored.

        `change` gets a copy and returns the entity to store, or None to leave it as it is. It runs again
        after a conflict with another writer, so it has no side effects; what it raises ends the call.
        Without a stored entity it gets `default`, or NotFound is raised. Raises TooManyConflicts in the end.
        """
        return self._run(
            modify.modify(self._scope, check_class("modify", entity), change, key, default=default)
        )

    def retry_conflicts(
        self, attempt: Callable[[], ResultT], *, when: Callable[[SolotableError], bool] = is_conflict
    ) -> ResultT:
        """Call a function that reads and writes, and again after a wait while it meets a conflict.

        For transactions over several items; `modify` does it for one. The last conflict is raised.
        """
        conflicts = Conflicts(self._scope, when=when)
        while True:
            try:
                return attempt()
            except SolotableError as error:
                self._run(conflicts.wait_after(error))

    def page(
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
        return Page.of(self._run(query.page(self._scope, asked, limit=limit, cursor=cursor, work=work)))

    def all(self, pattern: Query[RowT], *, where: Where[RowT] = None) -> Iterator[RowT]:
        """Iterate over all rows, page by page as they are needed."""
        prepared = query.prepare(self._scope, filtered("all", pattern, where))
        start = None
        while True:
            some = self._run(query.rows(self._scope, prepared, start, None))
            yield from some.rows
            start = some.last_key
            if start is None:
                return

    def first(self, pattern: Query[RowT], *, where: Where[RowT] = None) -> RowT | None:
        """Return the first row, or None."""
        return next(iter(self.page(check_query("first", pattern), limit=1, where=where).items), None)

    def count(self, pattern: Query[RowT], *, where: Where[RowT] = None) -> int:
        """Return the number of rows; DynamoDB charges for reading them, but does not return them."""
        return self._run(query.count(self._scope, filtered("count", pattern, where)))

    @overload
    def collection(
        self, root: type[A] | BoundKey[A], one: type[B] | BoundKey[B], /, *, most: int = 10_000, **key: Any
    ) -> tuple[A | None, list[B]]: ...
    @overload
    def collection(
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
    def collection(
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
    def collection(self, /, *members: type[Any] | BoundKey[Any], most: int = 10_000, **key: Any) -> Any:
        """Return an entity and its related entities with one Query: `(survey, sections)`."""
        found = self._run(query.collection(self._scope, members_of(members), key, most=most))
        return query.split_root(members[0], found)

    def transaction(self, *, token: str | None = None) -> Transaction:
        """Collect writes for one transaction, sent when the block ends without an error.

        With a token, a transaction that is sent again within a day is executed once.
        """
        return Transaction(self._engine, self._scope, token)

    def batch(self, *, overwrite: bool = False) -> Batch:
        """Collect writes that need not go together, sent when the block ends without an error.

        Batches know no conditions, so versioned entities need `overwrite=True`.
        """
        return Batch(self._engine, self._scope, overwrite=overwrite)

    def counter(self, table: Table, name: str, *, shards: int = 16) -> ShardedCounter:
        """Return a counter in several items, for many concurrent additions."""
        return ShardedCounter(self._engine, self._scope, table, name, shards)

    def history(self, entity: type[E], /, **key: Any) -> EntityHistory[E]:
        """Return the history of one entity, which lists and restores former versions."""
        return EntityHistory(self._engine, self._scope, check_class("history", entity), key)

    def names(self, entity: type[E], /) -> EntityNames[E]:
        """Return the names of the entities of a class: renaming them, and resolving former names."""
        return EntityNames(self._engine, self._scope, check_class("names", entity))

    @overload
    def changes(self, /, **options: Unpack[FeedOptions]) -> Changes[Changed[Entity]]: ...
    @overload
    def changes(
        self, entity: type[E], /, *more: type[E], **options: Unpack[FeedOptions]
    ) -> Changes[Changed[E]]: ...
    def changes(self, /, *entities: type[Any], **options: Unpack[FeedOptions]) -> Changes[Changed[Any]]:
        """Read what changed, as entities, in order within a shard: of these classes, or of all.

        A `consumer` continues after its last commit; `since` ("earliest", "latest", a moment, a
        checkpoint) is where a new one begins. See `FeedOptions`.
        """
        return Changes(self._engine, feed_of(self._scope, entities, options), **options)

    def acting(self, actor: Actor, *, request_id: str | None = None) -> Self:
        """Return this store for the writes of an actor, which their events name."""
        return type(self)(self._engine, self._scope.acting(actor, request_id))

    def audit(self, *, limit: int = 50, cursor: str | None = None, table: Table | None = None) -> Page[Event]:
        """Return a page of the delivered events of this scope, newest first."""
        return Page.of(self._run(outbox.audit_page(self._scope, table, limit=limit, cursor=cursor)))

    def lease(
        self,
        name: str,
        *,
        seconds: float = 30.0,
        owner: str | None = None,
        wait_seconds: float = 0.0,
        skew_seconds: float = 1.0,
        table: Table | None = None,
    ) -> Lease:
        """Return a lease that one at a time can hold, for `with`; see `tx.check_lease`.

        It is safe while clocks differ by less than `skew_seconds`; transactions that check it always are.
        """
        terms = leases.lease_terms(
            self._scope, name, seconds=seconds, owner=owner, skew_seconds=skew_seconds, table=table
        )
        return Lease(self._engine, self._scope, terms, wait_seconds=wait_seconds)

    def undelete(self, entity: type[E], /, **key: Any) -> E:
        """Undelete an entity within the grace period of its SoftDelete."""
        plan = check_class("undelete", entity).plan()
        found: E = self._do(lambda: soft_delete.plan_undelete(self._scope, plan, key))
        return found

    def hold(self, entity: type[Entity], /, *, reason: str, **key: Any) -> None:
        """Prevent the purge of an entity, deleted or not, until the hold is released."""
        self._run(soft_delete.hold(self._scope, check_class("hold", entity).plan(), key, reason))

    def release_hold(self, entity: type[Entity], /, **key: Any) -> None:
        """Release a hold, so that the entity can be purged."""
        self._run(soft_delete.release_hold(self._scope, check_class("release_hold", entity).plan(), key))

    def explain(self, pattern: Query[Any]) -> query.PreparedQuery:
        """Return the request of a query without sending it."""
        return query.prepare(self._scope, check_query("explain", pattern))

    def _do(self, planner: commit.Planner) -> Any:
        return self._run(commit.perform(self._scope, planner))

    def _run(self, flow: Flow[ResultT]) -> ResultT:
        return run(flow, self._engine)


class Store(Verbs):
    """A store scoped to one tenant, or to the entities of no tenant."""

    @property
    def tenant_id(self) -> str | None:
        """The tenant of the store; None for global entities."""
        return self._scope.tenant

    def __repr__(self) -> str:
        return f"Store(tenant={self._scope.tenant!r})"


class _OpenStore(Verbs):
    """A store with its scope and engine; the store of a tenant hides them, as they reach other tenants."""

    @property
    def scope(self) -> Scope:
        """The scope of the store."""
        return self._scope

    @property
    def engine(self) -> Engine:
        """The engine behind the store."""
        return self._engine


class AdminStore(_OpenStore):
    """A store over all tenants, for jobs: the entities name their tenant, and scanning is possible."""

    def scan(self, entity: type[E], *, where: Where[E] = None, budget: int, segments: int = 1) -> Iterator[E]:
        """Iterate over every item of an entity's table; reads at most `budget` items, all paid for."""
        for segment in range(segments):
            start = None
            while True:
                some = self._run(
                    scan.rows(
                        self._scope,
                        check_class("scan", entity).plan(),
                        condition_of(entity, where),
                        scan.ScanPart(segment=segment, segments=segments, start=start, budget=budget),
                    )
                )
                yield from some.rows
                budget, start = budget - some.scanned, some.last_key
                if start is None:
                    break

    def erase_tenant(
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
        return self._run(
            tenant_erasure.erase_tenant(
                self._scope, tenant, dry_run=dry_run, scan=scan, most=most, progress=progress
            )
        )

    def deleted(
        self, entity: type[Entity], *, limit: int = 50, cursor: str | None = None
    ) -> Page[purge_queue.Deleted]:
        """Return a page of the deleted entities of a class by the time of their purge."""
        plan = check_class("deleted", entity).plan()
        soft_delete.require_soft_delete(plan, "list")
        return Page.of(self._run(purge_queue.page(self._scope, plan, limit=limit, cursor=cursor)))

    def __repr__(self) -> str:
        return "AdminStore()"


class Database(Store, _OpenStore):
    """An opened URL: the store of global entities, and of the stores of its tenants.

    Only it can be closed, and with it every store over the same engine.
    """

    def tenant(self, tenant: str) -> Store:
        """Return the store of one tenant; it comes from a verified credential, never from a header alone."""
        return Store(self._engine, self._scope.of_tenant(tenant))

    def admin(self) -> AdminStore:
        """Return the store that sees every tenant."""
        return AdminStore(self._engine, self._scope.of_admin())

    def close(self) -> None:
        """Close the engine, and with it every store over it."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Database({', '.join(self._scope.names.values())})"


class Transaction(TransactionWork):
    """The writes of one transaction; `with db.transaction() as tx`."""

    def __init__(self, engine: Engine, scope: Scope, token: str | None) -> None:
        super().__init__(scope, token)
        self._engine = engine

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            run(self._commit(), self._engine)


class Batch(BatchWork):
    """The writes of one batch; `with db.batch() as batch`."""

    def __init__(self, engine: Engine, scope: Scope, *, overwrite: bool) -> None:
        super().__init__(scope, overwrite=overwrite)
        self._engine = engine

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            run(self._write(), self._engine)
