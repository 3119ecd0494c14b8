"""ExecuteStatement, BatchExecuteStatement and ExecuteTransaction, on top of the other operations.

A statement is planned into the requests that DynamoDB's own API has, and those are run. Nothing
here reads or writes the file.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from solotable.errors import ConditionFailed, ServiceError, TableNotFound, TransactionCancelled, invalid
from solotable.expressions.evaluate import evaluate, fetch
from solotable.partiql import (
    Column,
    Parsed,
    Reads,
    Schema,
    check_where,
    parse_statement,
    plan,
    plan_check,
    plan_get,
)
from solotable.protocol.attributes import check_attributes
from solotable.protocol.replies import (
    Answer,
    Capacity,
    GotItem,
    Page,
    SomeItem,
    StatementRan,
    TransactGot,
    TransactWrote,
    WroteItem,
)
from solotable.protocol.requests import (
    BatchExecuteStatement,
    CapacityReport,
    DeleteItem,
    ExecuteStatement,
    ExecuteTransaction,
    GetItem,
    PutItem,
    Statement,
    TransactGetItems,
    TransactWriteItems,
    UpdateItem,
    WriteAction,
)
from solotable.protocol.text import loads
from solotable.values import Item, canonical, canonical_item

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_DUPLICATE: Final = "Duplicate primary key exists in table"
_ONLY_IN_TRANSACTIONS: Final = "EXISTS can only be used in ExecuteTransaction write requests."
#: DynamoDB's codes in a batch's reply, where they are not the exception's name without its ending.
_BATCH_CODES: Final = {
    "ConditionalCheckFailedException": "ConditionalCheckFailed",
    "DuplicateItemException": "DuplicateItem",
    "ResourceNotFoundException": "ResourceNotFound",
    "ThrottlingException": "ThrottlingError",
    "ValidationException": "ValidationError",
}


def execute_statement(engine: SqliteEngine, request: ExecuteStatement) -> StatementRan:
    """Run one statement; a SELECT gives one page."""
    statement = request.statement
    parsed = parse_statement(statement.text)
    if parsed.exists:
        raise invalid(_ONLY_IN_TRANSACTIONS)
    try:
        table = _schema(engine, parsed.table)
    except TableNotFound:
        # DynamoDB: operands are judged before the table is looked up.
        check_where(parsed, statement)
        raise
    planned = plan(
        parsed,
        statement,
        table=table,
        index=_index_schema(engine, parsed, statement),
        limit=request.limit,
        capacity=request.capacity,
    )
    if isinstance(planned, Reads):
        return _read(engine, planned, request)
    wrote = _write(engine, planned)
    items = [] if not wrote.attributes else [wrote.attributes]
    return StatementRan(items=items, capacity=wrote.capacity)


def batch_execute_statement(engine: SqliteEngine, request: BatchExecuteStatement) -> Answer:
    """Run each statement by itself; one that fails does not stop the others."""
    slots = [_batch_slot(engine, statement, request.capacity) for statement in request.statements]
    kinds = {slot.parsed.kind == "SELECT" for slot in slots if slot.parsed is not None}
    if len(kinds) > 1:
        raise invalid("Read and write requests together in the same batch is not supported.")
    keys = [slot.target for slot in slots if slot.action is not None]
    if any(key in keys[:place] for place, key in enumerate(keys)):
        raise invalid("Provided list of item keys contains duplicates")
    capacities: list[Capacity] = []
    answer: Answer = {"Responses": [slot.run(engine, capacities) for slot in slots]}
    if request.capacity != "NONE":
        answer["ConsumedCapacity"] = merged(capacities)
    return answer


def execute_transaction(engine: SqliteEngine, request: ExecuteTransaction) -> Answer:
    """Run all statements or none: all reads, or all writes."""
    # DynamoDB: a parameter that is no value is refused without the number of its statement.
    statements = [
        replace(statement, parameters=tuple(map(canonical, statement.parameters)))
        for statement in request.statements
    ]
    parsed: list[Parsed] = []
    for place, statement in enumerate(statements):
        with _numbered(place):
            parsed.append(parse_statement(statement.text))
    reads = [each.kind == "SELECT" and not each.exists for each in parsed]
    if any(reads) and not all(reads):
        raise invalid(
            "ExecuteTransaction API does not support both read and write operations in the same request."
        )
    if all(reads):
        return _transact_reads(engine, parsed, statements, request.capacity)
    return _transact_writes(engine, parsed, statements, request)


def _schema(engine: SqliteEngine, table_name: str, index: str | None = None) -> Schema:
    names = engine.schema(table_name, index)
    table = engine.table(table_name)
    attributes = (table.schema if index is None else table.index(index).schema).attributes
    return replace(names, kinds={attribute.name: attribute.kind for attribute in attributes})


def _index_schema(engine: SqliteEngine, parsed: Parsed, statement: Statement) -> Schema | None:
    """Return the keys of the index that a statement reads; its refusals are in PartiQL's own words."""
    if parsed.index is None:
        return None
    found = [index for index in engine.table(parsed.table).indexes if index.name == parsed.index]
    if not found:
        raise invalid("The table does not have the specified index")
    if found[0].is_global and statement.consistent:
        raise invalid("Strongly consistent read is not supported on Global Secondary Indexes")
    return replace(_schema(engine, parsed.table, parsed.index), projected=found[0].projected)


