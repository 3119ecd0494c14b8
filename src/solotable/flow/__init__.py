"""Write flows: operations as generators of requests, run by `run` or awaited by `arun`.

A flow yields requests and gets their replies; it does no I/O itself. So one definition serves blocking
and asyncio code, on every engine:

>>> from solotable import Entity, Key, Table, flow
>>> shop = Table("Shop")
>>> class Stock(Entity, table=shop):
...     key = Key("STOCK#{sku}", "STOCK")
...     sku: str
...     left: int = 0
>>> def move(scope: flow.Scope, source: str, target: str, count: int) -> flow.Flow[None]:
...     tx = flow.Transaction(scope)
...     tx.update(Stock, sku=source, add={"left": -count}, where=lambda stock: stock.left >= count)
...     tx.update(Stock, sku=target, add={"left": count})
...     yield from tx.commit()
>>> db = shop.open("sqlite://")
>>> _ = db.put(Stock(sku="a", left=5)), db.put(Stock(sku="b"))
>>> flow.run(move(flow.scope_of(db), "a", "b", 2), db)
>>> db.require(Stock, sku="b").left
2

`flow.requests` has DynamoDB's operations as records, `flow.conditions` builds conditions on attributes,
and `flow.feed` reads a table's stream.
"""

from solotable._entities.declare.plan import Plan
from solotable._expressions.prepared.slots import Slot
from solotable._flows.internal_items import internal_key, internal_partition
from solotable._flows.jobs.tenant_erasure import tenant_of
from solotable._flows.retry import Flow, Sleep
from solotable._flows.scope import Scope
from solotable._flows.transactions.conflicts import CONFLICT_ATTEMPTS, is_conflict, retry_conflicts
from solotable._protocol.engine import AsyncEngine, Engine
from solotable._values import AttributeValue, Item

from .codec import (
    decode_entity,
    decode_item,
    decode_items,
    decode_value,
    encode_entity,
    encode_value,
    key_of,
)
from .item_update import ItemUpdate
from .prepared_update import PreparedUpdate
from .runner import arun, clock_offset, engine_of, is_amazon, is_instant, run, scope_of
from .verbs import (
    Batch,
    Transaction,
    condition,
    count,
    create,
    delete,
    delete_items,
    delete_partition,
    get,
    get_items,
    get_many,
    modify,
    page,
    put,
    query,
    require,
    scan,
    send,
    send_all,
    transact_get,
    update,
    upsert,
)

__all__ = [
    "CONFLICT_ATTEMPTS",
    "AsyncEngine",
    "AttributeValue",
    "Batch",
    "Engine",
    "Flow",
    "Item",
    "ItemUpdate",
    "Plan",
    "PreparedUpdate",
    "Scope",
    "Sleep",
    "Slot",
    "Transaction",
    "arun",
    "clock_offset",
    "condition",
    "count",
    "create",
    "decode_entity",
    "decode_item",
    "decode_items",
    "decode_value",
    "delete",
    "delete_items",
    "delete_partition",
    "encode_entity",
    "encode_value",
    "engine_of",
    "get",
    "get_items",
    "get_many",
    "internal_key",
    "internal_partition",
    "is_amazon",
    "is_conflict",
    "is_instant",
    "key_of",
    "modify",
    "page",
    "put",
    "query",
    "require",
    "retry_conflicts",
    "run",
    "scan",
    "scope_of",
    "send",
    "send_all",
    "tenant_of",
    "transact_get",
    "update",
    "upsert",
]
