"""Decode a request: check its members, then all rules that need no table.

The engine checks what needs the table: its keys, its indexes, its items. Members of operations on tables,
tags, time to live, backups and streams keep DynamoDB's names; a table's ARN becomes its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from solotable._protocol.constraints.checker import check
from solotable._protocol.error_texts import LATEST, ErrorTexts, choose_text
from solotable._protocol.requests import Control, Request
from solotable._values.limits import LONGEST_TAG_KEY, LONGEST_TAG_VALUE
from solotable.errors import ServiceError, invalid

from .batches import batch_get_item, batch_write_item
from .items import delete_item, get_item, put_item, update_item
from .pages import query, scan
from .parameters import Members
from .table_names import with_plain_name
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


def decode_request(operation: str, payload: Any, texts: ErrorTexts = LATEST) -> Request[Any]:
    """Return the record of a request, or raise DynamoDB's error in the texts of a year."""
    try:
        members = check(operation, payload)
        decoder = _DECODERS.get(operation)
        return _control(operation, members) if decoder is None else decoder(members)
    except ServiceError as rejected:
        raise choose_text(rejected, operation, texts) from rejected.__cause__


def _control(operation: str, members: Members) -> Control:
    for tag in members.get("Tags", ()):
        _check_tag_key(tag.get("Key"))
        _check_tag_value(tag.get("Value"))
    for key in members.get("TagKeys", ()):
        _check_tag_key(key)
    return Control(operation=operation, members=with_plain_name(members))


# DynamoDB: tags have their own texts where other members have constraints.
def _check_tag_key(key: str | None) -> None:
    if key is None or not 1 <= len(key) <= LONGEST_TAG_KEY:
        raise invalid(f"The Tag Key provided is invalid, Key: {'null' if key is None else key}")


def _check_tag_value(value: str | None) -> None:
    if value is None or len(value) > LONGEST_TAG_VALUE:
        raise invalid(f"The Tag Value provided is invalid, Value: {'null' if value is None else value}")
