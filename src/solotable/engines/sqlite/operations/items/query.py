"""Query: the items of one partition of a table or index, in sort order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from solotable._expressions.ast import KeyTerm
from solotable._expressions.evaluate import paths_of
from solotable._protocol import errors
from solotable._protocol.replies import Page
from solotable._protocol.requests import Query
from solotable._values import Item, ordered_bytes, ordered_prefix, sort_key
from solotable.engines.sqlite.items.keys import EMPTY_KEY, encode_partition_key, end_of_prefix
from solotable.engines.sqlite.tables.catalog import Index, KeyAttribute, Schema, Table
from solotable.errors import invalid, invalid_parameter

from .get_item import check_key_paths
from .pages import (
    INVALID_START,
    KeyRange,
    check_selection,
    check_table_key,
    encode_start_key,
    find_index,
    read_page,
)

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine


_ONE_ROW = "The query can return at most one row and cannot be restarted"


def query(engine: SqliteEngine, request: Query) -> Page:
    """Return one page of a partition."""
    table = engine.table(request.table)
    index = find_index(table, request)
    schema = table.schema if index is None else index.schema
    if request.start is not None:
        _check_start(table, index, request.start)
    terms = _arrange(schema, request)
    if request.start is not None:
        _check_boundaries(schema, terms, request.start)
        if index is None and not schema.sort:
            raise invalid(_ONE_ROW)
        check_table_key(table, request.start)
    fetches = _check_rest(table, index, schema, request)
    low, high = _bounds(schema, terms)
    if request.start is not None:
        start = encode_start_key(table, index, request.start)
        if request.forward:
            low = max(low, start + b"\x00")
        else:
            high = min(high, start)
    source = KeyRange(table=table, index=index, low=low, high=high, forward=request.forward, fetches=fetches)
    page = read_page(engine, source, request)
    # DynamoDB: a table without a sort key rejects a start key, so its pages have no last key.
    return page if index is not None or schema.sort else replace(page, last_key=None)


def _check_rest(table: Table, index: Index | None, schema: Schema, request: Query) -> bool:
    """Reject a projection or a filter that the key range cannot serve; say whether items must be fetched."""
    # DynamoDB: the projection's paths, the filter's names, what the index projects, the filter's paths.
    if request.projection is not None:
        check_key_paths(table, request.projection)
    if request.filter is None:
        return check_selection(table, index, request)
    filtered = tuple(paths_of(request.filter))
    heads = {path[0] for path in filtered}
    for name in schema.names:
        if name in heads:
            what = "QueryFilter" if request.legacy else "Filter Expression"
            raise invalid(
                f"{what} can only contain non-primary key attributes: Primary key attribute: {name}"
            )
    fetches = check_selection(table, index, request)
    check_key_paths(table, filtered)
    return fetches


def _arrange(schema: Schema, request: Query) -> list[KeyTerm]:
    """Return the terms in the order of the schema, or reject terms that do not match it."""
    terms = {term.name: term for term in request.key}
    if len(schema.partition) > 1 or len(schema.sort) > 1:
        return _arrange_many(schema, terms)
    if len(terms) > 2 and request.legacy:
        raise errors.too_many_conditions()
    if len(terms) > 2:
        raise invalid(
            f"The number of query conditions ({len(terms)}) exceeds the number of key attributes "
            f"defined in the schema ({len(schema.attributes)})"
        )
    if not schema.sort and len(terms) > 1:
        raise invalid("Query key condition not supported")
    arranged: list[KeyTerm] = []
    for position, part in enumerate(schema.attributes):
        term = terms.get(part.name)
        if term is None:
            if position == 0 or len(terms) > 1:
                raise invalid(f"Query condition missed key schema element: {part.name}")
            break
        _check_term(part, term)
        if position == 0 and term.operator != "=":
            raise invalid("Query key condition not supported")
        arranged.append(term)
    return arranged


def _arrange_many(schema: Schema, terms: dict[str, KeyTerm]) -> list[KeyTerm]:
    """Do the same for an index with several partition or sort attributes, which has other errors."""
    unequal = [p.name for p in schema.partition if p.name not in terms or terms[p.name].operator != "="]
    if unequal:
        names = ", ".join(unequal)
        raise invalid(f"HASH key attributes {names} must have equality conditions specified in the query")
    arranged: list[KeyTerm] = []
    open_parts: list[str] = []
    for part in schema.attributes:
        term = terms.pop(part.name, None)
        if term is not None:
            if open_parts:
                raise invalid(
                    f"RANGE key attributes {', '.join(open_parts)} must have equality conditions specified "
                    f"in the query because a condition is present on key attribute {part.name}"
                )
            _check_term(part, term)
            arranged.append(term)
        if term is None or term.operator != "=":
            open_parts.append(part.name)
    if terms:
        raise invalid("Query key condition not supported")
    return arranged


def _check_term(part: KeyAttribute, term: KeyTerm) -> None:
    for value in term.values:
        if part.kind not in value:
            raise invalid_parameter("Condition parameter type does not match schema type")
        if not value[part.kind]:
            raise invalid(
                f"One or more parameter values are not valid. {EMPTY_KEY[part.kind]} Key: {part.name}"
            )


def _bounds(schema: Schema, terms: list[KeyTerm]) -> tuple[bytes, bytes]:
    """Return the range of keys that the terms ask for; they are in the order of the schema."""
    count = len(schema.partition)
    prefix = encode_partition_key(schema, {term.name: term.values[0] for term in terms[:count]})
    for term, part in zip(terms[count:], schema.sort, strict=False):
        contents = [value[part.kind] for value in term.values]
        if term.operator != "=":
            return _bounds_of_term(prefix, part.kind, term.operator, contents)
        prefix += ordered_bytes(part.kind, contents[0])
    return prefix, end_of_prefix(prefix)


def _bounds_of_term(prefix: bytes, kind: str, operator: str, contents: list[str]) -> tuple[bytes, bytes]:
    """Return the range within a prefix that a comparison other than equality asks for."""
    if operator == "begins_with":
        low = prefix + ordered_prefix(kind, contents[0])
        return low, end_of_prefix(low)
    low, high = prefix, end_of_prefix(prefix)
    ends = [prefix + ordered_bytes(kind, content) for content in contents]
    match operator:
        case "<":
            high = ends[0]
        case "<=":
            high = end_of_prefix(ends[0])
        case ">":
            low = end_of_prefix(ends[0])
        case ">=":
            low = ends[0]
        case "BETWEEN":
            low, high = ends[0], end_of_prefix(ends[1])
    return low, high


def _check_start(table: Table, index: Index | None, start: Item) -> None:
    position = table.schema.attributes if index is None else index.position
    if len(start) != len(position):
        raise invalid(INVALID_START)
    for part in table.schema.attributes if index is None else index.schema.attributes:
        if part.name not in start:
            raise invalid(INVALID_START)
        if part.kind not in start[part.name]:
            raise invalid("The provided key element does not match the schema")


def _check_boundaries(schema: Schema, terms: list[KeyTerm], start: Item) -> None:
    kinds = {part.name: part.kind for part in schema.attributes}
    matches = [_matches(kinds[term.name], term, start[term.name][kinds[term.name]]) for term in terms]
    count = len(schema.partition)
    if not all(matches[count:]):
        raise invalid("The provided starting key does not match the range key predicate")
    if not all(matches[:count]):
        raise invalid(
            _ONE_ROW
            if len(terms) > count
            else "The provided starting key is outside query boundaries based on provided conditions"
        )


def _matches(kind: str, term: KeyTerm, content: str) -> bool:
    have = sort_key(kind, content)
    wanted = [sort_key(kind, value[kind]) for value in term.values]
    match term.operator:
        case "=":
            return bool(have == wanted[0])
        case "<":
            return bool(have < wanted[0])
        case "<=":
            return bool(have <= wanted[0])
        case ">":
            return bool(have > wanted[0])
        case ">=":
            return bool(have >= wanted[0])
        case "BETWEEN":
            return bool(wanted[0] <= have <= wanted[1])
        case "begins_with":
            return bool(have.startswith(wanted[0]))
