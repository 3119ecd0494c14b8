"""The registry of namespaces: a name for users, and the opaque id that every key begins with.

A deleted namespace keeps its name and its items; it can be recovered until it is purged. An id is never used
twice. All flows here run in the scope of no namespace.

A purge, and the search for items without a namespace, scan the whole table: buckets are in no index, as that
would double the cost of an acquire. They run step by step. A purge stores a checkpoint, so that it continues
after an interruption. What a process with the namespace still open writes behind a purge is an orphan.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from solotable import ANY, Created, Key, Outbox, Page, Query, Version, new_id, pattern
from solotable.errors import AlreadyExists, ConditionFailed, DataError, NotFound
from solotable.flow import (
    Flow,
    Item,
    Scope,
    Transaction,
    create,
    decode_items,
    delete_items,
    get,
    page,
    put,
    query,
    send,
    tenant_of,
    update,
)
from solotable.flow.requests import Scan
from solotable.systems.limiter.table import limiter

from .entities import RESERVED, FlatEntity
from .names import entity_name
from .registry import conflict

Status = Literal["active", "deleted", "purging"]
_PAGE_ITEMS = 1_000


class Namespace(FlatEntity, table=limiter, scope="global"):
    """A namespace: its name is its key, `id` is the tenant of everything in it."""

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
    """How far the purge of a namespace is; `place` is the last key that was read, as JSON."""

    key = Key("NAMESPACES", "PURGE#{id}")

    id: str
    place: str | None = None
    looked_at: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeProgress:
    """How many items of the table a purge has read, and how many it removed."""

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
    """Create a namespace, or raise AlreadyExists; a deleted one keeps its name until it is purged."""
    try:
        return (yield from create(scope, Namespace(name=namespace_name(name))))
    except AlreadyExists as error:
        found = error.found
        advice = {
            "active": "choose another name",
            "deleted": "it was deleted: recover or purge it",
            "purging": "it was deleted: purge it first",
        }
        text = f"Namespace {name!r} already exists; {advice[found.status]}."
        raise AlreadyExists(text, found=found) from error


def show(scope: Scope, name: str) -> Flow[Namespace]:
    """Return a namespace, deleted or not, or raise NotFound."""
    found = yield from get(scope, Namespace, name=namespace_name(name), consistent=True)
    if found is None:
        raise NotFound(f"Namespace {name!r} does not exist; register it first.")
    return found


def enter(scope: Scope, name: str) -> Flow[Scope]:
    """Return the scope of a namespace by its name; raise NotFound for a deleted one."""
    found = yield from show(scope, name)
    if found.status != "active":
        raise NotFound(f"Namespace {name!r} was deleted; recover it to use it.")
    return scope.of_tenant(found.id)


def name_of(scope: Scope, namespace_id: str) -> Flow[str | None]:
    """Return the name of the namespace with an id, or None."""
    found = yield from page(scope, Namespace.of_id(namespace_id), limit=1)
    return found.items[0].name if found.items else None


def namespaces(scope: Scope, *, limit: int = 50, cursor: str | None = None) -> Flow[Page[Namespace]]:
    """Return a page of the namespaces by name, deleted ones too."""
    return page(scope, Namespace.listed(), limit=limit, cursor=cursor)


def delete(scope: Scope, name: str) -> Flow[Namespace]:
    """Close a namespace; its items stay until it is purged, and it can be recovered until then."""
    return _change_status(scope, name, "active", "deleted", set={"deleted": scope.now()})


def recover(scope: Scope, name: str) -> Flow[Namespace]:
    """Open a deleted namespace again; raise ConditionFailed after its purge has begun."""
    return _change_status(scope, name, "deleted", "active", remove=("deleted",))


def purge(scope: Scope, name: str, *, progress: Progress | None = None) -> Flow[PurgeProgress]:
    """Remove every item of a deleted namespace, and then its name; call it again after an interruption."""
    while True:
        step = yield from purge_step(scope, name)
        if progress is not None:
            progress(step)
        if step.done:
            return step


def purge_step(scope: Scope, name: str) -> Flow[PurgeProgress]:
    """Purge the next page of the table, and store a checkpoint."""
    namespace = yield from _change_status(scope, name, "deleted", "purging")
    before = yield from get(scope, PurgeCheckpoint, id=namespace.id, consistent=True)
    checkpoint = before or PurgeCheckpoint(id=namespace.id)
    scanned = yield from _scan(scope, None if checkpoint.place is None else json.loads(checkpoint.place))
    removed = yield from delete_items(scope, limiter, scanned.keys_of(namespace.id))
    step = PurgeProgress(
        namespace=name,
        looked_at=checkpoint.looked_at + scanned.looked_at,
        removed=checkpoint.removed + removed,
        done=scanned.last_key is None,
    )
    if step.done:
        transaction = Transaction(scope)
        transaction.delete(Namespace, name=name, version=namespace.version)
        transaction.delete(PurgeCheckpoint, id=namespace.id)
        yield from transaction.commit()
    else:
        place = json.dumps(scanned.last_key)
        after = PurgeCheckpoint(id=namespace.id, place=place, looked_at=step.looked_at, removed=step.removed)
        yield from put(scope, after)
    return step


def orphans(scope: Scope) -> Flow[OrphanCount]:
    """Count the items of namespaces that are not registered, by scanning the whole table."""
    found = OrphanCount()
    start: Item | None = None
    while True:
        scanned = yield from _scan(scope, start)
        found.looked_at += scanned.looked_at
        found.items.update(owner for _, owner in scanned.owned if owner is not None)
        start = scanned.last_key
        if start is None:
            break
    # Read last: what was registered during the scan is not an orphan.
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
        scanned = yield from _scan(scope, start)
        removed += yield from delete_items(scope, limiter, scanned.keys_of(namespace_id))
        start = scanned.last_key
        if start is None:
            return removed


def namespace_name(given: str) -> str:
    """Return the name of a namespace, or raise DataError; `_` is reserved."""
    if given == RESERVED:
        raise DataError("The namespace '_' is reserved for the registry; choose another name.")
    try:
        return entity_name(given)
    except DataError as error:
        raise DataError(str(error).replace("An entity", "A namespace", 1)) from None


def _ids(scope: Scope) -> Flow[set[str]]:
    """Return every registered id, and the reserved one; not from the index, which could be behind."""
    known = yield from query(scope, Namespace.listed().consistent())
    return {RESERVED, *(each.id for each in known)}


def _change_status(
    scope: Scope,
    name: str,
    before: Status,
    after: Status,
    *,
    set: dict[str, Any] | None = None,  # noqa: A002 - as in `update`
    remove: tuple[str, ...] = (),
) -> Flow[Namespace]:
    """Change the status of a namespace from one to another; return it unchanged if it has it already."""
    found = yield from show(scope, name)
    if found.status == after:
        return found
    try:
        return (
            yield from update(
                scope,
                Namespace,
                name=name,
                set={"status": after, **(set or {})},
                remove=remove,
                where=lambda one: one.status == before,
                version=ANY,
            )
        )
    except ConditionFailed as error:
        status = found.status if error.found is None else error.found.status
        raise conflict(_CONFLICTS[after].format(name=name, status=status)) from error


_CONFLICTS: dict[Status, str] = {
    "active": "Namespace {name!r} is {status}: its purge has begun, so it cannot be recovered.",
    "deleted": "Namespace {name!r} is {status}, so it cannot be deleted.",
    "purging": "Namespace {name!r} is {status}; delete it before it is purged.",
}


@dataclass(frozen=True, slots=True)
class _ScannedPage:
    """Keys of items, each with its namespace, and the last key that was read."""

    owned: list[tuple[Item, str | None]]
    looked_at: int
    last_key: Item | None

    def keys_of(self, namespace_id: str) -> list[Item]:
        return [key for key, owner in self.owned if owner == namespace_id]


def _scan(scope: Scope, start: Item | None) -> Flow[_ScannedPage]:
    request = Scan(table=scope.table(limiter), start=start, limit=_PAGE_ITEMS)
    reply = yield from send(scope, request)
    names = limiter.key_names
    owned = [
        ({name: item[name] for name in names}, tenant_of(limiter, item))
        for item in decode_items(reply.items or ())
    ]
    return _ScannedPage(owned, reply.scanned, reply.last_key or None)
