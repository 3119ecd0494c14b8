"""Erase the data and files of a closed tenant, for operators.

An interrupted erasure can be repeated. Events that wait for delivery reach the audit trail up to a day later;
repeat the erasure then to remove that trail too.
"""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel

from solotable import AsyncDatabase, AsyncStore
from solotable.systems.cms.entities.catalogue import Asset, Resource
from solotable.systems.cms.entities.tenancy import TenantConfig
from solotable.systems.errors import InvalidInput
from solotable.systems.storage import Storage


class TenantErasure(BaseModel):
    """The number of removed items, and whether any are left.

    `unknown` items name the tenant, but this release has no entity for them; they are kept.
    """

    tenant: str
    removed: int
    done: bool
    unknown: int = 0


async def erase_tenant(
    db: AsyncDatabase, tenant: str, *, storage: Storage | None = None, max_items: int | None = None
) -> TenantErasure:
    """Remove all data of a closed tenant, and with a storage the bytes of its files.

    With `max_items` it ends after about so many items; repeat it until it is done.
    """
    config = await db.get(TenantConfig, id=tenant, consistent=True)
    if config is not None and config.status != "closed":
        raise InvalidInput(f"Tenant {tenant!r} is {config.status}; close it first.")
    removed = 0 if storage is None else await _delete_files(db.tenant(tenant), storage, max_items)
    left = None if max_items is None else max_items - removed
    if left is not None and left <= 0:
        return TenantErasure(tenant=tenant, removed=removed, done=False)
    erasure = await db.admin().erase_tenant(tenant, most=left)
    if erasure.done and config is not None:
        await db.delete(config)
    return TenantErasure(
        tenant=tenant, removed=removed + erasure.removed, done=erasure.done, unknown=erasure.unknown
    )


async def _delete_files(store: AsyncStore, storage: Storage, max_items: int | None) -> int:
    """Delete the bytes and the metadata of files, and return how many there were."""
    removed = 0
    for kind in (Asset, Resource):
        async for found in store.all(kind.of_tenant()):
            file = cast(Asset | Resource, found)
            if max_items is not None and removed >= max_items:
                return removed
            await storage.delete(file.storage_key)
            await store.delete(file)
            removed += 1
    return removed
