"""The history of one entity, as `db.history(...)` gives it, blocking and awaited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from solotable._entities.declare.entity import Entity
from solotable._flows.scope import Scope
from solotable._flows.traits import history
from solotable._flows.traits.restore import plan_restore
from solotable._flows.transactions import commit
from solotable._protocol.engine import AsyncEngine, Engine
from solotable._store.page import Page
from solotable._store.runner import arun, run
from solotable._store.unit_of_work import Planned

E = TypeVar("E", bound=Entity)
ViewT = TypeVar("ViewT", bound=BaseModel)


class _Prepared(Generic[E]):
    """The location of the history; nothing is sent."""

    def __init__(self, scope: Scope, entity: type[E], key: Mapping[str, Any]) -> None:
        self._location = history.locate_history(scope, entity.plan(), key)

    def restoring(self, version: int, *, over: int | None = None) -> Planned:
        """Return the restoring of a version as part of a transaction: `tx.include(...)`."""
        location = self._location
        asked = ("restore", location.plan.tag, location.key, version, over)
        return Planned(location.scope, lambda: plan_restore(location, version, over=over), asked)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._location.title})"


class EntityHistory(_Prepared[E]):
    """The former versions of one entity."""

    def __init__(self, engine: Engine, scope: Scope, entity: type[E], key: Mapping[str, Any]) -> None:
        super().__init__(scope, entity, key)
        self._engine = engine

    def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[E]:
        """Return the former versions, newest first, without the current one."""
        return Page.of(run(history.page(self._location, limit=limit, cursor=cursor), self._engine))

    def views(self, view: type[ViewT], *, limit: int = 50, cursor: str | None = None) -> Page[ViewT]:
        """Return the former versions as `list` does, and fetch only the fields of a view."""
        flow = history.page(self._location, limit=limit, cursor=cursor, view=view)
        return Page.of(run(flow, self._engine))

    def get(self, version: int) -> E | None:
        """Return one version, which may be the current one, or None."""
        found: E | None = run(history.get(self._location, version), self._engine)
        return found

    def diff(self, before: int, after: int) -> history.VersionDifference:
        """Return the fields that differ between two versions."""
        return run(history.diff(self._location, before, after), self._engine)

    def restore(self, version: int, *, over: int | None = None) -> E:
        """Write the content of a former version as a new one, and return it as stored.

        `over` is the version that you saw; another one is a VersionConflict.
        """
        planned = self.restoring(version, over=over)
        restored: E = run(commit.perform(planned.scope, planned.planner), self._engine)
        return restored

    def purge(self, *, keep: int = 0) -> int:
        """Remove all but the newest `keep` former versions, in batches; return how many."""
        return run(history.purge(self._location, keep=keep), self._engine)


class AsyncEntityHistory(_Prepared[E]):
    """The former versions of one entity, awaited."""

    def __init__(self, engine: AsyncEngine, scope: Scope, entity: type[E], key: Mapping[str, Any]) -> None:
        super().__init__(scope, entity, key)
        self._engine = engine

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[E]:
        """Return the former versions, newest first, without the current one."""
        return Page.of(await arun(history.page(self._location, limit=limit, cursor=cursor), self._engine))

    async def views(self, view: type[ViewT], *, limit: int = 50, cursor: str | None = None) -> Page[ViewT]:
        """Return the former versions as `list` does, and fetch only the fields of a view."""
        flow = history.page(self._location, limit=limit, cursor=cursor, view=view)
        return Page.of(await arun(flow, self._engine))

    async def get(self, version: int) -> E | None:
        """Return one version, which may be the current one, or None."""
        found: E | None = await arun(history.get(self._location, version), self._engine)
        return found

    async def diff(self, before: int, after: int) -> history.VersionDifference:
        """Return the fields that differ between two versions."""
        return await arun(history.diff(self._location, before, after), self._engine)

    async def restore(self, version: int, *, over: int | None = None) -> E:
        """Write the content of a former version as a new one, and return it as stored.

        `over` is the version that you saw; another one is a VersionConflict.
        """
        planned = self.restoring(version, over=over)
        restored: E = await arun(commit.perform(planned.scope, planned.planner), self._engine)
        return restored

    async def purge(self, *, keep: int = 0) -> int:
        """Remove all but the newest `keep` former versions, in batches; return how many."""
        return await arun(history.purge(self._location, keep=keep), self._engine)
