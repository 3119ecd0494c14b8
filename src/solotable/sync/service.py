"""Sync: push, pull and poke for the synced entities of a database."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from solotable._entities.declare.table import Table
from solotable._entities.synced import RESERVED
from solotable._flows.scope import Scope
from solotable._flows.sync.log import read_heads
from solotable._flows.sync.spaces import Space
from solotable._store import AsyncDatabase, Database, Store
from solotable._store.runner import run
from solotable.errors import DeclarationError

from .blocking import LoopEngine, blocking_engine
from .maintenance import reset_all, reset_spaces, trim_logs
from .mutators import Mutators
from .pokes import Listener, Pokes
from .pull.puller import Puller, PullSettings
from .push.clients import read_clients
from .push.pusher import Pusher, PushSettings
from .push.request import checked_body, parse_pull, parse_push, unsupported

#: The names of the spaces that a user reads, given the tenant's store and the user.
View = Callable[[Store, str], Iterable[str]]
_MOST_OWNERS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceVersion:
    """The version of a space: the number of its commits, and the time of the last one."""

    version: int
    #: None without a commit.
    at: datetime | None


class Sync:
    """Serves the synced entities of a database to offline-first clients.

    - `mutators` are the functions that clients call by name.
    - `view(db, user)` returns the names of the spaces that a user reads; by default the tenant's space "".
    - `schema_versions` are the schema versions of clients that the mutators understand; None for all.
    - `table` is the table of the synced entities, if several tables have some.
    - `page_items` limits the items of one answer to a pull: a large view arrives in several pulls.
    - `budget_seconds` is how long a push may take before it answers with what is done so far, how long it
      waits for the tenant's other pushes, and how long an async mutator may take.
    - `poll_seconds` is how often listeners look for the commits of other processes; 0 for never.
    """

    def __init__(  # noqa: PLR0913 - the settings of a service, each by name
        self,
        database: Database | AsyncDatabase,
        *,
        mutators: Mutators,
        view: View | None = None,
        schema_versions: Collection[str] | None = None,
        table: Table | None = None,
        page_items: int | None = None,
        budget_seconds: float = 10.0,
        poll_seconds: float = 1.0,
    ) -> None:
        if isinstance(schema_versions, str):
            raise DeclarationError(
                f"schema_versions is a collection of strings, got one; write {{{schema_versions!r}}}."
            )
        if page_items is not None and page_items < 1:
            raise DeclarationError(f"page_items={page_items}; pass at least 1, or None for whole views.")
        self._scope: Scope = database.scope
        self._engine = blocking_engine(database)
        self._table = _synced_table(self._scope, table)
        self._view = view
        self._schema_versions = schema_versions
        self._owners: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._owners_lock = Lock()
        self._pokes = Pokes(poll_seconds=poll_seconds)
        self._pusher = Pusher(
            PushSettings(
                engine=self._engine,
                mutators=mutators,
                readable=self._readable,
                root=self._root,
                scope=self._tenant_scope,
                committed=self._pokes.poke,
                budget_seconds=budget_seconds,
            )
        )
        self._puller = Puller(
            PullSettings(
                engine=self._engine,
                scope=self._tenant_scope,
                root=self._root,
                readable=self._readable,
                owns=self._owns,
                page_items=page_items,
            )
        )

    def push(self, tenant: str, user: str, body: object, *, principal: Any = None) -> Mapping[str, Any]:
        """Run the mutations of a push; return the body of the answer with status 200.

        Raises SyncUnavailable if some are left, for an answer with status 503, and DataError for a body that
        no client sends. Call it in a thread. `principal` is passed on to mutators.
        """
        given = checked_body(body)
        answer = unsupported(given, "push", self._schema_versions)
        if answer is not None:
            return answer
        return self._pusher.push(tenant, user, parse_push(given), principal)

    def pull(self, tenant: str, user: str, body: object) -> Mapping[str, Any]:
        """Return the answer to a pull, whole; see `pull_stream`."""
        found: Mapping[str, Any] = json.loads("".join(self.pull_stream(tenant, user, body)))
        return found

    def pull_stream(self, tenant: str, user: str, body: object) -> Iterator[str]:
        """Yield the answer to a pull as pieces of JSON, in little memory.

        Raises SyncUnavailable, also between pieces: break off the response then. Call it in a thread.
        """
        given = checked_body(body)
        answer: Mapping[str, Any] | None = unsupported(given, "pull", self._schema_versions)
        if answer is not None:
            return iter((json.dumps(answer),))
        return self._puller.pull(tenant, user, parse_pull(given))

    def pokes(self, tenant: str, user: str = "", *, notify: Callable[[], None] = lambda: None) -> Listener:
        """Return a listener that wakes after commits; `notify` is called in any thread.

        >>> # with sync.pokes("acme", "ann") as listener: listener.wait(30)
        """
        return self._pokes.listen(tenant, lambda: self._versions(tenant, user), notify)

    def versions(self, tenant: str, user: str) -> dict[str, SpaceVersion]:
        """Return the version of each space that a user reads, by name: one small read each.

        Call it in a thread.
        """
        spaces = self._readable(tenant, user, "")
        heads = run(read_heads(self._tenant_scope(tenant), spaces, consistent=False), self._engine)
        return {
            head.space.name: SpaceVersion(
                version=head.version, at=datetime.fromtimestamp(head.at, UTC) if head.epoch else None
            )
            for head in heads
        }

    def reset(self, tenant: str, *spaces: str) -> None:
        """Give spaces of a tenant a new epoch: clients load them again as a whole.

        Call it after a restore, an import or a migration of the tenant's items, which write no log. Without
        names it resets the tenant's own space. Clients keep their unsent mutations. It reads the items of
        the spaces once.
        """
        chosen = [self._space(tenant, name) for name in spaces or ("",)]
        run(reset_spaces(self._tenant_scope(tenant), self._root(tenant), chosen), self._engine)
        self._pokes.poke(tenant)

    def reset_all(self) -> int:
        """Reset every space of the table by a scan, as after a restore; return the number of spaces."""
        found: int = run(reset_all(self._scope.of_admin(), self._table), self._engine)
        return found

    def trim(self, tenant: str, *spaces: str, days: float = 30.0) -> int:
        """Delete log records that are older, and return their number; for a table without a time to live."""
        chosen = [self._space(tenant, name) for name in spaces or ("",)]
        found: int = run(trim_logs(self._tenant_scope(tenant), chosen, days * 86_400), self._engine)
        return found

    @property
    def any_schema_version(self) -> str | None:
        """A schema version that the mutators understand; None if all are accepted."""
        return next(iter(self._schema_versions), None) if self._schema_versions else None

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Name the event loop of an AsyncDatabase; `replicache_router` does it."""
        if isinstance(self._engine, LoopEngine):
            self._engine.attach(loop)

    def close(self) -> None:
        """End all listeners; the database stays open."""
        self._pokes.close()

    def _tenant_scope(self, tenant: str) -> Scope:
        return self._scope.of_tenant(tenant)

    def _space(self, tenant: str, name: str) -> Space:
        return Space(self._table, tenant, name)

    def _root(self, tenant: str) -> Space:
        return Space(self._table, tenant)

    def _readable(self, tenant: str, user: str, group: str) -> Sequence[Space]:
        """Return the spaces that a user reads; a space for the group alone if there are none."""
        if self._view is None:
            return [self._root(tenant)]
        names = self._view(Store(self._engine, self._tenant_scope(tenant)), user)
        if isinstance(names, str):
            raise DeclarationError(f"view() returns the names of spaces, got one name, {names!r}.")
        found = [self._space(tenant, name) for name in sorted(set(names))]
        # A client chooses the id of its group, so the name must not be one that an entity can declare.
        return found or [self._space(tenant, f"{RESERVED}group/{group}")]

    def _versions(self, tenant: str, user: str) -> list[int]:
        spaces = self._readable(tenant, user, "")
        heads = run(read_heads(self._tenant_scope(tenant), spaces, consistent=False), self._engine)
        return [head.version for head in heads]

    def _owns(self, tenant: str, user: str, group: str) -> bool:
        """Return whether a group is the user's, or new. The owner of a group never changes."""
        with self._owners_lock:
            owner = self._owners.get((tenant, group))
        if owner is None:
            _, owner = run(
                read_clients(self._tenant_scope(tenant), self._root(tenant), group, ()), self._engine
            )
            if owner is not None:
                with self._owners_lock:
                    self._owners[tenant, group] = owner
                    while len(self._owners) > _MOST_OWNERS:
                        self._owners.popitem(last=False)
        return owner is None or owner == user


def _synced_table(scope: Scope, table: Table | None) -> Table:
    if table is not None:
        return table
    found = [each for each in scope.tables if any(plan.synced is not None for plan in each.plans.values())]
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in found) or "none"
    raise DeclarationError(
        f"Sync needs one table with synced entities, found {names}; declare sync = Synced(), or pass table=."
    )
