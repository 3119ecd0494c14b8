"""The asyncio router: what an application opens instead of one store while its data moves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._entities.patterns.query import Query
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._protocol.engine import AsyncEngine
from solotable._store.asynchronous.stores import AsyncDatabase
from solotable._store.page import Page
from solotable._store.runner import arun
from solotable.errors import NotFound
from solotable.migrations.migration import Migration

from .dispatch.cursors import with_side
from .dispatch.dispatcher import Reading, Served, Steps
from .dispatch.routing import Routing, SideName
from .mirror import Tasks
from .shared import RouterOptions, RouterParts, RouterStatus, once
from .sides import verbs_of
from .verbs import Read, Recorder, get_entity, read_page

AdapterT = TypeVar("AdapterT")
ResultT = TypeVar("ResultT")
E = TypeVar("E", bound=Entity)


class AsyncRoutedStore(Generic[AdapterT]):
    """The store of one tenant, on whichever side serves it.

    `read` and `write` take a function of the side's adapter that returns a flow. It may run again, on the
    other side. The verbs need adapters with these verbs, such as StoreSide.
    """

    def __init__(self, parts: RouterParts[AdapterT], tasks: Tasks, tenant: str | None) -> None:
        self._parts = parts
        self._tasks = tasks
        self._tenant = tenant

    async def read(
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
        return (await self._read(Read(operation, reading, f"{name} {sticky}"))).result

    async def write(self, operation: Callable[[AdapterT], Flow[ResultT]]) -> ResultT:
        """Run an operation that writes, on the side that takes writes; wait while a switch is under way.

        Send one request that writes, or one transaction: an operation that meets the switch starts again.
        """
        return await self._drive(self._parts.write(self._tenant, operation))

    async def get(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> E | None:
        """Return the entity with this key, or None."""
        return (await self._read(get_entity(entity, key, consistent=consistent))).result

    async def require(self, entity: type[E], /, *, consistent: bool = False, **key: Any) -> E:
        """Return the entity with this key, or raise NotFound."""
        found = await self.get(entity, consistent=consistent, **key)
        if found is None:
            raise NotFound(f"No {entity.__name__} with {key}.")
        return found

    async def page(self, query: Query[E], *, limit: int = 50, cursor: str | None = None) -> Page[E]:
        """Return a page; its cursor stays on the side that served it."""
        served = await self._read(read_page(query, limit=limit, cursor=cursor))
        return with_side(served.result, served.side)

    async def query(self, query: Query[E], *, limit: int = 200) -> AsyncIterator[E]:
        """Iterate over all rows of a query, all of them from one side."""
        cursor: str | None = None
        while True:
            page = await self.page(query, limit=limit, cursor=cursor)
            for row in page.items:
                yield row
            cursor = page.cursor
            if cursor is None:
                return

    async def put(self, entity: E, **options: Any) -> E:
        """Create the entity or replace the stored one, and return the stored entity."""
        return await self.write(lambda side: verbs_of(side).put(entity, **options))

    async def create(self, entity: E, **options: Any) -> E:
        """Create the entity, or raise AlreadyExists."""
        return await self.write(lambda side: verbs_of(side).create(entity, **options))

    async def update(self, entity: type[E] | E, /, **changes: Any) -> E:
        """Change fields of a stored entity and return the stored result."""
        changed: E = await self.write(lambda side: verbs_of(side).update(entity, **changes))
        return changed

    async def delete(self, entity: type[E] | E, /, **key: Any) -> E | None:
        """Delete an entity and return it; None if it did not exist."""
        deleted: E | None = await self.write(lambda side: verbs_of(side).delete(entity, **key))
        return deleted

    async def modify(
        self,
        entity: type[E],
        change: Callable[[E], E | None],
        /,
        *,
        default: E | None = None,
        **key: Any,
    ) -> E:
        """Read an entity, change it with a function, put it and return the stored entity."""
        return await self.write(lambda side: verbs_of(side).modify(entity, change, default=default, **key))

    def transaction(self, *, token: str | None = None) -> AsyncRoutedTransaction:
        """Collect writes for one transaction, sent to one side when the block ends without an error."""
        return AsyncRoutedTransaction(self, token)

    async def _read(self, read: Read[ResultT]) -> Served[ResultT]:
        reading = self._sticky(read.reading)
        served = await self._drive(self._parts.read(self._tenant, read.run, reading))
        if self._parts.is_mirrored(self._tenant, served, reading):
            steps = self._parts.compare(self._tenant, read.run, served, read.described)
            self._tasks.start(self._drive(steps))
        return served

    def _sticky(self, reading: Reading) -> Reading:
        return reading.of_tenant(self._tenant)

    async def _drive(self, steps: Steps[ResultT]) -> ResultT:
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
                reply = await arun(once(step.request), engines[step.place])
            except Exception as raised:  # noqa: BLE001 - the steps decide
                error = raised


class AsyncRoutedTransaction(Recorder):
    """The writes of one transaction; `async with router.transaction() as tx`."""

    def __init__(self, store: AsyncRoutedStore[Any], token: str | None) -> None:
        super().__init__()
        self._store = store
        self._token = token

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.calls:
            await self._store.write(lambda side: verbs_of(side).transact(self.calls, self._token))


class AsyncRouter(AsyncRoutedStore[AdapterT]):
    """Both sides of a migration as one store, of the entities without a tenant; `tenant()` for a tenant's.

    `old` and `new` are the adapters: each is called with a scope, and its methods return flows. `sources`
    and `target` are the databases of the migration, opened for use with `await`.
    """

    def __init__(
        self,
        migration: Migration,
        *,
        old: Callable[[Scope], AdapterT],
        new: Callable[[Scope], AdapterT],
        sources: AsyncDatabase | AsyncEngine,
        target: AsyncDatabase,
        options: RouterOptions | None = None,
    ) -> None:
        databases: dict[SideName, Any] = {"source": sources, "target": target}
        parts = RouterParts(migration, {"source": old, "target": new}, databases, options or RouterOptions())
        super().__init__(parts, Tasks(), None)

    def tenant(self, tenant: str) -> AsyncRoutedStore[AdapterT]:
        """Return the store of one tenant; take the tenant from a verified credential."""
        return AsyncRoutedStore(self._parts, self._tasks, tenant)

    @property
    def routing(self) -> Routing:
        """The routing that this process read last; before the first call, that of a new migration."""
        return self._parts.routing

    def status(self) -> RouterStatus:
        """Return what this process has seen: the routing, the pauses of writes, and mirrored reads."""
        return self._parts.status()

    async def close(self) -> None:
        """End mirrored reads; the databases of both sides stay open."""
        await self._tasks.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
