"""BatchExecuteStatement: statements on one item each, all reads or all writes, run one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from solotable._partiql import Column, Parsed, Reads, parse_statement, plan, plan_get
from solotable._protocol.replies import Answer, Capacity, GotItem, SomeItem
from solotable._protocol.requests import (
    BatchExecuteStatement,
    CapacityReport,
    DeleteItem,
    GetItem,
    PutItem,
    Statement,
    UpdateItem,
)
from solotable._values import Item, canonical
from solotable.errors import ServiceError, invalid

from .results import as_item, in_columns, merge_by_table
from .statements import ONLY_IN_TRANSACTIONS, index_schema, schema, write

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: DynamoDB's error codes in the reply of a batch, where they differ from the exception's name.
_BATCH_CODES: Final = {
    "ConditionalCheckFailedException": "ConditionalCheckFailed",
    "DuplicateItemException": "DuplicateItem",
    "ResourceNotFoundException": "ResourceNotFound",
    "ThrottlingException": "ThrottlingError",
    "ValidationException": "ValidationError",
}


def batch_execute_statement(engine: SqliteEngine, request: BatchExecuteStatement) -> Answer:
    """Run each statement by itself; one that fails does not stop the others."""
    plans = [_plan_statement(engine, statement, request.capacity) for statement in request.statements]
    kinds = {planned.parsed.kind == "SELECT" for planned in plans if planned.parsed is not None}
    if len(kinds) > 1:
        raise invalid("Read and write requests together in the same batch is not supported.")
    keys = [planned.target for planned in plans if planned.action is not None]
    if any(key in keys[:position] for position, key in enumerate(keys)):
        raise invalid("Provided list of item keys contains duplicates")
    capacities: list[Capacity] = []
    answer: Answer = {"Responses": [planned.run(engine, capacities) for planned in plans]}
    if request.capacity != "NONE":
        answer["ConsumedCapacity"] = merge_by_table(capacities)
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlannedStatement:
    """One statement of a batch: its request, or the error that rejects it."""

    parsed: Parsed | None = None
    action: GetItem | PutItem | UpdateItem | DeleteItem | None = None
    columns: tuple[Column, ...] | None = None
    #: The table and the key of its item.
    target: tuple[str, Item] = ("", {})
    error: ServiceError | None = None

    def run(self, engine: SqliteEngine, capacities: list[Capacity]) -> dict[str, Any]:
        if self.action is None:
            assert self.error is not None
            return {"Error": _error(self.error)}
        item: SomeItem | None
        try:
            if isinstance(self.action, GetItem):
                got: GotItem = engine.handle(self.action)
                item, capacity = got.item, got.capacity
            else:
                wrote = write(engine, self.action)
                item, capacity = wrote.attributes or None, wrote.capacity
        except ServiceError as failed:
            # DynamoDB: the reply names the table only if the statement was run.
            return {"Error": _error(failed), "TableName": self.action.table}
        if capacity is not None:
            capacities.append(capacity)
        answer: dict[str, Any] = {"TableName": self.action.table}
        if item is not None:
            answer["Item"] = in_columns(as_item(item), self.columns)
        return answer


def _plan_statement(
    engine: SqliteEngine, statement: Statement, capacity: CapacityReport
) -> _PlannedStatement:
    parsed = None
    try:
        statement = replace(statement, parameters=tuple(map(canonical, statement.parameters)))
        parsed = parse_statement(statement.text)
        if parsed.exists:
            raise invalid(ONLY_IN_TRANSACTIONS)
        table = schema(engine, parsed.table)
        if parsed.kind == "SELECT":
            index = index_schema(engine, parsed, statement)
            get, columns = plan_get(
                parsed,
                statement,
                table=table,
                within="BatchExecuteStatement",
                index=index,
                capacity=capacity,
            )
            return _PlannedStatement(parsed=parsed, action=get, columns=columns, target=(get.table, get.key))
        # DynamoDB: ReturnValuesOnConditionCheckFailure does nothing in a batch.
        statement = replace(statement, returns_on_failure=False)
        action = plan(parsed, statement, table=table, capacity=capacity)
    except ServiceError as error:
        return _PlannedStatement(parsed=parsed, error=error)
    assert not isinstance(action, Reads)
    if isinstance(action, PutItem):
        key = {name: action.item[name] for name in table.names}
    else:
        key = action.key
    return _PlannedStatement(parsed=parsed, action=action, target=(action.table, key))


def _error(failed: ServiceError) -> dict[str, Any]:
    code = _BATCH_CODES.get(failed.code, failed.code.removesuffix("Exception"))
    return {"Code": code, "Message": failed.message}
