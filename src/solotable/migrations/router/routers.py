"""The blocking router: what an application opens instead of one store while its data moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._entities.patterns.query import Query
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._protocol.engine import Engine
from solotable._store.page import Page
from solotable._store.runner import run
from solotable._store.sync.stores import Database
from solotable.errors import NotFound
from solotable.migrations.migration import Migration

from .dispatch.cursors import with_side
from .dispatch.dispatcher import Reading, Served, Steps
from .dispatch.routing import Routing, SideName
from .mirror import Workers
from .shared import RouterOptions, RouterParts, RouterStatus, once
from .sides import verbs_of
from .verbs import Read, Recorder, get_entity, read_page

AdapterT = TypeVar("AdapterT")
ResultT = TypeVar("ResultT")
E = TypeVar("E", bound=Entity)


class RoutedStore(Generic[AdapterT]):
    """The store of one tenant, on whichever side serves it.

    `read` and `write` take a function of the side's adapter that returns a flow. It may run again, on the
    other side. The verbs need adapters with these verbs, such as StoreSide.
    """

    def __init__(self, parts: RouterParts[AdapterT], workers: Workers, tenant: str | None) -> None:
        self._parts = parts
        self._workers = workers
        self._tenant = tenant

    def read(
        self,
        operation: Callable[[AdapterT], Flow[ResultT]],
        *,
        entity: type[Entity] | str | None = None,
        sticky: str = "",
        consistent: bool = False,
    ) -> ResultT:
        """Run an operation that reads, on the side that serves this entity and tenant.

        Without a tenant, `sticky` keeps reads with the same text on one side.
        """
        name = entity.plan().tag if isinstance(entity, type) else entity
        reading = Reading(entity=name, sticky=sticky, consistent=consistent)
        return self._read(Read(operation, reading, f"{name} {sticky}")).result

    def write(self, operation: Callable[[AdapterT], Flow[ResultT]]) -> ResultT:
        """Run an operation that writes, on the side that takes writes; wait while a switch is under way.

        Send one request that writes, or one transaction: an operation that meets the switch starts again.
        """
        return self._drive(self._parts.write(self._tenant, operation))

    def get(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> E | None:
        """Return the entity with this key, or None."""
        return self._read(get_entity(entity, key, consistent=consistent)).result

    def require(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> E:
        """Return the entity with this key, or raise NotFound."""
        found = self.get(entity, consistent=consistent, **key)
        if found is None:
            raise NotFound(f"No {entity.__name__} with {key}.")
        return found

    def page(self, query: Query[E], *, limit: int = 50, cursor: str | None = None) -> Page[E]:
        """Return a page; its cursor stays on the side that served it."""
        served = self._read(read_page(query, limit=limit, cursor=cursor))
        return with_side(served.result, served.side)

    def query(self, query: Query[E], *, limit: int = 200) -> Iterator[E]:
        """Iterate over all rows of a query, all of them from one side."""
        cursor: str | None = None
        while True:
            page = self.page(query, limit=limit, cursor=cursor)
            yield from page.items
            cursor = page.cursor
            if cursor is None:
                return

    def put(self, entity: E, **options: Any) -> E:
        """Create the entity or replace the stored one, and return the stored entity."""
        return self.write(lambda side: verbs_of(side).put(entity, **options))

    def create(self, entity: E, **options: Any) -> E:
        """Create the entity, or raise AlreadyExists."""
        return self.write(lambda side: verbs_of(side).create(entity, **options))

    def update(self, entity: type[E] | E, /, **changes: Any) -> E:
        """Change fields of a stored entity and return the stored result."""
        changed: E = self.write(lambda side: verbs_of(side).update(entity, **changes))
        return changed

    def delete(self, entity: type[E] | E, /, **key: Any) -> E | None:
        """Delete an entity and return it; None if it did not exist."""
        deleted: E | None = self.write(lambda side: verbs_of(side).delete(entity, **key))
        return deleted

    def modify(
        self,
        entity: type[E],
        change: Callable[[E], E | None],
        /,
        *,
        default: E | None = None,
        **key: Any,
    ) -> E:
        """Read an entity, change it with a function, put it and return the stored entity."""
        return self.write(lambda side: verbs_of(side).modify(entity, change, default=default, **key))

    def transaction(self, *, token: str | None = None) -> RoutedTransaction:
        """Collect writes for one transaction, sent to one side when the block ends without an error."""
        return RoutedTransaction(self, token)

    def _read(self, read: Read[ResultT]) -> Served[ResultT]:
        reading = self._sticky(read.reading)
        served = self._drive(self._parts.read(self._tenant, read.run, reading))
        if self._parts.is_mirrored(self._tenant, served, reading):
            steps = self._parts.compare(self._tenant, read.run, served, read.described)
            self._workers.submit(lambda: self._drive(steps))
        return served

    def _sticky(self, reading: Reading) -> Reading:
        return reading.of_tenant(self._tenant)

    def _drive(self, steps: Steps[ResultT]) -> ResultT:
        """Send the request of each step to its engine."""
        engines = self._parts.engines
        reply: Any = None
        error: Exception | None = None
        while True:
            try:
                step = steps.send(reply) if error is None else steps.throw(error)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return] # a generator's result has no type here
            reply = error = None
            try:
                reply = run(once(step.request), engines[step.place])
            except Exception as raised:  # noqa: BLE001 - the steps decide
                error = raised


class RoutedTransaction(Recorder):
    """The writes of one transaction; `with router.transaction() as tx`."""

    def __init__(self, store: RoutedStore[Any], token: str | None) -> None:
        super().__init__()
        self._store = store
        self._token = token

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.calls:
            self._store.write(lambda side: verbs_of(side).transact(self.calls, self._token))


class Router(RoutedStore[AdapterT]):
    """Both sides of a migration as one store, of the entities without a tenant; `tenant()` for a tenant's.

    `old` and `new` are the adapters: each is called with a scope, and its methods return flows. `sources`
    and `target` are as for Migration, which names them unless you do.
    """

    def __init__(
        self,
        migration: Migration,
        *,
        old: Callable[[Scope], AdapterT],
        new: Callable[[Scope], AdapterT],
        sources: Database | Engine | None = None,
        target: Database | None = None,
        options: RouterOptions | None = None,
    ) -> None:
        databases: dict[SideName, Any] = {
            "source": sources or migration.sources,
            "target": target or migration.store,
        }
        parts = RouterParts(migration, {"source": old, "target": new}, databases, options or RouterOptions())
        super().__init__(parts, Workers(), None)

    def tenant(self, tenant: str) -> RoutedStore[AdapterT]:
        """Return the store of one tenant; take the tenant from a verified credential."""
        return RoutedStore(self._parts, self._workers, tenant)

    @property
    def routing(self) -> Routing:
        """The routing that this process read last; before the first call, that of a new migration."""
        return self._parts.routing

    def status(self) -> RouterStatus:
        """Return what this process has seen: the routing, the pauses of writes, and mirrored reads."""
        return self._parts.status()

    def close(self) -> None:
        """End mirrored reads; the databases of both sides stay open."""
        self._workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
