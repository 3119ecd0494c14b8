"""One function per operation: its checks against the table, its reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from solotable._protocol import requests

from .control import control
from .items.batches import batch_get_item, batch_write_item
from .items.get_item import get_item
from .items.prepared_update import update_prepared
from .items.query import query
from .items.scan import scan
from .items.transact import transact_get_items, transact_write_items
from .items.writes import write_item
from .partiql import batch_execute_statement, execute_statement, execute_transaction

#: The function that answers each type of request; its first argument is the engine.
OPERATIONS: dict[type[requests.Request[Any]], Callable[[Any, Any], Any]] = {
    requests.BatchExecuteStatement: batch_execute_statement,
    requests.BatchGetItem: batch_get_item,
    requests.BatchWriteItem: batch_write_item,
    requests.Control: control,
    requests.DeleteItem: write_item,
    requests.ExecuteStatement: execute_statement,
    requests.ExecuteTransaction: execute_transaction,
    requests.GetItem: get_item,
    requests.PutItem: write_item,
    requests.Query: query,
    requests.Scan: scan,
    requests.TransactGetItems: transact_get_items,
    requests.TransactWriteItems: transact_write_items,
    requests.UpdateItem: write_item,
    requests.PreparedUpdateItem: update_prepared,
}
