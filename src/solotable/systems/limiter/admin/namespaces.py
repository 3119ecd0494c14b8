"""The registry of namespaces: a name that people use, and the opaque id that every key begins with.

A namespace that is deleted keeps its name and its items; it can be recovered until it is purged. An id is
never used twice. Everything here runs in the scope of no namespace.

A purge, and the search for what belongs to no namespace, read the whole table: buckets are in no index, as
that would double what an acquire costs. They are for jobs, go step by step, and a purge keeps its place in
the table, so that it goes on where it was broken off. What a process that still had the namespace open wrote
behind a purge's back is an orphan.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from solotable._entities.declare.fields import Created, Version
from solotable._entities.keys.codecs import unescape
from solotable._entities.keys.key import Key
from solotable._entities.patterns.pattern import pattern
from solotable._entities.patterns.query import Query
from solotable._entities.traits.outbox import Outbox
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.transactions import commit
from solotable._flows.transactions.write import ANY, Write
from solotable._flows.verbs import batch, get, put, query
from solotable._flows.verbs.update import Changes, plan_update
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import DeleteItem, Scan
from solotable._store.arguments import condition_of
from solotable._store.page import Page
from solotable._values import Item
from solotable.errors import AlreadyExists, ConditionFailed, DataError, NotFound
from solotable.ids import new_id
from solotable.systems.limiter.table import limiter

from .entities import RESERVED, FlatEntity
from .names import entity_name
from .settings import conflict, every

Status = Literal["active", "deleted", "purging"]
_AT_ONCE = 1_000
#: The store's own partitions, and how many parts follow the kind where the first one is a tenant.
_OF_TENANTS = {"AUDIT": 1, "OUTBOX": 1, "LEASE": 2, "TOKEN": 2, "COUNTER": 3}


class Namespace(FlatEntity, table=limiter, scope="global"):
    """A namespace: its name is its key, `id` is the tenant that everything in it belongs to."""

    key = Key("NAMESPACES", "NAMESPACE#{name}")
    by_id = Key("NAMESPACES", "ID#{id}", index="GSI1")
    events = Outbox(title="name", snapshot=("id", "name", "status"))

    name: str
    id: str = Field(default_factory=new_id)
    status: Status = "active"
    deleted: datetime | None = None
    version: Annotated[int, Version()] = 0
    created: Annotated[datetime | None, Created()] = None

    @pattern
    @classmethod
    def listed(cls) -> Query[Self]:
        """All namespaces by name, deleted ones too."""
        return cls.key.query()

    @pattern
    @classmethod
    def of_id(cls, id: str) -> Query[Self]:  # noqa: A002 - the field's own name
        """The namespace with an id."""
        return cls.by_id.query(id=id)


class PurgeCheckpoint(FlatEntity, table=limiter, scope="global"):
    """How far the purge of a namespace is; `place` is the last key that was looked at, as JSON."""

    key = Key("NAMESPACES", "PURGE#{id}")

    id: str
    place: str | None = None
    looked_at: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeProgress:
    """How far a purge is: how many items of the table it has looked at, and how many it removed."""

    namespace: str
    looked_at: int
    removed: int
    done: bool


@dataclass(slots=True, kw_only=True)
class OrphanCount:
    """Items by the id of a namespace that is not registered."""

    looked_at: int = 0
    items: Counter[str] = field(default_factory=Counter)


Progress = Callable[[PurgeProgress], None]


def register(scope: Scope, name: str) -> Flow[Namespace]:
    """Make a namespace, or raise AlreadyExists; a deleted one holds its name until it is purged."""
    intent = put.intend(scope, Namespace(name=namespace_name(name)))
    try:
        found: Namespace = yield from commit.perform(scope, lambda: put.plan_put(scope, intent, create=True))
    except AlreadyExists as refused:
        there = refused.found
        way_out = "choose another name" if there.status == "active" else "it was deleted: purge it first"
        if there.status == "deleted":
            way_out = "it was deleted: recover or purge it"
        raise AlreadyExists(f"Namespace {name!r} is there already; {way_out}.", found=there) from refused
    return found


def show(scope: Scope, name: str) -> Flow[Namespace]:
    """Return a namespace, deleted or not, or raise NotFound."""
    found = yield from get.get(scope, Namespace, {"name": namespace_name(name)}, consistent=True)
    if found is None:
        raise NotFound(f"There is no namespace {name!r}; register it first.")
    return found


def enter(scope: Scope, name: str) -> Flow[Scope]:
    """Return the scope of a namespace by its name; a deleted one cannot be entered."""
    found = yield from show(scope, name)
    if found.status != "active":
        raise NotFound(f"Namespace {name!r} was deleted; recover it to use it.")
    return scope.of_tenant(found.id)


def name_of(scope: Scope, namespace_id: str) -> Flow[str | None]:
    """Return the name of the namespace with an id, or None."""
    page = yield from query.page(scope, Namespace.of_id(namespace_id), limit=1, cursor=None)
    return page.rows[0].name if page.rows else None


def namespaces(scope: Scope, *, limit: int = 50, cursor: str | None = None) -> Flow[Page[Namespace]]:
    """Return a page of the namespaces by name, deleted ones too."""
    return Page.of((yield from query.page(scope, Namespace.listed(), limit=limit, cursor=cursor)))


def delete(scope: Scope, name: str) -> Flow[Namespace]:
    """Close a namespace; its items stay until it is purged, and it can be recovered until then."""
    changes = Changes(set={"status": "deleted", "deleted": scope.now()})
    return (yield from _change_status(scope, name, "active", "deleted", changes))


def recover(scope: Scope, name: str) -> Flow[Namespace]:
    """Open a deleted namespace again; one whose purge has begun is beyond recovery."""
    changes = Changes(set={"status": "active"}, remove=("deleted",))
    return (yield from _change_status(scope, name, "deleted", "active", changes))


def purge(scope: Scope, name: str, *, progress: Progress | None = None) -> Flow[PurgeProgress]:
    """Remove every item of a deleted namespace, and then its name; broken off, it is begun again."""
    while True:
        step = yield from purge_step(scope, name)
        if progress is not None:
            progress(step)
        if step.done:
            return step


def purge_step(scope: Scope, name: str) -> Flow[PurgeProgress]:
    """Look at the next part of the table for a purge; the place is kept, so that the next step goes on."""
    changes = Changes(set={"status": "purging"})
    there = yield from _change_status(scope, name, "deleted", "purging", changes)
    before = yield from get.get(scope, PurgeCheckpoint, {"id": there.id}, consistent=True)
    place = before or PurgeCheckpoint(id=there.id)
    part = yield from _part(scope, None if place.place is None else json.loads(place.place))
    keys = [key for key, owner in part.owned if owner == there.id]
    yield from batch.write_batch(scope, [_removal(scope, key) for key in keys])
    looked_at, removed = place.looked_at + part.looked_at, place.removed + len(keys)
    if part.last_key is not None:
        after = PurgeCheckpoint(
            id=there.id, place=json.dumps(part.last_key), looked_at=looked_at, removed=removed
        )
        intent = put.intend(scope, after)
        yield from commit.perform(scope, lambda: put.plan_put(scope, intent))
        return PurgeProgress(namespace=name, looked_at=looked_at, removed=removed, done=False)
    planners: list[commit.Planner] = [
        lambda: put.plan_delete(scope, Namespace.plan(), {"name": name}, version=there.version),
        lambda: put.plan_delete(scope, PurgeCheckpoint.plan(), {"id": there.id}),
    ]
    yield from commit.transact(scope, planners)
    return PurgeProgress(namespace=name, looked_at=looked_at, removed=removed, done=True)


def orphans(scope: Scope) -> Flow[OrphanCount]:
    """Count the items of namespaces that are not registered, by reading the whole table."""
    found = OrphanCount()
    start: Item | None = None
    while True:
        part = yield from _part(scope, start)
        found.looked_at += part.looked_at
        found.items.update(owner for _, owner in part.owned if owner is not None)
        start = part.last_key
        if start is None:
            break
    # Asked last: what was registered meanwhile is no orphan.
    for known in (yield from _ids(scope)):
        del found.items[known]
    return found


def purge_orphan(scope: Scope, namespace_id: str) -> Flow[int]:
    """Remove every item of an id that is not registered, and return how many there were."""
    if namespace_id in (yield from _ids(scope)):
        raise DataError(f"{namespace_id!r} is the id of a namespace; delete and purge that by its name.")
    removed = 0
    start: Item | None = None
    while True:
        part = yield from _part(scope, start)
        keys = [key for key, owner in part.owned if owner == namespace_id]
        yield from batch.write_batch(scope, [_removal(scope, key) for key in keys])
        removed, start = removed + len(keys), part.last_key
        if start is None:
            return removed


def namespace_name(given: str) -> str:
    """Return the name of a namespace, or refuse it; `_` is reserved."""
    if given == RESERVED:
        raise DataError("The namespace '_' is reserved for the registry; choose another name.")
    try:
        return entity_name(given)
    except DataError as refused:
        raise DataError(str(refused).replace("An entity", "A namespace", 1)) from None


def _ids(scope: Scope) -> Flow[set[str]]:
    """Return every id that is registered, the reserved one too; the index could be behind."""
    known = yield from every(scope, Namespace.listed().consistent())
    return {RESERVED, *(each.id for each in known)}


def _change_status(
    scope: Scope, name: str, before: Status, after: Status, changes: Changes
) -> Flow[Namespace]:
    """Return a namespace with another status, if it has the one before it; if it has it already, as it is."""
    found = yield from show(scope, name)
    if found.status == after:
        return found
    plan, where = Namespace.plan(), condition_of(Namespace, lambda one: one.status == before)

    def planner() -> Flow[Write]:
        return (yield from plan_update(scope, plan, {"name": name}, changes, version=ANY, where=where))

    try:
        turned: Namespace = yield from commit.perform(scope, planner)
    except ConditionFailed as refused:
        status = found.status if refused.found is None else refused.found.status
        raise conflict(_UNFIT[after].format(name=name, status=status)) from refused
    return turned


_UNFIT: dict[Status, str] = {
    "active": "Namespace {name!r} is {status}: its purge has begun, so it cannot be recovered.",
    "deleted": "Namespace {name!r} is {status}, so it cannot be deleted.",
    "purging": "Namespace {name!r} is {status}; delete it before it is purged.",
}


@dataclass(frozen=True, slots=True)
class _TablePage:
    """Some items of the table: their keys with the namespace that each belongs to, and where it went on."""

    owned: list[tuple[Item, str | None]]
    looked_at: int
    last_key: Item | None


def _part(scope: Scope, start: Item | None) -> Flow[_TablePage]:
    names = Namespace.plan().primary.names
    projection = tuple((name,) for name in (*names, limiter.tenant or "namespace"))
    request = Scan(table=scope.table(limiter), projection=projection, start=start, limit=_AT_ONCE)
    reply = yield from send(request, scope.retries)
    found = [({name: item[name] for name in names}, _owner(item)) for item in decode_items(reply.items or ())]
    return _TablePage(found, reply.scanned, reply.last_key or None)


def _owner(item: Item) -> str | None:
    """Return the namespace of an item: its own attribute, or its place among the store's own items."""
    named: str | None = item.get("namespace", {}).get("S")
    if named is not None:
        return named
    kind, *parts = item["PK"]["S"].split("#")
    return unescape(parts[0]) if len(parts) == _OF_TENANTS.get(kind) else None


def _removal(scope: Scope, key: Item) -> Write:
    action = DeleteItem(table=scope.table(limiter), key=key)
    return Write(plan=Namespace.plan(), verb="delete", given={}, action=action)