def _write(engine: SqliteEngine, action: PutItem | UpdateItem | DeleteItem) -> WroteItem:
    try:
        wrote: WroteItem = engine.handle(action)
    except ConditionFailed as failed:
        if isinstance(action, PutItem):
            raise ServiceError("DuplicateItemException", _DUPLICATE) from failed
        raise
    return wrote


def _read(engine: SqliteEngine, reads: Reads, request: ExecuteStatement) -> StatementRan:
    binding = _binding(request.statement)
    first, start = 0, None
    if request.token is not None:
        first, start = _open_token(request.token, binding, len(reads.requests))
    items: list[SomeItem] = []
    capacities: list[Capacity] = []
    left = request.limit
    for place in range(first, len(reads.requests)):
        page: Page = engine.handle(replace(reads.requests[place], limit=left, start=start))
        start = None
        items += _shaped(page.items or [], reads)
        if page.capacity is not None:
            capacities.append(page.capacity)
        left = None if left is None else left - page.scanned
        more = place + 1 < len(reads.requests)
        if page.last_key is not None or (left == 0 and more):
            resume = place if page.last_key is not None else place + 1
            return StatementRan(
                items=items,
                next_token=_token(binding, resume, page.last_key),
                last_key=page.last_key,
                capacity=_one(capacities),
            )
    return StatementRan(items=items, capacity=_one(capacities))


def _shaped(items: Sequence[SomeItem], reads: Reads) -> list[SomeItem]:
    if reads.residue is None and reads.columns is None:
        return list(items)
    shaped: list[SomeItem] = []
    for raw in items:
        item = _item(raw)
        if reads.residue is None or evaluate(reads.residue, item):
            shaped.append(_columns(item, reads.columns))
    return shaped


def _columns(item: Item, columns: tuple[Column, ...] | None) -> Item:
    if columns is None:
        return item
    values = ((column.name, fetch(column.path, item)) for column in columns)
    return {name: value for name, value in values if value is not None}


def _item(raw: SomeItem) -> Item:
    if isinstance(raw, bytes):
        item: Item = json.loads(raw)
        return item
    return raw


def _binding(statement: Statement) -> str:
    """Return what a token is bound to: the statement and its parameters, not the limit."""
    text = json.dumps([statement.text, statement.parameters], sort_keys=True)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _token(binding: str, place: int, key: Item | None) -> str:
    return urlsafe_b64encode(json.dumps([binding, place, key]).encode()).decode("ascii")


def _open_token(token: str, binding: str, count: int) -> tuple[int, Item | None]:
    # Anyone can write a token, so its key is judged as one that came with the request.
    try:
        bound, place, key = loads(urlsafe_b64decode(token.encode()))
        start = None if key is None else canonical_item(check_attributes(key))
    except (ValueError, TypeError, ServiceError) as error:
        raise invalid("Invalid NextToken") from error
    if not isinstance(bound, str) or type(place) is not int:
        raise invalid("Invalid NextToken")
    if bound != binding or not 0 <= place < count:
        raise invalid("NextToken does not match request")
    return place, start


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """One statement of a batch: what to run, or why it cannot be run."""

    parsed: Parsed | None = None
    action: GetItem | PutItem | UpdateItem | DeleteItem | None = None
    columns: tuple[Column, ...] | None = None
    #: The table and the key of the item that it is about.
    target: tuple[str, Item] = ("", {})
    refused: ServiceError | None = None

    def run(self, engine: SqliteEngine, capacities: list[Capacity]) -> dict[str, Any]:
        if self.action is None:
            assert self.refused is not None
            return {"Error": _error(self.refused)}
        item: SomeItem | None
        try:
            if isinstance(self.action, GetItem):
                got: GotItem = engine.handle(self.action)
                item, capacity = got.item, got.capacity
            else:
                wrote = _write(engine, self.action)
                item, capacity = wrote.attributes or None, wrote.capacity
        except ServiceError as failed:
            # DynamoDB: the table is named only when the statement came as far as its table.
            return {"Error": _error(failed), "TableName": self.action.table}
        if capacity is not None:
            capacities.append(capacity)
        answer: dict[str, Any] = {"TableName": self.action.table}
        if item is not None:
            answer["Item"] = _columns(_item(item), self.columns)
        return answer


