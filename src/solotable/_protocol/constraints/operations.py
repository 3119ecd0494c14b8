"""The constraints of every operation's request, by its name."""

from __future__ import annotations

from typing import Final

from . import items
from .kinds import Struct
from .tables import STREAMS, TABLES

ITEMS: Final[dict[str, Struct]] = {
    "PutItem": items.PUT_ITEM,
    "GetItem": items.GET_ITEM,
    "UpdateItem": items.UPDATE_ITEM,
    "DeleteItem": items.DELETE_ITEM,
    "Query": items.QUERY,
    "Scan": items.SCAN,
    "BatchGetItem": items.BATCH_GET_ITEM,
    "BatchWriteItem": items.BATCH_WRITE_ITEM,
    "TransactGetItems": items.TRANSACT_GET_ITEMS,
    "TransactWriteItems": items.TRANSACT_WRITE_ITEMS,
    "ExecuteStatement": items.EXECUTE_STATEMENT,
    "BatchExecuteStatement": items.BATCH_EXECUTE_STATEMENT,
    "ExecuteTransaction": items.EXECUTE_TRANSACTION,
}
CONSTRAINTS: Final[dict[str, Struct]] = {**ITEMS, **TABLES, **STREAMS}
