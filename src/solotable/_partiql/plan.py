"""Plan the requests that execute a statement, from its parameters and the keys of its table.

An INSERT becomes a PutItem with the condition that the item does not exist, an UPDATE becomes an UpdateItem
with the condition that it exists. A SELECT that names partitions becomes a Query for each partition; every
other SELECT becomes a Scan.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

from solotable._expressions.ast import Condition, Exists, KeyTerm, Not, Or, Path, Projection
from solotable._protocol.requests import (
    CapacityReport,
    ConditionCheck,
    DeleteItem,
    GetItem,
    PutItem,
    Query,
    Scan,
    Statement,
    UpdateItem,
)
from solotable._values import AttributeValue, Item, sort_key
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import invalid

from .ast import Expr, OrderTerm, Parsed, Reference
from .conditions import Conditions
from .keys import (
    Schema,
    check_branches,
    heads,
    join,
    only_names_partitions,
    partitions,
    primary_key,
    sort_term,
    terms_of,
)
from .literals import bind, item_of
from .syntax.parse import NO_KEY
from .updates import Updates, check_overlaps

_MULTIPLE: Final = (
    "PartiQL statements cannot be executed on tables with multi-attribute HASH keys "
    "or multi-attribute RANGE keys."
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a SELECT: the path of its value, and its name in the result."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """The requests of a SELECT, to send one after the other until a page is full."""

    requests: tuple[Query | Scan, ...]
    #: A further condition: unlike Query, SELECT can filter by key attributes.
    residue: Condition | None = None
    #: The columns of the result; None to return the items unchanged.
    columns: tuple[Column, ...] | None = None


def plan(
    parsed: Parsed,
    statement: Statement,
    *,
    table: Schema,
    index: Schema | None = None,
    limit: int | None = None,
    capacity: CapacityReport = "NONE",
) -> Reads | PutItem | UpdateItem | DeleteItem:
    """Return the requests of a statement; `index` has the keys of the index that a SELECT names."""
    parameters = bind(statement.parameters)
    match parsed.kind:
        case "SELECT":
            reads = _Selection(parsed, index or table, parameters).reads()
            requests = tuple(
                replace(request, limit=limit, consistent=statement.consistent, capacity=capacity)
                for request in reads.requests
            )
            return replace(reads, requests=requests)
        case "INSERT":
            return _insert(parsed, statement, table, parameters, capacity)
        case "UPDATE":
            key, rest = _required_key(parsed, table, parameters)
            update = Updates(parameters).update(parsed.changes)
            return UpdateItem(
                table=parsed.table,
                key=key,
                update=update,
                # DynamoDB: an UPDATE of a missing item fails its condition.
                condition=join([Exists((table.partition[0],)), *rest]),
                returns=parsed.returning or "NONE",
                returns_on_failure=statement.returns_on_failure,
                capacity=capacity,
            )
        case "DELETE":
            key, rest = _required_key(parsed, table, parameters)
            condition = join(rest)
            if condition is not None:
                # DynamoDB: a DELETE of a missing item succeeds with any condition.
                condition = Or((Not(Exists((table.partition[0],))), condition))
            return DeleteItem(
                table=parsed.table,
                key=key,
                condition=condition,
                returns=parsed.returning or "NONE",
                returns_on_failure=statement.returns_on_failure,
                capacity=capacity,
            )


def check_where(parsed: Parsed, statement: Statement) -> None:
    """Reject a WHERE clause that is invalid on any table."""
    if parsed.where is not None:
        Conditions(bind(statement.parameters)).where(parsed.where)


def plan_get(
    parsed: Parsed,
    statement: Statement,
    *,
    table: Schema,
    within: Literal["BatchExecuteStatement", "ExecuteTransaction"],
    index: Schema | None = None,
    capacity: CapacityReport = "NONE",
) -> tuple[GetItem, tuple[Column, ...] | None]:
    """Return the GetItem of a SELECT in a batch or a transaction."""
    parameters = bind(statement.parameters)
    _check_readable(index or table)
    columns = _columns(parsed)
    if parsed.index is not None and within == "ExecuteTransaction":
        raise invalid("Reads on indices are not supported within transactions.")
    found = None
    if parsed.index is None and parsed.where is not None:
        found = primary_key(table, Conditions(parameters).where(parsed.where))
    if found is None or found[1]:
        raise invalid(f"Select statements within {within} must specify the primary key in the where clause.")
    get = GetItem(
        table=parsed.table,
        key=found[0],
        consistent=statement.consistent,
        projection=_projection(columns),
        capacity=capacity,
    )
    return get, _result_columns(columns)


def plan_check(parsed: Parsed, statement: Statement, *, table: Schema) -> ConditionCheck:
    """Return the ConditionCheck of an EXISTS in a transaction."""
    parameters = bind(statement.parameters)
    found = None
    if parsed.index is None and parsed.where is not None:
        found = primary_key(table, Conditions(parameters).where(parsed.where))
    if found is None or not found[1]:
        raise invalid("EXISTS() must contain a single item read with additional condition")
    key, rest = found
    condition = join([Exists((table.partition[0],)), *rest])
    assert condition is not None
    return ConditionCheck(
        table=parsed.table,
        key=key,
        condition=condition,
        returns_on_failure=statement.returns_on_failure,
    )


def _check_readable(schema: Schema) -> None:
    if len(schema.partition) > 1 or len(schema.sort) > 1:
        raise invalid(_MULTIPLE)


def _insert(
    parsed: Parsed,
    statement: Statement,
    table: Schema,
    parameters: tuple[AttributeValue, ...],
    capacity: CapacityReport,
) -> PutItem:
    assert parsed.item is not None
    item = item_of(parsed.item, parameters)
    for name in table.names:
        if name not in item:
            raise invalid(f"Key attribute should be present in the item: Key {name}")
        table.check(name, item[name])
    return PutItem(
        table=parsed.table,
        item=item,
        condition=Not(Exists((table.partition[0],))),
        returns_on_failure=statement.returns_on_failure,
        capacity=capacity,
    )


def _required_key(
    parsed: Parsed, table: Schema, parameters: tuple[AttributeValue, ...]
) -> tuple[Item, list[Condition]]:
    condition = None if parsed.where is None else Conditions(parameters).where(parsed.where)
    found = primary_key(table, condition)
    if found is None:
        raise invalid(NO_KEY)
    return found


class _Selection:
    """The requests of one SELECT."""

    def __init__(self, parsed: Parsed, schema: Schema, parameters: tuple[AttributeValue, ...]) -> None:
        _check_readable(schema)
        self._parsed = parsed
        self._schema = schema
        self._columns = _columns(parsed)
        where = parsed.where
        self._condition = None if where is None else Conditions(parameters).where(where)

    def reads(self) -> Reads:
        condition = self._condition
        values = None if condition is None else partitions(self._schema, condition)
        self._check_order(self._parsed.order, values)
        if condition is not None:
            check_branches(self._schema, condition)
        if condition is None or values is None:
            scan = Scan(
                table=self._parsed.table,
                index=self._parsed.index,
                filter=condition,
                projection=_projection(self._columns),
            )
            return Reads(requests=(scan,), columns=_result_columns(self._columns))
        return self._queries(condition, values)

    def _queries(self, condition: Condition, values: list[AttributeValue]) -> Reads:
        schema = self._schema
        key: KeyTerm | None = None
        filters: list[Condition] = []
        remaining: list[Condition] = []
        for term in terms_of(condition):
            if only_names_partitions(schema, term):
                continue
            if key is None and (key := sort_term(schema, term)) is not None:
                continue
            (remaining if heads(term) & set(schema.names) else filters).append(term)
        left = join(remaining)
        needed = {str(head) for head in heads(left)} if left is not None else set()
        # DynamoDB: in an OR, attributes that the index does not project count as missing.
        extra = tuple(sorted(needed if schema.projected is None else needed & schema.projected))
        partition = schema.partition[0]
        ascending = self._ascending(partition)
        values = sorted(values, key=_partition_order, reverse=not ascending)
        requests = tuple(
            Query(
                table=self._parsed.table,
                index=self._parsed.index,
                key=(KeyTerm(partition, "=", (value,)), *(() if key is None else (key,))),
                filter=join(filters),
                projection=_projection(self._columns, extra),
                forward=not schema.sort or self._ascending(schema.sort[0]),
            )
            for value in values
        )
        return Reads(requests=requests, residue=left, columns=_result_columns(self._columns, extra))

    def _check_order(self, order: tuple[OrderTerm, ...], values: list[AttributeValue] | None) -> None:
        if not order:
            return
        if self._parsed.where is None:
            raise invalid("Must have WHERE clause in the statement when using ORDER BY clause.")
        if values is None:
            raise invalid(
                "Must have at least one non-optional hash key condition in WHERE clause "
                "when using ORDER BY clause."
            )
        for term in order:
            if not isinstance(term.expr, Reference):
                raise invalid(f"Unexpected path component at {term.expr.spot}")
            if len(term.expr.steps) > 1 or term.expr.steps[0] not in self._schema.names:
                raise invalid(
                    f"Variable reference {term.expr.steps[-1]} in ORDER BY clause "
                    "must be part of the primary key"
                )

    def _ascending(self, name: str) -> bool:
        for term in self._parsed.order:
            if isinstance(term.expr, Reference) and term.expr.steps == (name,):
                return term.ascending
        return True


def _partition_order(value: AttributeValue) -> tuple[str, object]:
    ((kind, content),) = value.items()
    return kind, sort_key(kind, content) if kind in "SNB" else repr(content)


def _columns(parsed: Parsed) -> tuple[Column, ...] | None:
    if parsed.columns is None:
        return None
    columns: list[Column] = []
    for expr in parsed.columns:
        column = _column(expr)
        if any(column.name == other.name for other in columns):
            raise invalid(f"Duplicate identifiers in select clause: {column.name}")
        columns.append(column)
    check_overlaps([column.path for column in columns])
    return tuple(columns)


def _column(expr: Expr) -> Column:
    if not isinstance(expr, Reference):
        raise invalid(f"Unexpected path component at {expr.spot}")
    # DynamoDB names a path by its last name and the indexes after it: a.b[0] is `b[0]`.
    name = ""
    for step in expr.steps:
        name = step if isinstance(step, str) else f"{name}[{step}]"
    return Column(expr.steps, name)


def _projection(columns: tuple[Column, ...] | None, extra: tuple[str, ...] = ()) -> Projection | None:
    """Return the top-level attributes to read; a projection of elements would change list positions."""
    if columns is None:
        return None
    return tuple(dict.fromkeys((head,) for head in (*(column.path[0] for column in columns), *extra)))


def _result_columns(
    columns: tuple[Column, ...] | None, extra: tuple[str, ...] = ()
) -> tuple[Column, ...] | None:
    if columns is None or (not extra and all(len(column.path) == 1 for column in columns)):
        return None
    return columns
