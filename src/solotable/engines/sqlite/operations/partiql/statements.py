"""ExecuteStatement: the requests of one statement, and its reply."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from solotable._partiql import Parsed, Reads, Schema, check_where, parse_statement, plan
from solotable._protocol.replies import Capacity, Page, SomeItem, StatementRan, WroteItem
from solotable._protocol.requests import DeleteItem, ExecuteStatement, PutItem, Statement, UpdateItem
from solotable.errors import ConditionFailed, ServiceError, TableNotFound, invalid

from .next_token import bind, make_token, open_token
from .results import select_columns, total

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

DUPLICATE: Final = "Duplicate primary key exists in table"
ONLY_IN_TRANSACTIONS: Final = "EXISTS can only be used in ExecuteTransaction write requests."


def execute_statement(engine: SqliteEngine, request: ExecuteStatement) -> StatementRan:
    """Run one statement; a SELECT returns one page."""
    statement = request.statement
    parsed = parse_statement(statement.text)
    if parsed.exists:
        raise invalid(ONLY_IN_TRANSACTIONS)
    try:
        table = schema(engine, parsed.table)
    except TableNotFound:
        # DynamoDB: operands are checked before the table is looked up.
        check_where(parsed, statement)
        raise
    planned = plan(
        parsed,
        statement,
        table=table,
        index=index_schema(engine, parsed, statement),
        limit=request.limit,
        capacity=request.capacity,
    )
    if isinstance(planned, Reads):
        return _read(engine, planned, request)
    wrote = write(engine, planned)
    items = [] if not wrote.attributes else [wrote.attributes]
    return StatementRan(items=items, capacity=wrote.capacity)


def schema(engine: SqliteEngine, table_name: str, index: str | None = None) -> Schema:
    """Return the keys of a table, or of one of its indexes, with their types."""
    names = engine.schema(table_name, index)
    table = engine.table(table_name)
    attributes = (table.schema if index is None else table.index(index).schema).attributes
    return replace(names, kinds={attribute.name: attribute.kind for attribute in attributes})


def index_schema(engine: SqliteEngine, parsed: Parsed, statement: Statement) -> Schema | None:
    """Return the keys of the index of a statement; PartiQL has its own error texts for it."""
    if parsed.index is None:
        return None
    found = [index for index in engine.table(parsed.table).indexes if index.name == parsed.index]
    if not found:
        raise invalid("The table does not have the specified index")
    if found[0].is_global and statement.consistent:
        raise invalid("Strongly consistent read is not supported on Global Secondary Indexes")
    return replace(schema(engine, parsed.table, parsed.index), projected=found[0].projected)


def write(engine: SqliteEngine, action: PutItem | UpdateItem | DeleteItem) -> WroteItem:
    """Run a write; an INSERT has its own error if the item exists."""
    try:
        wrote: WroteItem = engine.handle(action)
    except ConditionFailed as failed:
        if isinstance(action, PutItem):
            raise ServiceError("DuplicateItemException", DUPLICATE) from failed
        raise
    return wrote


def _read(engine: SqliteEngine, reads: Reads, request: ExecuteStatement) -> StatementRan:
    binding = bind(request.statement)
    first, start = 0, None
    if request.token is not None:
        first, start = open_token(request.token, binding, len(reads.requests))
    items: list[SomeItem] = []
    capacities: list[Capacity] = []
    left = request.limit
    for position in range(first, len(reads.requests)):
        page: Page = engine.handle(replace(reads.requests[position], limit=left, start=start))
        start = None
        items += select_columns(page.items or [], reads, engine.pause)
        if page.capacity is not None:
            capacities.append(page.capacity)
        left = None if left is None else left - page.scanned
        more = position + 1 < len(reads.requests)
        if page.last_key is not None or (left == 0 and more):
            resume = position if page.last_key is not None else position + 1
            return StatementRan(
                items=items,
                next_token=make_token(binding, resume, page.last_key),
                last_key=page.last_key,
                capacity=total(capacities),
            )
    return StatementRan(items=items, capacity=total(capacities))
