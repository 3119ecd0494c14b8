"""Scan: every item of a table or index, or of one segment of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from solotable._expressions.evaluate import paths_of
from solotable._protocol.replies import Page
from solotable._protocol.requests import Scan
from solotable._values import Item
from solotable.engines.sqlite.items.keys import BEYOND, segment_bounds
from solotable.engines.sqlite.tables.catalog import Index, Table
from solotable.errors import invalid

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


def scan(engine: SqliteEngine, request: Scan) -> Page:
    """Return one page of a table, an index, or a segment."""
    table = engine.table(request.table)
    index = find_index(table, request)
    if request.start is not None:
        _check_start(table, index, request.start)
    fetches = check_selection(table, index, request)
    low, high = b"", BEYOND
    if request.segment is not None and request.segments is not None:
        low, high = segment_bounds(request.segment, request.segments)
    if request.start is not None:
        check_table_key(table, request.start)
        start = encode_start_key(table, index, request.start)
        if not low <= start < high:
            raise invalid(
                f"{INVALID_START}: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct "
                f"Segment. TotalSegments: {request.segments} Segment: {request.segment}"
            )
        low = start + b"\x00"
    check_key_paths(table, request.projection or ())
    if request.filter is not None:
        check_key_paths(table, paths_of(request.filter))
    return read_page(engine, KeyRange(table=table, index=index, low=low, high=high, fetches=fetches), request)


def _check_start(table: Table, index: Index | None, start: Item) -> None:
    mismatch = "The provided key element does not match the schema"
    if index is None:
        if len(start) != len(table.schema.attributes):
            raise invalid(f"{INVALID_START}: {mismatch}")
        return
    if len(start) != len(index.position):
        raise invalid(INVALID_START)
    for part in index.schema.attributes:
        if part.name not in start:
            raise invalid(INVALID_START)
        if part.kind not in start[part.name]:
            raise invalid(mismatch)
