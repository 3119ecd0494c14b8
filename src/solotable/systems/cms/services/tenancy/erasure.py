"""The end of a tenant's data, for operators: everything in its partition, page by page, without a scan.

Only a closed tenant can be erased. It may be broken off and repeated. Events that were on their way come
into the trail up to a day later; repeat it then, if the trail is to go as well.
"""

from __future__ import annotations

from pydantic import BaseModel

from solotable import AsyncDatabase, AsyncStore
from solotable._expressions.ast import KeyTerm
from solotable._flows.internal_items import internal_partition
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._protocol.replies import Page, decode_items
from solotable._protocol.requests import BatchDelete, BatchWriteItem, Query
from solotable._store.runner import arun
from solotable.systems.cms.entities.catalogue import Asset, Resource
from solotable.systems.cms.entities.tenancy import TenantConfig, User
from solotable.systems.cms.errors import Refused
from solotable.systems.cms.storage import Storage
from solotable.systems.cms.table import cms

_AT_ONCE = 25


class TenantErasure(BaseModel):
    """How many items of a tenant were removed, and whether that was all of them."""

    tenant: str
    removed: int
    done: bool


async def erase(
    db: AsyncDatabase, tenant: str, *, storage: Storage | None = None, most: int | None = None
) -> TenantErasure:
    """Remove all data of a closed tenant, and with a storage the bytes of its files.

    With `most` it ends after so many items, give or take a few; repeat it until it is done.
    """
    config = await db.get(TenantConfig, id=tenant, consistent=True)
    if config is not None and config.status != "closed":
        raise Refused(f"Tenant {tenant!r} is {config.status}; close it first.")
    removed = await _forget_owners(db.tenant(tenant), storage, most)
    for partition in (internal_partition("TENANT", tenant), internal_partition("OUTBOX", tenant)):
        left = None if most is None else most - removed
        removed += await arun(_emptied(db.scope, partition, left), db.engine)
    if most is not None and removed >= most:
        return TenantErasure(tenant=tenant, removed=removed, done=False)
    if config is not None:
        await db.delete(config)
    return TenantErasure(tenant=tenant, removed=removed, done=True)


async def _forget_owners(store: AsyncStore, storage: Storage | None, most: int | None) -> int:
    """Remove those that have something elsewhere, which goes with them: locks, and bytes."""
    removed = 0
    for entity in (User, Asset, Resource):
        async for each in store.all(entity.of_tenant()):
            if most is not None and removed >= most:
                return removed
            if storage is not None and isinstance(each, (Asset, Resource)):
                await storage.delete(each.storage_key)
            await store.delete(each)
            removed += 1
    return removed


def _emptied(scope: Scope, partition: str, most: int | None) -> Flow[int]:
    table, removed = scope.table(cms), 0
    key = (KeyTerm(cms.partition.name, "=", ({"S": partition},)),)
    while most is None or removed < most:
        page: Page = yield from send(
            Query(table=table, key=key, projection=(("PK",), ("SK",)), limit=_AT_ONCE, consistent=True),
            scope.retries,
        )
        keys = decode_items(page.items or ())
        if not keys:
            break
        deletes = tuple(BatchDelete(key=each) for each in keys)
        # What comes back unprocessed is found again by the next query.
        yield from send(BatchWriteItem(tables=((table, deletes),)), scope.retries)
        removed += len(keys)
    return removed
