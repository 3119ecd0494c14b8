"""DynamoDB's operations as request records, for `send` or `yield`.

`yield request` sends a request once; `send` also retries it when a retry is safe.
"""

from solotable._protocol.replies import (
    BatchGot,
    BatchWrote,
    GotItem,
    Page,
    TransactGot,
    TransactWrote,
    WroteItem,
)
from solotable._protocol.requests import (
    BatchDelete,
    BatchGetItem,
    BatchPut,
    BatchWriteItem,
    ConditionCheck,
    Control,
    DeleteItem,
    GetItem,
    PutItem,
    Query,
    Request,
    Scan,
    TableKeys,
    TransactGetItems,
    TransactWriteItems,
    UpdateItem,
    WriteAction,
)
from solotable._values.limits import (
    MOST_BATCH_GETS,
    MOST_BATCH_WRITES,
    MOST_TRANSACTION_ACTIONS,
)

__all__ = [
    "MOST_BATCH_GETS",
    "MOST_BATCH_WRITES",
    "MOST_TRANSACTION_ACTIONS",
    "BatchDelete",
    "BatchGetItem",
    "BatchGot",
    "BatchPut",
    "BatchWriteItem",
    "BatchWrote",
    "ConditionCheck",
    "Control",
    "DeleteItem",
    "GetItem",
    "GotItem",
    "Page",
    "PutItem",
    "Query",
    "Request",
    "Scan",
    "TableKeys",
    "TransactGetItems",
    "TransactGot",
    "TransactWriteItems",
    "TransactWrote",
    "UpdateItem",
    "WriteAction",
    "WroteItem",
]
