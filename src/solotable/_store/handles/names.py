"""The names of the entities of a class, as `db.names(...)` gives them, blocking and awaited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.patterns.query import Query
from solotable._entities.traits.names import Redirect
from solotable._flows.consumption import Consumed
from solotable._flows.reads.query import FilledPage
from solotable._flows.scope import Scope
from solotable._flows.traits import rename
from solotable._flows.traits.names import names_of
from solotable._flows.transactions import commit
from solotable._flows.transactions.write import ExpectedVersion
from solotable._protocol.engine import AsyncEngine, Engine
from solotable._store.arguments import target_of
from solotable._store.runner import arun, run
from solotable._store.unit_of_work import Planned
from solotable.errors import DataError

E = TypeVar("E", bound=Entity)


def _named(plan: Plan, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the primary key fields of an entity or of a caller's arguments."""
    return {name: value for name, value in given.items() if name in plan.primary.parts}


@dataclass(frozen=True, slots=True)
class Redirects(Generic[E]):
    """A page of redirects; `cursor` is None at the end."""

    items: list[Redirect[E]]
    cursor: str | None
    #: How many items were read for it.
    scanned: int
    #: As in `Page.consumed`.
    consumed: Consumed | None = field(default=None, compare=False)

    @classmethod
    def of(cls, filled: FilledPage) -> Self:
        """Return the page of a flow."""
        return cls(filled.rows, filled.cursor, filled.scanned, filled.consumed)


class _Named(Generic[E]):
    """What is the same blocking and awaited; nothing is sent."""

    def __init__(self, scope: Scope, entity: type[E]) -> None:
        self._scope = scope
        self._entity = entity
        self._plan = entity.plan()
        self._field = names_of(self._plan).field

    def renaming(
        self, name: E | str | None = None, /, *, to: str, version: ExpectedVersion = None, **key: Any
    ) -> Planned:
        """Return a rename as part of a transaction: `tx.include(...)`."""
        if isinstance(name, Entity):
            plan, given, _, version = target_of("renaming", name, key, version)
        else:
            plan, given = self._plan, self._given(name, key)
        return Planned(
            self._scope,
            lambda: rename.plan_rename(self._scope, plan, given, to=to, version=version),
            ("rename", plan.tag, _named(plan, given), to, version),
        )

    def releasing(self, name: str | None = None, /, **key: Any) -> Planned:
        """Return the release of a former name as part of a transaction: `tx.include(...)`."""
        given = self._given(name, key)
        return Planned(
            self._scope,
            lambda: rename.plan_release(self._scope, self._plan, given),
            ("release", self._plan.tag, _named(self._plan, given)),
        )

    def _given(self, name: str | None, key: Mapping[str, Any]) -> Mapping[str, Any]:
        if name is None:
            return key
        if self._field in key:
            raise DataError(f"Give the name once: {name!r}, or {self._field}={key[self._field]!r}.")
        return {**key, self._field: name}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._plan.name})"


class EntityNames(_Named[E]):
    """Renaming and finding the entities of one class."""

    def __init__(self, engine: Engine, scope: Scope, entity: type[E]) -> None:
        super().__init__(scope, entity)
        self._engine = engine

    def rename(
        self, name: E | str | None = None, /, *, to: str, version: ExpectedVersion = None, **key: Any
    ) -> E:
        """Rename an entity and return the stored entity; its old name becomes a redirect."""
        planned = self.renaming(name, to=to, version=version, **key)
        renamed: E = run(commit.perform(self._scope, planned.planner), self._engine)
        return renamed

    def resolve(
        self, name: str | None = None, /, *, follow: bool = False, consistent: bool = False, **key: Any
    ) -> E | Redirect[E] | None:
        """Return the entity of a name, or the Redirect that it is; `follow` fetches the entity there."""
        given = self._given(name, key)
        flow = rename.resolve(self._scope, self._plan, given, follow=follow, consistent=consistent)
        found: E | Redirect[E] | None = run(flow, self._engine)
        return found

    def redirects(self, query: Query[E], *, limit: int = 50, cursor: str | None = None) -> Redirects[E]:
        """Return the redirects to the entities of a page of a query; there may be none before its end."""
        flow = rename.redirects(self._scope, query, limit=limit, cursor=cursor)
        return Redirects.of(run(flow, self._engine))

    def aliases(self, name: str | None = None, /, **key: Any) -> list[str]:
        """Return the former names of an entity, the oldest first."""
        return run(rename.aliases(self._scope, self._plan, self._given(name, key)), self._engine)

    def release(self, name: str | None = None, /, **key: Any) -> None:
        """Release a former name, so that another entity can use it."""
        planned = self.releasing(name, **key)
        run(commit.perform(self._scope, planned.planner), self._engine)


class AsyncEntityNames(_Named[E]):
    """Renaming and finding the entities of one class, awaited."""

    def __init__(self, engine: AsyncEngine, scope: Scope, entity: type[E]) -> None:
        super().__init__(scope, entity)
        self._engine = engine

    async def rename(
        self, name: E | str | None = None, /, *, to: str, version: ExpectedVersion = None, **key: Any
    ) -> E:
        """Rename an entity and return the stored entity; its old name becomes a redirect."""
        planned = self.renaming(name, to=to, version=version, **key)
        renamed: E = await arun(commit.perform(self._scope, planned.planner), self._engine)
        return renamed

    async def resolve(
        self, name: str | None = None, /, *, follow: bool = False, consistent: bool = False, **key: Any
    ) -> E | Redirect[E] | None:
        """Return the entity of a name, or the Redirect that it is; `follow` fetches the entity there."""
        given = self._given(name, key)
        flow = rename.resolve(self._scope, self._plan, given, follow=follow, consistent=consistent)
        found: E | Redirect[E] | None = await arun(flow, self._engine)
        return found

    async def redirects(self, query: Query[E], *, limit: int = 50, cursor: str | None = None) -> Redirects[E]:
        """Return the redirects to the entities of a page of a query; there may be none before its end."""
        flow = rename.redirects(self._scope, query, limit=limit, cursor=cursor)
        return Redirects.of(await arun(flow, self._engine))

    async def aliases(self, name: str | None = None, /, **key: Any) -> list[str]:
        """Return the former names of an entity, the oldest first."""
        return await arun(rename.aliases(self._scope, self._plan, self._given(name, key)), self._engine)

    async def release(self, name: str | None = None, /, **key: Any) -> None:
        """Release a former name, so that another entity can use it."""
        planned = self.releasing(name, **key)
        await arun(commit.perform(self._scope, planned.planner), self._engine)
