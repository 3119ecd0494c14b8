"""Opening stores over an engine that can be watched, raced and made to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

from solotable import AsyncDatabase, Database, Entity
from solotable._connect import over, to_async
from solotable._entities.declare.table import Table
from solotable._flows.retry import Retries
from solotable._protocol.engine import AsyncEngine, Capabilities, Engine
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Control, Request, Scan
from solotable._store.observation import ObservedAsyncEngine, ObservedEngine, Observer
from solotable._values import Item
from solotable.urls import Url

from .awaited import Awaited

#: Years ahead, so that no engine's own sweep of expired items has anything to do.
START = datetime(2035, 1, 1, tzinfo=UTC).timestamp()
SECRET = b"the first secret of the suite"


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.seconds = START

    def __call__(self) -> float:
        return self.seconds

    def at(self, seconds: float) -> datetime:
        """Return the moment so many seconds after the start."""
        return datetime.fromtimestamp(START + seconds, UTC)


class Spy:
    """An engine that notes what it is asked, and lets a test step in before it answers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.sent: list[Request[Any]] = []
        #: Called before each request; may write beside, raise, or return a reply of its own.
        self.before: Callable[[Request[Any]], Any] | None = None
        #: Called where a flow waits.
        self.sleep: Callable[[float], None] | None = None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            instant=self._engine.capabilities.instant, make_async=self.make_async, sleep=self.sleep
        )

    def handle(self, request: Request[Any], /) -> Any:
        reply = self.note(request)
        return self._engine.handle(request) if reply is None else reply

    def note(self, request: Request[Any]) -> Any:
        """Note a request, and return the reply of a test that has stepped in."""
        self.sent.append(request)
        return self.before(request) if self.before is not None else None

    def make_async(self) -> AwaitedSpy | None:
        """Return the spy to await, where the engine can be awaited itself."""
        native = self._engine.capabilities.make_async
        made = None if native is None else native()
        return None if made is None else AwaitedSpy(self, made)

    def once(self, kind: type[Request[Any]], action: Callable[[], object]) -> None:
        """Do something before the first request of this kind."""

        def before(request: Request[Any]) -> None:
            if isinstance(request, kind):
                self.before = None
                action()

        self.before = before

    def of(self, kind: type[Request[Any]]) -> list[Any]:
        """Return what was sent of one kind."""
        return [request for request in self.sent if isinstance(request, kind)]

    def close(self) -> None:
        """Leave the engine open; it is the fixture's."""


class AwaitedSpy:
    """The same over an engine that is awaited."""

    def __init__(self, spy: Spy, engine: AsyncEngine) -> None:
        self._spy = spy
        self._engine = engine

    async def handle(self, request: Request[Any], /) -> Any:
        reply = self._spy.note(request)
        return await self._engine.handle(request) if reply is None else reply

    async def sleep(self, seconds: float) -> None:
        """Wait as a test has told the spy, or let others run meanwhile."""
        own = self._spy.sleep
        if own is not None:
            own(seconds)
        await asyncio.sleep(seconds if own is None else 0)

    async def close(self) -> None:
        """Leave the engine open; it is the fixture's."""


@dataclass
class Opening:
    """Opens stores for one test; `opening(table)` is a Database, blocking or awaited behind its face."""

    engine: Engine
    spy: Spy
    clock: Clock
    runner: asyncio.Runner | None
    prefix: str
    place: str
    _made: set[str] = field(default_factory=set)
    _opened: list[Any] = field(default_factory=list)

    def __call__(
        self,
        *tables: Table,
        secrets: Sequence[bytes] = (SECRET,),
        prefix: str = "",
        observer: Observer | None = None,
    ) -> Database:
        blocking = self._blocking(self.spy, tables, secrets, prefix)
        if self.runner is None:
            return (
                blocking if observer is None else Database(ObservedEngine(self.spy, observer), blocking.scope)
            )
        engine = to_async(self.spy)
        if observer is not None:
            engine = ObservedAsyncEngine(engine, observer)
        opened = AsyncDatabase(engine, blocking.scope)
        self._opened.append(opened)
        return cast(Database, Awaited(self.runner, opened))

    def beside(self, *tables: Table) -> Database:
        """Return another process's store: blocking, and not watched."""
        return self._blocking(self.engine, tables, (SECRET,), "")

    def _blocking(
        self, engine: Engine, tables: Sequence[Table], secrets: Sequence[bytes], prefix: str
    ) -> Database:
        # An embedded address makes the tables, on any engine.
        address = Url("sqlite", "test", settings={"prefix": self.prefix + prefix})
        found = over(engine, tables, address, cursor_secrets=secrets, clock=self.clock)
        self._made |= {self.prefix + prefix + table.name for table in tables}
        self.spy.sent.clear()
        return Database(engine, replace(found.scope, retries=Retries(random=lambda: 0.0)))

    def raw(self, table: Table) -> list[Item]:
        """Return the items of a table as they are stored."""
        found: list[Item] = []
        start = None
        while True:
            page = self.engine.handle(Scan(table=self.prefix + table.name, start=start, consistent=True))
            found += decode_items(page.items or ())
            start = page.last_key
            if not start:
                return found

    def only(self, entity: type[Entity]) -> Item:
        """Return the one stored item of an entity."""
        plan = entity.plan()
        (item,) = [item for item in self.raw(plan.table) if item[plan.table.internal_tag] == plan.tag_value]
        return item

    def plant(self, table: Table, item: Item) -> None:
        """Store an item behind the store's back."""
        from solotable._protocol.requests import PutItem

        self.engine.handle(PutItem(table=self.prefix + table.name, item=item))

    def close(self) -> None:
        """Close what was opened, and drop the tables where others share the engine."""
        if self.runner is not None:
            for opened in self._opened:
                self.runner.run(opened.close())
        if self.place != "engine":
            for name in self._made:
                self.engine.handle(Control(operation="DeleteTable", members={"TableName": name}))


def stale_keys(opening: Opening, table: Table) -> list[str]:
    """Return the stored items whose key attributes are not those that their own values give."""
    return stale_among(opening.raw(table), table)


def stale_among(items: Iterable[Item], table: Table) -> list[str]:
    """Return those of these items whose key attributes are not those that their own values give."""
    wrong = []
    for item in items:
        plan = table.plans[item[table.internal_tag]["S"]]
        entity = plan.decode(item)
        fresh = plan.encode(entity.__dict__, entity.unknown_attributes)
        names = {name for path in plan.keys.values() for name in path.derived}
        kept = {name: value for name, value in item.items() if name in names}
        wanted = {name: value for name, value in fresh.items() if name in names}
        if kept != wanted:
            wrong.append(f"{plan.name}: stored {kept}, derived {wanted}")
    return wrong
