"""ExecuteStatement, BatchExecuteStatement and ExecuteTransaction, on top of the other operations.

A statement is planned into the requests that DynamoDB's own API has, and those are run. Nothing
here reads or writes the file.
"""

from __future__ import annotations

from .batches import batch_execute_statement
from .statements import execute_statement
from .transactions import execute_transaction

__all__ = ["batch_execute_statement", "execute_statement", "execute_transaction"]
