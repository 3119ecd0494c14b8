"""`/namespaces`: create, close, recover and purge them. For global operators.

Other processes notice a change within half a minute.
"""

from __future__ import annotations

from fastapi import APIRouter, Request

from solotable.flow import arun, scope_of
from solotable.systems.limiter.admin import namespaces as registry
from solotable.web import Page, Paging

from .access import GLOBAL, allow
from .bodies import NamespaceBody, NamespaceOut, PurgeOut
from .dependencies import ActingDatabase, NamespacePath, namespace_limiters

router = APIRouter(prefix="/namespaces", tags=["namespaces"])

#: Pages of the table, of a thousand items each, that one request purges.
_STEPS = 5


@router.get("", **allow(*GLOBAL))
async def list_namespaces(db: ActingDatabase, paging: Paging) -> Page[NamespaceOut]:
    """List namespaces by name, deleted ones too."""
    found = await arun(registry.namespaces(scope_of(db), limit=paging.limit, cursor=paging.cursor), db)
    return Page[NamespaceOut].of(found, NamespaceOut.model_validate)


@router.post("", status_code=201, **allow(*GLOBAL))
async def create_namespace(body: NamespaceBody, db: ActingDatabase) -> NamespaceOut:
    """Create a namespace; a deleted one keeps its name until it is purged."""
    return NamespaceOut.model_validate(await arun(registry.register(scope_of(db), body.name), db))


@router.get("/{name}", **allow(*GLOBAL))
async def get_namespace(name: NamespacePath, db: ActingDatabase) -> NamespaceOut:
    """Return a namespace, deleted or not."""
    return NamespaceOut.model_validate(await arun(registry.show(scope_of(db), name), db))


@router.delete("/{name}", **allow(*GLOBAL))
async def delete_namespace(name: NamespacePath, db: ActingDatabase, request: Request) -> NamespaceOut:
    """Close a namespace; it can be recovered until it is purged."""
    found = await arun(registry.delete(scope_of(db), name), db)
    namespace_limiters(request).forget(name)
    return NamespaceOut.model_validate(found)


@router.post("/{name}/recover", **allow(*GLOBAL))
async def recover_namespace(name: NamespacePath, db: ActingDatabase) -> NamespaceOut:
    """Open a deleted namespace again."""
    return NamespaceOut.model_validate(await arun(registry.recover(scope_of(db), name), db))


@router.post("/{name}/purge", **allow(*GLOBAL))
async def purge_namespace(name: NamespacePath, db: ActingDatabase) -> PurgeOut:
    """Remove the items of a deleted namespace, some at a time: repeat it until it is done.

    It scans the whole table in the end; `solotable limiter` does the same as a job.
    """
    step = await arun(registry.purge_step(scope_of(db), name), db)
    for _ in range(_STEPS - 1):
        if step.done:
            break
        step = await arun(registry.purge_step(scope_of(db), name), db)
    return PurgeOut.model_validate(step)
