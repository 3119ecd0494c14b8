"""What Query and Scan have in common: what they may show, and how a page is read and ends.

A page ends when Limit items were read or 1 MB was; the filter comes after, so a page may be empty.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from solotable.engines.sqlite.catalog import Index, KeyAttribute, Table
from solotable.engines.sqlite.joined import last_of_run, read_run
from solotable.engines.sqlite.keys import check_key, index_bytes, key_bytes
from solotable.engines.sqlite.storage import Stored, chunks
from solotable.errors import ServiceError, invalid, invalid_parameter
from solotable.expressions import evaluate, paths_of, project
from solotable.expressions.ast import Projection
from solotable.protocol.capacity import CapacityMeter, read_units
from solotable.protocol.limits import LARGEST_PAGE
from solotable.protocol.replies import Page, SomeItem
from solotable.protocol.requests import Query, Scan
from solotable.protocol.text import loads
from solotable.values import Item, item_size

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: How many rows are joined at once: as many of the largest items as a server has room for.
_RUN = 64
INVALID_START = "The provided starting key is invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a page is read: the table or one of its indexes, and a range of its keys."""

    table: Table
    index: Index | None
    low: bytes
    high: bytes
    forward: bool = True
    #: A local index that lacks what was asked for: its items are fetched from the table.
    fetches: bool = False

    @property
    def position(self) -> tuple[KeyAttribute, ...]:
        """The attributes of a LastEvaluatedKey."""
        return self.table.schema.attributes if self.index is None else self.index.position


def find_index(table: Table, request: Query | Scan) -> Index | None:
    """Return the index that the request names, when it may be read that way."""
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
    """Refuse what a global index cannot show; say whether a local one must fetch from the table."""
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
    # DynamoDB: only Query minds; to the filter of a Scan such attributes are missing ones.
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


def start_bytes(table: Table, index: Index | None, start: Item) -> bytes:
    """Return the key, in the table or index, that a page starts behind."""
    own = key_bytes(table.schema, start)
    if index is None:
        return own
    found = index_bytes(index, start, own)
    if found is None:
        raise invalid(INVALID_START)
    return found


def check_table_key(table: Table, start: Item) -> None:
    """Refuse a start key whose part of the table's key does not fit."""
    try:
        check_key(table, {name: start[name] for name in table.schema.names if name in start})
    except ServiceError as refused:
        raise invalid(f"{INVALID_START}: {refused.message}") from refused


def read_page(engine: SqliteEngine, source: Source, request: Query | Scan) -> Page:
    """Read one page and answer as the request wants it."""
    with engine.database.read() as connection:
        if not _shows_whole(source, request):
            with closing(_stored(connection, source, request.limit)) as stored:
                found = _read(stored, source, request)
        elif engine.database.in_memory:
            found = _read_joined(connection, source, request)
        else:
            with closing(_stored(connection, source, request.limit)) as stored:
                found = _read_whole(stored, _Found([]), request)
    last = None
    if found.full and found.last is not None:
        item = loads(found.last)
        last = {part.name: item[part.name] for part in source.position}
    return Page(
        items=None if request.select == "COUNT" else found.items,
        count=found.count,
        scanned=found.scanned,
        last_key=last,
        capacity=_capacity(source, request, found),
    )


@dataclass(slots=True)
class _Found:
    items: list[SomeItem]
    count: int = 0
    scanned: int = 0
    size: int = 0
    fetched_units: float = 0
    #: The item that was read last, as it is stored.
    last: bytes | None = None
    full: bool = False


def _shows_whole(source: Source, request: Query | Scan) -> bool:
    """Say whether items are shown as they are stored."""
    index = source.index
    return (
        request.filter is None and request.projection is None and (index is None or index.projected is None)
    )


def _stored(
    connection: sqlite3.Connection, source: Source, limit: int | None
) -> Generator[list[Stored], None, None]:
    return chunks(
        connection,
        source.table,
        source.index,
        low=source.low,
        high=source.high,
        forward=source.forward,
        limit=limit,
    )


def _read(stored: Iterable[list[Stored]], source: Source, request: Query | Scan) -> _Found:
    index = source.index
    found = _Found([])
    for size, raw, *_ in chain.from_iterable(stored):
        found.scanned += 1
        found.last = raw
        item: Item = loads(raw)
        if index is None or index.projected is None:
            found.size += size
        else:
            entry = index.project(item)
            found.size += item_size(entry)
            if source.fetches:
                # DynamoDB: each item that is fetched for a local index costs a read of its own.
                found.fetched_units += read_units(size, request.consistent)
            else:
                item = entry
        if request.filter is None or evaluate(request.filter, item):
            found.count += 1
            if request.select != "COUNT":
                found.items.append(_shown(item, request.projection))
        if found.size >= LARGEST_PAGE or found.scanned == request.limit:
            found.full = True
            break
    return found


def _read_joined(connection: sqlite3.Connection, source: Source, request: Query | Scan) -> _Found:
    """Read a page whose items are shown as they are stored, without a look at any of them."""
    found = _Found([])
    table, index, forward = source.table, source.index, source.forward
    while True:
        limit = _RUN if request.limit is None else min(_RUN, request.limit - found.scanned)
        bounds = (source.low, source.high)
        run = read_run(connection, table, index, bounds=bounds, forward=forward, limit=limit)
        if found.size + run.size >= LARGEST_PAGE:
            # The page ends within this run.
            with closing(_stored(connection, source, limit)) as stored:
                return _read_whole(stored, found, request)
        if run.count:
            found.items.append(run.raw)
            found.size += run.size
            found.scanned = found.count = found.scanned + run.count
        if run.count < limit:
            return found
        found.last, place = last_of_run(
            connection, table, index, bounds=bounds, forward=forward, count=run.count
        )
        if found.scanned == request.limit:
            found.full = True
            return found
        source = replace(source, low=place + b"\0") if forward else replace(source, high=place)


def _read_whole(stored: Iterable[list[Stored]], found: _Found, request: Query | Scan) -> _Found:
    """Read the rest of a page whose items are shown as they are stored, without looking into them."""
    for chunk in stored:
        kept = _filling(chunk, LARGEST_PAGE - found.size)
        found.size += sum([row[0] for row in kept])
        found.items += [row[1] for row in kept]
        found.scanned += len(kept)
        found.last = kept[-1][1]
        if found.size >= LARGEST_PAGE or found.scanned == request.limit:
            found.full = True
            break
    found.count = found.scanned
    return found


def _filling(chunk: list[Stored], room: int) -> list[Stored]:
    """Return the rows up to the one that fills the room, that one included."""
    if sum([row[0] for row in chunk]) < room:
        return chunk
    for place, row in enumerate(chunk, 1):
        room -= row[0]
        if room <= 0:
            return chunk[:place]
    return chunk


def _shown(item: Item, projection: Projection | None) -> Item:
    return item if projection is None else project(projection, item)


def _capacity(source: Source, request: Query | Scan, found: _Found) -> dict[str, object] | None:
    if request.capacity == "NONE":
        return None
    meter = CapacityMeter(request.table)
    units = read_units(found.size, request.consistent)
    if source.index is None:
        meter.table(units)
    else:
        meter.table(found.fetched_units)
        (meter.index if source.index.is_global else meter.local)(source.index.name, units)
    return meter.report(request.capacity)
