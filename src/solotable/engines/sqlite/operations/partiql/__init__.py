"""ExecuteStatement, BatchExecuteStatement and ExecuteTransaction, on top of the other operations.

A statement becomes requests of DynamoDB's other operations, which the engine answers. These modules do not
read or write the file.
"""

from __future__ import annotations

from .batches import batch_execute_statement
from .statements import execute_statement
from .transactions import execute_transaction

__all__ = ["batch_execute_statement", "execute_statement", "execute_transaction"]
