"""ExecuteTransaction: statements on one item each, run as TransactGetItems or TransactWriteItems."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from solotable._partiql import Column, Parsed, Reads, parse_statement, plan, plan_check, plan_get
from solotable._protocol.replies import Answer, TransactGot, TransactWrote
from solotable._protocol.requests import (
    CapacityReport,
    ExecuteTransaction,
    GetItem,
    PutItem,
    Statement,
    TransactGetItems,
    TransactWriteItems,
    WriteAction,
)
from solotable._values import canonical
from solotable.errors import ServiceError, TransactionCancelled, invalid

from .results import as_item, in_columns
from .statements import DUPLICATE, schema

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine


def execute_transaction(engine: SqliteEngine, request: ExecuteTransaction) -> Answer:
    """Run all statements or none: all reads, or all writes."""
    # DynamoDB: the error for an invalid parameter does not have the number of its statement.
    statements = [
        replace(statement, parameters=tuple(map(canonical, statement.parameters)))
        for statement in request.statements
    ]
    parsed: list[Parsed] = []
    for position, statement in enumerate(statements):
        with _numbered(position):
            parsed.append(parse_statement(statement.text))
    reads = [each.kind == "SELECT" and not each.exists for each in parsed]
    if any(reads) and not all(reads):
        raise invalid(
            "ExecuteTransaction API does not support both read and write operations in the same request."
        )
    if all(reads):
        return _transact_reads(engine, parsed, statements, request.capacity)
    return _transact_writes(engine, parsed, statements, request)


@contextmanager
def _numbered(position: int) -> Iterator[None]:
    """Add the number of the statement to a validation error."""
    try:
        yield
    except ServiceError as error:
        if error.code != "ValidationException":
            raise
        raise invalid(f"Validation failed in TransactStatements[{position}]: {error.message}") from error


def _transact_reads(
    engine: SqliteEngine, parsed: list[Parsed], statements: list[Statement], capacity: CapacityReport
) -> Answer:
    gets: list[GetItem] = []
    columns_by_get: list[tuple[Column, ...] | None] = []
    for position, (each, statement) in enumerate(zip(parsed, statements, strict=True)):
        with _numbered(position):
            table = schema(engine, each.table)
            get, columns = plan_get(each, statement, table=table, within="ExecuteTransaction")
        gets.append(get)
        columns_by_get.append(columns)
    got: TransactGot = engine.handle(TransactGetItems(gets=tuple(gets), capacity=capacity))
    answer: Answer = {
        "Responses": [
            {} if item is None else {"Item": in_columns(as_item(item), columns)}
            for item, columns in zip(got.items, columns_by_get, strict=True)
        ]
    }
    if got.capacity is not None:
        answer["ConsumedCapacity"] = got.capacity
    return answer


def _transact_writes(
    engine: SqliteEngine, parsed: list[Parsed], statements: list[Statement], request: ExecuteTransaction
) -> Answer:
    actions: list[WriteAction] = []
    for position, (each, statement) in enumerate(zip(parsed, statements, strict=True)):
        with _numbered(position):
            actions.append(_transact_action(engine, each, statement))
    write = TransactWriteItems(
        actions=tuple(actions),
        token=request.token,
        fingerprint=request.fingerprint,
        capacity=request.capacity,
    )
    try:
        wrote: TransactWrote = engine.handle(write)
    except TransactionCancelled as cancelled:
        raise TransactionCancelled(_reasons(cancelled, actions)) from cancelled
    answer: Answer = {"Responses": []}
    if wrote.capacity is not None:
        answer["ConsumedCapacity"] = wrote.capacity
    return answer


def _transact_action(engine: SqliteEngine, parsed: Parsed, statement: Statement) -> WriteAction:
    table = schema(engine, parsed.table)
    if parsed.exists:
        return plan_check(parsed, statement, table=table)
    if parsed.returning is not None:
        raise invalid("RETURNING clause is not supported in ExecuteTransaction.")
    action = plan(parsed, statement, table=table)
    assert not isinstance(action, Reads)
    return action


def _reasons(cancelled: TransactionCancelled, actions: list[WriteAction]) -> list[dict[str, Any]]:
    return [
        {"Code": "DuplicateItem", "Message": DUPLICATE}
        if isinstance(action, PutItem) and reason["Code"] == "ConditionalCheckFailed"
        else reason
        for reason, action in zip(cancelled.reasons, actions, strict=True)
    ]
