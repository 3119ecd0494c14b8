"""The common part of Query and Scan: checks of the request, and reading a page.

A page ends after Limit items or 1 MB. The filter is applied afterwards, so a page may be empty.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from solotable._expressions.ast import Projection
from solotable._expressions.evaluate import evaluate, paths_of
from solotable._expressions.project import project
from solotable._protocol.capacity import CapacityMeter, read_units
from solotable._protocol.decode.large_items import STEP, decode_item_in_steps, release_item
from solotable._protocol.json_codec import dumps, loads
from solotable._protocol.replies import Page, SomeItem
from solotable._protocol.requests import Query, Scan
from solotable._values import Item, item_size
from solotable._values.lazy_dataclass import dataclass
from solotable._values.limits import LARGEST_PAGE
from solotable.engines.sqlite.heat.recorder import HeatRecorder
from solotable.engines.sqlite.items.concatenated_items import read_concatenated_items
from solotable.engines.sqlite.items.keys import (
    check_key,
    decode_position,
    encode_index_key,
    encode_key,
)
from solotable.engines.sqlite.items.storage import FIRST_CHUNK, RangeRow, next_chunk, read_chunks
from solotable.engines.sqlite.tables.catalog import Index, Table
from solotable.errors import ServiceError, invalid, invalid_parameter

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: How many items are concatenated at once; even the largest ones must fit in memory.
_RUN = 64
INVALID_START = "The provided starting key is invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """The source of a page: a range of keys of the table or of one of its indexes."""

    table: Table
    index: Index | None
    low: bytes
    high: bytes
    forward: bool = True
    #: Whether items are fetched from the table, because the local index lacks requested attributes.
    fetches: bool = False

    def after(self, position: bytes) -> KeyRange:
        """Return the rest of the range after a key in it."""
        return replace(self, low=position + b"\0") if self.forward else replace(self, high=position)


def find_index(table: Table, request: Query | Scan) -> Index | None:
    """Return the index of the request, or reject one that cannot be read."""
    if request.index is None:
        return None
    index = table.index(request.index)
    if index.is_global and request.consistent:
        raise invalid("Consistent reads are not supported on global secondary indexes")
    if index.status == "CREATING":
        raise ServiceError(
            "ValidationException", f"Cannot read from backfilling global secondary index: {index.name}"
        )
    return index


def check_selection(table: Table, index: Index | None, request: Query | Scan) -> bool:
    """Reject attributes that a global index lacks; say whether a local one must fetch from the table."""
    if index is None or index.projected is None:
        return False
    projected = index.projected
    missing = [str(path[0]) for path in request.projection or () if path[0] not in projected]
    everything = request.select == "ALL_ATTRIBUTES"
    if index.is_global and everything:
        raise invalid_parameter(
            f"Select type ALL_ATTRIBUTES is not supported for global secondary index {index.name} "
            "because its projection type is not ALL"
        )
    # DynamoDB: only Query rejects these; for the filter of a Scan they are missing attributes.
    if isinstance(request, Query) and request.filter is not None:
        unfiltered = [str(path[0]) for path in paths_of(request.filter) if path[0] not in projected]
        if unfiltered:
            raise invalid_parameter(
                f"Secondary index {index.name} does not project one or more filter attributes: "
                f"[{', '.join(unfiltered)}]"
            )
    if index.is_global and missing:
        raise invalid_parameter(
            f"Global secondary index {index.name} does not project [{', '.join(missing)}]"
        )
    return everything or bool(missing)


def encode_start_key(table: Table, index: Index | None, start: Item) -> bytes:
    """Return the key, in the table or index, after which a page starts."""
    own = encode_key(table.schema, start)
    if index is None:
        return own
    found = encode_index_key(index, start, own)
    if found is None:
        raise invalid(INVALID_START)
    return found


def check_table_key(table: Table, start: Item) -> None:
    """Reject a start key with an invalid key of the table."""
    try:
        check_key(table, {name: start[name] for name in table.schema.names if name in start})
    except ServiceError as error:
        raise invalid(f"{INVALID_START}: {error.message}") from error


def read_page(engine: SqliteEngine, source: KeyRange, request: Query | Scan) -> Page:
    """Read one page.

    A page is one snapshot, except for a sliced request in memory: all threads share the connection there, so
    other threads may write between two slices.
    """
    if engine.database.in_memory:
        if engine.sliced:
            found = _read_in_memory(engine, source, request)
        else:
            with engine.database.read():
                found = _read_in_memory(engine, source, request)
    else:
        with (
            engine.database.read() as connection,
            closing(_read_rows(connection, source, request.limit)) as stored,
        ):
            if _shows_whole(source, request):
                found = _read_whole(engine, stored, _PageState(), request)
            else:
                found = _read(engine, stored, source, request)
    heat = engine.heat
    if heat is not None:
        if heat.skip_reads:
            heat.skip_reads -= 1
        else:
            _record_heat(heat, source, request, found)
    last = None
    if found.full and found.last is not None:
        last = decode_position(source.table, source.index, found.last)
    return Page(
        items=None if request.select == "COUNT" else found.items,
        count=found.count,
        scanned=found.scanned,
        last_key=last,
        capacity=None if request.capacity == "NONE" else _capacity(source, request, found),
    )


class _PageState:
    __slots__ = ("count", "fetched_units", "full", "items", "last", "scanned", "size")

    def __init__(self) -> None:
        self.items: list[SomeItem] = []
        self.count = self.scanned = self.size = 0
        self.fetched_units: float = 0
        #: The key of the last item in the table or index.
        self.last: bytes | None = None
        self.full = False


def _shows_whole(source: KeyRange, request: Query | Scan) -> bool:
    """Say whether the page returns items unchanged."""
    index = source.index
    return (
        request.filter is None and request.projection is None and (index is None or index.projected is None)
    )


def _read_rows(
    connection: sqlite3.Connection, source: KeyRange, limit: int | None
) -> Generator[list[RangeRow], None, None]:
    return read_chunks(
        connection,
        source.table,
        source.index,
        low=source.low,
        high=source.high,
        forward=source.forward,
        limit=limit,
    )


def _read_rows_in_memory(
    engine: SqliteEngine, source: KeyRange, limit: int | None
) -> Generator[list[RangeRow], None, None]:
    """Yield chunks of rows; other threads may use the connection between two chunks."""
    count = FIRST_CHUNK
    while limit is None or limit > 0:
        count = count if limit is None else min(count, limit)
        with engine.database.read() as connection:
            rows = [*chain.from_iterable(_read_rows(connection, source, count))]
        if rows:
            yield rows
        if len(rows) < count:
            return
        limit = None if limit is None else limit - count
        source = source.after(rows[-1][3])
        count = next_chunk(rows[-1][1])


def _read(
    engine: SqliteEngine, stored: Iterable[list[RangeRow]], source: KeyRange, request: Query | Scan
) -> _PageState:
    index = source.index
    found = _PageState()
    sliced = engine.sliced
    whole = index is None or index.projected is None or source.fetches
    for size, raw, _, key, *_ in chain.from_iterable(stored):
        engine.pause(len(raw))
        found.scanned += 1
        found.last = key
        in_steps = sliced and len(raw) > STEP
        item = decode_item_in_steps(raw, engine.pause) if in_steps else loads(raw)
        if index is None or index.projected is None:
            found.size += size
        else:
            entry = index.project(item)
            found.size += item_size(entry)
            if source.fetches:
                # DynamoDB: each item that is fetched for a local index costs a separate read.
                found.fetched_units += read_units(size, request.consistent)
            else:
                item = entry
        if request.filter is None or evaluate(request.filter, item, engine.pause):
            found.count += 1
            if request.select != "COUNT":
                found.items.append(_encode_shown(item, raw, whole, request.projection, sliced))
        if in_steps:
            release_item(item, engine.pause)
        if found.size >= LARGEST_PAGE or found.scanned == request.limit:
            found.full = True
            break
    return found


def _read_in_memory(engine: SqliteEngine, source: KeyRange, request: Query | Scan) -> _PageState:
    if _shows_whole(source, request):
        return _read_concatenated(engine, source, request)
    return _read(engine, _read_rows_in_memory(engine, source, request.limit), source, request)


def _read_concatenated(engine: SqliteEngine, source: KeyRange, request: Query | Scan) -> _PageState:
    """Read a page of unchanged items, concatenated by SQLite."""
    found = _PageState()
    table, index, forward = source.table, source.index, source.forward
    while True:
        left = None if request.limit is None else request.limit - found.scanned
        limit = _RUN if left is None else min(_RUN, left)
        # A bytearray, as in GetItem: sqlite3 binds it faster than bytes.
        bounds = (bytearray(source.low), bytearray(source.high))
        with engine.database.read() as connection:
            count, size, raw, position = read_concatenated_items(
                connection, table, index, bounds=bounds, forward=forward, limit=limit
            )
        if found.size + size >= LARGEST_PAGE:
            # The page ends within these items.
            return _read_whole(engine, _read_rows_in_memory(engine, source, left), found, request)
        if count:
            found.items.append(raw)
            found.size += size
            found.scanned = found.count = found.scanned + count
        if position is None:
            return found
        if found.scanned == request.limit:
            found.last = position
            found.full = True
            return found
        engine.pause(len(raw))
        source = source.after(position)


def _read_whole(
    engine: SqliteEngine, stored: Iterable[list[RangeRow]], found: _PageState, request: Query | Scan
) -> _PageState:
    """Read the rest of a page of unchanged items, without decoding them."""
    for chunk in stored:
        taken = _take_until_full(chunk, LARGEST_PAGE - found.size)
        size = sum([row[0] for row in taken])
        found.size += size
        found.items += [row[1] for row in taken]
        found.scanned += len(taken)
        found.last = taken[-1][3]
        if found.size >= LARGEST_PAGE or found.scanned == request.limit:
            found.full = True
            break
        engine.pause(size)
    found.count = found.scanned
    return found


def _take_until_full(chunk: list[RangeRow], bytes_left: int) -> list[RangeRow]:
    """Return the rows up to and including the one that fills the page."""
    if sum([row[0] for row in chunk]) < bytes_left:
        return chunk
    for count, row in enumerate(chunk, 1):
        bytes_left -= row[0]
        if bytes_left <= 0:
            return chunk[:count]
    return chunk


def _encode_shown(
    item: Item, raw: bytes, whole: bool, projection: Projection | None, sliced: bool
) -> SomeItem:
    """Return an item of the page. A sliced request encodes it here, because a whole page takes long."""
    if not sliced:
        return item if projection is None else project(projection, item)
    if whole and projection is None:
        return raw
    return dumps(item if projection is None else project(projection, item))


def _record_heat(heat: HeatRecorder, source: KeyRange, request: Query | Scan, found: _PageState) -> None:
    units = read_units(found.size, request.consistent) + found.fetched_units
    # DynamoDB: a local index shares the partitions of its table.
    index = source.index if source.index is not None and source.index.is_global else None
    content = None
    if isinstance(request, Query):
        schema = source.table.schema if source.index is None else source.index.schema
        content = schema.partition_content({term.name: term.values[0] for term in request.key})
    heat.add_read(source.table, index, content, units)


def _capacity(source: KeyRange, request: Query | Scan, found: _PageState) -> dict[str, object] | None:
    meter = CapacityMeter(request.table)
    units = read_units(found.size, request.consistent)
    if source.index is None:
        meter.table(units)
    else:
        meter.table(found.fetched_units)
        (meter.index if source.index.is_global else meter.local)(source.index.name, units)
    return meter.report(request.capacity)
