"""The blocking stores: of a tenant, of all tenants, and of an opened URL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.table import Table
from solotable._entities.traits.events import Actor, Event
from solotable._flows.feed.changes import Changed
from solotable._flows.jobs import purge_queue, tenant_erasure
from solotable._flows.jobs.tenant_erasure import Erasure
from solotable._flows.reads import scan
from solotable._flows.scope import Scope, Unknown
from solotable._flows.traits import leases, outbox, soft_delete
from solotable._protocol.engine import Engine
from solotable._store.arguments import (
    Where,
    check_class,
    condition_of,
)
from solotable._store.handles.changes import Changes, FeedOptions, feed_of
from solotable._store.handles.counters import ShardedCounter
from solotable._store.handles.history import EntityHistory
from solotable._store.handles.leases import Lease
from solotable._store.handles.names import EntityNames
from solotable._store.page import Page

from .reads import Reads
from .writes import Writes

E = TypeVar("E", bound=Entity)


class Verbs(Reads, Writes):
    """The methods of every store."""

    def counter(self, table: Table, name: str, *, shards: int = 16) -> ShardedCounter:
        """Return a counter in several items, for many concurrent additions."""
        return ShardedCounter(self._engine, self._scope, table, name, shards)

    def history(self, entity: type[E], /, **key: Any) -> EntityHistory[E]:
        """Return the history of one entity, which lists and restores former versions."""
        return EntityHistory(self._engine, self._scope, check_class("history", entity), key)

    def names(self, entity: type[E], /) -> EntityNames[E]:
        """Return the names of the entities of a class, to rename them and to resolve former names."""
        return EntityNames(self._engine, self._scope, check_class("names", entity))

    @overload
    def changes(self, /, **options: Unpack[FeedOptions]) -> Changes[Changed[Entity]]: ...

    @overload
    def changes(
        self, entity: type[E], /, *more: type[E], **options: Unpack[FeedOptions]
    ) -> Changes[Changed[E]]: ...

    def changes(self, /, *entities: type[Any], **options: Unpack[FeedOptions]) -> Changes[Changed[Any]]:
        """Read the changes of these entity classes, or of all, in order within a shard.

        A `consumer` continues after its last commit. A new one starts at `since`: "earliest", "latest", a
        time or a checkpoint. See `FeedOptions`.
        """
        return Changes(self._engine, feed_of(self._scope, entities, options), **options)

    def acting(self, actor: Actor, *, request_id: str | None = None) -> Self:
        """Return this store for an actor; the events of its writes name the actor."""
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
        """Return a lease, which one owner at a time holds; use it with `with`.

        It is exclusive while clocks differ by less than `skew_seconds`. A transaction with `tx.check_lease`
        does not depend on clocks.
        """
        terms = leases.lease_terms(
            self._scope, name, seconds=seconds, owner=owner, skew_seconds=skew_seconds, table=table
        )
        return Lease(self._engine, self._scope, terms, wait_seconds=wait_seconds)


class Store(Verbs):
    """A store scoped to one tenant, or to the entities of no tenant."""

    @property
    def tenant_id(self) -> str | None:
        """The tenant of the store; None for global entities."""
        return self._scope.tenant

    def __repr__(self) -> str:
        return f"Store(tenant={self._scope.tenant!r})"


class _OpenStore(Verbs):
    """A store that gives access to its scope and engine; a tenant's store does not."""

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

    def scan(
        self,
        entity: type[E],
        *,
        where: Where[E] = None,
        budget: int,
        segments: int = 1,
        unknown: Unknown = "raise",
    ) -> Iterator[E]:
        """Iterate over all entities of a class by reading the whole table, at most `budget` items of it."""
        for segment in range(segments):
            start = None
            while True:
                some = self._run(
                    scan.rows(
                        self._scope.reading(unknown),
                        check_class("scan", entity).plan(),
                        condition_of(entity, where),
                        scan.ScanPart(segment=segment, segments=segments, start=start, budget=budget),
                    ),
                    entity,
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
    """An opened URL: the store of global entities; `tenant()` returns the store of a tenant.

    Closing it closes every store over the same engine.
    """

    def tenant(self, tenant: str) -> Store:
        """Return the store of one tenant; take the tenant from a verified credential, never from a header."""
        return Store(self._engine, self._scope.of_tenant(tenant))

    def admin(self) -> AdminStore:
        """Return the store over all tenants."""
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
