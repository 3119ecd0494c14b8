"""The end of a tenant's data, for operators: everything in its partition, page by page, without a scan.

Only a closed tenant can be erased. It may be broken off and repeated. Events that were on their way come
into the trail up to a day later; repeat it then, if the trail is to go as well.
"""

from __future__ import annotations

from solotable import AsyncDatabase
from solotable.expressions.ast import KeyTerm
from solotable.flows.ask import Flow, ask
from solotable.flows.own import own_partition
from solotable.flows.scope import Scope
from solotable.protocol.encode import items as decode_items
from solotable.protocol.replies import Page
from solotable.protocol.requests import BatchDelete, BatchWriteItem, Query
from solotable.store.drive import arun
from solotable.systems.cms.entities.tenancy import TenantConfig, User
from solotable.systems.cms.refusals import Refused
from solotable.systems.cms.table import cms

_AT_ONCE = 25


async def erase(db: AsyncDatabase, tenant: str) -> int:
    """Remove all data of a closed tenant, and return how many items that were."""
    config = await db.get(TenantConfig, id=tenant, consistent=True)
    if config is not None and config.status != "closed":
        raise Refused(f"Tenant {tenant!r} is {config.status}; close it first.")
    store = db.tenant(tenant)
    # First those that have locks elsewhere, which go with them.
    async for user in store.all(User.of_tenant()):
        await store.delete(user)
    removed = 0
    for partition in (own_partition("TENANT", tenant), own_partition("OUTBOX", tenant)):
        removed += await arun(_emptied(db.scope, partition), db.engine)
    if config is not None:
        await db.delete(config)
    return removed


def _emptied(scope: Scope, partition: str) -> Flow[int]:
    table, removed = scope.table(cms), 0
    key = (KeyTerm(cms.partition.name, "=", ({"S": partition},)),)
    while True:
        page: Page = yield from ask(
            Query(table=table, key=key, projection=(("PK",), ("SK",)), limit=_AT_ONCE, consistent=True),
            scope.retries,
        )
        keys = decode_items(page.items or ())
        if not keys:
            return removed
        deletes = tuple(BatchDelete(key=each) for each in keys)
        # What comes back unprocessed is found again by the next query.
        yield from ask(BatchWriteItem(tables=((table, deletes),)), scope.retries)
        removed += len(keys)
