"""`/namespaces`: making, closing, recovering and purging them. For global operators.

Other processes notice a change within half a minute.
"""

from __future__ import annotations

from fastapi import APIRouter, Request

from solotable._store.runner import arun
from solotable.systems.limiter.admin import namespaces as registry
from solotable.web import Page, Paging

from .access import GLOBAL, allow
from .dependencies import ActingDatabase, NamespacePath, namespace_limiters
from .report_bodies import NamespaceBody, NamespaceOut, PurgeOut

router = APIRouter(prefix="/namespaces", tags=["namespaces"])

#: So many parts of the table, of a thousand items each, are looked at for one request.
_STEPS = 5


@router.get("", **allow(*GLOBAL))
async def list_namespaces(db: ActingDatabase, paging: Paging) -> Page[NamespaceOut]:
    """List namespaces by name, deleted ones too."""
    found = await arun(registry.namespaces(db.scope, limit=paging.limit, cursor=paging.cursor), db.engine)
    return Page[NamespaceOut].of(found, NamespaceOut.of)


@router.post("", status_code=201, **allow(*GLOBAL))
async def create_namespace(body: NamespaceBody, db: ActingDatabase) -> NamespaceOut:
    """Make a namespace; a deleted one holds its name until it is purged."""
    return NamespaceOut.of(await arun(registry.register(db.scope, body.name), db.engine))


@router.get("/{name}", **allow(*GLOBAL))
async def get_namespace(name: NamespacePath, db: ActingDatabase) -> NamespaceOut:
    """Return a namespace, deleted or not."""
    return NamespaceOut.of(await arun(registry.show(db.scope, name), db.engine))


@router.delete("/{name}", **allow(*GLOBAL))
async def delete_namespace(name: NamespacePath, db: ActingDatabase, request: Request) -> NamespaceOut:
    """Close a namespace; it can be recovered until it is purged."""
    found = await arun(registry.delete(db.scope, name), db.engine)
    namespace_limiters(request).forget(name)
    return NamespaceOut.of(found)


@router.post("/{name}/recover", **allow(*GLOBAL))
async def recover_namespace(name: NamespacePath, db: ActingDatabase) -> NamespaceOut:
    """Open a deleted namespace again."""
    return NamespaceOut.of(await arun(registry.recover(db.scope, name), db.engine))


@router.post("/{name}/purge", **allow(*GLOBAL))
async def purge_namespace(name: NamespacePath, db: ActingDatabase) -> PurgeOut:
    """Remove the items of a deleted namespace, some at a time: ask again until it is done.

    It reads the whole table in the end; `solotable limiter` does the same as a job.
    """
    step = await arun(registry.purge_step(db.scope, name), db.engine)
    for _ in range(_STEPS - 1):
        if step.done:
            break
        step = await arun(registry.purge_step(db.scope, name), db.engine)
    return PurgeOut(namespace=step.namespace, looked_at=step.looked_at, removed=step.removed, done=step.done)