def _batch_slot(engine: SqliteEngine, statement: Statement, capacity: CapacityReport) -> _Slot:
    parsed = None
    try:
        statement = replace(statement, parameters=tuple(map(canonical, statement.parameters)))
        parsed = parse_statement(statement.text)
        if parsed.exists:
            raise invalid(_ONLY_IN_TRANSACTIONS)
        table = _schema(engine, parsed.table)
        if parsed.kind == "SELECT":
            index = _index_schema(engine, parsed, statement)
            get, columns = plan_get(
                parsed,
                statement,
                table=table,
                within="BatchExecuteStatement",
                index=index,
                capacity=capacity,
            )
            return _Slot(parsed=parsed, action=get, columns=columns, target=(get.table, get.key))
        # DynamoDB: ReturnValuesOnConditionCheckFailure does nothing in a batch.
        statement = replace(statement, returns_on_failure=False)
        action = plan(parsed, statement, table=table, capacity=capacity)
    except ServiceError as refused:
        return _Slot(parsed=parsed, refused=refused)
    assert not isinstance(action, Reads)
    if isinstance(action, PutItem):
        key = {name: action.item[name] for name in table.names}
    else:
        key = action.key
    return _Slot(parsed=parsed, action=action, target=(action.table, key))


def _error(failed: ServiceError) -> dict[str, Any]:
    code = _BATCH_CODES.get(failed.code, failed.code.removesuffix("Exception"))
    return {"Code": code, "Message": failed.message}


@contextmanager
def _numbered(place: int) -> Iterator[None]:
    """Say in a refusal which statement it is about."""
    try:
        yield
    except ServiceError as refused:
        if refused.code != "ValidationException":
            raise
        raise invalid(f"Validation failed in TransactStatements[{place}]: {refused.message}") from refused


def _transact_reads(
    engine: SqliteEngine, parsed: list[Parsed], statements: list[Statement], capacity: CapacityReport
) -> Answer:
    gets: list[GetItem] = []
    shapes: list[tuple[Column, ...] | None] = []
    for place, (each, statement) in enumerate(zip(parsed, statements, strict=True)):
        with _numbered(place):
            table = _schema(engine, each.table)
            get, columns = plan_get(each, statement, table=table, within="ExecuteTransaction")
        gets.append(get)
        shapes.append(columns)
    got: TransactGot = engine.handle(TransactGetItems(gets=tuple(gets), capacity=capacity))
    answer: Answer = {
        "Responses": [
            {} if item is None else {"Item": _columns(_item(item), columns)}
            for item, columns in zip(got.items, shapes, strict=True)
        ]
    }
    if got.capacity is not None:
        answer["ConsumedCapacity"] = got.capacity
    return answer


def _transact_writes(
    engine: SqliteEngine, parsed: list[Parsed], statements: list[Statement], request: ExecuteTransaction
) -> Answer:
    actions: list[WriteAction] = []
    for place, (each, statement) in enumerate(zip(parsed, statements, strict=True)):
        with _numbered(place):
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
    table = _schema(engine, parsed.table)
    if parsed.exists:
        return plan_check(parsed, statement, table=table)
    if parsed.returning is not None:
        raise invalid("RETURNING clause is not supported in ExecuteTransaction.")
    action = plan(parsed, statement, table=table)
    assert not isinstance(action, Reads)
    return action


def _reasons(cancelled: TransactionCancelled, actions: list[WriteAction]) -> list[dict[str, Any]]:
    return [
        {"Code": "DuplicateItem", "Message": _DUPLICATE}
        if isinstance(action, PutItem) and reason["Code"] == "ConditionalCheckFailed"
        else reason
        for reason, action in zip(cancelled.reasons, actions, strict=True)
    ]


def merged(capacities: list[Capacity]) -> list[Capacity]:
    """Return one report for each table, in the order the tables came up."""
    tables: dict[str, Capacity] = {}
    for capacity in capacities:
        name = capacity["TableName"]
        tables[name] = _sum(tables[name], capacity) if name in tables else capacity
    return list(tables.values())


def _sum(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    total = dict(one)
    for name, value in other.items():
        if name not in total:
            total[name] = value
        elif isinstance(value, dict):
            total[name] = _sum(total[name], value)
        elif not isinstance(value, str):
            total[name] += value
    return total


def _one(capacities: list[Capacity]) -> Capacity | None:
    return merged(capacities)[0] if capacities else None
