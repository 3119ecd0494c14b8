"""Rows of items: found, written and removed with their index entries and their recorded change.

A row is the item's DynamoDB JSON beside its size and a checksum of key and item; an index entry has
one of its own key and the item's. What does not match its checksum is an error, never an item.
Nothing here knows conditions or expressions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from typing import Any

from solotable._protocol.capacity import CapacityMeter, write_units
from solotable._protocol.decode.large_items import decode_item_in_steps
from solotable._protocol.engine import Pause
from solotable._protocol.json_codec import dumps, loads
from solotable._values import Item, item_size
from solotable._values.checksum import crc32
from solotable.engines.sqlite.counts.counts import CountDeltas, CountOwner
from solotable.engines.sqlite.tables.catalog import Index, Table
from solotable.errors import Corrupt

from . import expiry_index
from .keys import encode_index_key, has_index_key

#: A row of a range: size, item, checksum, its place in the range; in an index also the item's own key,
#: which is the place in the table, and the checksum of the place.
RangeRow = tuple[int, bytes, int, bytes] | tuple[int, bytes, int, bytes, bytes, int]
#: How many rows are fetched at once: few, until they have proved to be small.
FIRST_CHUNK = 16
CHUNK = 64
#: Chunks are as large as this many bytes allow.
CHUNK_BYTES = 256 * 1024


class StoredItem:
    """A stored item: its JSON as it is, and decoded once somebody looks."""

    __slots__ = ("_item", "id", "raw", "size")

    def __init__(self, row_id: int, size: int, raw: bytes) -> None:
        self.id = row_id
        self.size = size
        self.raw = raw
        self._item: Item | None = None

    @property
    def item(self) -> Item:
        if self._item is None:
            self._item = loads(self.raw)
        return self._item

    def decode(self, pause: Pause) -> None:
        """Decode the item in steps."""
        self._item = decode_item_in_steps(self.raw, pause)


def find(connection: sqlite3.Connection, table: Table, key: bytes) -> StoredItem | None:
    """Return the row of this key, or None."""
    return decode_row(table, key, connection.execute(table.select_sql, (key,)).fetchone())


def decode_row(table: Table, key: bytes, found: tuple[int, int, int, bytes] | None) -> StoredItem | None:
    """Return the row that `select_sql` found under a key, or raise Corrupt if its checksum is wrong."""
    if found is None:
        return None
    row_id, size, crc, raw = found
    try:
        if crc32(raw, crc32(key)) == crc and size.__class__ is int:
            return StoredItem(row_id, size, raw)
    except TypeError:
        # A damaged header makes SQLite read bytes as another type.
        pass
    raise _corrupt(table)


def read_chunks(
    connection: sqlite3.Connection,
    table: Table,
    index: Index | None,
    *,
    low: bytes,
    high: bytes,
    forward: bool = True,
    limit: int | None = None,
) -> Generator[list[RangeRow], None, None]:
    """Yield the rows whose key in the table or index lies in [low, high), in order, some at a time."""
    cursor = connection.execute(
        table.statement(rows_sql, index, forward=forward), (low, high, -1 if limit is None else limit)
    )
    follow = _check_item_rows if index is None else _check_entry_rows
    count = FIRST_CHUNK
    try:
        while found := cursor.fetchmany(count):
            following = follow(found, low, high, forward)
            if following is None:
                raise _corrupt(table)
            low, high = following
            yield found
            count = next_chunk(found[-1][1])
    except TypeError:
        # A damaged header makes SQLite read bytes as something else.
        raise _corrupt(table) from None
    finally:
        # A statement that is not done holds on to its snapshot, and with it whoever reads next.
        cursor.close()


def next_chunk(raw: bytes) -> int:
    """Return how many rows to fetch after a row: a page of the largest items has three."""
    return max(1, min(CHUNK, CHUNK_BYTES // (len(raw) + 1)))


# The checks are written out: a page has many rows, and a call costs as much as a checksum. Each row must
# also lie behind the last: a page of the file that was written to the wrong place is sound in itself.
def _check_item_rows(rows: list[Any], low: bytes, high: bytes, forward: bool) -> tuple[bytes, bytes] | None:
    """Return the bounds of what comes after these rows of a table; None when one is not as it was stored."""
    for size, raw, crc, key in rows:
        if crc32(raw, crc32(key)) != crc or not low <= key < high or size.__class__ is not int:
            return None
        if forward:
            low = key + b"\0"
        else:
            high = key
    return low, high


def _check_entry_rows(rows: list[Any], low: bytes, high: bytes, forward: bool) -> tuple[bytes, bytes] | None:
    """The same for rows of an index: they must also be those that its entries lead to."""
    for size, raw, crc, place, key, place_crc in rows:
        start = crc32(key)
        if crc32(raw, start) != crc or not low <= place < high or size.__class__ is not int:
            return None
        if crc32(place, start) != place_crc:
            return None
        if forward:
            low = place + b"\0"
        else:
            high = place
    return low, high


def rows_sql(table: Table, index: Index | None, *, forward: bool) -> str:
    """Return the text behind `read_chunks`; a test explains its plan."""
    entry = "" if index is None else ", i.key, x.crc"
    return range_sql(table, index, f"i.size, i.item, i.crc, x.key{entry}", forward=forward)


def range_sql(table: Table, index: Index | None, columns: str, *, forward: bool) -> str:
    """Return the text that reads a range in order: of the items `i`, at their places `x`."""
    order = "ASC" if forward else "DESC"
    if index is None:
        return (
            f"SELECT {columns.replace('x.', 'i.')} FROM {table.items} AS i "
            f"WHERE key >= ? AND key < ? ORDER BY key {order} LIMIT ?"
        )
    # LEFT JOIN fixes the order of the loops, the index first, and shows an entry that leads to no item.
    return (
        f"SELECT {columns} FROM x{index.id} AS x LEFT JOIN {table.items} AS i "
        f"ON i.id = x.row WHERE x.key >= ? AND x.key < ? ORDER BY x.key {order} LIMIT ?"
    )


def add_entry(connection: sqlite3.Connection, index: Index, entry: bytes, key: bytes, row_id: int) -> bool:
    """Add an index entry that leads to an item; say whether it was not there yet."""
    added = connection.execute(index.insert_sql, (entry, row_id, entry_checksum(entry, key)))
    return added.rowcount > 0


def entry_checksum(entry: bytes, key: bytes) -> int:
    """Return the checksum of an index entry: of its key, and of the key of the item it leads to."""
    return crc32(entry, crc32(key))


def is_entry_sound(entry: bytes, key: bytes, crc: int) -> bool:
    """Say whether an index entry is as it was stored and leads to the item of this key."""
    try:
        return crc32(entry, crc32(key)) == crc
    except TypeError:
        return False


def is_row_sound(key: bytes, size: int, crc: int, raw: bytes) -> bool:
    """Say whether a row is as it was stored."""
    try:
        return crc32(raw, crc32(key)) == crc and size.__class__ is int
    except TypeError:
        return False


def _corrupt(table: Table) -> Corrupt:
    return Corrupt(f"An item of table {table.name} does not match its checksum; it was not served.")


class Writer:
    """A write transaction: writes items with their index entries and change records.

    It is called with the connection once the transaction has begun, and runs its action. `deltas` then says
    what the action changes in the counts of tables and indexes.
    """

    __slots__ = ("_action", "_by_service", "_clock", "_now_micros", "connection", "deltas")

    connection: sqlite3.Connection
    deltas: CountDeltas

    def __init__(
        self, action: Callable[[Writer], Any], clock: Callable[[], float], *, by_service: bool = False
    ) -> None:
        self._action = action
        self._clock = clock
        self._by_service = by_service

    def __call__(self, connection: sqlite3.Connection) -> Any:
        self.connection = connection
        # A write may run again, after a transaction that was rolled back.
        self.deltas = {}
        self._now_micros: int | None = None
        return self._action(self)

    @property
    def now_micros(self) -> int:
        """The time of this transaction, in microseconds since the epoch."""
        if self._now_micros is None:
            self._now_micros = int(self._clock() * 1_000_000)
        return self._now_micros

    def find(self, table: Table, key: bytes) -> StoredItem | None:
        """Return the row of this key as this transaction sees it."""
        return decode_row(table, key, self.connection.execute(table.select_sql, (key,)).fetchone())

    def save(self, table: Table, key: bytes, old: StoredItem | None, new: Item, size: int) -> None:
        """Write an item in the place of what was there, if anything."""
        raw = dumps(new)
        if old is not None and (old.raw == raw or (table.stream is not None and old.item == new)):
            # DynamoDB: a write that changes nothing leaves no record of a change.
            return
        crc = crc32(raw, crc32(key))
        if old is None:
            row_id = self.connection.execute(table.insert_sql, (key, size, crc, raw)).lastrowid or 0
            self._count(table.own_count, 1, size)
        else:
            row_id = old.id
            self.connection.execute(table.update_sql, (size, crc, raw, row_id))
            if size != old.size:
                self._count(table.own_count, 0, size - old.size)
        if table.indexes:
            self._update_indexes(table, key, row_id, old, new, size)
        if table.expiry is not None:
            expiry_index.move_entry(
                self.connection, table.expiry, row_id, None if old is None else old.item, new
            )
        if table.stream is not None:
            self._record_change(table.stream, key, old, raw)

    def remove(self, table: Table, key: bytes, old: StoredItem) -> None:
        """Remove an item that is there."""
        self.connection.execute(table.delete_sql, (old.id,))
        self._count(table.own_count, -1, -old.size)
        if table.indexes:
            self._update_indexes(table, key, old.id, old, None, 0)
        if table.expiry is not None:
            expiry_index.move_entry(self.connection, table.expiry, old.id, old.item, None)
        if table.stream is not None:
            self._record_change(table.stream, key, old, None)

    def _count(self, owner: CountOwner, items: int, size: int) -> None:
        counted = self.deltas.get(owner)
        if counted is None:
            self.deltas[owner] = [items, size]
        else:
            counted[0] += items
            counted[1] += size

    def _update_indexes(
        self,
        table: Table,
        key: bytes,
        row_id: int,
        old: StoredItem | None,
        new: Item | None,
        size: int,
    ) -> None:
        for index in table.indexes:
            if (
                old is not None
                and new is not None
                and index.status == "ACTIVE"
                and _has_same_index_key(index, old.item, new)
            ):
                if size != old.size or index.projected is not None:
                    self._count_growth(table, index, old, new, size)
                continue
            before = None if old is None else encode_index_key(index, old.item, key)
            after = None if new is None else encode_index_key(index, new, key)
            # During a backfill, an item that is older than the index may not have an entry yet.
            if old is not None and before is not None and before != after:
                removed = self.connection.execute(index.delete_sql, (before,)).rowcount
                if removed:
                    self._count(table.count_owner(index.id), -1, -index.size(old.item, old.size))
            if new is not None and after is not None:
                if add_entry(self.connection, index, after, key, row_id):
                    self._count(table.count_owner(index.id), 1, index.size(new, size))
                elif old is not None:
                    self._count_growth(table, index, old, new, size)

    def _count_growth(self, table: Table, index: Index, old: StoredItem, new: Item, size: int) -> None:
        """Count the growth of an item whose index entry does not move."""
        growth = index.growth(old.item, new, size - old.size)
        # Where both items lack an index key attribute there is no entry.
        if growth and has_index_key(index, new):
            self._count(table.count_owner(index.id), 0, growth)

    def _record_change(self, stream: str, key: bytes, old: StoredItem | None, new: bytes | None) -> None:
        before = None if old is None else old.raw
        self.connection.execute(
            "INSERT INTO changes (stream, at_micros, by_service, key, old, new, crc) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (stream, self.now_micros, self._by_service, key, before, new, change_checksum(before, new)),
        )


def _has_same_index_key(index: Index, one: Item, other: Item) -> bool:
    """Say whether two items have the same key in an index."""
    for name in index.schema.names:  # noqa: SIM110 - every write passes here, and a generator is slow
        if one.get(name) != other.get(name):
            return False
    return True


def change_checksum(old: bytes | None, new: bytes | None) -> int:
    """Return the checksum of a recorded change."""
    return crc32(new or b"", crc32(old or b""))


def check_change(old: bytes | None, new: bytes | None, crc: int) -> None:
    """Refuse a recorded change that is not as it was stored."""
    try:
        sound = change_checksum(old, new) == crc
    except TypeError:
        sound = False
    if not sound:
        raise Corrupt("A recorded change does not match its checksum; it was not served.")


def meter_write(
    meter: CapacityMeter,
    table: Table,
    old: StoredItem | None,
    new: Item | None,
    size: int,
    *,
    transactional: bool = False,
) -> None:
    """Count what a write costs: the larger of both items, and every index entry that it changes."""
    before = 0 if old is None else old.size
    meter.table(write_units(max(before, size), transactional))
    for index in table.indexes:
        units = _index_units(table, index, None if old is None else old.item, new, transactional)
        if units:
            (meter.index if index.is_global else meter.local)(index.name, units)


def _index_units(
    table: Table, index: Index, old: Item | None, new: Item | None, transactional: bool
) -> float:
    before = None if old is None else encode_index_key(index, old, b"")
    after = None if new is None else encode_index_key(index, new, b"")
    held_before = index.project(old) if old is not None and before is not None else None
    held_after = index.project(new) if new is not None and after is not None else None
    if before is not None and before == after:
        if held_before == held_after:
            return 0.0
        largest = max(item_size(held_before or {}), item_size(held_after or {}))
        return write_units(largest, transactional)
    # DynamoDB: a changed index key costs the removal of one entry and the making of another.
    return sum(
        write_units(item_size(held), transactional) for held in (held_before, held_after) if held is not None
    )
