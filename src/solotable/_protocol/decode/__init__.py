"""Wire form -> records: the shape first, then all that can be judged without the table.

What needs the table (its keys, its indexes, its items) is left to the engine, and so is every clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from solotable._protocol.constraints.checker import check
from solotable._protocol.error_texts import LATEST, ErrorTexts, reworded
from solotable._protocol.requests import Request
from solotable.errors import ServiceError

from .batches import batch_get_item, batch_write_item
from .control import control
from .items import delete_item, get_item, put_item, update_item
from .pages import query, scan
from .transactions import (
    batch_execute_statement,
    execute_statement,
    execute_transaction,
    transact_get_items,
    transact_write_items,
)

_DECODERS: Final[dict[str, Callable[[dict[str, Any]], Request[Any]]]] = {
    "GetItem": get_item,
    "PutItem": put_item,
    "UpdateItem": update_item,
    "DeleteItem": delete_item,
    "Query": query,
    "Scan": scan,
    "BatchGetItem": batch_get_item,
    "BatchWriteItem": batch_write_item,
    "TransactGetItems": transact_get_items,
    "TransactWriteItems": transact_write_items,
    "ExecuteStatement": execute_statement,
    "BatchExecuteStatement": batch_execute_statement,
    "ExecuteTransaction": execute_transaction,
}


def decode(operation: str, payload: Any, texts: ErrorTexts = LATEST) -> Request[Any]:
    """Return the record of a request, or refuse it as DynamoDB does, in its texts of a year."""
    try:
        members = check(operation, payload)
        decoder = _DECODERS.get(operation)
        return control(operation, members) if decoder is None else decoder(members)
    except ServiceError as refused:
        raise reworded(refused, operation, texts) from refused.__cause__
